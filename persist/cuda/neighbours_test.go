package cuda

import (
	"testing"
	"unsafe"

	"github.com/golang/mock/gomock"
	"github.com/stretchr/testify/require"

	"libvpps/gpu"
	"libvpps/persist/isa"
)

// The first read copies its own floats, the second a block, and later ones nothing, until the segment may have changed.
func TestReadsBringTheirNeighbours(t *testing.T) {
	e, d, events, _ := opened(t)
	require.NoError(t, e.Grow(isa.SegAct, 3*block))
	base := e.segments[isa.SegAct].at
	memory := make([]float32, e.segments[isa.SegAct].words)
	for i := range memory {
		memory[i] = float32(i)
	}
	copies := func(offset, floats int) *gomock.Call {
		return d.EXPECT().CopyFromDevice(gomock.Any(), base+gpu.Ptr(4*offset), 4*floats).DoAndReturn(
			func(to unsafe.Pointer, _ gpu.Ptr, _ int) error {
				copy(unsafe.Slice((*float32)(to), floats), memory[offset:])
				return nil
			})
	}
	reads := func(offset, floats int) {
		t.Helper()
		got := make([]float32, floats)
		require.NoError(t, e.Read(isa.SegAct, uint64(offset), got))
		require.Equal(t, memory[offset:offset+floats], got)
	}
	const more = block / 2
	copies(70, 3)
	reads(70, 3)
	copies(0, block)
	reads(70, 3)
	reads(0, 1)
	reads(block-1, 1)
	copies(0, block+1) // it reaches into the next
	reads(block-1, 2)
	copies(block, block)
	reads(block+5, more)
	copies(0, more+1) // more than half a block
	reads(0, more+1)
	reads(block+5, more)
	last := len(memory) - len(memory)%block
	if last < len(memory) { // a block ends with the segment
		copies(last, len(memory)-last)
		reads(last, 1)
	}

	d.EXPECT().CopyToDevice(gomock.Any(), gomock.Any(), 4).Times(1)
	d.EXPECT().CopyOnDevice(gomock.Any(), gomock.Any(), gomock.Any()).Times(1)
	d.EXPECT().CopyAhead(gomock.Any(), gomock.Any(), gomock.Any())
	d.EXPECT().Launch(gomock.Any(), gomock.Any(), gomock.Any(), gomock.Any(), gomock.Any(), gomock.Any())
	events[0].EXPECT().Record()
	for name, changes := range map[string]func() error{
		"write":  func() error { return e.Write(isa.SegAct, 0, []float32{0}) },
		"zero":   func() error { return e.Zero(isa.SegAct, 9, 1) },
		"copy":   func() error { return e.Copy(isa.SegAct, 7, isa.SegParam, 0, 1) },
		"launch": func() error { return e.Launch(emptyScript(), 1) },
	} {
		require.NoError(t, changes(), name)
		memory[70]++
		copies(70, 1)
		reads(70, 1)
		copies(0, block)
		reads(71, 1)
		reads(72, 1)
	}

	d.EXPECT().CopyFromDevice(gomock.Any(), gomock.Any(), gomock.Any()).Return(errNo)
	require.ErrorIs(t, e.Read(isa.SegAct, block, make([]float32, 1)), errNo)
	copies(0, 1)
	reads(0, 1)
}
