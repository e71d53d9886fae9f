package persist

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// gradients are those of all nodes.
func gradients(t *testing.T, g *Graph) (all [][]float32) {
	t.Helper()
	for n := range g.wire.Len() {
		v := make([]float32, g.wire.DimOf(uint32(n)).Size())
		require.NoError(t, g.Gradient(uint32(n), v))
		all = append(all, v)
	}
	return all
}

// NodeGradients are those of a full backward, and parameters have the gradients that were pending.
func TestNodeGradientsLeaveParametersAlone(t *testing.T) {
	for name, model := range map[string]func(*testing.T) *model{
		"CPU":      onCPU,
		"stand-in": func(t *testing.T) *model { m, _ := beyondRegisters(t); return m },
	} {
		t.Run(name, func(t *testing.T) {
			m := model(t)
			w, loss := wideWords(6, 1)
			m.graph = m.NewGraph()
			require.NoError(t, m.graph.NodeGradients(w, loss))
			of := gradients(t, m.graph)
			for id := range uint32(wideParams) {
				for _, x := range m.read(id, Gradient) {
					require.Zero(t, x)
				}
			}
			require.NoError(t, m.graph.Backward(nil, loss, true))
			require.Equal(t, gradients(t, m.graph), of)
			var pending [][]float32
			for id := range uint32(wideParams) {
				pending = append(pending, m.read(id, Gradient))
				require.NotZero(t, pending[id])
			}
			require.NoError(t, m.graph.NodeGradients(nil, loss))
			require.Equal(t, of, gradients(t, m.graph))
			for id := range uint32(wideParams) {
				require.Equal(t, pending[id], m.read(id, Gradient))
			}
			require.NoError(t, m.graph.Backward(nil, loss, false))
			for id := range uint32(wideParams) {
				for i, x := range m.read(id, Gradient) {
					require.InDelta(t, 2*pending[id][i], x, 1e-4)
				}
			}
		})
	}
}

// What Backward refuses, NodeGradients refuses.
func TestNodeGradientsNeedANumber(t *testing.T) {
	m := newModel(t, 0)
	m.value1(product(3, 4), 3)
	require.ErrorIs(t, m.graph.NodeGradients(nil, 2), ErrArgument)
	require.ErrorIs(t, m.graph.NodeGradients(nil, 9), ErrArgument)
	require.NoError(t, m.graph.NodeGradients(nil, 3))
}
