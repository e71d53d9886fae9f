package cuda

import (
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
	require.ErrorIs(t, e.Move(make([]executor.Run, 20)), standin.OutOfMemory)
	g.Fail(nil)
	_, sums, err := e.Sums(isa.SegGrad)
	require.NoError(t, err)
	require.NotZero(t, sums)
}
