// Package reference evaluates a graph the plain way: one node after the other, in
// float64, every gradient by its formula. It knows nothing of scripts, so that tests can
// hold those to it; its own gradients are held to finite differences.
package reference

import (
	"fmt"
	"math"

	"libvpps/bridge"
	"libvpps/bridge/ops"
)

// Surroundings are what a graph's values depend on besides the graph.
type Surroundings struct {
	// Params gives the effective values of a parameter (weight decay applied).
	Params func(id uint32) []float64
	// Draws gives what a random node drew: the values of a leaf, Dropout's factors (0 or
	// 1/(1-p)), GaussianNoise's summands. May be nil if the graph has no random node.
	Draws func(node uint32) []float64
	// Blur changes every value and every gradient as soon as it is known; nil: nothing does. Spread
	// finds with it what rounding may do.
	Blur func(v []float64)
}

// node is one node at work: its value and gradient and those of its arguments.
type node struct {
	*Surroundings
	graph *bridge.Graph
	index uint32
	dim   *bridge.Dim
	attrs []uint32
	dims  []*bridge.Dim // of the arguments
	x     [][]float64
	y     []float64
	dx    [][]float64 // to be added to
	dy    []float64
	param func(id uint32) []float64 // the gradient of a parameter, to be added to
}

// rule is what an operation computes: y from x, and what dy adds to dx.
type rule struct {
	value    func(n *node) error
	gradient func(n *node)
}

// rules is indexed by operation code. A test fails for an operation without a rule.
var rules [256]rule

func init() {
	for _, table := range []map[ops.Code]rule{leaves, elementwise, reductions, products, selections, losses, cells, along, multilinear} {
		for op, r := range table {
			rules[op] = r
		}
	}
}

// Evaluate returns the values of nodes 0..last.
func Evaluate(g *bridge.Graph, s *Surroundings, last uint32) ([][]float64, error) {
	return evaluate(g, s, last, nil)
}

// evaluate replaces nodes that declare their derivative, where held is not nil, by a line of that slope through the
// values in held: so finite differences see what was declared.
func evaluate(g *bridge.Graph, s *Surroundings, last uint32, held [][]float64) ([][]float64, error) {
	values := make([][]float64, last+1)
	for i := range last + 1 {
		n := newNode(g, s, i, values)
		if slope, ok := n.slope(); ok && held != nil {
			for e, x := range n.x[0] {
				n.y[e] = held[i][e] + slope*(x-held[g.ArgsOf(i)[0]][e])
			}
		} else if r := rules[g.Op[i]].value; r == nil {
			return nil, &bridge.Error{Node: int(i), Op: g.Op[i], Reason: "the reference has no rule for it"}
		} else if err := r(n); err != nil {
			return nil, &bridge.Error{Node: int(i), Op: g.Op[i], Reason: err.Error()}
		}
		if s.Blur != nil {
			s.Blur(n.y)
		}
		values[i] = n.y
	}
	return values, nil
}

func newNode(g *bridge.Graph, s *Surroundings, i uint32, values [][]float64) *node {
	n := &node{Surroundings: s, graph: g, index: i, dim: g.DimOf(i), attrs: g.AttrsOf(i), y: values[i]}
	if n.y == nil {
		n.y = make([]float64, n.dim.Size())
	}
	for _, a := range g.ArgsOf(i) {
		n.dims, n.x = append(n.dims, g.DimOf(a)), append(n.x, values[a])
	}
	return n
}

// Gradients are d loss/d everything.
type Gradients struct {
	Nodes  [][]float64          // by node
	Params map[uint32][]float64 // by parameter; parameters without a gradient are missing
	// Touched are the rows of tables that a gradient comes back to, be it 0.
	Touched []Row
}

// Row is a row of a table.
type Row struct{ Param, Row uint32 }

// Differentiate returns the gradients of node loss, a scalar, given all values up to it.
func Differentiate(g *bridge.Graph, s *Surroundings, loss uint32, values [][]float64) (*Gradients, error) {
	if size := g.DimOf(loss).Size(); size != 1 {
		return nil, &bridge.Error{Node: int(loss), Op: g.Op[loss], Reason: fmt.Sprintf("the loss has %d elements, not one", size)}
	}
	d := &Gradients{Nodes: make([][]float64, loss+1), Params: map[uint32][]float64{}}
	for i := range d.Nodes {
		d.Nodes[i] = make([]float64, len(values[i]))
	}
	d.Nodes[loss][0] = 1
	reached := make([]bool, loss+1)
	reached[loss] = true
	for i := int(loss); i >= 0; i-- {
		n := newNode(g, s, uint32(i), values)
		n.dy, n.param = d.Nodes[i], func(id uint32) []float64 {
			if d.Params[id] == nil {
				d.Params[id] = make([]float64, len(s.Params(id)))
			}
			return d.Params[id]
		}
		for _, a := range g.ArgsOf(uint32(i)) {
			dx := d.Nodes[a]
			if s.Blur != nil { // each contribution is rounded by itself
				dx = make([]float64, len(dx))
			}
			n.dx = append(n.dx, dx)
			reached[a] = reached[a] || reached[i] && g.Op[i] != ops.NoBackprop
		}
		if reached[i] && g.Op[i] == ops.Lookup {
			for _, row := range n.input(1, int(n.dim.Bd)) {
				d.Touched = append(d.Touched, Row{n.attrs[0], row})
			}
		}
		if s.Blur != nil {
			s.Blur(n.dy)
		}
		if r := rules[g.Op[i]].gradient; r != nil {
			r(n)
		}
		for k, a := range g.ArgsOf(uint32(i)) {
			if s.Blur != nil {
				s.Blur(n.dx[k])
				add(d.Nodes[a], n.dx[k])
			}
		}
	}
	if s.Blur != nil {
		for _, p := range d.Params {
			s.Blur(p)
		}
	}
	return d, nil
}

