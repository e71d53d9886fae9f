// Random valid graphs for property tests: all operations, batches and broadcasting, every
// value moderate and away from kinks, poles and ties, so that float32 and float64 agree
// and finite differences mean something.
package reference

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"libvpps/bridge"
	"libvpps/bridge/ops"
)

// Options say what random graphs are like.
type Options struct {
	Nodes  int        // about how many, 0: 30
	Ops    []ops.Code // which operations besides leaves and the loss's sums, nil: all but random ones
	Random bool       // random operations too, if Ops is nil
	Total  bool       // none that lacks a value for some arguments, if Ops is nil: parameters will change

	// Params are the parameters that leaves choose from, so that many graphs share an engine's; nil: every
	// leaf makes its own. The graph's values are those of the effective parameters.
	Params []Parameter
	// Sentences is how many times Nodes nodes are recorded next to each other, 0: 1. A sentence often
	// repeats an earlier one, node for node, and reads no node of another.
	Sentences int
	// Layers is after how many nodes of a sentence several products by one parameter are recorded, 0: never.
	Layers int
}

// Parameter is a parameter of a random graph.
type Parameter struct {
	Dim    bridge.Dim // of a table: the last axis counts its rows
	Lookup bool
	Values []float64
}

// RandomGraph is a graph with all that it takes to evaluate it.
type RandomGraph struct {
	Words  bridge.Words
	Graph  *bridge.Graph // Words decoded
	Params []Parameter   // by id
	Draws  map[uint32][]float64
	Loss   uint32 // the last node, a scalar that all others feed
	Values [][]float64
}

// Surroundings of the graph.
func (g *RandomGraph) Surroundings() *Surroundings {
	return &Surroundings{
		Params: func(id uint32) []float64 { return g.Params[id].Values },
		Draws:  func(node uint32) []float64 { return g.Draws[node] },
	}
}

// Parameter is what bridge.Graph.Append asks.
func (g *RandomGraph) Parameter(id uint32) (dim *bridge.Dim, lookup bool) {
	if int(id) >= len(g.Params) {
		return nil, false
	}
	return &g.Params[id].Dim, g.Params[id].Lookup
}

// Random makes a graph; the same seed and options make the same one.
func Random(seed uint64, o Options) (*RandomGraph, error) {
	r := &recorder{
		rng:    rand.New(rand.NewPCG(seed, 0x5eed)),
		graph:  &RandomGraph{Graph: &bridge.Graph{}, Draws: map[uint32][]float64{}, Params: o.Params},
		dims:   map[bridge.Dim]uint32{},
		shared: o.Params != nil,
	}
	if o.Nodes == 0 {
		o.Nodes = 30
	}
	choice := o.Ops
	if choice == nil {
		choice = drawable(o.Random, o.Total)
	}
	r.batch = 2 + r.rng.IntN(3)
	r.every = o.Layers
	if o.Sentences < 2 {
		r.sentence(o.Nodes, choice)
	} else {
		r.sentences(o, choice)
	}
	r.loss()
	return r.graph, r.err
}

// sentences records several sentences, each from a seed of its own or from that of an earlier one.
func (r *recorder) sentences(o Options, choice []ops.Code) {
	all, seeds := r.rng, []uint64(nil)
	for k := range o.Sentences {
		seed := all.Uint64()
		if k > 0 && all.IntN(2) == 0 {
			seed = seeds[all.IntN(k)]
		}
		seeds = append(seeds, seed)
		r.first, r.rng = r.graph.Graph.Len(), rand.New(rand.NewPCG(seed, 0x5eed))
		r.sentence(o.Nodes, choice)
	}
	r.first, r.rng = 0, all
}

// sentence records about so many nodes.
func (r *recorder) sentence(nodes int, choice []ops.Code) {
	for range 4 {
		r.leaf(r.randomDim())
	}
	for tries := 0; r.graph.Graph.Len()-r.first < nodes && tries < 20*nodes && r.err == nil; tries++ {
		op := choice[r.rng.IntN(len(choice))]
		p := proposals[op](r)
		if p.ok {
			r.node(op, p)
		}
		if r.every > 0 && tries%r.every == r.every-1 {
			r.layer()
		}
	}
}

// drawable lists the operations that proposals know.
func drawable(random, total bool) []ops.Code {
	partial := []ops.Code{ops.Log, ops.Sqrt, ops.Pow, ops.LogGamma, ops.Asin, ops.Acos, ops.Acosh, ops.Atanh}
	var list []ops.Code
	for op := range ops.Table {
		c := ops.Code(op)
		if proposals[c] != nil && (random || !IsRandom(c)) && !(total && slices.Contains(partial, c)) {
			list = append(list, c)
		}
	}
	return list
}

