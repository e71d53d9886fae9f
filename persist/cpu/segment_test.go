package cpu

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"libvpps/jit/kernel"
	"libvpps/persist/isa"
	"libvpps/persist/memory"
)

func opened(t *testing.T) *segment {
	s := &segment{}
	require.NoError(t, s.open())
	t.Cleanup(s.close)
	s.floats[7] = 3
	return s
}

func TestASegmentGrowsWhereItIs(t *testing.T) {
	s := opened(t)
	opened(t) // which is not in its way
	at := s.at()
	for _, n := range []uint64{1, step / 4, step/4 + 1, 100 << 20, most} { // to 16 GiB of address space, of which no page is touched
		require.NoError(t, s.grow(n))
		require.GreaterOrEqual(t, uint64(len(s.floats)), n)
		require.Equal(t, at, s.at())
	}
	s.floats[most-1] = 4
	require.EqualValues(t, 3, s.floats[7])
	require.ErrorIs(t, s.grow(most+1), memory.ErrExhausted)
}

// Somebody's memory right behind it.
func blocked(t *testing.T) *segment {
	s := opened(t)
	end := uintptr(s.at()) + step
	p := kernel.Map(step, end)
	require.Equal(t, end, uintptr(p))
	t.Cleanup(func() { kernel.Unmap(p, step) })
	return s
}

func TestASegmentInWhoseWaySomebodyIsMoves(t *testing.T) {
	s := blocked(t)
	at := s.at()
	require.NoError(t, s.grow(step))
	require.NotEqual(t, at, s.at())
	require.EqualValues(t, 3, s.floats[7])
}

func TestASegmentWhoseAddressIsKnownNeverMoves(t *testing.T) {
	s := blocked(t)
	s.pinned = true
	at := s.at()
	require.ErrorIs(t, s.grow(step), memory.ErrExhausted)
	require.Equal(t, at, s.at())
	require.Len(t, s.floats, step/4)
}

func TestZeroClearsWhatItIsToldTo(t *testing.T) {
	s := opened(t)
	require.NoError(t, s.grow(4*step))
	for _, n := range []int{1, 1000, step / 4, step + 12345} {
		for _, from := range []int{0, 1, 1023, 4096} {
			for i := range s.floats {
				s.floats[i] = 1
			}
			zero(s.floats[from:][:n])
			for i, x := range s.floats {
				if want := i < from || i >= from+n; want != (x == 1) {
					t.Fatalf("%d floats from %d on: element %d is %g", n, from, i, x)
				}
			}
		}
	}
}

// Memory that an executor writes to is where its processors read after a segment has moved.
func TestAnExecutorFollowsASegmentThatMoved(t *testing.T) {
	e, err := New(1, 1, 5)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	s := &e.segments[isa.SegAct]
	p := kernel.Map(step, uintptr(s.at())+uintptr(4*len(s.floats)))
	t.Cleanup(func() { kernel.Unmap(p, step) })
	require.NoError(t, e.Grow(isa.SegAct, 2*step))
	require.Equal(t, unsafe.Pointer(s.at()), e.machine.Segment(isa.SegAct))
}
