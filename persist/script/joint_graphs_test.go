package script

import (
	"cmp"
	"slices"
	"testing"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
	"libvpps/persist/schedule"
)

// Graphs with products that are joined. They have a scores' matrix of 70 rows, an inner one of 16 by 16, biases of
// both, and steps of minibatches.
type jointGraph struct {
	*Request
	t                               testing.TB
	batch                           uint32
	scores, bias, inner, innerBias  uint32
	vector, result, one, mean, wide uint32 // dims: 16 and 70 elements, one element, that of a loss, 16 by 3
	losses                          []uint32
}

// JointCase is a graph and the nodes of its joint products, forward and, if they are others, backward.
type JointCase struct {
	*Request
	Forward, Backward [][]uint32
	Random            bool // it has random numbers of its own
}

func newJointGraph(t testing.TB, batch uint32) *jointGraph {
	r := languageModel(t, 70, 16, batch, 1)
	r.Wide = schedule.Wideness{Batched: 16, Single: 16, Piece: 4, Terms: 2, Columns: 4}
	f := &jointGraph{Request: r, t: t, batch: batch, vector: 4, result: 5, one: 6, mean: 7, wide: 8}
	r.Graph = &bridge.Graph{Dims: append(r.Graph.Dims, dimOf(batch, 16, 3), dimOf(batch, 70, 3), dimOf(1, 16), dimOf(1, 70))}
	f.scores, f.bias, f.inner, f.innerBias = f.add(ops.Parameter, 0, []uint32{0}), f.add(ops.Parameter, 1, []uint32{1}), f.add(ops.Parameter, 2, []uint32{2}), f.add(ops.Parameter, 3, []uint32{3})
	return f
}

func (f *jointGraph) add(op ops.Code, dim uint32, attrs []uint32, args ...uint32) uint32 {
	appendNode(f.Graph, op, dim, attrs, args...)
	return uint32(f.Graph.Len() - 1)
}

// words are input words that choose one of so many rows or classes.
func (f *jointGraph) words(n, of uint32) (at uint32) {
	at = uint32(len(f.Graph.Inputs))
	for k := range n {
		f.Graph.Inputs = append(f.Graph.Inputs, (at+k)*7919%of)
	}
	return at
}

func (f *jointGraph) lookup() uint32 {
	return f.add(ops.Lookup, f.vector, []uint32{4, f.words(f.batch, 70)})
}

// step is a recurrent one: its operand is no function of a product alone.
func (f *jointGraph) step(h uint32) uint32 {
	x := f.add(ops.AffineTransform, f.vector, nil, f.innerBias, f.inner, h)
	return f.add(ops.CwiseMultiply, f.vector, nil, f.add(ops.Tanh, f.vector, nil, x), h)
}

func (f *jointGraph) score(h uint32) uint32 {
	return f.add(ops.AffineTransform, f.result, nil, f.bias, f.scores, h)
}

func (f *jointGraph) lose(scores uint32) uint32 {
	f.losses = append(f.losses, f.add(ops.PickNegLogSoftmax, f.one, []uint32{f.words(f.batch, 70)}, scores))
	return scores
}

// norm adds the sum of squares to the losses.
func (f *jointGraph) norm(x uint32) {
	f.losses = append(f.losses, f.add(ops.SquaredNorm, f.one, nil, x))
}

// request is that of the sum of the losses.
func (f *jointGraph) request() *Request {
	f.Node = f.add(ops.SumDimension, f.mean, []uint32{0, 1}, f.add(ops.Sum, f.one, nil, f.losses...))
	return f.Request
}

