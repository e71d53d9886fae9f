package script_test

// How long the host takes to turn a batch of trees into a script, in nanoseconds a node.

import (
	"math/rand"
	"slices"
	"testing"

	"libvpps/bridge"
	"libvpps/bridge/cells"
	"libvpps/bridge/ops"
	"libvpps/persist/finish"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/schedule"
	"libvpps/persist/script"
)

// forest records the Tree-LSTM graph of a batch of random trees: 13 parameters, then per leaf a
// lookup and per node gates, cell, scores and loss, as the benchmark program does.
type forest struct {
	words  bridge.Words
	node   uint32
	losses []uint32
	rng    *rand.Rand
	hidden uint32
	sets   int // of classes that a tree's losses are restricted to; 0: they are of all classes
}

const vocabulary = 10000

// simpleCells are the parameters of cells with a matrix for each side.
var simpleCells = []uint32{dimCH, dimHH, dimHH, dimHH, dimH, dimH, dimH, dimH, dimH, dimH, dimH, dimH, dimH}

func (f *forest) add(op ops.Code, dim uint32, attrs []uint32, args ...uint32) uint32 {
	f.words.Nodes = append(f.words.Nodes, uint32(op)|dim<<8)
	if ops.Table[op].Args == ops.Variadic {
		f.words.Nodes = append(f.words.Nodes, uint32(len(args)))
	}
	f.words.Nodes = append(append(f.words.Nodes, args...), attrs...)
	f.node++
	return f.node - 1
}

func (f *forest) input(v uint32) uint32 {
	f.words.Inputs = append(f.words.Inputs, v)
	return uint32(len(f.words.Inputs) - 1)
}

const (
	dimH = iota
	dim2H
	dimC
	dim1
	dimHH
	dimH2H
	dimCH
)

// gate is act(bias + W x): parameters are nodes 0..12.
func (f *forest) gate(act ops.Code, bias, w, x uint32) uint32 {
	return f.add(act, dimH, nil, f.add(ops.AffineTransform, dimH, nil, bias, w, x))
}

func (f *forest) tree(leaves int) (h, c uint32) {
	if leaves == 1 {
		x := f.add(ops.Lookup, dimH, []uint32{13, f.input(uint32(f.rng.Intn(vocabulary)))})
		i, o, u := f.gate(ops.LogisticSigmoid, 9, 1, x), f.gate(ops.LogisticSigmoid, 10, 2, x), f.gate(ops.Tanh, 11, 3, x)
		c = f.add(ops.CwiseMultiply, dimH, nil, i, u)
		h = f.add(ops.CwiseMultiply, dimH, nil, o, f.add(ops.Tanh, dimH, nil, c))
	} else {
		left := 1 + f.rng.Intn(leaves-1)
		h1, c1 := f.tree(left)
		h2, c2 := f.tree(leaves - left)
		e := f.add(ops.Concatenate, dim2H, []uint32{0}, h1, h2)
		i, o, u := f.gate(ops.LogisticSigmoid, 9, 4, e), f.gate(ops.LogisticSigmoid, 10, 5, e), f.gate(ops.Tanh, 11, 6, e)
		f1, f2 := f.gate(ops.LogisticSigmoid, 12, 7, h1), f.gate(ops.LogisticSigmoid, 12, 8, h2)
		c = f.add(ops.CwiseSum, dimH, nil, f.add(ops.CwiseMultiply, dimH, nil, i, u), f.add(ops.CwiseMultiply, dimH, nil, f1, c1))
		c = f.add(ops.CwiseSum, dimH, nil, c, f.add(ops.CwiseMultiply, dimH, nil, f2, c2))
		h = f.add(ops.CwiseMultiply, dimH, nil, o, f.add(ops.Tanh, dimH, nil, c))
	}
	y := f.add(ops.MatrixMultiply, dimC, nil, 0, h)
	if f.sets > 0 {
		set := uint32(f.rng.Intn(f.sets))
		at := f.input(set % 5)
		f.input(set / 5)
		y = f.add(ops.RestrictedLogSoftmax, dimC, []uint32{at, 2}, y)
		f.losses = append(f.losses, f.add(ops.PickElement, dim1, []uint32{0, at, 1}, y))
	} else {
		f.losses = append(f.losses, f.add(ops.PickNegLogSoftmax, dim1, []uint32{f.input(uint32(f.rng.Intn(5)))}, y))
	}
	return h, c
}

