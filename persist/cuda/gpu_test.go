package cuda

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/gpu"
	"libvpps/persist/example"
	"libvpps/persist/executor"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
)

// These tests run on a GPU, and only where VPPS_TEST_GPU=1 says that there is one to use.

func newGPU(t testing.TB, waitSeconds float64) *Executor {
	t.Helper()
	if os.Getenv("VPPS_TEST_GPU") != "1" {
		t.Skip("skipped: needs a GPU (VPPS_TEST_GPU=1)")
	}
	driver, err := gpu.OpenDriver()
	require.NoError(t, err)
	dev, err := driver.Open(0)
	require.NoError(t, err)
	info := dev.Info()
	compiler, err := gpu.OpenCompiler(info.DriverVersion/1000, 10*info.Major+info.Minor)
	require.NoError(t, err)
	e, err := New(dev, compiler, waitSeconds, plan.Settings{}, "0.1.0")
	require.NoError(t, err)
	t.Cleanup(e.Close)
	return e
}

func TestFloatsBecomeBF16OnTheGPU(t *testing.T) { floatsAndBF16(t, newGPU(t, 5)) }

// What rounding n floats to bfloat16 takes, and bringing them back: both in one buffer, which nobody reads.
func BenchmarkBF16(b *testing.B) {
	e := newGPU(b, 5)
	for _, n := range []uint64{1 << 10, 1 << 20, 1 << 23, 1 << 25} {
		require.NoError(b, e.Grow(isa.SegGrad, n))
		at, err := e.Packed(n / 2)
		require.NoError(b, err)
		own := uint64(e.segments[isa.SegGrad].at)
		for name, do := range map[string]func() error{
			"pack":   func() error { return e.Pack([]executor.Run{{From: own, To: at, N: n}}, 1) },
			"unpack": func() error { return e.Unpack([]executor.Run{{From: at, To: own, N: n}}) },
		} {
			b.Run(fmt.Sprintf("%s/floats=%d", name, n), func(b *testing.B) {
				for b.Loop() {
					require.NoError(b, do())
					require.NoError(b, e.Wait())
				}
			})
		}
	}
}

// fill gives every segment its contents.
func fill(t *testing.T, e *Executor, memory [isa.Segments][]float32) {
	t.Helper()
	for s, values := range memory {
		require.NoError(t, e.Grow(isa.Segment(s), uint64(len(values))+64))
		require.NoError(t, e.Write(isa.Segment(s), 0, values))
	}
}

// The hand-written script of two processors gives the float64 results, twice the same
// bits; every launch is one kernel and one copy, and reads each weight from memory once.
func TestOwnExampleRunsOnTheGPU(t *testing.T) {
	t.Setenv("VPPS_PROFILE", "1")
	e := newGPU(t, 5)
	example, err := example.OwnExample()
	require.NoError(t, err)
	require.NoError(t, e.SetPlan(example.Plan))
	weights := 0
	for _, m := range example.Plan.Matrices {
		weights += m.Rows * m.Cols
	}
	var before []float32
	for run := range 3 {
		fill(t, e, example.Memory)
		counts := e.dev.Counts()
		require.NoError(t, e.Launch(example.Script, uint32(run+1)))
		now := e.dev.Counts()
		require.EqualValues(t, 1, now.Launches-counts.Launches)
		if run > 0 { // the first one zeroes its slot's memory, too
			require.LessOrEqual(t, now.CopiesToDevice-counts.CopiesToDevice, uint64(1))
		}
		require.NoError(t, e.Wait())
		var all []float32
		for _, x := range example.Expected {
			have := make([]float32, len(x.Values))
			require.NoError(t, e.Read(x.Segment, uint64(x.Offset), have))
			for i, want := range x.Values {
				require.InDelta(t, want, have[i], 1e-5, "%s[%d]", x.Name, i)
			}
			all = append(all, have...)
		}
		if before != nil {
			require.Equal(t, before, all)
		}
		before = all
		times, err := e.Clocks()
		require.NoError(t, err)
		require.EqualValues(t, 4*(run+1)*weights, times.Loaded)
	}
}

// A script whose signal was dropped, run unverified, ends in an error that names the wait.
func TestALostSignalIsAnErrorNotAHang(t *testing.T) {
	e := newGPU(t, 0.2)
	p, err := plan.Sliced(nil, 2)
	require.NoError(t, err)
	require.NoError(t, e.SetPlan(p))
	a := isa.NewAssembler(2)
	a.Wait(1, 0, 1) // processor 0 signals nothing
	require.NoError(t, e.Launch(a.Script(), 1))
	err = e.Wait()
	require.ErrorContains(t, err, "processor 1")
	require.ErrorContains(t, err, "barrier 0 has 0 of 1 signals")
}

func TestAnUnknownInstructionIsAnError(t *testing.T) {
	e := newGPU(t, 0.2)
	p, err := plan.Sliced(nil, 1)
	require.NoError(t, err)
	require.NoError(t, e.SetPlan(p))
	a := isa.NewAssembler(1)
	a.Do(0, 200, 0, 0, nil)
	require.NoError(t, e.Launch(a.Script(), 1))
	require.ErrorContains(t, e.Wait(), "not an instruction")
}
