package persist

import (
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/ops"
)

// everywhere runs a test on the little model with its matrix: where batches run at once, on a thread of their own, and on
// a device that does everything as late as it may.
func everywhere(t *testing.T, test func(t *testing.T, open func() *model)) {
	for name, open := range map[string]func(*testing.T) *model{
		"verified": func(t *testing.T) *model {
			m := newModel(t, 0.1)
			m.addMatrix()
			return m
		},
		"at once": func(t *testing.T) *model { return onThreads(t, 1) },
		"threads": func(t *testing.T) *model { return onThreads(t, 2) },
		"GPU": func(t *testing.T) *model {
			m, _ := onGPU(t)
			m.addMatrix()
			return m
		},
	} {
		t.Run(name, func(t *testing.T) { test(t, func() *model { return open(t) }) })
	}
}

func (m *model) result(t Ticket, n int) []float32 {
	m.Helper()
	v := make([]float32, n)
	require.NoError(m, m.Result(t, v))
	return v
}

// infer asks for nodes of a new graph, which is closed at once.
func (m *model) infer(w *bridge.Words, nodes ...uint32) Ticket {
	m.Helper()
	g := m.NewGraph()
	defer g.Close()
	t, err := g.Infer(w, nodes)
	require.NoError(m, err)
	return t
}

// forward is what Forward and Value say of the same nodes.
func (m *model) forward(w *bridge.Words, nodes ...uint32) (all []float32) {
	m.Helper()
	g := m.NewGraph()
	defer g.Close()
	require.NoError(m, g.Forward(w, nodes[0], true))
	for _, n := range nodes {
		v := make([]float32, g.wire.DimOf(n).Size())
		require.NoError(m, g.Value(nil, n, v))
		all = append(all, v...)
	}
	return all
}

// Nodes may be asked for in any order, several times, and be parameters.
func TestInferGivesForwardsNumbers(t *testing.T) {
	everywhere(t, func(t *testing.T, open func() *model) {
		m := open()
		nodes := []uint32{7, 0, 5, 3, 5, 1}
		for k := range uint32(6) {
			w := mixed(k%4, float32(k), 1)
			want := m.forward(w, nodes...)
			require.Equal(t, want, m.result(m.infer(w, nodes...), len(want)))
		}
	})
}

// Answers wait on the host until they are asked for, in any order.
func TestManyAnswersInAnyOrder(t *testing.T) {
	everywhere(t, func(t *testing.T, open func() *model) {
		m := open()
		const n = 40
		var want [n][]float32
		var tickets [n]Ticket
		for k := range n {
			want[k] = m.forward(mixed(uint32(k%4), float32(k), 1), 5)
		}
		for k := range n {
			tickets[k] = m.infer(mixed(uint32(k%4), float32(k), 1), 5)
			require.EqualValues(t, k+1, tickets[k])
		}
		for k := range n {
			k = k * 7 % n
			require.Equal(t, want[k], m.result(tickets[k], 3))
		}
		require.Empty(t, m.answers)
	})
}

// An answer is that of the parameters after all batches of fb before it, and fb tells the losses that it tells without.
func TestAnswersBetweenBatchesOfFB(t *testing.T) {
	everywhere(t, func(t *testing.T, open func() *model) {
		train := func(answering bool) (answers [][]float32, losses []float32) {
			m := open()
			h := m.handleOfAll()
			var tickets []Ticket
			for k := range uint32(30) {
				g := m.NewGraph()
				stale, err := h.FB(g, mixed(k%4, 0.5, 1), 7)
				require.NoError(t, err)
				require.NoError(t, g.Truncate(0))
				losses = append(losses, stale)
				for range k % 3 {
					if !answering {
						answers = append(answers, m.forward(mixed(k%4, 1, 2), 5, 7))
						continue
					}
					w := mixed(k%4, 1, 2) // over the graph that fb has trained with, and that is cleared
					w.Dims = nil
					ticket, err := g.Infer(w, []uint32{5, 7})
					require.NoError(t, err)
					require.NoError(t, g.Truncate(0))
					tickets = append(tickets, ticket)
				}
				g.Close()
			}
			for _, ticket := range tickets {
				answers = append(answers, m.result(ticket, 4))
			}
			loss, err := h.SyncLatestLoss()
			require.NoError(t, err)
			return answers, append(losses, loss)
		}
		want, losses := train(false)
		have, told := train(true)
		require.Equal(t, want, have)
		require.Equal(t, losses, told)
	})
}