// pyramid is one sentence of a time-delay network; both forget gates have the same matrices.
func (f *forest) pyramid(words int) {
	gate := func(act ops.Code, k, left, right uint32) uint32 {
		return f.add(act, dimH, nil, f.add(ops.AffineTransform, dimH, nil, 9+k, 1+2*k, left, 2+2*k, right))
	}
	var h, c []uint32
	for range words {
		h = append(h, f.add(ops.Lookup, dimH, []uint32{13, f.input(uint32(f.rng.Intn(vocabulary)))}))
	}
	for ; len(h) > 1; h = h[:len(h)-1] {
		first := c == nil
		c = append(c, h...)[:len(h)]
		for k := range len(h) - 1 {
			i, o, u := gate(ops.LogisticSigmoid, 0, h[k], h[k+1]), gate(ops.LogisticSigmoid, 1, h[k], h[k+1]), gate(ops.Tanh, 2, h[k], h[k+1])
			cell := f.add(ops.CwiseMultiply, dimH, nil, i, u)
			for side := range 2 {
				if !first {
					kept := f.add(ops.CwiseMultiply, dimH, nil, gate(ops.LogisticSigmoid, 3, h[k], h[k+1]), c[k+side])
					cell = f.add(ops.CwiseSum, dimH, nil, cell, kept)
				}
			}
			c[k] = cell
			h[k] = f.add(ops.CwiseMultiply, dimH, nil, o, f.add(ops.Tanh, dimH, nil, cell))
		}
	}
	f.answer(h[0])
}

// triangle is one sentence of a time-delay network of simple cells. The first square matrix would be that of a layer
// before the answer.
func (f *forest) triangle(words int) {
	var h []uint32
	for range words {
		h = append(h, f.add(ops.Lookup, dimH, []uint32{13, f.input(uint32(f.rng.Intn(vocabulary)))}))
	}
	for ; len(h) > 1; h = h[:len(h)-1] {
		for k := range len(h) - 1 {
			h[k] = f.add(ops.Tanh, dimH, nil, f.add(ops.AffineTransform, dimH, nil, 9, 2, h[k], 3, h[k+1]))
		}
	}
	f.answer(h[0])
}

// phrase is a tree of simple cells, whose leaves have weights of their own.
func (f *forest) phrase(leaves int) uint32 {
	if leaves == 1 {
		return f.gate(ops.Tanh, 10, 3, f.add(ops.Lookup, dimH, []uint32{13, f.input(uint32(f.rng.Intn(vocabulary)))}))
	}
	left := 1 + f.rng.Intn(leaves-1)
	x, y := f.phrase(left), f.phrase(leaves-left)
	return f.add(ops.Tanh, dimH, nil, f.add(ops.AffineTransform, dimH, nil, 9, 1, x, 2, y))
}

// answer is the loss of a sentence with vector h.
func (f *forest) answer(h uint32) {
	y := f.add(ops.MatrixMultiply, dimC, nil, 0, h)
	f.losses = append(f.losses, f.add(ops.PickNegLogSoftmax, dim1, []uint32{f.input(uint32(f.rng.Intn(5)))}, y))
}