// IsRandom reports whether an operation draws random numbers.
func IsRandom(op ops.Code) bool {
	switch op {
	case ops.RandomNormal, ops.RandomBernoulli, ops.RandomUniform, ops.RandomGumbel, ops.Dropout, ops.GaussianNoise,
		ops.DropoutDim, ops.DropoutBatch, ops.BlockDropout:
		return true
	}
	return false
}

// recorder is a graph in the making.
type recorder struct {
	rng   *rand.Rand
	graph *RandomGraph
	dims  map[bridge.Dim]uint32
	used  []bool // by node: it is an argument of another
	batch int    // the batch size of this graph's batched leaves
	first int    // the first node of the sentence: arguments are found from here on
	every int    // Layers
	err   error

	shared bool // parameters were given
}

// proposal is a node that might be added.
type proposal struct {
	dim   bridge.Dim
	args  []uint32
	attrs []uint32
	ok    bool
}

// node records a node unless its values are unfit; it reports the node and success.
func (r *recorder) node(op ops.Code, p proposal) (uint32, bool) {
	g, w := r.graph.Graph, &r.graph.Words
	index := uint32(g.Len())
	if r.err != nil || p.dim.Size() > 400 && ops.Table[op].Args != 0 { // a leaf is as large as its reader needs it
		return 0, false
	}
	add := bridge.Words{NodeCount: 1, Inputs: w.Inputs}
	id, ok := r.dims[p.dim]
	if !ok {
		id = uint32(len(w.Dims))
		r.dims[p.dim] = id
		add.Dims = []bridge.Dim{p.dim}
		w.Dims = append(w.Dims, p.dim)
	}
	add.Nodes = []uint32{uint32(op) | id<<8}
	if ops.Table[op].Args == ops.Variadic {
		add.Nodes = append(add.Nodes, uint32(len(p.args)))
	}
	add.Nodes = append(append(add.Nodes, p.args...), p.attrs...)
	if err := g.Append(&add, r.graph.Parameter); err != nil {
		r.err = fmt.Errorf("the generator made a graph that is refused: %w", err)
		return 0, false
	}
	r.draw(op, index, p.dim.Size())
	n := newNode(g, r.graph.Surroundings(), index, append(r.graph.Values, nil))
	if err := rules[op].value(n); err != nil {
		r.err = err
		return 0, false
	}
	if !fit(op, n) {
		g.Truncate(int(index))
		delete(r.graph.Draws, index)
		return 0, false
	}
	r.graph.Values = append(r.graph.Values, n.y)
	w.Nodes, w.NodeCount = append(w.Nodes, add.Nodes...), w.NodeCount+1
	for _, a := range p.args {
		r.used[a] = true
	}
	r.used = append(r.used, false)
	return index, true
}

// draw makes the random numbers of a node.
func (r *recorder) draw(op ops.Code, index uint32, size int) {
	if !IsRandom(op) {
		return
	}
	v := make([]float64, size)
	attrs := r.graph.Graph.AttrsOf(index)
	p := float64(math.Float32frombits(attrs[0]))
	for i := range v {
		switch op {
		case ops.DropoutDim, ops.DropoutBatch, ops.BlockDropout:
			v[i] = r.factors(op, index)[i]
		case ops.Dropout:
			if r.rng.Float64() >= p {
				v[i] = 1 / (1 - p)
			}
		case ops.RandomBernoulli:
			if r.rng.Float64() < p {
				v[i] = float64(math.Float32frombits(attrs[1]))
			}
		default:
			v[i] = r.value()
		}
	}
	r.graph.Draws[index] = v
}

// factors are those of dropout by which elements that stay or go together are multiplied. They follow from the node.
func (r *recorder) factors(op ops.Code, index uint32) []float64 {
	d, attrs := *r.graph.Graph.DimOf(index), r.graph.Graph.AttrsOf(index)
	one := makeDim(int(d.Bd), 1)
	p := attrs[0]
	switch op {
	case ops.DropoutDim:
		one = d
		one.D[attrs[0]] = 1
		p = attrs[1]
	case ops.BlockDropout:
		one.Bd = 1
	}
	rng := rand.New(rand.NewPCG(uint64(index), 0xd40b))
	mask := make([]float64, one.Size())
	for i := range mask {
		if drop := float64(math.Float32frombits(p)); rng.Float64() >= drop {
			mask[i] = 1 / (1 - drop)
		}
	}
	v := make([]float64, d.Size())
	for i, from := range broadcast(&d, &one) {
		v[i] = mask[from]
	}
	return v
}

