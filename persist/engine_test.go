package persist

import (
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/cpu"
	"libvpps/persist/isa"
)

// stubborn is a CPU executor that refuses when it is told to.
type stubborn struct {
	*cpu.Executor
	full bool // no segment grows
	lost bool // the device is gone
}

func (s *stubborn) Grow(seg isa.Segment, n uint64) error {
	if s.full {
		return errors.New("8 bytes needed, 4 free")
	}
	return s.Executor.Grow(seg, n)
}

func (s *stubborn) Launch(sc *isa.Script, batch uint32) error {
	if s.lost {
		return errors.New("fallen off the bus")
	}
	return s.Executor.Launch(sc, batch)
}

// The little model of these tests: w {2} and a table of 4 rows {2}; loss = sum(w * x) with an
// input x, whose gradient by w is x.
const (
	paramW = iota
	paramTable
)

type model struct {
	*testing.T
	*Engine
	exec  *stubborn
	graph *Graph
}

func newModel(t *testing.T, lambda float32) *model {
	t.Helper()
	x, err := cpu.New(1, 2, 5)
	require.NoError(t, err)
	exec := &stubborn{Executor: x}
	m := &model{t, newEngine(exec, 1), exec, nil}
	m.verify = true
	t.Cleanup(m.Close)
	c, err := m.NewCollection(lambda)
	require.NoError(t, err)
	_, err = m.NewParameter(c, "w", dim(2), false, []float32{1, 2})
	require.NoError(t, err)
	_, err = m.NewParameter(c, "table", dim(2, 4), true, []float32{1, 2, 3, 4, 5, 6, 7, 8})
	require.NoError(t, err)
	m.graph = m.NewGraph()
	return m
}

func dim(axes ...uint32) bridge.Dim {
	d := bridge.Dim{Nd: uint32(len(axes)), Bd: 1}
	copy(d.D[:], axes)
	return d
}

// The dims that all words of these tests bring with their first node.
const (
	dim1 = iota
	dim2
	dim3
)

func op(code ops.Code, dim uint32, rest ...uint32) []uint32 {
	return append([]uint32{uint32(code) | dim<<8}, rest...)
}

func bits(x ...float32) (w []uint32) {
	for _, f := range x {
		w = append(w, math.Float32bits(f))
	}
	return w
}

// words are nodes in the wire format; those that begin a graph bring the dims.
func words(first bool, inputs []uint32, nodes ...[]uint32) *bridge.Words {
	w := &bridge.Words{NodeCount: len(nodes), Inputs: inputs}
	for _, n := range nodes {
		w.Nodes = append(w.Nodes, n...)
	}
	if first {
		w.Dims = []bridge.Dim{dim(1), dim(2), dim(3)}
	}
	return w
}

// product records loss = sum(w * x): nodes 0 to 3.
func product(x ...float32) *bridge.Words {
	return words(true, bits(x...), op(ops.Parameter, dim2, paramW), op(ops.Input, dim2, 0),
		op(ops.CwiseMultiply, dim2, 0, 1), op(ops.SumElements, dim1, 2))
}

// rootOf records loss = sqrt(sum(w * x)): nodes 0 to 4. Of x = 0 the gradient is not finite.
func rootOf(x ...float32) *bridge.Words {
	w := product(x...)
	w.Nodes, w.NodeCount = append(w.Nodes, op(ops.Sqrt, dim1, 3)...), 5
	return w
}

func (m *model) value(node uint32, n int) []float32 {
	m.Helper()
	v := make([]float32, n)
	require.NoError(m, m.graph.Value(nil, node, v))
	return v
}

func (m *model) read(id uint32, part Part) []float32 {
	m.Helper()
	v := make([]float32, m.params[id].Size)
	require.NoError(m, m.ReadParameter(id, part, 0, v))
	return v
}

func (m *model) handle() *Handle {
	m.Helper()
	h, err := m.NewHandle([]uint32{paramW, paramTable}, nil)
	require.NoError(m, err)
	return h
}

