package persist

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/comm"
	"libvpps/persist/cpu"
	"libvpps/persist/isa"
)

// The six applications of the benchmarks, with vectors of 8, as ranks of one process.

// Dims, by number. Parameters are written as letters, in the order of their ids.
const (
	appScalar = iota
	appVector // v
	appBoth   // two vectors
	appSquare // s: {8,8}
	appWide   // w: {8,16}
	appGates  // k: {32}
	appLSTM   // g: {32,8}
	appHalf   // {4}
	appShort  // z: {16}
	appIn     // x: {16,8}
	appBack   // y: {16,4}
	appTable  // t: 12 rows {8}
)

var (
	appDims    = []bridge.Dim{dim(1), dim(8), dim(16), dim(8, 8), dim(8, 16), dim(32), dim(32, 8), dim(4), dim(16), dim(16, 8), dim(16, 4), dim(8, 12)}
	appLetters = map[rune]uint32{'v': appVector, 's': appSquare, 'w': appWide, 'k': appGates, 'g': appLSTM, 'z': appShort, 'x': appIn, 'y': appBack, 't': appTable}
)

// appRecorder records sentences; p are the nodes of parameters that are no tables, by id.
type appRecorder struct {
	bridge.Words
	*rand.Rand
	p      []uint32
	losses []uint32
}

func (r *appRecorder) add(code ops.Code, dim uint32, rest ...uint32) uint32 {
	r.Nodes = append(r.Nodes, op(code, dim, rest...)...)
	r.NodeCount++
	return uint32(r.NodeCount - 1)
}

// affine is a bias, and products of parameters with nodes: parameter, node and so on.
func (r *appRecorder) affine(dim, bias uint32, products ...uint32) uint32 {
	rest := []uint32{uint32(1 + len(products)), r.p[bias]}
	for k := 0; k < len(products); k += 2 {
		rest = append(rest, r.p[products[k]], products[k+1])
	}
	return r.add(ops.AffineTransform, dim, rest...)
}

func (r *appRecorder) tanh(x uint32) uint32     { return r.add(ops.Tanh, appVector, x) }
func (r *appRecorder) logistic(x uint32) uint32 { return r.add(ops.LogisticSigmoid, appVector, x) }
func (r *appRecorder) times(x, y uint32) uint32 { return r.add(ops.CwiseMultiply, appVector, x, y) }
func (r *appRecorder) sum(x ...uint32) uint32 {
	return r.add(ops.Sum, appVector, append([]uint32{uint32(len(x))}, x...)...)
}
func (r *appRecorder) both(dim, x, y uint32) uint32 {
	return r.add(ops.Concatenate, dim, 2, x, y, 0)
}

// drawn is the offset of a new input word.
func (r *appRecorder) drawn(below int) uint32 {
	r.Inputs = append(r.Inputs, uint32(r.IntN(below)))
	return uint32(len(r.Inputs) - 1)
}

func (r *appRecorder) word(table uint32) uint32 {
	return r.add(ops.Lookup, appVector, table, r.drawn(12))
}

func (r *appRecorder) loss(x uint32) {
	r.losses = append(r.losses, r.add(ops.PickNegLogSoftmax, appScalar, x, r.drawn(8)))
}

// root is the loss of a whole sentence.
func (r *appRecorder) root(w, b, h uint32) { r.loss(r.tanh(r.affine(appVector, b, w, h))) }

// state is what a cell leaves.
type state struct{ h, c uint32 }

// grow makes a random tree of some words.
func grow(r *appRecorder, words int, leaf func() state, node func(left, right state) state) state {
	if words == 1 {
		return leaf()
	}
	k := 1 + r.IntN(words-1)
	left := grow(r, k, leaf, node)
	return node(left, grow(r, words-k, leaf, node))
}

// lstm reads a sequence, forth or back: the outputs. Its parameters are Wx, Wh and the bias, from id on.
func (r *appRecorder) lstm(dim, gates, id uint32, words []uint32, back bool) []uint32 {
	out := make([]uint32, len(words))
	h := r.add(ops.Constant, dim, 0)
	c := h
	for k := range words {
		if back {
			k = len(words) - 1 - k
		}
		g := r.add(ops.VanillaLSTMGates, gates, 5, words[k], h, r.p[id], r.p[id+1], r.p[id+2], bits(1)[0])
		c = r.add(ops.VanillaLSTMC, dim, c, g)
		h = r.add(ops.VanillaLSTMH, dim, c, g)
		out[k] = h
	}
	return out
}

