package persist

import (
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/persist/clocks"
	"libvpps/persist/isa"
)

// With clocks results are the same, on both devices, and every phase of every batch has its time.
func TestClocksSeeEveryPhase(t *testing.T) {
	devices := map[string]func() *model{
		"one processor": func() *model { return onThreads(t, 1) },
		"processors":    func() *model { m := newModel(t, 0); m.addMatrix(); return m },
		"GPU":           func() *model { m, _ := onGPU(t); m.addMatrix(); return m },
	}
	for name, open := range devices {
		t.Run(name, func(t *testing.T) {
			m := open()
			want := batches(m, m.by(isa.Adam), 12)
			t.Setenv("VPPS_PROFILE", "1")
			m = open()
			have := batches(m, m.by(isa.Adam), 12)
			for id := range want {
				require.Equal(t, want[id], have[id])
			}
			times, err := m.Times()
			require.NoError(t, err)
			s := &times.Clocks
			require.EqualValues(t, 12, s.Launches)
			require.Equal(t, m.plan.Processors, s.Processors)
			for _, part := range []clocks.Part{clocks.Start, clocks.Forward, clocks.Backward, clocks.Gradients, clocks.Update, clocks.Fetch, clocks.Busy} {
				require.Positive(t, s.Parts[part].Mean, part)
				require.LessOrEqual(t, s.Parts[part].Mean, s.Parts[part].Max, part)
			}
			cell := func(p isa.Phase, op isa.Opcode) uint64 { return s.Cells[p][op].Count }
			signals, ends := uint64(0), uint64(0)
			for p := range isa.Phases {
				signals += cell(p, isa.Signal)
			}
			for _, l := range s.Levels() {
				require.Positive(t, l.NS, l.Done)
				require.NotRegexp(t, "product .*product_t", l.Done, "there is a wait between")
				ends += l.Processors
			}
			require.Equal(t, signals, ends, "each signal ends a level for its processor")
			if s.Processors > 1 {
				require.Positive(t, s.Parts[clocks.Waiting].Max)
				require.NotZero(t, ends)
			}
			holders := len(m.plan.Of(0)) / max(1, m.plan.Matrices[0].Copies)
			require.EqualValues(t, 12*holders, cell(isa.InForward, isa.Product))
			require.EqualValues(t, 12*holders, cell(isa.InBackward, isa.ProductT))
			require.EqualValues(t, 12*holders, cell(isa.InGradients, isa.Outer))
			require.NotZero(t, cell(isa.InUpdate, isa.Clip))
			require.NotZero(t, cell(isa.InUpdate, isa.Update))
			for _, op := range []isa.Opcode{isa.Product, isa.ProductT, isa.Outer, isa.Clip, isa.Update} {
				all := uint64(0)
				for p := range isa.Phases {
					all += cell(p, op)
				}
				require.Equal(t, max(cell(isa.InForward, op), cell(isa.InBackward, op), cell(isa.InGradients, op), cell(isa.InUpdate, op)), all, op)
			}
			dense := uint64(m.params[paramW].Size + m.params[paramM].Size)
			require.Equal(t, 12*4*dense, s.Updated, "each update reads the parameters once")
			require.Positive(t, times.RecordNS)
			require.Positive(t, times.KernelNS)
		})
	}
}

// The device's time is measured where the program asks for it.
func TestTimesOfTheDeviceAreMeasuredWhenAskedFor(t *testing.T) {
	for _, asked := range []bool{false, true} {
		m, _ := onGPU(t)
		require.NoError(t, m.measure(Options{Times: asked}))
		h := m.handle()
		for range 5 {
			require.NoError(t, trainBatch(m, h))
		}
		times, err := m.Times()
		require.NoError(t, err)
		require.Equal(t, asked, times.CopyNS > 0)
		require.Equal(t, asked, times.KernelNS > 0)
	}
}

// A launch behind a failed batch is skipped and has no time. What failed is evaluated once more.
func TestASkippedLaunchHasNoTime(t *testing.T) {
	t.Setenv("VPPS_PROFILE", "1")
	m, _ := onGPU(t)
	h := m.handle()
	for _, x := range []float32{1, inf, 1} {
		g := m.NewGraph()
		_, err := h.FB(g, product(x, 1), 3)
		require.NoError(t, err)
		g.Close()
	}
	_, err := h.SyncLatestLoss()
	require.ErrorIs(t, err, ErrNumeric)
	times, err := m.Times()
	require.NoError(t, err)
	require.EqualValues(t, 3, times.Clocks.Launches)
}