func TestAFailedCallLeavesTheGraphAsItWas(t *testing.T) {
	lookup := op(ops.Lookup, dim2, paramTable, 2) // its row is input 2
	cases := []struct {
		name string
		call func(m *model) error
		kind error // nil: an error of the graph
		text string
	}{
		{"an unknown operation", func(m *model) error {
			return m.graph.Value(words(false, bits(9, 9), op(250, dim1)), 4, make([]float32, 1))
		}, nil, "node 4"},
		{"an argument that is no earlier node", func(m *model) error {
			return m.graph.Value(words(false, bits(9, 9), op(ops.Tanh, dim2, 4)), 4, make([]float32, 2))
		}, nil, "node 4 (Tanh): argument 4 is not an earlier node"},
		{"a shape mismatch", func(m *model) error {
			return m.graph.Value(words(false, bits(9, 9), op(ops.Tanh, dim3, 2)), 4, make([]float32, 3))
		}, nil, "node 4 (Tanh)"},
		{"a table without that row, found when it is evaluated", func(m *model) error {
			return m.graph.Value(words(false, append(bits(9, 9), 4), lookup), 4, make([]float32, 2))
		}, nil, "node 4 (LookupNode): row 4"},
		{"the same in forward", func(m *model) error {
			return m.graph.Forward(words(false, append(bits(9, 9), 4), lookup), 4, true)
		}, nil, "row 4"},
		{"the same in backward", func(m *model) error {
			return m.graph.Backward(words(false, append(bits(9, 9), 4), lookup, op(ops.SumElements, dim1, 4)), 5, false)
		}, nil, "row 4"},
		{"the same in fb", func(m *model) error {
			_, err := m.handle().FB(m.graph, words(false, append(bits(9, 9), 4), lookup, op(ops.SumElements, dim1, 4)), 5)
			return err
		}, nil, "row 4"},
		{"a node that is not there", func(m *model) error {
			return m.graph.Value(words(false, bits(9, 9), op(ops.Tanh, dim2, 2)), 5, make([]float32, 2))
		}, ErrArgument, "node 5 of a graph of 5 nodes"},
		{"room of the wrong size", func(m *model) error {
			return m.graph.Value(words(false, bits(9, 9), op(ops.Tanh, dim2, 2)), 4, make([]float32, 3))
		}, ErrArgument, "node 4 has 2 elements, room for 3"},
		{"backward from a vector", func(m *model) error {
			return m.graph.Backward(words(false, bits(9, 9), op(ops.Tanh, dim2, 2)), 4, false)
		}, ErrArgument, "backward starts from a scalar"},
		{"fb of a vector", func(m *model) error {
			_, err := m.handle().FB(m.graph, words(false, bits(9, 9), op(ops.Tanh, dim2, 2)), 4)
			return err
		}, ErrArgument, "fb needs a scalar"},
		{"fewer inputs than the nodes there are read", func(m *model) error {
			return m.graph.Forward(words(false, bits(9)), 3, true)
		}, nil, "1 input words"},
		{"memory exhausted in value", func(m *model) error {
			m.exec.full = true
			return m.graph.Value(words(false, bits(9, 9), op(ops.Tanh, dim2, 2)), 4, make([]float32, 2))
		}, ErrMemory, "8 bytes needed, 4 free"},
		{"memory exhausted in forward", func(m *model) error {
			m.exec.full = true
			return m.graph.Forward(words(false, bits(9, 9), op(ops.Tanh, dim2, 2)), 4, true)
		}, ErrMemory, "8 bytes needed, 4 free"},
		{"memory exhausted in backward", func(m *model) error {
			m.exec.full = true
			return m.graph.Backward(words(false, bits(9, 9), op(ops.Square, dim1, 3)), 4, false)
		}, ErrMemory, "8 bytes needed, 4 free"},
		{"memory exhausted in fb", func(m *model) error {
			h := m.handle()
			m.exec.full = true
			_, err := h.FB(m.graph, words(false, bits(9, 9), op(ops.Square, dim1, 3)), 4)
			return err
		}, ErrMemory, "8 bytes needed, 4 free"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := newModel(t, 0.125)
			require.NoError(t, m.graph.Backward(product(3, 4), 3, true))
			err := c.call(m)
			require.ErrorContains(t, err, c.text)
			if c.kind != nil {
				require.ErrorIs(t, err, c.kind)
			} else {
				var graph *bridge.Error
				require.ErrorAs(t, err, &graph)
			}
			m.exec.full = false

			require.Equal(t, []float32{11}, m.value(3, 1), "values stay")
			gradient := make([]float32, 2)
			require.NoError(t, m.graph.Gradient(1, gradient))
			require.Equal(t, []float32{1, 2}, gradient, "gradients of nodes stay")
			require.Equal(t, []float32{1, 2}, m.read(paramW, Values))
			require.Equal(t, []float32{3, 4}, m.read(paramW, Gradient))
			factor, err := m.Factor(0)
			require.NoError(t, err)
			require.EqualValues(t, 1, factor)

			// The words were dropped: a front-end sends them again, mended.
			tanh := make([]float32, 2)
			require.NoError(t, m.graph.Value(words(false, append(bits(3, 4), 1), lookup), 4, tanh))
			require.Equal(t, []float32{3, 4}, tanh)
			// The inputs of nodes that are there are the old ones until words are accepted.
			require.NoError(t, m.graph.Backward(nil, 3, false))
			require.Equal(t, []float32{6, 8}, m.read(paramW, Gradient))
		})
	}
}