// network is a gated graph network: two random edges of three kinds end at each node, whose state takes in the sum of their
// messages, four times.
func (f *forest) network(nodes int) {
	type edge struct {
		from int
		kind uint32
	}
	var h []uint32
	ends := make([][2]edge, nodes)
	for n := range nodes {
		h = append(h, f.add(ops.Lookup, dimH, []uint32{13, f.input(uint32(f.rng.Intn(vocabulary)))}))
		for k := range ends[n] {
			ends[n][k] = edge{f.rng.Intn(nodes), uint32(1 + f.rng.Intn(3))}
		}
	}
	for range 4 {
		next := make([]uint32, nodes)
		for n, x := range ends {
			m := f.add(ops.CwiseSum, dimH, nil, f.add(ops.MatrixMultiply, dimH, nil, x[0].kind, h[x[0].from]), f.add(ops.MatrixMultiply, dimH, nil, x[1].kind, h[x[1].from]))
			gate := func(act ops.Code, k, state uint32) uint32 {
				return f.add(act, dimH, nil, f.add(ops.AffineTransform, dimH, nil, 10+k, 4+k, m, 7+k, state))
			}
			reset, update := gate(ops.LogisticSigmoid, 0, h[n]), gate(ops.LogisticSigmoid, 1, h[n])
			fresh := gate(ops.Tanh, 2, f.add(ops.CwiseMultiply, dimH, nil, reset, h[n]))
			kept := f.add(ops.CwiseMultiply, dimH, nil, f.add(ops.ConstantMinusX, dimH, []uint32{isa.Float(1)}, update), h[n])
			next[n] = f.add(ops.CwiseSum, dimH, nil, kept, f.add(ops.CwiseMultiply, dimH, nil, update, fresh))
		}
		h = next
	}
	f.answer(f.add(ops.Sum, dimH, nil, h...))
}

// newNetworks is newForest for gated graph networks.
func newNetworks(tb testing.TB, batch int, hidden uint32) (*bridge.Graph, []schedule.Param, []plan.Matrix) {
	return newBatch(tb, batch, hidden, []uint32{dimCH, dimHH, dimHH, dimHH, dimHH, dimHH, dimHH, dimHH, dimHH, dimHH, dimH, dimH, dimH},
		func(f *forest, words int) { f.network(words) })
}

// newTriangles is newForest for time-delay networks of simple cells.
func newTriangles(tb testing.TB, batch int, hidden uint32) (*bridge.Graph, []schedule.Param, []plan.Matrix) {
	return newBatch(tb, batch, hidden, simpleCells, func(f *forest, words int) { f.triangle(words) })
}

// newPhrases is newForest for trees of simple cells.
func newPhrases(tb testing.TB, batch int, hidden uint32) (*bridge.Graph, []schedule.Param, []plan.Matrix) {
	return newBatch(tb, batch, hidden, simpleCells, func(f *forest, words int) { f.answer(f.phrase(words)) })
}

// newForest returns the graph of a batch, its parameters and matrices.
func newForest(tb testing.TB, batch int, hidden uint32) (*bridge.Graph, []schedule.Param, []plan.Matrix) {
	return newBatch(tb, batch, hidden, []uint32{dimCH, dimHH, dimHH, dimHH, dimH2H, dimH2H, dimH2H, dimHH, dimHH, dimH, dimH, dimH, dimH},
		func(f *forest, words int) { f.tree(words) })
}

// newRestricted is newForest with losses restricted to one of several sets of classes, so that their items have shapes.
func newRestricted(sets int) func(tb testing.TB, batch int, hidden uint32) (*bridge.Graph, []schedule.Param, []plan.Matrix) {
	return func(tb testing.TB, batch int, hidden uint32) (*bridge.Graph, []schedule.Param, []plan.Matrix) {
		return newBatch(tb, batch, hidden, []uint32{dimCH, dimHH, dimHH, dimHH, dimH2H, dimH2H, dimH2H, dimHH, dimHH, dimH, dimH, dimH, dimH},
			func(f *forest, words int) { f.sets = sets; f.tree(words) })
	}
}

// newPyramids is newForest for a time-delay network of LSTM cells, as the benchmark program has it: a cell for every
// two neighbours of words, then of these cells, until there is one.
func newPyramids(tb testing.TB, batch int, hidden uint32) (*bridge.Graph, []schedule.Param, []plan.Matrix) {
	return newBatch(tb, batch, hidden, []uint32{dimCH, dimHH, dimHH, dimHH, dimHH, dimHH, dimHH, dimHH, dimHH, dimH, dimH, dimH, dimH},
		func(f *forest, words int) { f.pyramid(words) })
}

