package persist

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
)

// A graph that is too tangled to be lowered by parts, of a matrix that stands in a product and by itself, has the
// weight decay in both places, however large it is.
func TestWeightDecayOfAMatrixThatIsUsedInTwoWaysInALargeGraph(t *testing.T) {
	for _, chain := range []int{3, 1500} {
		m := newModel(t, 0.5)
		m.addMatrix()
		require.NoError(t, trainBatch(m, m.handle())) // the factor is 0.5 from here on
		values := m.read(paramM, Values)
		w := words(true, bits(0.5, 0.25), op(ops.Input, dim2, 0), op(ops.Tanh, dim2, 0), op(ops.Parameter, 3, paramM),
			op(ops.MatrixMultiply, dim3, 2, 1))
		w.Dims = append(w.Dims, dim(3, 2))
		add := func(node []uint32) uint32 {
			w.Nodes = append(w.Nodes, node...)
			w.NodeCount++
			return uint32(w.NodeCount - 1)
		}
		last, kinds := uint32(3), []ops.Code{ops.Tanh, ops.Negate, ops.LogisticSigmoid, ops.Sin}
		rng := rand.New(rand.NewPCG(1, 1))
		for range chain { // in no order in which there are cells
			last = add(op(kinds[rng.IntN(len(kinds))], dim3, last))
		}
		a, b := add(op(ops.SumElements, dim1, last)), add(op(ops.SumElements, dim1, 2))
		loss := add(op(ops.Sum, dim1, 2, a, b))
		h := m.handleOfAll()
		before := m.NewGraph()
		require.NoError(t, before.Forward(w, loss, true))
		want, alone := make([]float32, 1), make([]float32, 1)
		require.NoError(t, before.Value(nil, loss, want))
		require.NoError(t, before.Value(nil, b, alone))
		sum := float32(0)
		for _, v := range values {
			sum += v / 2
		}
		require.InDelta(t, sum, alone[0], 1e-6)
		_, err := h.FB(m.NewGraph(), w, loss)
		require.NoError(t, err)
		have, err := h.SyncLatestLoss()
		require.NoError(t, err)
		require.InDelta(t, want[0], have, 1e-5, "%d nodes", w.NodeCount)
	}
}

// squared records loss = (w * x)^2: nodes 0 to 4. Its gradient by w is 2 (w * x) x.
func squared(x ...float32) *bridge.Words {
	w := product(x...)
	w.Nodes, w.NodeCount = append(w.Nodes, op(ops.Square, dim1, 3)...), 5
	return w
}

func (m *model) requireFactor(want float32) {
	m.Helper()
	factor, err := m.Factor(0)
	require.NoError(m, err)
	require.InDelta(m, want, factor, 1e-7)
}

func (m *model) requireW(want ...float32) {
	m.Helper()
	for k, v := range m.read(paramW, Values) {
		require.InDelta(m, want[k], v, 1e-6)
	}
}

// Of w = {1, 2} with a factor of 0.8 graphs read {0.8, 1.6}. An update by g moves the stored values by 0.1 g / 0.8, then
// the factor falls to 0.8 (1 - 0.5).
func TestGraphsAndUpdatesGoOnFromAFactorThatIsSet(t *testing.T) {
	for _, fb := range []bool{false, true} {
		m := newModel(t, 0.5)
		h := m.handle()
		require.NoError(t, m.SetFactor(0, 0.8))
		m.requireW(1, 2)
		require.NoError(t, m.graph.Forward(product(3, 4), 3, true))
		require.InDelta(t, 0.8*11, m.value(3, 1)[0], 1e-6)
		if fb {
			_, err := h.FB(m.graph, nil, 3)
			require.NoError(t, err)
		} else {
			require.NoError(t, m.graph.Backward(nil, 3, false))
			_, err := h.Trainer().Update()
			require.NoError(t, err)
		}
		m.requireW(1-0.3/0.8, 2-0.4/0.8)
		m.requireFactor(0.4)
	}
}

// As in DyNet an update multiplies a factor below 0.25 into the values that it changes, whatever lambda is by then.
func TestAnUpdateRescalesAFactorThatWasSetWithoutADecay(t *testing.T) {
	m := newModel(t, 0.5)
	h := m.handle()
	require.NoError(t, m.SetFactor(0, 0.125))
	require.NoError(t, m.SetLambda(0, 0))
	require.NoError(t, m.SetUpdated(paramTable, false))
	m.backward(product(3, 4), 3)
	m.requireFactor(0.125)
	_, err := h.Trainer().Update()
	require.NoError(t, err)
	m.requireW(0.125-0.3, 0.25-0.4)
	m.requireFactor(1)
	require.Equal(t, []float32{1, 2, 3, 4, 5, 6, 7, 8}, m.read(paramTable, Values), "it is not updated")
}