// A front-end may find out only when it sends composite nodes that they are wrong.
func TestAFailedCallDropsSpelledOutNodes(t *testing.T) {
	m := newModel(t, 0)
	m.value1(product(3, 4), 3)
	cell := op(ops.VanillaLSTMH, dim1, 3, 4)
	gates := words(false, bits(3, 4, 1, 1, 1, 1), op(ops.Input, 3, 2), cell)
	gates.Dims = []bridge.Dim{dim(4)}
	m.exec.full = true
	require.ErrorIs(t, m.graph.Value(gates, 5, make([]float32, 1)), ErrMemory)
	m.exec.full = false
	v := make([]float32, 1)
	require.NoError(t, m.graph.Value(gates, 5, v))
	require.InDelta(t, math.Tanh(11), v[0], 1e-6)
	require.Equal(t, []float32{11}, m.value(3, 1))
}

func (m *model) value1(w *bridge.Words, node uint32) float32 {
	m.Helper()
	v := make([]float32, 1)
	require.NoError(m, m.graph.Value(w, node, v))
	return v[0]
}

// infinite records loss = sum(w * x) whose gradient by w is infinite.
func infinite() *bridge.Words { return product(1, float32(math.Inf(1))) }

func TestABatchThatIsNotFiniteIsTakenBack(t *testing.T) {
	calls := []struct {
		name string
		next func(m *model, h *Handle) error // the call that reports it
	}{
		{"sync", func(m *model, h *Handle) error { _, err := h.SyncLatestLoss(); return err }},
		{"clips", func(m *model, h *Handle) error { _, err := h.Clips(); return err }},
		{"reading a parameter", func(m *model, h *Handle) error {
			return m.ReadParameter(paramW, Values, 0, make([]float32, 2))
		}},
		{"forward", func(m *model, h *Handle) error { return m.graph.Forward(nil, 3, true) }},
		{"update", func(m *model, h *Handle) error { _, err := h.Trainer().Update(); return err }},
		{"a later fb", func(m *model, h *Handle) error {
			g := m.NewGraph()
			_, err := h.FB(g, product(1, 1), 3)
			for k := 1; k < InFlight && err == nil; k++ {
				_, err = h.FB(g, nil, 3)
			}
			return err
		}},
	}
	for _, c := range calls {
		t.Run(c.name, func(t *testing.T) {
			m := newModel(t, 0.125)
			h := m.handle()
			// A gradient is pending, which the batches would apply.
			require.NoError(t, m.graph.Backward(product(3, 4), 3, false))
			bad := m.NewGraph()
			_, err := h.FB(bad, infinite(), 3)
			require.NoError(t, err)
			err = c.next(m, h)
			require.ErrorIs(t, err, ErrNumeric)
			require.ErrorContains(t, err, "batch 1:")

			require.Equal(t, []float32{1, 2}, m.read(paramW, Values))
			require.Equal(t, []float32{3, 4}, m.read(paramW, Gradient), "what was pending is pending again")
			factor, err := m.Factor(0)
			require.NoError(t, err)
			require.EqualValues(t, 1, factor, "weight decay did not advance")
			_, err = h.SyncLatestLoss()
			require.ErrorIs(t, err, ErrState, "no batch counts")

			// The engine goes on.
			_, err = h.Trainer().Update()
			require.NoError(t, err)
			require.Equal(t, []float32{1 - 0.1*3, 2 - 0.1*4}, m.read(paramW, Values))
			stale, err := h.FB(m.graph, nil, 3)
			require.NoError(t, err)
			require.Zero(t, stale, "as for the first")
			loss, err := h.SyncLatestLoss()
			require.NoError(t, err)
			require.InDelta(t, 0.875*(3*0.7+4*1.6), loss, 1e-5)
		})
	}
}