// dimOf is a dim of these sizes.
func dimOf(d ...uint32) bridge.Dim {
	x := bridge.Dim{Nd: uint32(len(d)), Bd: 1}
	copy(x.D[:], d)
	return x
}

// newBatch returns a graph of so many sentences, each with a random number of words, behind parameters
// of these dims, of which there are 13; number 13 is a table.
func newBatch(tb testing.TB, batch int, hidden uint32, parameters []uint32, sentence func(f *forest, words int)) (*bridge.Graph, []schedule.Param, []plan.Matrix) {
	f := &forest{rng: rand.New(rand.NewSource(1)), hidden: hidden}
	f.words.Dims = []bridge.Dim{dimOf(hidden), dimOf(2 * hidden), dimOf(5), dimOf(1), dimOf(hidden, hidden), dimOf(hidden, 2*hidden), dimOf(5, hidden)}
	var params []schedule.Param
	var matrices []plan.Matrix
	var dims []bridge.Dim
	at := uint32(0)
	parameter := func(d uint32) {
		x := f.words.Dims[d]
		p := schedule.Param{Offset: at, Size: uint32(x.Size()), Row: uint32(x.Size()), Factor: 1, Matrix: -1, Updated: true}
		if x.Nd == 2 {
			p.Matrix = int32(len(matrices))
			matrices = append(matrices, plan.Matrix{Param: uint32(len(params)), Rows: x.Rows(), Cols: x.Cols(), Offset: at})
		}
		at += p.Size
		params, dims = append(params, p), append(dims, x)
		f.add(ops.Parameter, d, []uint32{uint32(len(params) - 1)})
	}
	for _, d := range parameters {
		parameter(d)
	}
	dims = append(dims, dimOf(hidden, vocabulary))
	params = append(params, schedule.Param{Lookup: true, Size: hidden * vocabulary, Row: hidden, Factor: 1, Matrix: -1, Updated: true})
	for range batch {
		sentence(f, 10+f.rng.Intn(19))
	}
	f.add(ops.Sum, dim1, nil, f.losses...)
	g := &bridge.Graph{}
	f.words.NodeCount = int(f.node)
	if err := g.Append(&f.words, func(id uint32) (*bridge.Dim, bool) { return &dims[id], params[id].Lookup }); err != nil {
		tb.Fatal(err)
	}
	return g, params, matrices
}

