package persist

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
)

// devices are the models that batches run on: at once, through workers, and on a stand-in for a GPU.
var devices = []struct {
	name string
	make func(t *testing.T) *model
}{
	{"cpu", func(t *testing.T) *model { return newModel(t, 0) }},
	{"worker", func(t *testing.T) *model { m, _ := newAhead(t); return m }},
	{"gpu", func(t *testing.T) *model { m, _ := onGPU(t); return m }},
}

// after records nodes behind x and w * x, which are nodes 1 and 2.
func after(x []float32, nodes ...[]uint32) *bridge.Words {
	w := product(x...)
	w.Nodes, w.NodeCount = w.Nodes[:len(w.Nodes)-2], 3+len(nodes)
	for _, n := range nodes {
		w.Nodes = append(w.Nodes, n...)
	}
	w.Dims = append(w.Dims, dim(4), bridge.Dim{Nd: 1, Bd: 2, D: [bridge.MaxDims]uint32{2}}, bridge.Dim{Nd: 1, Bd: 2, D: [bridge.MaxDims]uint32{1}})
	return w
}

// Of the dims that after adds.
const (
	dim4 = iota + 3
	dim2x2
	dim1x2
)

func pair(x, y float32) []float32 { return []float32{x, y} }

// numbers is the input words of x and some whole numbers.
func numbers(w *bridge.Words, more ...uint32) *bridge.Words {
	w.Inputs = append(w.Inputs, more...)
	return w
}

var nan = float32(math.NaN())

// blamed are batches that fail: w is (1, 2), and what is written before.
var blamed = []struct {
	name  string
	write func(m *model) error
	words *bridge.Words
	loss  uint32
	want  string
}{
	{"the logarithm of a negative number", nil, after(pair(-1, 1), op(ops.Log, dim2, 2), op(ops.SumElements, dim1, 3)), 4,
		"its loss is not finite (NaN): the first value that is not finite is that of node 3 (Log) {2}, from 0.69314"},
	{"and its argument", nil, after(pair(-1, 1), op(ops.Log, dim2, 2), op(ops.SumElements, dim1, 3)), 4,
		"and 1 of 2 NaN, of node 2 (CwiseMultiply) {2}, from -1 to 2; "},
	{"0/0", nil, after(pair(0, 1), op(ops.CwiseQuotient, dim2, 2, 1), op(ops.SumElements, dim1, 3)), 4,
		"node 3 (CwiseQuotient) {2}, from 2 to 2 and 1 of 2 NaN, of node 2 (CwiseMultiply) {2}, from 0 to 2 and node 1 (InputNode) {2}, from 0 to 1;"},
	{"a power of e", nil, after(pair(100, 0), op(ops.Exp, dim2, 2), op(ops.SumElements, dim1, 3)), 4,
		"its loss is not finite (+Inf): the first value that is not finite is that of node 3 (Exp) {2}, from 1 to +Inf, of node 2 (CwiseMultiply) {2}, from 0 to 100;"},
	{"a pick of -inf", nil, numbers(after(pair(0, 1), op(ops.Log, dim2, 2), op(ops.PickElement, dim1, 3, 0, 2, 1)), 0), 4,
		"node 3 (Log) {2}, from -Inf to 0.69"},
	{"an input", nil, after(pair(nan, 1), op(ops.SumElements, dim1, 2)), 3, "node 1 (InputNode) {2}, from 1 to 1 and 1 of 2 NaN;"},
	{"a parameter", func(m *model) error { return m.WriteParameter(paramW, Values, 0, pair(nan, nan)) }, after(pair(1, 1), op(ops.SumElements, dim1, 2)), 3,
		`node 0 (ParameterNode "w") {2}, which is NaN;`},
	{"a row of a table", func(m *model) error { return m.WriteParameter(paramTable, Values, 4, pair(inf, 1)) },
		numbers(after(pair(1, 1), op(ops.Lookup, dim2, paramTable, 2), op(ops.CwiseMultiply, dim2, 2, 3), op(ops.SumElements, dim1, 4)), 2), 5,
		`node 3 (LookupNode "table", row 2) {2}, from 1 to +Inf;`},
	{"a row of a minibatch", func(m *model) error { return m.WriteParameter(paramTable, Values, 7, []float32{nan}) },
		numbers(after(pair(1, 1), op(ops.Lookup, dim2x2, paramTable, 2), op(ops.CwiseMultiply, dim2x2, 2, 3), op(ops.SumElements, dim1x2, 4), op(ops.SumDimension, dim1, 5, 0, 1)), 1, 3), 6,
		`node 3 (LookupNode "table", row 3) {2X2}, from 3 to 7 and 1 of 4 NaN;`},
	{"a sum", nil, after(pair(3e38, 1e38), op(ops.SumElements, dim1, 2)), 3, "node 3 (SumElements) {1}, which is +Inf, of node 2 (CwiseMultiply) {2}, from 2e+38 to 3e+38;"},
	{"inf - inf", nil, after(pair(1e30, 1), op(ops.Square, dim2, 2), op(ops.Negate, dim2, 3), op(ops.CwiseSum, dim2, 3, 4), op(ops.SumElements, dim1, 5)), 6,
		"its loss is not finite (NaN): the first value that is not finite is that of node 3 (Square) {2}, from 4 to +Inf"},
	{"a root", nil, after(pair(-4, 1), op(ops.Sqrt, dim2, 2), op(ops.SumElements, dim1, 3)), 4, "node 3 (Sqrt) {2}"},
	{"a node behind a cell", nil, numbers(after(pair(1, 1), op(ops.SumElements, dim1, 2), op(ops.Input, dim4, 2), op(ops.VanillaLSTMH, dim1, 3, 4),
		op(ops.Negate, dim1, 5), op(ops.Log, dim1, 6)), bits(1, 1, 1, 1)...), 7, "node 7 (Log) {1}, which is NaN, of node 6 (Negate) {1}, which is -0.99"},
	{"a value that the loss does not need", nil, after(pair(-1, 1), op(ops.Log, dim2, 2), op(ops.Square, dim2, 2), op(ops.ConstScalarMultiply, dim2, 4, bits(3e38)[0]), op(ops.SumElements, dim1, 5)), 6,
		"node 5 (ConstScalarMultiply) {2}, from 3e+38 to +Inf"},
}

