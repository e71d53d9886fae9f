package persist

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// VPPS_CHECK=1 gives the same results through every call: no operand is outside its tensor and
// nothing reads what a batch left before.
func TestACheckingBuildGivesTheSame(t *testing.T) {
	train := func() (losses []float32, w []float32) {
		m := newModel(t, 0)
		m.verify = false
		h := m.handle()
		for range 4 {
			g := m.NewGraph()
			require.NoError(t, g.Forward(product(0.5, -1), 3, true))
			require.NoError(t, g.Backward(nil, 3, false))
			_, err := h.FB(g, nil, 3)
			require.NoError(t, err)
			v, err := h.SyncLatestLoss()
			require.NoError(t, err)
			losses = append(losses, v)
			g.Close()
		}
		return losses, m.read(paramW, Values)
	}
	losses, w := train()
	t.Setenv("VPPS_CHECK", "1")
	m := newModel(t, 0)
	require.True(t, m.check)
	checkedLosses, checkedW := train()
	require.Equal(t, losses, checkedLosses)
	require.Equal(t, w, checkedW)
}
