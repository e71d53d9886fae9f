package persist

import (
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge/ops"
)

// noise records a node of random numbers.
func (m *model) noise(g *Graph, restart bool) []float32 {
	m.Helper()
	w := words(true, nil, op(ops.RandomUniform, dim3, bits(0)[0], bits(1)[0]))
	if restart {
		w = nil
	}
	v := make([]float32, 3)
	require.NoError(m, g.Forward(w, 0, restart))
	require.NoError(m, g.Value(nil, 0, v))
	return v
}

// Numbers depend on what came after the seed was set, not on what came before.
func TestASeedBeginsTheNumbersAnew(t *testing.T) {
	m := newModel(t, 0)
	var runs [2][][]float32
	for k := range runs {
		m.noise(m.NewGraph(), false)
		m.noise(m.NewGraph(), false)
		old := m.NewGraph()
		m.noise(old, false)
		m.Seed(7)
		g := m.NewGraph()
		runs[k] = [][]float32{m.noise(old, true), m.noise(g, false), m.noise(g, true), m.noise(old, true)}
	}
	require.Equal(t, runs[0], runs[1])
	for i, a := range runs[0] {
		for _, b := range runs[0][:i] {
			require.NotEqual(t, a, b)
		}
	}
}