// numberMatrices says which matrix of a plan each parameter is.
func numberMatrices(params []schedule.Param, p *plan.Plan) {
	for i := range params {
		params[i].Matrix = -1
	}
	for i, m := range p.Matrices {
		params[m.Param].Matrix = int32(i)
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, x := range []struct {
		name       string
		graph      func(tb testing.TB, batch int, hidden uint32) (*bridge.Graph, []schedule.Param, []plan.Matrix)
		batch      int
		hidden     uint32
		processors int
		rpw        int
	}{{"batch1", newForest, 1, 256, 132, 1}, {"batch16", newForest, 16, 256, 132, 1}, {"batch128", newForest, 128, 256, 132, 1},
		{"phrases1", newPhrases, 1, 512, 132, 1}, {"phrases16", newPhrases, 16, 512, 132, 1},
		{"triangles1", newTriangles, 1, 512, 132, 1}, {"triangles16", newTriangles, 16, 512, 132, 1},
		{"sentences16", newSentences(false), 16, 256, 132, 1}, {"sentences128", newSentences(false), 128, 256, 132, 1},
		{"networks1", newNetworks, 1, 128, 132, 1}, {"networks16", newNetworks, 16, 128, 132, 1},
		{"pyramids1", newPyramids, 1, 256, 132, 1}, {"pyramids16", newPyramids, 16, 256, 132, 1},
		{"batch1cpu", newForest, 1, 256, 1, 0}, {"batch128cpu", newForest, 128, 256, 1, 0},
		{"restricted5x1", newRestricted(5), 1, 256, 132, 1}, {"restricted5x16", newRestricted(5), 16, 256, 132, 1},
		{"restricted5x128", newRestricted(5), 128, 256, 132, 1}, {"restricted25x16", newRestricted(25), 16, 256, 132, 1},
		{"restricted25x128", newRestricted(25), 128, 256, 132, 1}} {
		g, params, matrices := x.graph(b, x.batch, x.hidden)
		p, err := plan.Sliced(matrices, x.processors)
		d := plan.Device{Processors: x.processors, Warps: 8, RegistersPer: 255, SetAside: 80, SharedPerBlock: 200 << 10}
		if x.rpw > 0 {
			p, err = plan.RoundRobin(matrices, d, x.rpw)
		}
		if err != nil {
			b.Fatal(err)
		}
		p.CPU = x.rpw == 0 // as the CPU's are
		numberMatrices(params, p)
		b.Run(x.name+"/nodes", func(b *testing.B) { benchmarkBuild(b, g, params, p, false) })
		b.Run(x.name+"/instances", func(b *testing.B) { benchmarkBuild(b, g, params, p, true) })
	}
}

func benchmarkBuild(b *testing.B, g *bridge.Graph, params []schedule.Param, p *plan.Plan, instances bool) {
	var builder script.Builder
	ids := make([]uint32, len(params))
	for i := range ids {
		ids[i] = uint32(i)
	}
	var words int
	var barriers uint32
	var s script.State
	var d cells.Dictionary
	var program cells.Program
	for b.Loop() {
		s.Truncate(0)
		r := script.Request{Apart: true, Graph: g, State: &s, Params: params, Plan: p, Node: uint32(g.Len() - 1), Forward: true, Needed: true, Backward: true,
			Update: &finish.Apply{Params: ids, All: ids, Rate: 0.1, Threshold: 5}}
		if instances {
			d.Find(g, 0, uint32(g.Len()), &program)
			r.Cells = &program
		}
		built, err := builder.Build(&r)
		if err != nil {
			b.Fatal(err)
		}
		words, barriers = len(built.Script.Words), built.Script.Words[isa.HeadBarriers]
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(g.Len()), "ns/node")
	b.ReportMetric(float64(words)/float64(g.Len()), "words/node")
	b.ReportMetric(float64(barriers), "barriers")
}

// BenchmarkWide is scripts of graphs with wide nodes: a language model's with a minibatch, and with sentences one by one. A
// large vocabulary's losses are in parts, which no instances are.
func BenchmarkWide(b *testing.B) {
	for _, x := range []struct {
		name       string
		vocabulary uint32
		batch      uint32
		instances  bool
	}{{"minibatch", 10000, 64, false}, {"sentences/nodes", 10000, 1, false}, {"sentences/instances", 10000, 1, true},
		{"vocabulary/nodes", 20000, 1, false}, {"vocabulary/refused", 20000, 1, true}} {
		b.Run(x.name, func(b *testing.B) {
			r := script.LanguageModel(b, x.vocabulary, 256, x.batch, slices.Repeat([]int{20}, 64/int(x.batch))...)
			r.Tensors, r.Apart = false, true
			var builder script.Builder
			var d cells.Dictionary
			var program cells.Program
			var barriers uint32
			for b.Loop() {
				r.State.Truncate(0)
				if r.Cells = nil; x.instances && script.InCells(r) {
					d.Find(r.Graph, 0, r.Node+1, &program)
					r.Cells = &program
				}
				built, err := builder.Build(r)
				if err != nil {
					b.Fatal(err)
				}
				barriers = built.Script.Words[isa.HeadBarriers]
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(r.Graph.Len()), "ns/node")
			b.ReportMetric(float64(r.Graph.Len()), "nodes")
			b.ReportMetric(float64(barriers), "barriers")
		})
	}
}
