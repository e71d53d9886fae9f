package persist

import (
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge/ops"
	"libvpps/persist/cpu"
)

// ahead is a CPU executor that claims to return before a launch has run, so that batches go
// through the worker.
type ahead struct{ *stubborn }

func (ahead) Asynchronous() bool { return true }

func newAhead(t *testing.T) (*model, *Handle) {
	m := newModel(t, 0)
	m.verify = false
	m.Engine.exec = ahead{m.exec}
	h, err := m.NewHandle([]uint32{paramW, paramTable}, nil)
	require.NoError(t, err)
	return m, h
}

// step runs one batch of product over a new graph.
func step(m *model, h *Handle) error {
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
		require.NoError(t, step(m, h))
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
	require.NoError(t, step(m, h))
	m.drain()
	m.exec.full = true
	require.NoError(t, step(m, h))
	_, err := h.SyncLatestLoss()
	require.ErrorIs(t, err, ErrMemory)
	require.ErrorContains(t, err, "batch 2")
	m.exec.full = false
	require.InDeltaSlice(t, []float32{0.9, 1.9}, weights(t, m), 1e-5)
	for range 2 {
		require.NoError(t, step(m, h))
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
	require.NoError(t, step(m, h))
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
	require.NoError(t, step(m, h))
	require.LessOrEqual(t, len(m.recordings), inFlight+2)
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
