package persist

// A script that cannot be made is an error of its batch alone, wherever it is made.

import (
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/plan"
)

// beyondActivations records product and, in the same loss, more than 16 GiB of activations.
func beyondActivations() (w *bridge.Words, loss uint32) {
	w = product(3, 4)
	w.Dims = append(w.Dims, dim(1<<30))
	nodes := [][]uint32{op(ops.Constant, 3, bits(1)[0])}
	for n := uint32(4); n < 8; n++ {
		nodes = append(nodes, op(ops.Tanh, 3, n))
	}
	nodes = append(nodes, op(ops.SumElements, dim1, 8), op(ops.Sum, dim1, 2, 3, 9))
	for _, n := range nodes {
		w.Nodes = append(w.Nodes, n...)
	}
	w.NodeCount += len(nodes)
	return w, 10
}

func TestABatchThatCannotBeBuiltFailsAlone(t *testing.T) {
	for device, open := range map[string]func(t *testing.T) *model{
		"CPU":         func(t *testing.T) *model { return newModel(t, 0) },
		"CPU, worker": func(t *testing.T) *model { m, _ := newAhead(t); return m },
		"GPU, worker": func(t *testing.T) *model { m, _ := onGPU(t); return m },
	} {
		for name, call := range map[string]func(m *model, h *Handle, w *bridge.Words, n uint32) error{
			"forward":  func(m *model, _ *Handle, w *bridge.Words, n uint32) error { return m.graph.Forward(w, n, true) },
			"backward": func(m *model, _ *Handle, w *bridge.Words, n uint32) error { return m.graph.Backward(w, n, true) },
			"fb": func(m *model, h *Handle, w *bridge.Words, n uint32) error {
				if _, err := h.FB(m.graph, w, n); err != nil {
					return err
				}
				_, err := h.SyncLatestLoss()
				return err
			},
		} {
			t.Run(device+" "+name, func(t *testing.T) {
				m := open(t)
				h := m.handle()
				require.NoError(t, trainBatch(m, h))
				m.drain()
				before := weights(t, m)

				w, loss := beyondActivations()
				err := call(m, h, w, loss)
				require.ErrorIs(t, err, ErrMemory)
				require.ErrorContains(t, err, "16 GiB")
				require.Equal(t, before, weights(t, m))

				// A plan that makes the builder divide by zero.
				sound := m.plan
				m.plan = &plan.Plan{}
				m.graph.Truncate(0)
				err = call(m, h, product(3, 4), 3)
				m.plan = sound
				require.ErrorContains(t, err, "internal error: runtime error")
				require.NotErrorIs(t, err, ErrDevice)
				require.Equal(t, before, weights(t, m))

				for range 3 {
					require.NoError(t, trainBatch(m, h))
				}
				_, err = h.SyncLatestLoss()
				require.NoError(t, err)
				require.InDelta(t, before[0]-.3, weights(t, m)[0], 1e-5)
			})
		}
	}
}
