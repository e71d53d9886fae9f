package persist

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/ops"
)

// withExtras records product's graph, and nodes that the loss, node 5, does not need: the
// parameter under another shape, a square of the input, and one behind the loss.
func withExtras() *bridge.Words {
	return words(true, bits(3, 4), op(ops.Parameter, dim2, paramW), op(ops.Input, dim2, 0),
		op(ops.Reshape, dim2, 0), op(ops.Square, dim2, 1),
		op(ops.CwiseMultiply, dim2, 0, 1), op(ops.SumElements, dim1, 4), op(ops.Square, dim2, 0))
}

func TestKeptNodesHaveTheirValuesAfterFB(t *testing.T) {
	for _, lambda := range []float32{0, 0.1} {
		m := newModel(t, lambda)
		h := m.handle()
		w := withExtras()
		for range 3 {
			factor, err := m.Factor(0)
			require.NoError(t, err)
			before := m.read(paramW, Values)
			before[0] *= factor
			before[1] *= factor
			require.NoError(t, h.Keep(m.graph, []uint32{3, 2, 0, 4, 3}))
			_, err = h.FB(m.graph, w, 5)
			require.NoError(t, err)
			w = nil
			other := m.NewGraph() // its batch must leave the kept values' memory alone
			_, err = h.FB(other, withExtras(), 5)
			require.NoError(t, err)
			other.Close()
			require.Equal(t, before, m.value(0, 2))
			require.Equal(t, before, m.value(2, 2))
			require.Equal(t, []float32{9, 16}, m.value(3, 2))
			require.Equal(t, []float32{before[0] * 3, before[1] * 4}, m.value(4, 2))
			require.ErrorContains(t, m.graph.Value(nil, 1, make([]float32, 2)), "node 1 has no value")
			require.Equal(t, []float32{9, 16}, m.value(3, 2), "after a refused call")
		}
		_, err := h.FB(m.graph, nil, 5) // keeping is for one fb
		require.NoError(t, err)
		require.ErrorContains(t, m.graph.Value(nil, 3, make([]float32, 2)), "no value")
	}
}

func TestNodesBehindTheLossAreNotKept(t *testing.T) {
	m := newModel(t, 0)
	h := m.handle()
	require.NoError(t, h.Keep(m.graph, []uint32{6}))
	_, err := h.FB(m.graph, withExtras(), 5)
	require.ErrorContains(t, err, "node 6 is to be kept, but comes after the loss, node 5")
	require.NoError(t, m.graph.Truncate(6)) // forgets it
	_, err = h.FB(m.graph, withExtras(), 5)
	require.NoError(t, err)
}

// A call that evaluates a graph anew and then fails leaves the values that fb has kept.
func TestAFailedCallLeavesKeptValues(t *testing.T) {
	m := newModel(t, 0)
	h := m.handle()
	used := m.NewGraph() // the next one takes over its memory, and nothing else
	require.NoError(t, used.Forward(product(1, 2), 3, false))
	require.NoError(t, used.Forward(nil, 3, true))
	used.Close()
	g := m.NewGraph()
	require.NoError(t, h.Keep(g, []uint32{2}))
	_, err := h.FB(g, product(3, 4), 3)
	require.NoError(t, err)
	before, after := make([]float32, 2), make([]float32, 2)
	require.NoError(t, g.Value(nil, 2, before))
	nan := words(false, bits(3, 4, float32(math.NaN())), op(ops.Input, dim1, 2))
	require.ErrorIs(t, g.NodeGradients(nan, 4), ErrNumeric)
	require.NoError(t, g.Value(nil, 2, after))
	require.Equal(t, before, after)
}