// margin is how far values stay from kinks and poles.
const margin = 0.02

// fit reports whether a node's values are moderate and away from kinks.
func fit(op ops.Code, n *node) bool {
	for _, y := range n.y {
		if op == ops.RestrictedLogSoftmax && math.IsInf(y, -1) {
			continue
		}
		if !(math.Abs(y) < 10) {
			return false
		}
	}
	far := func(k int, ok func(x float64) bool) bool {
		for _, x := range n.x[k] {
			if !ok(x) {
				return false
			}
		}
		return true
	}
	positive := func(x float64) bool { return x > 5*margin }
	switch op {
	case ops.Tanh, ops.PickElement, ops.PickRange: // these may read RestrictedLogSoftmax's -inf
	default:
		for k := range n.x {
			if !far(k, func(x float64) bool { return !math.IsInf(x, 0) }) {
				return false
			}
		}
	}
	switch op {
	case ops.Rectify, ops.Abs, ops.ExponentialLinearUnit:
		return far(0, func(x float64) bool { return math.Abs(x) > margin })
	case ops.Log, ops.Sqrt, ops.Pow, ops.LogGamma:
		return far(0, positive)
	case ops.Asin, ops.Acos, ops.Atanh:
		return far(0, func(x float64) bool { return math.Abs(x) < 1-5*margin })
	case ops.Acosh:
		return far(0, func(x float64) bool { return x > 1+5*margin })
	case ops.Tan:
		return far(0, func(x float64) bool { return math.Abs(math.Cos(x)) > 10*margin })
	case ops.Round:
		return far(0, func(x float64) bool { return math.Abs(x-math.Floor(x)-0.5) > margin })
	case ops.Ceil, ops.Floor:
		return far(0, func(x float64) bool { return math.Abs(x-math.Round(x)) > margin })
	case ops.L2Norm:
		for _, y := range n.y {
			if y < 5*margin {
				return false
			}
		}
	case ops.CwiseQuotient:
		return far(1, func(x float64) bool { return math.Abs(x) > 10*margin })
	case ops.BinaryLogLoss:
		return far(0, func(x float64) bool { return x > 2*margin && x < 1-2*margin })
	case ops.Min, ops.Max:
		for i, x := range n.x[0] {
			if math.Abs(x-n.x[1][i]) < margin {
				return false
			}
		}
	case ops.StdDimension, ops.WeightNormalization:
		if op == ops.WeightNormalization {
			return norm(n.x[0]) > 10*margin
		}
		return !slices.ContainsFunc(n.y, func(y float64) bool { return y < 5*margin })
	case ops.MaxDimension, ops.MinDimension, ops.KMaxPooling, ops.MaxPooling2D, ops.Argmax:
		return apart(n.x[0])
	case ops.L1Distance, ops.HuberDistance, ops.PairwiseRankLoss:
		kink := 0.0
		if op != ops.L1Distance {
			kink = n.float(0)
		}
		for b := range int(max(n.dims[0].Bd, n.dims[1].Bd)) {
			y := n.batch(1, b)
			for i, x := range n.batch(0, b) {
				if d := x - y[i]; op == ops.PairwiseRankLoss && math.Abs(kink-d) < margin || op != ops.PairwiseRankLoss && math.Abs(kink-math.Abs(d)) < margin {
					return false
				}
			}
		}
	case ops.HingeDim:
		labels := n.input(2, n.uint(3))
		for l, line := range n.axisLines(n.uint(1)) {
			for _, i := range line {
				if math.Abs(n.float(0)-n.x[0][line[labels[l%len(labels)]]]+n.x[0][i]) < margin {
					return false
				}
			}
		}
	case ops.Sparsemax, ops.SparsemaxLoss:
		for b := range int(n.dims[0].Bd) {
			tau := threshold(n.batch(0, b))
			if slices.ContainsFunc(n.batch(0, b), func(x float64) bool { return math.Abs(x-tau) < margin }) {
				return false
			}
		}
	case ops.ConstrainedSoftmax:
		for b := range int(n.dims[0].Bd) {
			u := n.batch(1, b)
			y, bound := constrain(n.batch(0, b), u)
			if !slices.Contains(bound, false) { // nothing is left to be scaled
				return false
			}
			for i := range y {
				if !bound[i] && u[i]-y[i] < margin {
					return false
				}
			}
		}
	case ops.Hinge:
		labels, _ := n.labels(1)
		for b, row := range labels {
			x := n.batch(0, b)
			for i := range x {
				if math.Abs(n.float(0)-x[row]+x[i]) < margin {
					return false
				}
			}
		}
	}
	return true
}