// NeedsGradient reports for every node whether a parameter feeds it: the nodes to which
// DyNet's backward gives a gradient unless it is asked for all of them.
func NeedsGradient(g *bridge.Graph) []bool {
	needs := make([]bool, g.Len())
	for i := range needs {
		needs[i] = g.Op[i] == ops.Parameter || g.Op[i] == ops.Lookup
		for _, a := range g.ArgsOf(uint32(i)) {
			needs[i] = needs[i] || needs[a]
		}
	}
	return needs
}

// uint, float: attribute words.
func (n *node) uint(i int) int      { return int(n.attrs[i]) }
func (n *node) float(i int) float64 { return float64(math.Float32frombits(n.attrs[i])) }

// input returns count input words from the offset in attribute i on.
func (n *node) input(i, count int) []uint32 {
	if count == 0 { // then the offset is anything
		return nil
	}
	at := n.uint(i)
	return n.graph.Inputs[at : at+count]
}

// batch returns batch element b of argument k, or its only one.
func (n *node) batch(k, b int) []float64 { return element(n.x[k], n.dims[k], b) }

// batchGradient is the same of the argument's gradient.
func (n *node) batchGradient(k, b int) []float64 { return element(n.dx[k], n.dims[k], b) }

func element(v []float64, d *bridge.Dim, b int) []float64 {
	if d.Bd == 1 {
		b = 0
	}
	size := d.Batch()
	return v[b*size : (b+1)*size]
}

// leaves: nodes without arguments.
var leaves = map[ops.Code]rule{
	ops.Input:           {inputValue, nil},
	ops.ScalarInput:     {inputValue, nil},
	ops.SparseInput:     {sparseValue, nil},
	ops.Constant:        {func(n *node) error { fill(n.y, n.float(0)); return nil }, nil},
	ops.Parameter:       {parameterValue, func(n *node) { add(n.param(n.attrs[0]), n.dy) }},
	ops.ConstParameter:  {parameterValue, nil},
	ops.Lookup:          {lookupValue, lookupGradient},
	ops.ConstLookup:     {lookupValue, nil},
	ops.RandomNormal:    {drawn, nil},
	ops.RandomBernoulli: {drawn, nil},
	ops.RandomUniform:   {drawn, nil},
	ops.RandomGumbel:    {drawn, nil},
}

func fill(y []float64, v float64) {
	for i := range y {
		y[i] = v
	}
}

func add(to, from []float64) {
	for i, v := range from {
		to[i] += v
	}
}

func inputValue(n *node) error {
	for i, w := range n.input(0, len(n.y)) {
		n.y[i] = float64(math.Float32frombits(w))
	}
	return nil
}

func sparseValue(n *node) error {
	fill(n.y, n.float(0))
	count := n.uint(2)
	words := n.input(1, 2*count)
	for k, id := range words[:count] {
		if int(id) >= len(n.y) {
			return fmt.Errorf("id %d of %d elements", id, len(n.y))
		}
		n.y[id] = float64(math.Float32frombits(words[count+k]))
	}
	return nil
}

func parameterValue(n *node) error {
	copy(n.y, n.Params(n.attrs[0]))
	return nil
}

func lookupValue(n *node) error {
	table, size := n.Params(n.attrs[0]), n.dim.Batch()
	for b, row := range n.input(1, int(n.dim.Bd)) {
		if int(row) >= len(table)/size {
			return fmt.Errorf("row %d of %d", row, len(table)/size)
		}
		copy(n.y[b*size:(b+1)*size], table[int(row)*size:])
	}
	return nil
}

func lookupGradient(n *node) {
	table, size := n.param(n.attrs[0]), n.dim.Batch()
	for b, row := range n.input(1, int(n.dim.Bd)) {
		add(table[int(row)*size:], n.dy[b*size:(b+1)*size])
	}
}

func drawn(n *node) error {
	v, err := n.draws()
	copy(n.y, v)
	return err
}

// draws are the random numbers of this node.
func (n *node) draws() ([]float64, error) {
	if n.Draws == nil {
		return nil, fmt.Errorf("no draws were given")
	}
	v := n.Draws(n.index)
	if len(v) != len(n.y) {
		return nil, fmt.Errorf("%d draws for %d elements", len(v), len(n.y))
	}
	return v, nil
}