// tag has a loss for each word. The parameters are those of two LSTMs, two layers of scores.
func (r *appRecorder) tag(words []uint32) {
	forth, back := r.lstm(appVector, appGates, 0, words, false), r.lstm(appVector, appGates, 3, words, true)
	for k := range words {
		h := r.tanh(r.affine(appVector, 7, 6, r.both(appBoth, forth[k], back[k])))
		r.loss(r.affine(appVector, 9, 8, h))
	}
}

// letters spells a word.
func (r *appRecorder) letters(table uint32) uint32 {
	var x []uint32
	for range 2 + r.IntN(4) {
		x = append(x, r.word(table))
	}
	forth, back := r.lstm(appHalf, appShort, 10, x, false), r.lstm(appHalf, appShort, 13, x, true)
	return r.both(appVector, forth[len(x)-1], back[0])
}

// appOfRanks is an application: its parameters, and what a sentence of some words adds to a graph.
type appOfRanks struct {
	name, params string
	sentence     func(r *appRecorder, words int)
}

var sixApplications = []appOfRanks{
	{"Tree-LSTM", "s sss www ss vvvv t", func(r *appRecorder, words int) {
		scored := func(s state) state {
			r.loss(r.add(ops.MatrixMultiply, appVector, r.p[0], s.h))
			return s
		}
		cell := func(id, x uint32) (i, o, u uint32) {
			gate := func(k uint32) uint32 { return r.affine(appVector, 9+k, id+k, x) }
			return r.logistic(gate(0)), r.logistic(gate(1)), r.tanh(gate(2))
		}
		grow(r, words, func() state {
			i, o, u := cell(1, r.word(13))
			c := r.times(i, u)
			return scored(state{r.times(o, r.tanh(c)), c})
		}, func(left, right state) state {
			i, o, u := cell(4, r.both(appBoth, left.h, right.h))
			c := r.sum(r.times(i, u), r.times(r.logistic(r.affine(appVector, 12, 7, left.h)), left.c),
				r.times(r.logistic(r.affine(appVector, 12, 8, right.h)), right.c))
			return scored(state{r.times(o, r.tanh(c)), c})
		})
	}},
	{"RvNN", "sv ssv sv t", func(r *appRecorder, words int) {
		top := grow(r, words, func() state { return state{h: r.tanh(r.affine(appVector, 1, 0, r.word(7)))} },
			func(left, right state) state { return state{h: r.tanh(r.affine(appVector, 4, 2, left.h, 3, right.h))} })
		r.root(5, 6, top.h)
	}},
	{"TD-RNN", "ssv sv t", func(r *appRecorder, words int) {
		var h []uint32
		for range words {
			h = append(h, r.word(5))
		}
		for ; len(h) > 1; h = h[:len(h)-1] {
			for k := range len(h) - 1 {
				h[k] = r.tanh(r.affine(appVector, 2, 0, h[k], 1, h[k+1]))
			}
		}
		r.root(3, 4, h[0])
	}},
	{"TD-LSTM", "sssss sssss vvvvv sv t", func(r *appRecorder, words int) {
		var h, c []uint32
		for range words {
			h = append(h, r.word(17))
		}
		for ; len(h) > 1; h = h[:len(h)-1] {
			first := c == nil
			if first {
				c = make([]uint32, words)
			}
			for k := range len(h) - 1 {
				gate := func(g uint32) uint32 { return r.affine(appVector, 10+g, g, h[k], 5+g, h[k+1]) }
				i, o, u := r.logistic(gate(0)), r.logistic(gate(1)), r.tanh(gate(2))
				cell := r.times(i, u)
				if !first {
					cell = r.sum(cell, r.times(r.logistic(gate(3)), c[k]), r.times(r.logistic(gate(4)), c[k+1]))
				}
				c[k] = cell
				h[k] = r.times(o, r.tanh(cell))
			}
		}
		r.root(15, 16, h[0])
	}},
	{"BiLSTM", "ggk ggk wv sv t", func(r *appRecorder, words int) {
		var x []uint32
		for range words {
			x = append(x, r.word(10))
		}
		r.tag(x)
	}},
	{"BiLSTM with characters", "ggk ggk wv sv xyz xyz t t", func(r *appRecorder, words int) {
		var x []uint32
		for range words {
			if r.IntN(3) > 0 {
				x = append(x, r.word(16))
			} else {
				x = append(x, r.letters(17))
			}
		}
		r.tag(x)
	}},
}

