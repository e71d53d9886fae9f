package persist

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge/ops"
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
