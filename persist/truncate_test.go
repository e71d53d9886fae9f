package persist

import (
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge/ops"
)

// Values that were evaluated after a graph was shortened stay when later nodes are forgotten: the next evaluation does
// not take their memory.
func TestForgettingLaterNodesKeepsTheMemoryOfEarlierOnes(t *testing.T) {
	forget := map[string]func(m *model) error{
		"invalidate": func(m *model) error { return m.graph.Invalidate(3) },
		"truncate":   func(m *model) error { return m.graph.Truncate(3) },
	}
	for name, do := range forget {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, 0)
			require.NoError(t, m.graph.Forward(product(3, 4), 3, true))
			require.NoError(t, m.graph.Truncate(2))
			shorter := words(false, bits(3, 4), op(ops.CwiseMultiply, dim2, 0, 1), op(ops.SumElements, dim1, 2))
			two := make([]float32, 2)
			require.NoError(t, m.graph.Value(shorter, 2, two))
			require.Equal(t, []float32{3, 8}, two)
			require.NoError(t, do(m))
			if name == "truncate" {
				require.EqualValues(t, 11, m.value1(words(false, bits(3, 4), op(ops.SumElements, dim1, 2)), 3))
			} else {
				require.EqualValues(t, 11, m.value1(nil, 3))
			}
			require.Equal(t, []float32{3, 8}, m.value(2, 2))
		})
	}
}