func TestAFailedBatchTakesThoseBehindItAlong(t *testing.T) {
	m := newModel(t, 0)
	h := m.handle()
	good, bad := m.NewGraph(), m.NewGraph()
	_, err := h.FB(good, product(1, 1), 3)
	require.NoError(t, err)
	after := m.read(paramW, Values)
	_, err = h.FB(bad, infinite(), 3)
	require.NoError(t, err)
	_, err = h.FB(m.graph, product(2, 2), 3) // skipped by the executor
	require.NoError(t, err)
	_, err = h.SyncLatestLoss()
	require.ErrorContains(t, err, "batch 2:")
	require.Equal(t, after, m.read(paramW, Values))
	require.Equal(t, []float32{0, 0}, m.read(paramW, Gradient))
}

// What is only collected cannot be brought back: it starts anew, and is finite.
func TestAFailedBatchClearsWhatItAddedToFrozenParameters(t *testing.T) {
	m := newModel(t, 0)
	h := m.handle()
	require.NoError(t, m.SetUpdated(paramW, false))
	require.NoError(t, m.graph.Backward(product(3, 4), 3, false))
	bad := m.NewGraph()
	_, err := h.FB(bad, infinite(), 3)
	require.NoError(t, err)
	_, err = h.SyncLatestLoss()
	require.ErrorIs(t, err, ErrNumeric)
	require.Equal(t, []float32{0, 0}, m.read(paramW, Gradient))
	_, err = h.FB(m.graph, nil, 3)
	require.NoError(t, err)
	_, err = h.SyncLatestLoss()
	require.NoError(t, err)
	require.Equal(t, []float32{3, 4}, m.read(paramW, Gradient))
	require.Equal(t, []float32{1, 2}, m.read(paramW, Values))
}

func TestUpdateOfGradientsThatAreNotFiniteChangesNothing(t *testing.T) {
	m := newModel(t, 0.125)
	h := m.handle()
	require.NoError(t, m.graph.Backward(rootOf(0, 0), 4, false))
	_, err := h.Trainer().Update()
	require.ErrorIs(t, err, ErrNumeric)
	require.ErrorContains(t, err, `the gradient of parameter "w" is not finite; parameters and gradients are unchanged: before the next backward, set gradients to zero by model.reset_gradient()`)
	require.Equal(t, []float32{1, 2}, m.read(paramW, Values))
	factor, err := m.Factor(0)
	require.NoError(t, err)
	require.EqualValues(t, 1, factor)
	require.NoError(t, m.ScaleParameter(paramW, Gradient, 0))
	_, err = h.Trainer().Update()
	require.NoError(t, err)
}

func TestUpdateRightAfterFBIsRefused(t *testing.T) {
	m := newModel(t, 0)
	h := m.handle()
	other, err := m.NewTrainer(TrainerOptions{LearningRate: 1}, []uint32{paramW})
	require.NoError(t, err)
	_, err = h.FB(m.graph, product(3, 4), 3)
	require.NoError(t, err)
	for _, trainer := range []*Trainer{h.Trainer(), other} { // of a loop that kept its update
		_, err = trainer.Update()
		require.ErrorIs(t, err, ErrState)
		require.ErrorContains(t, err, "fb has applied its gradients already")
	}
	require.NoError(t, m.graph.Backward(nil, 3, false))
	_, err = other.Update()
	require.NoError(t, err)
	_, err = other.Update() // as DyNet: there is nothing to apply
	require.NoError(t, err)
}

// A parameter node that was evaluated keeps its value when the weight decay factor changes,
// also where a product reads the matrix in its registers.
func TestAnEvaluatedMatrixKeepsItsValueWhenTheFactorChanges(t *testing.T) {
	m := newModel(t, 0.5)
	id, err := m.NewParameter(0, "M", dim(2, 2), false, []float32{1, 0, 0, 1})
	require.NoError(t, err)
	require.NoError(t, m.SetUpdated(id, false))
	w := words(true, bits(3, 4), op(ops.Parameter, 3, id), op(ops.Input, dim2, 0))
	w.Dims = append(w.Dims, dim(2, 2))
	require.NoError(t, m.graph.Forward(w, 1, false))
	trainer, err := m.NewTrainer(TrainerOptions{LearningRate: 1}, []uint32{paramW})
	require.NoError(t, err)
	_, err = trainer.Update()
	require.NoError(t, err)
	v := make([]float32, 2)
	require.NoError(t, m.graph.Value(words(false, bits(3, 4), op(ops.MatrixMultiply, dim2, 0, 1)), 2, v))
	require.Equal(t, []float32{3, 4}, v)
	require.NoError(t, m.graph.Forward(nil, 2, true))
	require.Equal(t, []float32{1.5, 2}, m.value(2, 2))
}