// A batch of fb that fails changes nothing, so answers asked for behind it are those of before it. The failure is told by
// a later call, once.
func TestAnswersBehindABatchThatFails(t *testing.T) {
	everywhere(t, func(t *testing.T, open func() *model) {
		m := open()
		h := m.handleOfAll()
		batches(m, h, 3)
		want := m.forward(mixed(1, 1, 2), 5, 7)
		for range 2 {
			before := m.infer(mixed(1, 1, 2), 5, 7)
			g := m.NewGraph()
			_, err := h.FB(g, mixed(0, inf, 1), 7)
			require.NoError(t, err)
			first, err := g.Infer(nil, []uint32{5, 7}) // of the nodes that failed
			require.NoError(t, err)
			require.NoError(t, g.Truncate(0))
			g.Close()
			second := m.infer(mixed(1, 1, 2), 5, 7)
			require.Equal(t, want, m.result(second, 4))
			require.Equal(t, want, m.result(before, 4))
			require.False(t, finite(m.result(first, 4)[3]))
			_, err = h.SyncLatestLoss()
			require.ErrorIs(t, err, ErrNumeric)
			require.Equal(t, want, m.result(m.infer(mixed(1, 1, 2), 5, 7), 4))
		}
	})
}

// Random nodes draw as Forward's do, also when an answer is evaluated once more.
func TestInferDrawsAsForwardDoes(t *testing.T) {
	everywhere(t, func(t *testing.T, open func() *model) {
		m := open()
		h := m.handleOfAll()
		dropped := func() *bridge.Words {
			return words(true, bits(1, 2), op(ops.Input, dim2, 0), op(ops.Dropout, dim2, 0, bits(0.5)[0]), op(ops.Dropout, dim2, 1, bits(0.5)[0]))
		}
		draw := func(infer, fails bool) (all []float32) {
			m.Seed(7)
			g, w, failing := m.NewGraph(), dropped(), m.NewGraph()
			defer g.Close()
			defer failing.Close()
			_, err := h.FB(failing, mixed(0, map[bool]float32{true: inf}[fails], 1), 7)
			require.NoError(t, err)
			var tickets []Ticket
			for range 2 {
				if !infer {
					v := make([]float32, 2)
					require.NoError(t, g.Forward(w, 2, true))
					require.NoError(t, g.Value(nil, 2, v))
					all, w = append(all, v...), nil
					continue
				}
				ticket, err := g.Infer(w, []uint32{2})
				require.NoError(t, err)
				tickets, w = append(tickets, ticket), nil
			}
			m.Seed(8)
			for _, ticket := range tickets {
				all = append(all, m.result(ticket, 2)...)
			}
			_, err = h.SyncLatestLoss()
			require.Equal(t, fails, err != nil)
			return all
		}
		want := draw(false, false)
		require.Equal(t, want, draw(true, false))
		require.Equal(t, want, draw(true, true))
	})
}

// Answers of any size have room, and the larger ones leave batches in flight alone.
func TestAnswersOfAllSizes(t *testing.T) {
	everywhere(t, func(t *testing.T, open func() *model) {
		m := open()
		h := m.handleOfAll()
		var tickets []Ticket
		sizes := []uint32{1, 100, 2048, 2049, 7, 30000, 5, 64, 65, 100000}
		for _, n := range sizes {
			batches(m, h, 1)
			x := make([]float32, n)
			for i := range x {
				x[i] = float32(i)
			}
			w := words(false, bits(x...), op(ops.Input, 0, 0), op(ops.ConstScalarMultiply, 0, 0, bits(2)[0]))
			w.Dims = []bridge.Dim{dim(n)}
			tickets = append(tickets, m.infer(w, 1, 0))
			g := m.NewGraph()
			_, err := h.FB(g, mixed(1, 1, 1), 7)
			require.NoError(t, err)
			g.Close()
		}
		for k, n := range sizes {
			have := m.result(tickets[k], int(2*n))
			for i := range n {
				require.EqualValues(t, 2*i, have[i])
				require.EqualValues(t, i, have[n+i])
			}
		}
	})
}

