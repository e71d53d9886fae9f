package cuda

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/gpu/mocks"
	"libvpps/persist/cuda/standin"
	"libvpps/persist/executor"
	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/plan"
)

// onStandin is an executor on a stand-in, which it gives everything back to.
func onStandin(t *testing.T) (*Executor, *standin.GPU) {
	t.Helper()
	patient(t)
	g := &standin.GPU{}
	e, err := New(g, mocks.NVRTC(t), 5, plan.Settings{}, "0.1.0")
	require.NoError(t, err)
	t.Cleanup(func() {
		e.Close()
		require.Zero(t, g.Held())
	})
	return e, g
}

// numbers are 0, 1, ... n-1.
func numbers(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i)
	}
	return x
}

// Sums lie like the gradients, are 0 at first and take their place and give it back; they grow as the gradients do.
func TestSumsTakeThePlaceOfGradients(t *testing.T) {
	e, _ := onStandin(t)
	for _, n := range []uint64{1 << 20, 3 << 20} {
		require.NoError(t, e.Grow(isa.SegGrad, n))
		require.NoError(t, e.Write(isa.SegGrad, n-2, []float32{1, 2}))
		own, sums, err := e.Sums(isa.SegGrad)
		require.NoError(t, err)
		require.EqualValues(t, e.segments[isa.SegGrad].at, own)
		have := make([]float32, 2)
		e.SwapSums(isa.SegGrad)
		require.EqualValues(t, e.segments[isa.SegGrad].at, sums)
		require.NoError(t, e.Read(isa.SegGrad, n-2, have))
		require.Equal(t, []float32{0, 0}, have)
		e.SwapSums(isa.SegGrad)
		require.NoError(t, e.Read(isa.SegGrad, n-2, have))
		require.Equal(t, []float32{1, 2}, have)
	}
	own, sums, err := e.Sums(isa.SegTGrad)
	require.NoError(t, err)
	require.Zero(t, own+sums, "there are no tables")
	require.Contains(t, memory.Table(e.Memory()), "sums of several ranks                  12582912")
	require.Equal(t, 0, e.Ordinal())
}

// Few runs and many, short and long ones, are copied in order with all else; a list is not overwritten while it is read.
func TestRunsAreCopied(t *testing.T) {
	e, g := onStandin(t)
	const n = 64 * longestRun
	require.NoError(t, e.Grow(isa.SegGrad, n))
	require.NoError(t, e.Write(isa.SegGrad, 0, numbers(n)))
	require.NoError(t, e.Grow(isa.SegTGrad, n))
	from, to := uint64(e.segments[isa.SegGrad].at), uint64(e.segments[isa.SegTGrad].at)
	for _, c := range []struct{ runs, length int }{{1, n}, {fewRuns, 3}, {fewRuns + 1, 3}, {60, 1}, {16, 2*longestRun + 5}} {
		require.NoError(t, e.Fill(to, 0, n))
		var there, more []executor.Run
		for k := range c.runs { // in the other order
			run := executor.Run{From: from + uint64(4*k*c.length), To: to + uint64(4*(c.runs-1-k)*c.length), N: uint64(c.length)}
			there = append(there, run)
			more = append(more, executor.Run{From: run.To, To: run.From, N: run.N})
		}
		require.NoError(t, e.Move(there))
		require.NoError(t, e.Move(more))
		have := make([]float32, n)
		require.NoError(t, e.Read(isa.SegGrad, 0, have))
		require.Equal(t, numbers(n), have)
		require.NoError(t, e.Read(isa.SegTGrad, 0, have))
		for k := range c.runs {
			require.Equal(t, numbers(n)[k*c.length:][:c.length], have[(c.runs-1-k)*c.length:][:c.length])
		}
	}
	require.Equal(t, 6, g.Calls()["Launch"])
}

// packed is the bits of a number of bfloat16: those of the nearest one, of two that are as near the even.
func packed(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16 | 0x40)
	}
	return uint16((uint64(b) + 0x7fff + uint64(b>>16&1)) >> 16)
}

// Floats become bfloat16 and come back, whatever their number and address. NaN stays NaN, infinite what is infinite, and
// nobody else's numbers change.
func TestFloatsBecomeBF16AndComeBack(t *testing.T) {
	e, _ := onStandin(t)
	floatsAndBF16(t, e)
}