// apart reports whether all elements differ from each other.
func apart(x []float64) bool {
	sorted := slices.Clone(x)
	slices.Sort(sorted)
	for i := range sorted[1:] {
		if sorted[i+1]-sorted[i] < margin/20 {
			return false
		}
	}
	return true
}

// loss records the sum of everything that no other node uses.
func (r *recorder) loss() {
	var parts []uint32
	one := bridge.Dim{Nd: 1, Bd: 1, D: [bridge.MaxDims]uint32{1}}
	for i := range uint32(r.graph.Graph.Len()) {
		if r.used[i] {
			continue
		}
		sum, ok := i, true
		if r.graph.Graph.Op[i] == ops.RestrictedLogSoftmax { // a sum must not meet its -inf
			if i, ok = r.node(ops.Tanh, proposal{dim: *r.graph.Graph.DimOf(i), args: []uint32{i}}); !ok {
				continue
			}
			sum = i
		}
		if d := r.graph.Graph.DimOf(i); *d != one {
			e := one
			e.Bd = d.Bd
			sum, ok = r.node(ops.SumElements, proposal{dim: e, args: []uint32{i}})
			if !ok { // too large: its mean does
				sum, ok = r.mean(i)
			}
		}
		if ok && r.graph.Graph.DimOf(sum).Bd > 1 {
			d := *r.graph.Graph.DimOf(sum)
			d.Bd = 1
			sum, ok = r.node(ops.MomentDimension, proposal{dim: d, args: []uint32{sum}, attrs: []uint32{0, 1, 1, 0}})
		}
		if ok {
			parts = append(parts, sum)
		}
	}
	loss, ok := r.node(ops.Average, proposal{dim: one, args: parts})
	if !ok && r.err == nil {
		r.err = fmt.Errorf("the generator found no loss over %d parts", len(parts))
	}
	r.graph.Loss = loss
	r.graph.Words.Dims = append([]bridge.Dim(nil), r.graph.Graph.Dims...)
}

// mean records the mean over all elements of node i, flattened first.
func (r *recorder) mean(i uint32) (uint32, bool) {
	d := r.graph.Graph.DimOf(i)
	n, ok := r.node(ops.Reshape, proposal{dim: makeDim(1, d.Size()), args: []uint32{i}})
	if !ok {
		return 0, false
	}
	return r.node(ops.MomentDimension, proposal{dim: makeDim(1, 1), args: []uint32{n}, attrs: []uint32{1, 1, 0, 0}})
}

func makeDim(batch int, axes ...int) bridge.Dim {
	d := bridge.Dim{Nd: uint32(len(axes)), Bd: uint32(batch)}
	for i, a := range axes {
		d.D[i] = uint32(a)
	}
	return d
}

// value is a number in ±[0.1, 1] that a float32 holds.
func (r *recorder) value() float64 {
	v := 0.1 + 0.9*r.rng.Float64()
	if r.rng.IntN(2) == 0 {
		v = -v
	}
	return float64(float32(v))
}

func word(v float64) uint32 { return math.Float32bits(float32(v)) }

// randomDim is the dim of a leaf: mostly vectors and matrices, sometimes batched.
func (r *recorder) randomDim() bridge.Dim {
	d := bridge.Dim{Nd: []uint32{1, 1, 1, 2, 2, 2, 3, 4}[r.rng.IntN(8)], Bd: 1}
	for i := range d.Nd {
		d.D[i] = uint32(1 + r.rng.IntN(5))
	}
	if r.rng.IntN(3) == 0 {
		d.Bd = uint32(r.batch)
	}
	return d
}

// data appends input words and returns their offset.
func (r *recorder) data(words ...uint32) uint32 {
	if len(words) == 0 { // then the offset is anything
		return r.rng.Uint32()
	}
	w := &r.graph.Words
	at := uint32(len(w.Inputs))
	w.Inputs = append(w.Inputs, words...)
	return at
}

// values appends n random floats.
func (r *recorder) values(n int) uint32 {
	list := make([]uint32, n)
	for i := range list {
		list[i] = word(r.value())
	}
	return r.data(list...)
}