// A graph goes on after its answers: it may lose nodes that they are of, get others, be evaluated and trained.
func TestAGraphGoesOnAfterInfer(t *testing.T) {
	everywhere(t, func(t *testing.T, open func() *model) {
		m := open()
		h := m.handleOfAll()
		want := m.forward(mixed(1, 1, 2), 7, 5)
		m.result(m.infer(mixed(1, 1, 2), 7, 5), 4) // so there is room: the next one waits for nothing
		failing := m.NewGraph()
		_, err := h.FB(failing, mixed(0, inf, 1), 7)
		require.NoError(t, err)
		g := m.NewGraph()
		whole, err := g.Infer(mixed(1, 1, 2), []uint32{7, 5})
		require.NoError(t, err)
		require.NoError(t, g.Truncate(6))
		tail := words(false, append(bits(1, 2), 1), op(ops.Square, dim3, 5), op(ops.SumElements, dim1, 6), op(ops.Negate, dim1, 7))
		_, err = g.Infer(tail, []uint32{8})
		require.ErrorIs(t, err, ErrNumeric, "of fb, once")
		negated, err := g.Infer(tail, []uint32{8})
		require.NoError(t, err)
		require.Equal(t, want, m.result(whole, 4))
		require.Equal(t, -want[0], m.result(negated, 1)[0])
		v := make([]float32, 1)
		require.NoError(t, g.Value(nil, 7, v))
		require.Equal(t, want[0], v[0])
		again, err := g.Infer(nil, []uint32{8})
		require.NoError(t, err)
		_, err = h.FB(g, nil, 7)
		require.NoError(t, err)
		require.Equal(t, -want[0], m.result(again, 1)[0])
		loss, err := h.SyncLatestLoss()
		require.NoError(t, err)
		require.InDelta(t, want[0], loss, 1e-6)
	})
}

// Asking in the middle of DyNet's three calls changes none of their results.
func TestInferBetweenForwardBackwardAndUpdate(t *testing.T) {
	everywhere(t, func(t *testing.T, open func() *model) {
		train := func(ask bool) (all [][]float32) {
			m := open()
			trainer := m.handleOfAll().Trainer()
			between := func() {
				if ask {
					m.result(m.infer(mixed(1, 1, 2), 7), 1)
				}
			}
			for k := range uint32(8) {
				g := m.NewGraph()
				require.NoError(t, g.Forward(mixed(k%4, 0.5, 1), 7, true))
				between()
				require.NoError(t, g.Backward(nil, 7, false))
				between()
				_, err := trainer.Update()
				require.NoError(t, err)
				g.Close()
			}
			return batches(m, m.handleOfAll(), 0)
		}
		want, have := train(false), train(true)
		for id := range want {
			require.InDeltaSlice(t, want[id], have[id], 1e-6)
		}
	})
}

// What the program writes through pointers counts for the answers asked for after it.
func TestAnswersOfExposedParameters(t *testing.T) {
	everywhere(t, func(t *testing.T, open func() *model) {
		m := open()
		at, err := m.Expose(paramW, Values)
		require.NoError(t, err)
		w := (*[2]float32)(at)
		var tickets []Ticket
		for k := range 6 {
			w[0] = float32(k)
			tickets = append(tickets, m.infer(product(1, 1), 0))
		}
		w[0] = 9
		for k, ticket := range tickets {
			require.InDeltaSlice(t, []float32{float32(k), 2}, m.result(ticket, 2), 1e-6)
		}
	})
}

func TestWhatInferRefuses(t *testing.T) {
	everywhere(t, func(t *testing.T, open func() *model) {
		m := open()
		g := m.NewGraph()
		defer g.Close()
		_, err := g.Infer(nil, nil)
		require.ErrorIs(t, err, ErrArgument)
		require.ErrorContains(t, err, "no node was given")
		_, err = g.Infer(mixed(1, 1, 2), []uint32{1, 8})
		require.ErrorContains(t, err, "node 8 of a graph of 8 nodes")
		_, err = g.Infer(mixed(4, 1, 2), []uint32{7})
		require.ErrorContains(t, err, "node 3 (LookupNode): row 4 of")
		require.Empty(t, m.answers)

		ticket, err := g.Infer(mixed(1, 1, 2), []uint32{7})
		require.NoError(t, err)
		require.ErrorContains(t, m.Result(ticket, make([]float32, 2)), "ticket 1: its nodes have 1 elements, room for 2")
		require.NoError(t, m.Result(ticket, make([]float32, 1)))
		require.ErrorContains(t, m.Result(ticket, make([]float32, 1)), "ticket 1: its result was fetched or dropped before")
		for _, never := range []Ticket{0, 2} {
			err := m.Result(never, make([]float32, 1))
			require.ErrorIs(t, err, ErrArgument)
			require.ErrorContains(t, err, "this engine has given none, or only the first 1")
		}
		ticket, err = g.Infer(nil, []uint32{7})
		require.NoError(t, err)
		require.NoError(t, m.Drop(ticket)) // in flight
		require.ErrorContains(t, m.Drop(ticket), "fetched or dropped before")
		ticket, err = g.Infer(nil, []uint32{7})
		require.NoError(t, err)
		m.Close()
		_, err = g.Infer(nil, []uint32{7})
		require.ErrorContains(t, err, "the engine is closed")
		require.ErrorContains(t, m.Result(ticket, make([]float32, 1)), "the engine is closed")
		require.ErrorContains(t, m.Drop(ticket), "the engine is closed")
	})
}