// jointCases are graphs by what is special about them.
var jointCases = map[string]func(f *jointGraph) (forward, backward [][]uint32){
	"a language model": func(f *jointGraph) (forward, backward [][]uint32) {
		return [][]uint32{f.sequence(7)}, nil
	},
	"parameters that each product has its own nodes of": func(f *jointGraph) (forward, backward [][]uint32) {
		var nodes []uint32
		for h := f.lookup(); len(nodes) < 4; h = f.step(h) {
			f.scores, f.bias = f.add(ops.Parameter, 0, []uint32{0}), f.add(ops.Parameter, 1, []uint32{1})
			nodes = append(nodes, f.lose(f.score(h)))
		}
		return [][]uint32{nodes}, nil
	},
	"operands of different depths": func(f *jointGraph) (forward, backward [][]uint32) {
		x, h := f.lookup(), f.lookup()
		nodes := []uint32{f.lose(f.score(x))}
		for range 3 {
			h = f.step(h)
		}
		nodes = append(nodes, f.lose(f.score(h)), f.lose(f.score(f.add(ops.Sqrt, f.vector, nil, f.add(ops.LogisticSigmoid, f.vector, nil, x)))))
		return [][]uint32{nodes}, nil
	},
	"two layers": func(f *jointGraph) (forward, backward [][]uint32) {
		var below, above []uint32
		for range 4 {
			y := f.add(ops.AffineTransform, f.vector, nil, f.innerBias, f.inner, f.lookup())
			below = append(below, y)
			above = append(above, f.lose(f.score(f.add(ops.Tanh, f.vector, nil, y))))
		}
		return [][]uint32{below, above}, nil
	},
	"a product of a product": func(f *jointGraph) (forward, backward [][]uint32) {
		var below, above []uint32
		for range 4 {
			y := f.add(ops.AffineTransform, f.vector, nil, f.innerBias, f.inner, f.lookup())
			below = append(below, y)
			above = append(above, f.lose(f.score(y)))
		}
		return [][]uint32{below, above}, nil
	},
	"a function behind sums": func(f *jointGraph) (forward, backward [][]uint32) {
		f.Wide.Columns = 2 * int(f.batch) // one node's columns are too few
		return [][]uint32{f.functions()}, nil
	},
	"a function in place": func(f *jointGraph) (forward, backward [][]uint32) { return [][]uint32{f.functions()}, nil },
	"an encoder": func(f *jointGraph) (forward, backward [][]uint32) {
		h, state := f.lookup(), f.lookup()
		var keys []uint32
		for range 4 {
			h = f.step(h)
			keys = append(keys, f.score(h))
		}
		read := f.add(ops.PickRange, f.vector, []uint32{3, 19, 0}, f.add(ops.Tanh, f.result, nil, f.add(ops.Sum, f.result, nil, keys[0], keys[1])))
		for range 3 { // they have the heights of the encoder's last steps, but those have smaller products
			state = f.step(f.add(ops.CwiseMultiply, f.vector, nil, state, read))
			f.norm(f.add(ops.Tanh, f.result, nil, f.add(ops.CwiseMultiply, f.result, nil, keys[2], keys[3])))
		}
		f.norm(state)
		return [][]uint32{keys[:2], keys[2:]}, [][]uint32{keys[2:]}
	},
	"a shared operand": func(f *jointGraph) (forward, backward [][]uint32) {
		x, y := f.lookup(), f.lookup()
		nodes := []uint32{f.lose(f.score(x)), f.lose(f.score(y))}
		f.lose(f.score(y))
		return [][]uint32{nodes}, nil
	},
	"operands of two matrices": func(f *jointGraph) (forward, backward [][]uint32) {
		var first, second []uint32
		for range 4 {
			x := f.lookup()
			first = append(first, f.lose(f.score(x)))
			y := f.add(ops.MatrixMultiply, f.vector, nil, f.inner, x)
			second = append(second, y)
			f.norm(f.add(ops.Tanh, f.vector, nil, y))
		}
		return [][]uint32{first, second}, nil
	},
	"different biases": func(f *jointGraph) (forward, backward [][]uint32) {
		var with, without []uint32
		for range 3 {
			with = append(with, f.lose(f.score(f.lookup())))
			without = append(without, f.lose(f.add(ops.MatrixMultiply, f.result, nil, f.scores, f.lookup())))
		}
		return [][]uint32{with, without}, nil
	},
	"an operand under another shape": func(f *jointGraph) (forward, backward [][]uint32) {
		nodes := f.sequence(3)
		f.lose(f.score(f.add(ops.Reshape, f.vector, nil, f.lookup())))
		return [][]uint32{nodes}, nil
	},
	partsApart: func(f *jointGraph) (forward, backward [][]uint32) {
		for k := range uint32(5) { // each lies in another node's value
			x := f.add(ops.Tanh, f.result, nil, f.score(f.lookup()))
			f.lose(f.score(f.add(ops.PickRange, f.vector, []uint32{k, 16 + k, 0}, x)))
		}
		return [][]uint32{{5, 11, 17, 23, 29}}, nil
	},
	partsInARow: func(f *jointGraph) (forward, backward [][]uint32) {
		x, nodes := f.add(ops.Tanh, f.result, nil, f.score(f.lookup())), []uint32(nil)
		for k := range uint32(4) {
			nodes = append(nodes, f.lose(f.score(f.add(ops.PickRange, f.vector, []uint32{16 * k, 16*k + 16, 0}, x))))
		}
		return [][]uint32{nodes}, nil
	},
	"dropout": func(f *jointGraph) (forward, backward [][]uint32) {
		var nodes []uint32
		for range 4 {
			nodes = append(nodes, f.lose(f.score(f.add(ops.Dropout, f.vector, []uint32{isa.Float(0.25)}, f.lookup()))))
		}
		return [][]uint32{nodes}, nil
	},
	"several columns": func(f *jointGraph) (forward, backward [][]uint32) {
		x := f.lookup()
		columns := f.add(ops.Concatenate, f.wide, []uint32{1}, x, f.lookup(), x)
		nodes := []uint32{f.lose(f.score(x))}
		y := f.add(ops.AffineTransform, f.wide+1, nil, f.bias, f.scores, columns)
		f.norm(y)
		alone := f.score1(f.innerBias)
		one := f.score1(f.add(ops.Tanh, f.wide+2, nil, f.innerBias))
		f.losses = append(f.losses, f.add(ops.SquaredNorm, f.mean, nil, alone), f.add(ops.SquaredNorm, f.mean, nil, one))
		return [][]uint32{append(nodes, y, one)}, nil
	},
	"gradients that are passed on": func(f *jointGraph) (forward, backward [][]uint32) {
		nodes := f.sequence(3)
		passed := []uint32{f.score(f.lookup()), f.score(f.lookup())}
		f.lose(f.add(ops.Sum, f.result, nil, passed...))
		return [][]uint32{append(nodes, passed...)}, [][]uint32{nodes}
	},
	"operands without gradients": func(f *jointGraph) (forward, backward [][]uint32) {
		nodes, n := f.sequence(3), 16*f.batch
		at := f.words(n, 8)
		for k := range n {
			f.Graph.Inputs[at+k] = isa.Float(float32(f.Graph.Inputs[at+k]) / 4)
		}
		return [][]uint32{append(nodes, f.lose(f.score(f.add(ops.Input, f.vector, []uint32{at}))))}, [][]uint32{nodes}
	},
}