// rows appends n numbers below limit.
func (r *recorder) rows(n int, limit uint32) uint32 {
	list := make([]uint32, n)
	for i := range list {
		list[i] = r.rng.Uint32N(limit)
	}
	return r.data(list...)
}

// parameter finds or adds a parameter and returns its id.
func (r *recorder) parameter(d bridge.Dim, lookup bool) (uint32, bool) {
	if r.shared {
		start := r.rng.IntN(len(r.graph.Params))
		for k := range r.graph.Params {
			i := (start + k) % len(r.graph.Params)
			if p := &r.graph.Params[i]; p.Lookup == lookup && p.Dim == d {
				return uint32(i), true
			}
		}
		return 0, false
	}
	p := Parameter{Dim: d, Lookup: lookup, Values: make([]float64, d.Size())}
	for i := range p.Values {
		p.Values[i] = r.value()
	}
	r.graph.Params = append(r.graph.Params, p)
	return uint32(len(r.graph.Params) - 1), true
}

// leaf records a leaf of any kind with the given dim.
func (r *recorder) leaf(d bridge.Dim) uint32 {
	kinds := []ops.Code{ops.Parameter, ops.Parameter, ops.Parameter, ops.ConstParameter, ops.Lookup, ops.Lookup, ops.ConstLookup, ops.Input, ops.SparseInput, ops.Constant}
	if d.Bd > 1 {
		kinds = kinds[4:]
	}
	if d == makeDim(1, 1) {
		kinds = append(kinds, ops.ScalarInput)
	}
	op := kinds[r.rng.IntN(len(kinds))]
	if d.Nd == bridge.MaxDims && (op == ops.Lookup || op == ops.ConstLookup) {
		op = ops.Input
	}
	var attrs []uint32
	id, found := uint32(0), true
	switch op {
	case ops.Parameter, ops.ConstParameter:
		id, found = r.parameter(d, false)
		attrs = []uint32{id}
	case ops.Lookup, ops.ConstLookup:
		if id, found = r.parameter(tableOf(d), true); found {
			attrs = []uint32{id, r.rows(int(d.Bd), tableRows)}
		}
	}
	if !found {
		op = ops.Input
	}
	switch op {
	case ops.Parameter, ops.ConstParameter, ops.Lookup, ops.ConstLookup:
	case ops.SparseInput:
		n := r.rng.IntN(4)
		at := r.rows(n, uint32(d.Size()))
		r.values(n)
		attrs = []uint32{word(r.value()), at, uint32(n)}
	case ops.Constant:
		attrs = []uint32{word(r.value())}
	default:
		attrs = []uint32{r.values(d.Size())}
	}
	n, _ := r.node(op, proposal{dim: d, attrs: attrs})
	return n
}

// tableRows is how many rows each lookup table has.
const tableRows = 4

// tableOf is the dim of a table whose rows have dim d.
func tableOf(d bridge.Dim) bridge.Dim {
	d.Bd, d.D[d.Nd] = 1, tableRows
	d.Nd++
	return d
}

// RandomParameters makes n parameters for Options.Params: of the dims that leaves mostly have.
func RandomParameters(seed uint64, n int) []Parameter {
	r := &recorder{rng: rand.New(rand.NewPCG(seed, 0xda7a)), graph: &RandomGraph{}}
	for range n {
		d := r.randomDim()
		d.Bd = 1
		lookup := r.rng.IntN(3) == 0
		if lookup {
			d = tableOf(d)
		}
		r.parameter(d, lookup)
	}
	return r.graph.Params
}

// of is a node of a dim: one that is there, or a new leaf.
func (r *recorder) of(d bridge.Dim) uint32 {
	if r.rng.IntN(4) > 0 {
		if n, ok := r.find(func(e *bridge.Dim) bool { return *e == d }); ok {
			return n
		}
	}
	return r.leaf(d)
}

// find is a random node whose dim satisfies want.
func (r *recorder) find(want func(d *bridge.Dim) bool) (uint32, bool) {
	n := r.graph.Graph.Len() - r.first
	if n == 0 {
		return 0, false
	}
	start := r.rng.IntN(n)
	for k := range n {
		if i := uint32(r.first + (start+k)%n); want(r.graph.Graph.DimOf(i)) {
			return i, true
		}
	}
	return 0, false
}

// any is any node.
func (r *recorder) any() (uint32, bridge.Dim) {
	n := uint32(r.first + r.rng.IntN(r.graph.Graph.Len()-r.first))
	return n, *r.graph.Graph.DimOf(n)
}