// An answer that the device has no memory for is an error of its ticket. Batches behind it train.
func TestAnAnswerWithoutMemory(t *testing.T) {
	m, h := newAhead(t)
	m.result(m.infer(product(1, 1), 3), 1) // there is room for the answer itself
	require.NoError(t, trainBatch(m, h))
	m.drain()
	m.exec.full = true
	ticket := m.infer(product(1, 1), 3)
	m.drain()
	m.exec.full = false
	require.NoError(t, trainBatch(m, h))
	err := m.Result(ticket, make([]float32, 1))
	require.ErrorIs(t, err, ErrMemory)
	require.ErrorContains(t, err, "infer: activations")
	require.ErrorContains(t, m.Result(ticket, make([]float32, 1)), "fetched or dropped before")
	_, err = h.SyncLatestLoss()
	require.NoError(t, err)
	require.InDeltaSlice(t, []float32{0.8, 1.8}, weights(t, m), 1e-5)

	m.exec.full = true // none for a larger region either: the call fails, and nothing is in flight
	g := m.NewGraph()
	defer g.Close()
	w := words(false, bits(make([]float32, 100)...), op(ops.Input, 0, 0))
	w.Dims = []bridge.Dim{dim(100)}
	_, err = g.Infer(w, []uint32{0})
	require.ErrorIs(t, err, ErrMemory)
	m.exec.full = false
	_, err = g.Infer(w, []uint32{0})
	require.NoError(t, err)
}

// What came to the host before the device was lost can be fetched, the rest is lost with it.
func TestAnswersOfALostDevice(t *testing.T) {
	m, h := newAhead(t)
	landed := m.infer(product(1, 1), 3)
	require.NoError(t, trainBatch(m, h))
	_, err := h.SyncLatestLoss()
	require.NoError(t, err)
	m.exec.lost = true
	inFlight := m.infer(product(1, 1), 3)
	for range 2 {
		require.ErrorIs(t, m.Result(inFlight, make([]float32, 1)), ErrDevice)
	}
	require.Equal(t, []float32{3}, m.result(landed, 1))
	g := m.NewGraph()
	_, err = g.Infer(product(1, 1), []uint32{3})
	require.ErrorIs(t, err, ErrDevice)
}

// Each rank asks as often as it likes: the others do not take part.
func TestRanksInferByThemselves(t *testing.T) {
	train := func(infer bool) (answers [2][]float32, numbers []float32) {
		ranks := newGroup(t, how{ranks: 2, lambda: 0.1})
		attach(t, ranks, ParallelOptions{})
		succeed(t, ranks, func(r *rank) error {
			me := r.comm.Rank()
			var tickets []Ticket
			for step := range 6 {
				g := r.NewGraph()
				defer g.Close()
				w, loss := batchOf(sentencesOf(step, me, 2)...)
				if _, err := r.handle.FB(g, w, loss); err != nil {
					return err
				}
				for range 3 * me * (step % 2) {
					q := r.NewGraph()
					defer q.Close()
					w, loss := batchOf(sentencesOf(step, 1, 1)...)
					if infer {
						ticket, err := q.Infer(w, []uint32{loss})
						if err != nil {
							return err
						}
						tickets = append(tickets, ticket)
						continue
					}
					var v [1]float32
					if err := q.Value(w, loss, v[:]); err != nil {
						return err
					}
					answers[me] = append(answers[me], v[0])
				}
			}
			for _, ticket := range tickets {
				var v [1]float32
				if err := r.Result(ticket, v[:]); err != nil {
					return err
				}
				answers[me] = append(answers[me], v[0])
			}
			return r.Join()
		})
		requireEqualRanks(t, ranks)
		return answers, ranks[0].numbers()
	}
	answers, numbers := train(false)
	have, trained := train(true)
	require.Len(t, answers[1], 9)
	require.Equal(t, answers, have)
	require.Equal(t, numbers, trained)
}