// Backward goes by the values of forward, update by the factor at its call: also where both were foreseen.
func TestAFactorThatIsSetBetweenTheCallsOfAStep(t *testing.T) {
	for name, at := range map[string]int{"before backward": 1, "before update": 2} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, 0)
			h := m.handle()
			step := func(set int) {
				g := m.NewGraph()
				defer g.Close()
				for k, call := range []func() error{
					func() error { return g.Forward(squared(3, 4), 4, true) },
					func() error { return g.Backward(nil, 4, false) },
					func() error { _, err := h.Trainer().Update(); return err },
				} {
					if k == set {
						require.NoError(t, m.SetFactor(0, 0.5))
					}
					require.NoError(t, call())
				}
			}
			for range 3 { // until steps are foreseen
				require.NoError(t, m.WriteParameter(paramW, Values, 0, []float32{1, 2}))
				step(-1)
			}
			require.NoError(t, m.WriteParameter(paramW, Values, 0, []float32{1, 0}))
			require.NoError(t, h.Trainer().Set(TrainerOptions{Rule: isa.SGD, LearningRate: 0.1, Sparse: true}))
			step(at)
			m.requireW(1-0.1*2*3*3/0.5, 0-0.1*2*3*4/0.5)
		})
	}
}

// A node of a parameter keeps what it was evaluated to; what is evaluated anew has the factor.
func TestAnEvaluatedMatrixKeepsItsValueWhenAFactorIsSet(t *testing.T) {
	m := newModel(t, 0)
	id, err := m.NewParameter(0, "M", dim(2, 2), false, []float32{1, 0, 0, 1})
	require.NoError(t, err)
	w := words(true, bits(3, 4), op(ops.Parameter, 3, id), op(ops.Input, dim2, 0))
	w.Dims = append(w.Dims, dim(2, 2))
	require.NoError(t, m.graph.Forward(w, 1, false))
	require.NoError(t, m.SetFactor(0, 0.5))
	v := make([]float32, 2)
	require.NoError(t, m.graph.Value(words(false, bits(3, 4), op(ops.MatrixMultiply, dim2, 0, 1)), 2, v))
	require.Equal(t, []float32{3, 4}, v)
	require.NoError(t, m.graph.Forward(nil, 2, true))
	require.Equal(t, []float32{1.5, 2}, m.value(2, 2))
	require.NoError(t, m.SetFactor(0, 0.25))
	require.NoError(t, m.graph.Value(words(false, bits(3, 4), op(ops.MatrixMultiply, dim2, 0, 2)), 3, v))
	require.Equal(t, []float32{0.75, 1}, v)
}

// Batches in flight have the factor from before, one that fails is told and takes nothing back.
func TestAFactorIsSetAfterTheBatchesInFlight(t *testing.T) {
	m := newModel(t, 0)
	m.verify = false
	h := m.handle()
	fb := func(w *bridge.Words) {
		g := m.NewGraph()
		defer g.Close()
		_, err := h.FB(g, w, 3)
		require.NoError(t, err)
	}
	for range 3 {
		fb(product(1, 0))
	}
	require.NoError(t, m.SetFactor(0, 0.5))
	m.requireW(1-0.3, 2)
	fb(product(1, 0))
	m.requireW(1-0.3-0.2, 2)

	fb(infinite())
	err := m.SetFactor(0, 0.25)
	require.ErrorIs(t, err, ErrNumeric)
	require.ErrorContains(t, err, "batch 5:")
	m.requireFactor(0.5)
	require.NoError(t, m.SetFactor(0, 0.25))
	m.requireFactor(0.25)
}

// An fb that multiplies the factor into the values waits for its batch, and tells itself if that failed.
func TestAnFBThatRescalesTellsOfItsOwnBatch(t *testing.T) {
	m := newModel(t, 0)
	h := m.handle()
	require.NoError(t, m.SetFactor(0, 0.125))
	_, err := h.FB(m.graph, infinite(), 3)
	require.ErrorIs(t, err, ErrNumeric)
	require.ErrorContains(t, err, "batch 1:")
	m.requireFactor(0.125)
	m.requireW(1, 2)
	_, err = h.FB(m.NewGraph(), product(3, 4), 3)
	require.NoError(t, err)
	m.requireFactor(1)
	m.requireW(0.125-0.3, 0.25-0.4)
}

func TestACheckpointHasTheFactorThatWasSet(t *testing.T) {
	file := filepath.Join(t.TempDir(), "checkpoint")
	saved, resumed := newRun(t, isa.Adam), newRun(t, isa.Adam)
	saved.train(0, 3)
	require.NoError(t, saved.SetFactor(0, 0.3))
	saved.save(file)
	require.NoError(t, resumed.load(file))
	resumed.requireFactor(0.3)
	for range 5 { // the factor falls below 0.25, and is multiplied in
		saved.train(3, 1)
		resumed.train(3, 1)
	}
	require.Equal(t, saved.state(), resumed.state())
}

func TestFactorsThatCannotBe(t *testing.T) {
	m := newModel(t, 0)
	for _, factor := range []float32{0, -0.5, 1.0001, float32(math.NaN()), float32(math.Inf(1))} {
		err := m.SetFactor(0, factor)
		require.ErrorIs(t, err, ErrArgument)
		require.ErrorContains(t, err, "collection 0: a weight decay factor of")
	}
	require.ErrorContains(t, m.SetFactor(7, 0.5), "there is no collection 7")
	m.requireFactor(1)
	m.Close()
	require.ErrorContains(t, m.SetFactor(0, 0.5), "closed")
}
