package persist

import (
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge/ops"
	"libvpps/persist/cpu"
	"libvpps/persist/executor"
	"libvpps/persist/isa"
)

// ahead is a CPU executor that claims to return before a launch has run, so that batches go
// through the worker.
type ahead struct{ *stubborn }

func (a ahead) Traits() executor.Traits {
	t := a.stubborn.Traits()
	t.Asynchronous = true
	return t
}

func newAhead(t *testing.T) (*model, *Handle) {
	m := newModel(t, 0)
	m.verify = false
	m.Engine.exec = ahead{m.exec}
	h, err := m.NewHandle([]uint32{paramW, paramTable}, nil)
	require.NoError(t, err)
	return m, h
}

// trainBatch runs one batch of product over a new graph.
func trainBatch(m *model, h *Handle) error {
	g := m.NewGraph()
	defer g.Close()
	_, err := h.FB(g, product(1, 1), 3)
	return err
}

func weights(t *testing.T, m *model) []float32 {
	t.Helper()
	w := make([]float32, 2)
	require.NoError(t, m.ReadParameter(paramW, Values, 0, w))
	return w
}

func TestBatchesThroughTheWorkerTrain(t *testing.T) {
	m, h := newAhead(t)
	for range 5 {
		require.NoError(t, trainBatch(m, h))
	}
	require.NotNil(t, m.pipe.all)
	loss, err := h.SyncLatestLoss()
	require.NoError(t, err)
	require.InDelta(t, 3-4*0.2, loss, 1e-5) // every step takes 0.1 off both weights
	require.InDeltaSlice(t, []float32{0.5, 1.5}, weights(t, m), 1e-5)
}

// A batch that the worker cannot launch is reported by a later call, once; parameters are as
// before it, and training goes on.
func TestABatchWithoutMemoryChangesNothingAndIsForgotten(t *testing.T) {
	m, h := newAhead(t)
	require.NoError(t, trainBatch(m, h))
	m.drain()
	m.exec.full = true
	require.NoError(t, trainBatch(m, h))
	_, err := h.SyncLatestLoss()
	require.ErrorIs(t, err, ErrMemory)
	require.ErrorContains(t, err, "batch 2")
	m.exec.full = false
	require.InDeltaSlice(t, []float32{0.9, 1.9}, weights(t, m), 1e-5)
	for range 2 {
		require.NoError(t, trainBatch(m, h))
	}
	_, err = h.SyncLatestLoss()
	require.NoError(t, err)
	require.InDeltaSlice(t, []float32{0.7, 1.7}, weights(t, m), 1e-5)
}

// A bad index is the error of the call that brings it, though lowering comes later.
func TestABadIndexIsTheCallsErrorThroughTheWorker(t *testing.T) {
	m, h := newAhead(t)
	g := m.NewGraph()
	bad := words(true, []uint32{9}, op(ops.Lookup, dim2, paramTable, 0), op(ops.SumElements, dim1, 0))
	_, err := h.FB(g, bad, 1)
	require.ErrorContains(t, err, "row 9 of 4")
	require.NoError(t, trainBatch(m, h))
	_, err = h.SyncLatestLoss()
	require.NoError(t, err)
}

// Cleared graphs leave the batches in flight their nodes, and closed ones their memory to others.
func TestAClearedGraphsBatchGoesOn(t *testing.T) {
	m, h := newAhead(t)
	g := m.NewGraph()
	for range 4 {
		_, err := h.FB(g, product(1, 1), 3)
		require.NoError(t, err)
		require.NoError(t, g.Truncate(0))
	}
	loss, err := h.SyncLatestLoss()
	require.NoError(t, err)
	require.InDelta(t, 3-3*0.2, loss, 1e-5)
	g.Close()
	g.Close()
	require.NoError(t, trainBatch(m, h))
	require.LessOrEqual(t, len(m.recordings), InFlight+2)
}