// engine makes the model, with values that depend on the seed.
func (a appOfRanks) engine(t *testing.T, seed float32) *rank {
	t.Helper()
	x, err := cpu.New(1, 1, 10)
	require.NoError(t, err)
	r := &rank{Engine: newEngine(x, 1)}
	r.verify = true
	t.Cleanup(r.Close)
	c, err := r.NewCollection(0)
	require.NoError(t, err)
	var ids []uint32
	for k, letter := range strings.ReplaceAll(a.params, " ", "") {
		values := make([]float32, appDims[appLetters[letter]].Size())
		for i := range values {
			values[i] = (float32((7*i+3*k)%11)/11 - 0.45) * seed
		}
		id, err := r.NewParameter(c, fmt.Sprint("p", k), appDims[appLetters[letter]], letter == 't', values)
		require.NoError(t, err)
		ids = append(ids, id)
	}
	r.trainer, err = r.NewTrainer(TrainerOptions{Rule: isa.SGD, LearningRate: 0.05, Clipping: true, Threshold: 5, Sparse: true}, ids)
	require.NoError(t, err)
	r.handle, err = r.NewHandle(ids, r.trainer)
	require.NoError(t, err)
	return r
}

// train trains the sentences of some numbers as one batch, and returns the sum of their losses.
func (a appOfRanks) train(e *rank, numbers ...int) (float32, error) {
	r := &appRecorder{Words: bridge.Words{Dims: appDims}}
	for k, letter := range strings.ReplaceAll(a.params, " ", "") {
		if letter != 't' {
			r.p = append(r.p, r.add(ops.Parameter, appLetters[letter], uint32(k)))
		}
	}
	for _, n := range numbers {
		r.Rand = rand.New(rand.NewPCG(uint64(n), 5))
		a.sentence(r, 3+r.IntN(5))
	}
	loss := r.add(ops.Sum, appScalar, append([]uint32{uint32(len(r.losses))}, r.losses...)...)
	g := e.NewGraph()
	defer g.Close()
	if _, err := e.handle.FB(g, &r.Words, loss); err != nil {
		return 0, err
	}
	return e.handle.SyncLatestLoss()
}

// Two and three ranks train each application as one does with their batches joined, also when one has a batch less.
func TestSixApplicationsByRanks(t *testing.T) {
	const steps = 5
	batch := func(step, rank int) []int { return []int{100*step + 10*rank, 100*step + 10*rank + 1} }
	for _, a := range sixApplications {
		for _, n := range []int{2, 3} {
			t.Run(fmt.Sprintf("%s, %d ranks", a.name, n), func(t *testing.T) {
				alone, ranks := a.engine(t, 1), make([]*rank, n)
				group, err := comm.NewLocal(n, 20*time.Second)
				require.NoError(t, err)
				for k := range ranks {
					ranks[k] = a.engine(t, 1+float32(k))
					ranks[k].comm = group[k]
				}
				attach(t, ranks, ParallelOptions{})
				losses := make([][]float32, n)
				succeed(t, ranks, func(r *rank) error {
					me := r.comm.Rank()
					for step := range steps - me%2 {
						loss, err := a.train(r, batch(step, me)...)
						if err != nil {
							return err
						}
						losses[me] = append(losses[me], loss)
					}
					return r.Join()
				})
				requireEqualRanks(t, ranks)
				for step := range steps {
					var joined []int
					sum := float32(0)
					for k := range n {
						if step < len(losses[k]) {
							joined = append(joined, batch(step, k)...)
							sum += losses[k][step]
						}
					}
					loss, err := a.train(alone, joined...)
					require.NoError(t, err)
					require.InDelta(t, loss, sum, 1e-5*float64(loss), "step %d", step)
				}
				requireClose(t, alone.numbers(), ranks[0].numbers(), a.name)
				require.False(t, slices.Equal(alone.numbers(), a.engine(t, 1).numbers()), "nothing was trained")
			})
		}
	}
}