func TestRevertReleasesMemory(t *testing.T) {
	m := newModel(t, 0)
	require.NoError(t, m.graph.Forward(product(3, 4), 3, false))
	end := uint32(0)
	for round := range 10 {
		v := make([]float32, 2)
		require.NoError(t, m.graph.Value(words(false, bits(3, 4), op(ops.Tanh, dim2, 2)), 4, v))
		require.NoError(t, m.graph.Truncate(4))
		require.NoError(t, m.graph.Invalidate(3)) // the front-end's revert does both
		if round == 1 {
			end = m.top()
		}
	}
	require.Equal(t, end, m.top())
	require.Equal(t, []float32{11}, m.value(3, 1))
}

func TestALostDeviceIsSaidByEveryCall(t *testing.T) {
	m := newModel(t, 0)
	m.exec.lost = true
	err := m.graph.Forward(product(3, 4), 3, true)
	require.ErrorIs(t, err, ErrDevice)
	require.ErrorContains(t, err, "fallen off the bus")
	m.exec.lost = false
	require.ErrorIs(t, m.graph.Forward(product(3, 4), 3, true), ErrDevice)
	require.ErrorIs(t, m.ReadParameter(paramW, Values, 0, make([]float32, 2)), ErrDevice)
	_, err = m.NewParameter(0, "x", dim(1), false, nil)
	require.ErrorIs(t, err, ErrDevice)
}

func TestAClosedEngineSaysSo(t *testing.T) {
	m := newModel(t, 0)
	m.Close()
	m.Close()
	require.ErrorContains(t, m.graph.Forward(product(3, 4), 3, true), "closed")
	require.ErrorContains(t, m.graph.Gradient(0, nil), "closed")
}

func TestParametersAreChecked(t *testing.T) {
	m := newModel(t, 0)
	one := make([]float32, 1)
	cases := []struct {
		name string
		call func() error
		text string
	}{
		{"beyond the end", func() error { return m.ReadParameter(paramW, Values, 2, one) }, `parameter "w": elements 2..3 of 2`},
		{"far beyond the end", func() error { return m.WriteParameter(paramW, Values, math.MaxUint64, one) }, "of 2"},
		{"no such parameter", func() error { return m.ReadParameter(7, Values, 0, one) }, "there is no parameter 7"},
		{"no such collection", func() error { _, err := m.NewParameter(9, "x", dim(1), false, nil); return err }, "there is no collection 9"},
		{"a batch", func() error {
			d := dim(1)
			d.Bd = 2
			_, err := m.NewParameter(0, "x", d, false, nil)
			return err
		}, "no batch"},
		{"too few values", func() error { _, err := m.NewParameter(0, "x", dim(2), false, one); return err }, "1 values"},
		{"a decay of everything", func() error { _, err := m.NewCollection(1); return err }, "[0, 1)"},
		{"a destroyed one", func() error {
			if err := m.DestroyParameter(paramTable); err != nil {
				return err
			}
			return m.ReadParameter(paramTable, Values, 0, one)
		}, "there is no parameter 1"},
		{"memory exhausted", func() error {
			m.exec.full = true
			defer func() { m.exec.full = false }()
			_, err := m.NewParameter(0, "big", dim(1), false, nil)
			return err
		}, `parameter "big": 8 bytes needed, 4 free`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { require.ErrorContains(t, c.call(), c.text) })
	}
	require.Equal(t, []float32{1, 2}, m.read(paramW, Values))
}

// Any goroutine may call: a second call waits for the first.
func TestCallsFromManyGoroutinesTakeTurns(t *testing.T) {
	m := newModel(t, 0)
	h := m.handle()
	var group sync.WaitGroup
	for k := range 8 {
		group.Go(func() {
			g := m.NewGraph()
			defer g.Close()
			for range 20 {
				if k%2 == 0 {
					_, err := h.FB(g, product(1, 1), 3)
					assert.NoError(t, err)
				} else {
					assert.NoError(t, g.Value(product(1, 1), 3, make([]float32, 1)))
				}
				assert.NoError(t, g.Truncate(0))
				assert.NoError(t, m.ReadParameter(paramW, Values, 0, make([]float32, 2)))
			}
		})
	}
	group.Wait()
	w := m.read(paramW, Values)
	require.InDelta(t, 1-80*0.1, w[0], 1e-4)
	require.InDelta(t, 2-80*0.1, w[1], 1e-4)
}