func floatsAndBF16(t *testing.T, e *Executor) {
	const n = 1 << 15
	given := make([]float32, n)
	for i := range given {
		given[i] = math.Float32frombits(rand.Uint32()) // some NaN and infinite
	}
	special := []uint32{0, 0x80000000, 1, 0x3f808000, 0x3f818000, 0x3f808001, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7f800001, 0xffffffff}
	for i, b := range special {
		given[1000+i] = math.Float32frombits(b)
	}
	require.NoError(t, e.Grow(isa.SegGrad, n))
	require.NoError(t, e.Write(isa.SegGrad, 0, given))
	require.NoError(t, e.Grow(isa.SegTGrad, n))
	own, back := uint64(e.segments[isa.SegGrad].at), uint64(e.segments[isa.SegTGrad].at)
	at, err := e.Packed(n / 2)
	require.NoError(t, err)
	for _, scale := range []float32{1, 0.3} {
		for _, c := range []struct{ runs, length, from, to uint64 }{
			{1, n, 0, 0}, {1, n - 5, 1, 0}, {1, n - 5, 0, 1}, {2, 5000, 4, 2}, {3, 2*longestRun + 3, 0, 0}, {40, 1, 999, 0}, {40, 7, 990, 8}, {300, 12, 16, 4},
		} {
			require.NoError(t, e.Fill(at, 0x12341234, n/2))
			require.NoError(t, e.Fill(back, 0, n))
			var there, more []executor.Run
			want := make([]float32, n)
			for k := range c.runs { // side by side, in the other order
				from, to := c.from+k*c.length, c.to+(c.runs-1-k)*c.length
				there = append(there, executor.Run{From: own + 4*from, To: at + 2*to, N: c.length})
				for i := range c.length {
					want[to+i] = math.Float32frombits(uint32(packed(scale*given[from+i])) << 16)
				}
			}
			more = append(more, executor.Run{From: at + 2*c.to, To: back + 4*c.to, N: c.runs * c.length})
			for _, i := range []uint64{c.to - 1, c.to + c.runs*c.length} { // beside them
				if i < n {
					more = append(more, executor.Run{From: at + 2*i, To: back + 4*i, N: 1})
					want[i] = math.Float32frombits(0x12340000)
				}
			}
			require.NoError(t, e.Pack(there, scale))
			require.NoError(t, e.Unpack(more))
			have := make([]float32, n)
			require.NoError(t, e.Read(isa.SegTGrad, 0, have))
			for i := range have {
				if want[i] != want[i] && have[i] != have[i] { // devices choose NaN's other bits
					continue
				}
				require.Equal(t, math.Float32bits(want[i]), math.Float32bits(have[i]), "%+v, scale %g: number %d", c, scale, i)
			}
		}
	}
	require.NoError(t, e.Pack(nil, 1))
}

// Memory for what is packed grows seldom, and by no more than is there.
func TestPackedGrowsByHalf(t *testing.T) {
	e, g := onStandin(t)
	before := g.Calls()["Alloc"]
	for n := uint64(100); n < 1000; n++ {
		at, err := e.Packed(n)
		require.NoError(t, err)
		require.NoError(t, e.Fill(at, 1, n))
	}
	require.LessOrEqual(t, g.Calls()["Alloc"]-before, 7)
	had := e.packed.words
	failing := true
	g.Fail(func(call string) error {
		if call == "Alloc" && failing {
			failing = false
			return standin.OutOfMemory
		}
		return nil
	})
	_, err := e.Packed(had + 1)
	require.NoError(t, err)
	require.Equal(t, had+1, e.packed.words)
}

// A device that has no memory for sums says so, and what was there before is left.
func TestNoMemoryForSums(t *testing.T) {
	e, g := onStandin(t)
	require.NoError(t, e.Grow(isa.SegGrad, 100))
	g.Fail(func(call string) error {
		if call == "Alloc" || call == "AllocHost" || call == "Load" {
			return standin.OutOfMemory
		}
		return nil
	})
	_, _, err := e.Sums(isa.SegGrad)
	require.ErrorIs(t, err, standin.OutOfMemory)
	_, err = e.Packed(10)
	require.ErrorIs(t, err, standin.OutOfMemory)
	require.ErrorIs(t, e.Move(slices.Repeat([]executor.Run{{N: 1}}, 20)), standin.OutOfMemory)
	require.ErrorIs(t, e.Pack([]executor.Run{{N: 1}}, 1), standin.OutOfMemory)
	g.Fail(nil)
	_, sums, err := e.Sums(isa.SegGrad)
	require.NoError(t, err)
	require.NotZero(t, sums)
}