// told is the error of a batch, whose graph is gone when it is told.
func told(m *model, h *Handle, words *bridge.Words, loss uint32) error {
	m.Helper()
	g := m.NewGraph()
	_, err := h.FB(g, words, loss)
	require.NoError(m, err)
	require.NoError(m, g.Truncate(0))
	g.Close()
	for range 2 { // new graphs reuse the memory of closed ones, the latest first; this one has left two recordings
		other := m.NewGraph()
		defer other.Close()
		_, err = h.FB(other, product(5, 5), 3)
		require.NoError(m, err)
	}
	_, err = h.SyncLatestLoss()
	return err
}

func TestABatchThatIsNotFiniteNamesTheFirstValue(t *testing.T) {
	for _, d := range devices {
		for _, c := range blamed {
			t.Run(d.name+"/"+c.name, func(t *testing.T) {
				m := d.make(t)
				h := m.handle()
				if c.write != nil {
					require.NoError(t, c.write(m))
				}
				before := [][]float32{m.read(paramW, Values), m.read(paramTable, Values)}
				err := told(m, h, c.words, c.loss)
				require.ErrorIs(t, err, ErrNumeric)
				require.ErrorContains(t, err, "batch 1: ")
				require.ErrorContains(t, err, c.want)
				require.Equal(t, fmt.Sprint(before), fmt.Sprint([][]float32{m.read(paramW, Values), m.read(paramTable, Values)}))

				// DyNet's calls tell the same, and have added to no gradient.
				err = m.graph.Backward(c.words, c.loss, false)
				require.ErrorIs(t, err, ErrNumeric)
				want := c.want[max(0, len("its loss is not finite (NaN): ")*btoi(c.want[:3] == "its")):]
				require.ErrorContains(t, err, want)
				require.Equal(t, []float32{0, 0}, m.read(paramW, Gradient))
				require.Zero(t, m.graph.wire.Len(), "a failed call records nothing")

				// A healthy batch is not blamed.
				if c.write != nil {
					require.NoError(t, m.WriteParameter(paramW, Values, 0, pair(1, 2)))
					require.NoError(t, m.WriteParameter(paramTable, Values, 0, make([]float32, 8)))
				}
				require.NoError(t, m.graph.Backward(product(3, 4), 3, false))
				_, err = h.Trainer().Update()
				require.NoError(t, err)
				_, err = h.FB(m.graph, nil, 3)
				require.NoError(t, err)
				_, err = h.SyncLatestLoss()
				require.NoError(t, err)
			})
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A loss that is not finite is no update, though all gradients may be finite.
func TestAnInfiniteLossWithFiniteGradientsIsNotCommitted(t *testing.T) {
	for _, d := range devices {
		t.Run(d.name, func(t *testing.T) {
			m := d.make(t)
			h := m.handle()
			// log 0 + w * x: the constant's gradient goes nowhere.
			words := after(pair(1, 1), op(ops.Constant, dim1, 0), op(ops.Log, dim1, 3), op(ops.SumElements, dim1, 2), op(ops.CwiseSum, dim1, 4, 5))
			err := told(m, h, words, 6)
			require.ErrorIs(t, err, ErrNumeric)
			require.ErrorContains(t, err, "node 4 (Log) {1}, which is -Inf, of node 3 (Constant) {1}, which is 0;")
			require.Equal(t, []float32{1, 2}, m.read(paramW, Values))
			require.Equal(t, []float32{0, 0}, m.read(paramW, Gradient))

			// A leaf alone, which nothing has copied.
			_, err = m.NewParameter(0, "narrow", dim(1, 2), true, pair(nan, nan))
			require.NoError(t, err)
			_, err = m.NewParameter(0, "bias", dim(1), false, []float32{nan})
			require.NoError(t, err)
			for _, leaf := range [][]uint32{op(ops.Input, dim1, 0), op(ops.ConstLookup, dim1, 2, 1), op(ops.Parameter, dim1, 3)} {
				require.ErrorIs(t, told(m, h, leafAlone(leaf), 0), ErrNumeric)
			}
		})
	}
}

// leafAlone is a graph of one scalar leaf.
func leafAlone(leaf []uint32) *bridge.Words {
	return words(true, append(bits(nan), 1), leaf)
}

// Where only the gradient is not finite, its parameter is named, and pending gradients are as they were.
func TestAGradientThatIsNotFiniteNamesItsParameter(t *testing.T) {
	for _, d := range devices {
		t.Run(d.name, func(t *testing.T) {
			m := d.make(t)
			h := m.handle()
			require.NoError(t, m.graph.Backward(product(3, 4), 3, false))
			err := told(m, h, rootOf(0, 0), 4)
			require.ErrorContains(t, err, `the norm of its gradients is not finite (loss 0): all values are finite, but not the gradient of parameter "w";`)
			require.Equal(t, []float32{3, 4}, m.read(paramW, Gradient))

			rows := numbers(after(pair(0, 0), op(ops.Lookup, dim2, paramTable, 2), op(ops.CwiseMultiply, dim2, 1, 3), op(ops.SumElements, dim1, 4), op(ops.Sqrt, dim1, 5)), 1)
			err = told(m, h, rows, 6)
			require.ErrorContains(t, err, `all values are finite, but not the gradient of parameter "table", row 1;`)

			// What an earlier backward left is not this batch's fault.
			require.NoError(t, m.WriteParameter(paramW, Gradient, 0, pair(inf, 1)))
			err = told(m, h, product(1, 1), 3)
			require.ErrorContains(t, err, `the gradient of parameter "w" is not finite, as an earlier backward left it: set gradients to zero by model.reset_gradient() (in C: vpps_parameter_scale(engine, id, VPPS_GRADIENT, 0))`)
			require.NoError(t, m.ScaleParameter(paramW, Gradient, 0))
			require.NoError(t, told(m, h, product(1, 1), 3))
		})
	}
}

// Inputs, masks and nodes are those of the batch, whatever its graph was used for since.
func TestABatchIsEvaluatedAgainAsItWas(t *testing.T) {
	loss := []([]uint32){op(ops.Log, dim2, 2), op(ops.SumElements, dim1, 3)}
	for _, d := range devices {
		t.Run(d.name, func(t *testing.T) {
			m := d.make(t)
			h := m.handle()
			_, err := h.FB(m.graph, after(pair(-7, 1), loss...), 4)
			require.NoError(t, err)
			for k := 0; err == nil; k++ {
				require.Less(t, k, InFlight)
				_, err = h.FB(m.graph, words(false, bits(float32(k), 9)), 4)
			}
			require.ErrorContains(t, err, "batch 1: ")
			require.ErrorContains(t, err, "of node 2 (CwiseMultiply) {2}, from -7 to 2;")

			// A dropped element is 0 again.
			failures := 0
			for range 20 {
				err := told(m, h, after(pair(1, 1), op(ops.Dropout, dim2, 1, bits(0.5)[0]), op(ops.Log, dim2, 3), op(ops.SumElements, dim1, 4)), 5)
				if err != nil {
					failures++
					require.Regexp(t, `node 4 \(Log\) \{2\}, (from|which is) -Inf.*, of node 3 \(Dropout\) \{2\}, (from|which is) 0`, err.Error())
				}
			}
			require.NotZero(t, failures)

			// Nodes that a graph has dropped cannot be looked at any more; the batch failed all the same.
			g := m.NewGraph()
			_, err = h.FB(g, after(pair(nan, 1), loss...), 4)
			require.NoError(t, err)
			require.NoError(t, g.Truncate(3))
			_, err = h.SyncLatestLoss()
			require.ErrorIs(t, err, ErrNumeric)
			require.ErrorContains(t, err, "its loss is not finite (NaN); look for NaN or infinity in the loss;")
			g.Close()
			require.LessOrEqual(t, len(m.recordings), InFlight+2)
			for _, r := range m.recordings {
				require.Zero(t, r.flights)
			}
		})
	}
}

// Without memory to look at it once more the batch is named alone, and the engine goes on.
func TestABatchIsNamedAloneIfThereIsNoMemoryToLook(t *testing.T) {
	m := newModel(t, 0)
	h := m.handle()
	_, err := h.FB(m.graph, product(nan, 1), 3)
	require.NoError(t, err)
	m.exec.full = true
	_, err = h.SyncLatestLoss()
	m.exec.full = false
	require.ErrorIs(t, err, ErrNumeric)
	require.ErrorContains(t, err, "batch 1: its loss is not finite (NaN); look for NaN or infinity in the loss; ")
	require.NoError(t, told(m, h, product(1, 1), 3))
	require.NotZero(t, m.used[isa.SegResult])
}