// prophet is ahead, and knows losses before batches end.
type prophet struct {
	ahead
	waited []uint32 // for the ends of these
}

func (p *prophet) Device() executor.Device { return foretelling{of: p} }

// foretelling is a device that can do that alone.
type foretelling struct {
	executor.Device
	of *prophet
}

func (f foretelling) Space(uint32) []uint32      { return nil }
func (f foretelling) Free() (free, total uint64) { return 0, 0 }

func (f foretelling) Foretell(offset uint64, _ uint32) (float32, bool, error) {
	var loss [1]float32
	err := f.of.Read(isa.SegResult, offset, loss[:])
	return loss[0], true, err
}

func (p *prophet) WaitBatch(batch uint32) error {
	p.waited = append(p.waited, batch)
	return p.ahead.WaitBatch(batch)
}

// Where it is known before the batch ends, the loss of InFlight batches before is told without waiting for the rest of
// it; that it failed is told by the next call, but by the same one if its loss says so.
func TestFbTellsALossBeforeItsBatchEnds(t *testing.T) {
	m, h := newAhead(t)
	p := &prophet{ahead: m.Engine.exec.(ahead)}
	m.Engine.exec = p
	for k := range InFlight + 3 {
		g := m.NewGraph()
		stale, err := h.FB(g, product(1, 1), 3)
		require.NoError(t, err)
		g.Close()
		if k >= InFlight {
			require.InDelta(t, 3-float64(k-InFlight)*0.2, stale, 1e-5)
		}
	}
	require.Equal(t, []uint32{1, 2}, p.waited)
	loss, err := h.SyncLatestLoss()
	require.NoError(t, err)
	require.InDelta(t, 3-(InFlight+2)*0.2, loss, 1e-5)

	for _, c := range []struct {
		x     float32
		calls int
	}{{0, InFlight + 2}, {inf, InFlight + 1}} { // of the first, whose root has an infinite slope, the gradient is not finite, but the loss is
		before := weights(t, m)
		for call := 1; call <= c.calls; call++ {
			g, x := m.NewGraph(), float32(1)
			if call == 1 {
				x = c.x
			}
			_, err := h.FB(g, rootOf(x, x), 4)
			g.Close()
			if call < c.calls {
				require.NoError(t, err, "%g: call %d", c.x, call)
				continue
			}
			require.ErrorIs(t, err, ErrNumeric, "%g: call %d", c.x, call)
		}
		require.Equal(t, before, weights(t, m))
	}
}

// onThreads is the little model on one processor and so many threads.
func onThreads(t *testing.T, threads int) *model {
	t.Helper()
	x, err := cpu.New(threads, 1, 5)
	require.NoError(t, err)
	m := &model{t, newEngine(x, 1), nil, nil}
	m.verify = false
	t.Cleanup(m.Close)
	m.fill(0.1)
	m.addMatrix()
	return m
}

// A thread that the model has no use for writes scripts ahead; what is trained stays the same.
func TestASecondThreadOfTheCPUWritesScriptsAhead(t *testing.T) {
	one, two := onThreads(t, 1), onThreads(t, 2)
	want, h := batches(one, one.handleOfAll(), 20), two.handleOfAll()
	require.Equal(t, want, batches(two, h, 20))
	require.Nil(t, one.pipe.all)
	require.NotNil(t, two.pipe.all)
	s := two.Statistics()
	require.EqualValues(t, 20, s.Launches)
	require.NotZero(t, s.ExecuteNS)

	// A batch that fails is told as late as on one thread, and those behind it change nothing.
	g := two.NewGraph()
	defer g.Close()
	_, err := h.FB(g, mixed(0, inf, 1), 7)
	require.NoError(t, err)
	_, err = h.SyncLatestLoss()
	require.ErrorIs(t, err, ErrNumeric)
	require.Equal(t, want, batches(two, h, 0))
	require.Equal(t, batches(one, one.handleOfAll(), 3), batches(two, h, 3))
}