// Parts of a value without a batch have no memory of their own.
const (
	partsApart  = "operands that are parts"
	partsInARow = "operands that are parts in a row"
)

// functions are steps whose operands are functions that alone read a product.
func (f *jointGraph) functions() (nodes []uint32) {
	h := f.lookup()
	for range 4 {
		h = f.add(ops.Tanh, f.vector, nil, f.add(ops.AffineTransform, f.vector, nil, f.innerBias, f.inner, h))
		nodes = append(nodes, f.lose(f.score(h)))
	}
	return nodes
}

// score1 are scores without a batch.
func (f *jointGraph) score1(x uint32) uint32 {
	return f.add(ops.AffineTransform, f.wide+3, nil, f.bias, f.scores, x)
}

// sequence is steps with scores each, whose nodes are returned.
func (f *jointGraph) sequence(steps int) (nodes []uint32) {
	h := f.lookup()
	for range steps {
		h = f.step(h)
		nodes = append(nodes, f.lose(f.score(h)))
	}
	return nodes
}

// JointCases are the graphs.
func JointCases(t testing.TB) map[string]*JointCase {
	list := map[string]*JointCase{}
	for name, fill := range jointCases {
		batch := uint32(4)
		if name == partsApart || name == partsInARow {
			batch = 1
		}
		f := newJointGraph(t, batch)
		forward, backward := fill(f)
		if backward == nil {
			backward = forward
		}
		list[name] = &JointCase{f.request(), forward, backward, name == "dropout"}
	}
	return list
}

// JointErrors is a graph with joint products and two errors, in a loss's label and, after it, in what scores are made
// of. The former is in the node that is returned, and the latter is lowered first.
func JointErrors(t testing.TB) (r *Request, first uint32) {
	f := newJointGraph(t, 4)
	f.sequence(3)
	first = f.losses[1]
	f.Graph.Inputs[f.Graph.AttrsOf(first)[0]] = 70
	elements := f.words(f.batch, f.batch)
	f.Graph.Inputs[elements] = f.batch
	f.lose(f.score(f.add(ops.PickBatchElements, f.vector, []uint32{elements, f.batch}, f.lookup())))
	return f.request(), first
}

// JointOfTooMuch is a graph with a joint product that does not fit segment act.
func JointOfTooMuch(t testing.TB) *Request {
	f := newJointGraph(t, 1)
	for _, d := range []uint32{f.vector, f.result, f.one} {
		f.Graph.Dims[d].Bd = 1 << 25
	}
	for k := range 2 {
		f.norm(f.score(f.add(ops.Constant, f.vector, []uint32{isa.Float(float32(k))})))
	}
	return f.request()
}

// JointNodes are the nodes of the latest script's joint products, in the graph's order; with backward those whose
// gradients are multiplied as one.
func JointNodes(b *Builder, backward bool) (nodes [][]uint32) {
	for i := range b.joints.products {
		p := &b.joints.products[i]
		if p.formed && !backward || p.sums.Count > 0 {
			nodes = append(nodes, p.nodes)
		}
	}
	slices.SortFunc(nodes, func(x, y []uint32) int { return cmp.Compare(x[0], y[0]) })
	return nodes
}

// Unjoined makes a builder's scripts have no joint products.
func Unjoined(b *Builder) { b.joints.off = true }

// LevelsInTiles are how many levels of the latest script have products by a matrix in memory, forward and backward.
func LevelsInTiles(b *Builder) (forward, backward int) {
	seen := map[int32]bool{}
	for _, c := range b.emitter.ByLevel {
		for _, it := range b.AppendItemsOf(nil, c) {
			w, level := b.SignatureOf(&it), b.Clusters[c].Level
			if isa.Opcode(w[0]) != isa.Gemm || isa.Segment(w[2]>>4&15) != isa.SegParam || seen[level] {
				continue
			}
			if seen[level] = true; b.PhaseOf(level) == isa.InForward {
				forward++
			} else {
				backward++
			}
		}
	}
	return forward, backward
}

// Levels is how many levels the latest script has.
func Levels(b *Builder) int { return int(b.MaxLevel) + 1 }
