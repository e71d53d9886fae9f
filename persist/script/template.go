package script

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"libvpps/bridge"
	"libvpps/bridge/cells"
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/schedule"
)

// Lowering a template once. Its nodes are lowered and differentiated by the rules for all nodes, in a small graph of
// their own: parameters, the slots, the nodes, and one node after them for each output that a gradient comes back to.
// Every address in the items that result is one of a table's plus a constant. An instance fills in its table.

// errUnfit is of a template with wide nodes that cannot be lowered once for all instances: those that are divided by batch
// elements, in tiles, or by what is in the graph's inputs. InCells refuses nearly all graphs with such nodes before.
var errUnfit = errors.New("a template with wide nodes that instances differ in")

// firstAddress is where addresses of a template's small graph begin: smaller words are none.
const firstAddress = 1 << 24

// cellLowering lowers templates.
type cellLowering struct {
	b         *Builder         // of the small graph
	all       []schedule.Param // with factors that stand for the present ones
	g         bridge.Graph
	s         State
	r         Request
	c         *loweredCell
	node      []uint32 // by node of the template: its number in the small graph
	shared    uint32
	joins     bool      // clusters of instances become one
	first     uint32    // where the instance's memory begins
	gradients uint32    // where in it that of the backward part begins
	ranges    []rangeOf // of the addresses that stand for others', ascending
	offsets   []uint32  // by constant: where in the small graph's input words it begins; NoOffset: it is a number
	params    *cellParams
	sig       []int32 // by the builder's signature: number in sigs, 0: none
	where     []int32 // by the builder's cluster
}

// vector is size floats of an instance's memory.
type vector struct{ at, size uint32 }

// rangeOf is addresses [from, end) that stand for an entry of the table.
type rangeOf struct{ from, end, entry uint32 }

// lower lowers a template in some surroundings. x is an instance of it.
func (l *cellLowering) lower(b *Builder, p *cells.Program, x *cells.Instance, v variant) (*loweredCell, error) {
	c := &loweredCell{variant: v, template: x.Template}
	l.r.Plan = b.r.Plan
	l.c, l.params, l.offsets, l.joins = c, &b.cells.params, l.offsets[:0], b.joinsInstances()
	l.makeGraph(b, p, x)
	if l.b == nil {
		l.b = &Builder{symbolic: true}
		l.b.Stays = l.b.isSymbolic
	}
	l.tallyTemplate(b)
	t := l.b
	t.reset(&l.r)
	t.Wide.On, t.Wide.Wideness = b.Wide.On, b.Wide.Wideness
	t.picks = t.picks[:0]
	t.clearNodes()
	t.Mixed = c.part == backwardPart // what earlier calls have formed may overlap
	t.first, t.end = l.shared, uint32(l.g.Len()-len(c.wantedAt))
	t.Top = firstAddress
	if len(c.inputs) >= firstAddress-symbolicInput || l.g.Len() >= symbolicInput {
		return nil, fmt.Errorf("a template of %d nodes and %d input words", l.g.Len(), len(c.inputs))
	}
	l.placeShared(b)
	l.first = t.Top
	if err := l.lowerNodes(); err != nil {
		return nil, err
	}
	c.size, c.mixed = t.Top-l.first, t.Mixed
	for k := 0; k < len(t.Tensors); k += 3 {
		if at := t.Tensors[k+1]; at >= l.first {
			c.tensors = append(c.tensors, vector{at - l.first, t.Tensors[k+2]})
		}
	}
	if t.Full {
		return nil, schedule.ErrFull
	}
	if t.unfit {
		return nil, errUnfit
	}
	if len(t.picks) > mostPicks || len(t.picks) > 0 && t.Top > pickWindow {
		return nil, fmt.Errorf("a template of %d picks and %d floats", len(t.picks), t.Top-firstAddress)
	}
	l.collectWork()
	l.findAdded()
	return c, l.collect()
}

// findAdded lists the slots from which products come that are added up: in which order depends on which is there first.
func (l *cellLowering) findAdded() {
	t, c := l.b, l.c
	for v := t.first; v < t.end && l.joins && !l.r.Plan.CPU; v++ {
		if t.g.Op[v] != ops.AffineTransform || !t.need[v] {
			continue
		}
		if t.listTerms(v); len(t.terms) < 2 || len(t.terms) > mostSorted {
			continue
		}
		for _, x := range t.terms {
			if k := int32(x.right) - int32(len(c.params)); x.matrix >= 0 && x.right < t.first && k >= 0 && k < 63 && !slices.Contains(c.added, k) {
				c.added = append(c.added, k)
			}
		}
	}
}

// makeGraph makes the small graph.
func (l *cellLowering) makeGraph(b *Builder, p *cells.Program, x *cells.Instance) {
	c, g, t := l.c, &l.g, x.Template
	g.Reset()
	if len(g.ArgStart) == 0 {
		g.ArgStart, g.AttrStart = append(g.ArgStart, 0), append(g.AttrStart, 0)
	}
	g.Inputs = nil
	l.listParams()
	for i := range c.params {
		l.addNode(c.params[i].op, b.cells.params.node[c.params[i].id].dim, []uint32{c.params[i].id})
	}
	for i := range t.SlotDims {
		l.addNode(ops.Input, t.SlotDims[i], []uint32{0})
	}
	l.shared = uint32(g.Len())
	l.node = l.node[:0]
	constants := p.ConstantsOf(x)
	constant := 0
	for k := range t.Nodes {
		n := &t.Nodes[k]
		if n.Op == ops.Parameter || n.Op == ops.ConstParameter {
			l.node = append(l.node, l.param(n.Op, n.Attrs[0]))
			continue
		}
		var args []uint32
		for _, a := range n.Args {
			switch a.Kind {
			case cells.Inner:
				args = append(args, l.node[a.At])
			case cells.Outer:
				args = append(args, uint32(len(c.params))+a.At)
			case cells.Param:
				args = append(args, l.param(ops.Parameter, a.At))
			default:
				args = append(args, l.param(ops.ConstParameter, a.At))
			}
		}
		attrs := slices.Clone(n.Attrs)
		for i, a := range ops.Table[n.Op].Attrs {
			switch {
			case !cells.Own(a.Kind):
				continue
			case a.Kind == ops.Float:
				attrs[i] = symbolicNumber + uint32(constant)
				l.offsets = append(l.offsets, NoOffset)
			default:
				attrs[i] = uint32(len(g.Inputs))
				g.Inputs = l.addInputs(b, n, uint32(k), constant, constants[constant])
			}
			constant++
		}
		l.node = append(l.node, uint32(g.Len()))
		l.addNode(n.Op, n.Dim, attrs, args...)
	}
	c.output = make([]uint32, len(t.Nodes))
	for k := range uint32(len(t.Nodes)) {
		if c.output[k] = c.outputs; c.needed.has(k) || c.wanted.has(k) {
			c.outputs++
		}
		if c.needed.has(k) {
			c.outs = append(c.outs, k)
		}
		if c.wanted.has(k) {
			c.exits, c.wantedAt = append(c.exits, k), append(c.wantedAt, 1<<30)
			of, d := l.derivedFrom(k)
			c.derivatives = append(c.derivatives, d)
			l.addNode(ops.Reshape, t.Nodes[k].Dim, nil, l.node[of])
		}
	}
	l.s.Truncate(0)
	l.all = append(l.all[:0], b.r.Params...)
	for i := range l.all {
		l.all[i].Factor = math.Float32frombits(symbolicFactor | uint32(i))
	}
	l.r = Request{Graph: g, State: &l.s, Params: l.all, Plan: b.r.Plan, Node: uint32(g.Len() - 1), Forward: true, Needed: c.part == bothParts,
		Backward: len(c.wantedAt) > 0, Base: firstAddress, Result: NoOffset, Tensors: true}
}

// derivedFrom is the node whose gradient comes back to node k: its own or, if it is a function of a product that nobody
// else reads, the product's, which is the derivative of it.
func (l *cellLowering) derivedFrom(k uint32) (of uint32, d derivative) {
	c, t := l.c, l.c.template
	n := &t.Nodes[k]
	r := &unaryRules[n.Op]
	if !l.joins || l.r.Plan.CPU || !r.ok || !standsBehind(r) || n.Args[0].Kind != cells.Inner {
		return k, d
	}
	of = n.Args[0].At
	if op := t.Nodes[of].Op; op != ops.AffineTransform && op != ops.MatrixMultiply || c.needed.has(of) || c.wanted.has(of) {
		return k, d
	}
	uses := 0
	for i := range t.Nodes {
		for _, a := range t.Nodes[i].Args {
			if a.Kind == cells.Inner && (a.At == of || a.At == k) {
				uses++
			}
		}
	}
	if uses != 1 {
		return k, d
	}
	return of, derivative{fn: r.back, p: r.dp.Value}
}

// listParams lists the parameters: which there are has to be known before the nodes are numbered.
func (l *cellLowering) listParams() {
	for k := range l.c.template.Nodes {
		n := &l.c.template.Nodes[k]
		if n.Op == ops.Parameter || n.Op == ops.ConstParameter {
			l.param(n.Op, n.Attrs[0])
		}
		for _, a := range n.Args {
			switch a.Kind {
			case cells.Param:
				l.param(ops.Parameter, a.At)
			case cells.ConstParam:
				l.param(ops.ConstParameter, a.At)
			}
		}
	}
}

// param is the number of a parameter among the template's.
func (l *cellLowering) param(op ops.Code, id uint32) uint32 {
	list := l.c.params
	for i := range list {
		if list[i].id == id && list[i].op == op {
			return uint32(i)
		}
	}
	l.c.params = append(list, cellParam{id: id, op: op, segment: l.params.node[id].segment})
	return uint32(len(list))
}

// isLeftOf reports whether argument k of an operation is the left side of a product.
func isLeftOf(op ops.Code, k int) bool {
	return op == ops.MatrixMultiply && k == 0 || op == ops.AffineTransform && k%2 == 1
}

func (l *cellLowering) addNode(op ops.Code, d bridge.Dim, attrs []uint32, args ...uint32) {
	g := &l.g
	g.Op, g.Dim, g.Dims = append(g.Op, op), append(g.Dim, uint32(len(g.Dims))), append(g.Dims, d)
	g.Args, g.Attrs = append(g.Args, args...), append(g.Attrs, attrs...)
	g.ArgStart, g.AttrStart = append(g.ArgStart, uint32(len(g.Args))), append(g.AttrStart, uint32(len(g.Attrs)))
}

// symbolicFactor marks a factor that stands for that of a parameter, whose id is added: a NaN that no computation makes.
const symbolicFactor = 0xffe00000

func isSymbolicFactor(w uint32) bool { return w&^(mostParameters-1) == symbolicFactor }

// symbolicNumber marks a number that every instance has its own of, which constant is added: a NaN that no computation
// makes, either. Lowering hands numbers on as they are.
const symbolicNumber = 0xffc00001

// symbolicInput marks words that stand for input words, whose number is added.
const symbolicInput = 1 << 20

// addInputs appends the input words of a node: the instance's own where the shape of items depends on them, else
// numbers that stand for them.
func (l *cellLowering) addInputs(b *Builder, n *cells.Node, k uint32, constant int, offset uint32) []uint32 {
	in := l.g.Inputs
	l.offsets = append(l.offsets, uint32(len(in)))
	use, count := cells.InputWords(n.Op, &n.Dim, n.Attrs)
	if use == cells.CopiedAsData { // items copy them, in pieces if they are many
		in, count = append(in, make([]uint32, count)...), 0
	}
	for i := range count {
		switch use {
		case cells.ShapesItems:
			in = append(in, b.g.Inputs[offset+i])
		default:
			x := cellInput{constant: uint32(constant), add: i, node: k, table: -1}
			switch n.Op {
			case ops.Lookup, ops.ConstLookup:
				x.table = int32(n.Attrs[0])
			case ops.PickElement:
				x.bound = uint32(l.argDim(n).Axis(int(n.Attrs[0])))
			default:
				x.bound = uint32(l.argDim(n).Batch())
			}
			in = append(in, symbolicInput+uint32(len(l.c.inputs)))
			l.c.inputs = append(l.c.inputs, x)
		}
	}
	return append(in, 0) // so that no two nodes' begin at the same place
}

// argDim is the dim of a node's first argument.
func (l *cellLowering) argDim(n *cells.Node) *bridge.Dim {
	if a := n.Args[0]; a.Kind == cells.Outer {
		return &l.c.template.SlotDims[a.At]
	} else if a.Kind == cells.Inner {
		return &l.c.template.Nodes[a.At].Dim
	} else {
		return &l.params.node[a.At].dim
	}
}

// placeShared says where parameters and slots are: at addresses that stand for others.
func (l *cellLowering) placeShared(b *Builder) {
	t, c := l.b, l.c
	l.ranges = l.ranges[:0]
	reserve := func(n int, entry uint32) uint32 {
		at := t.Alloc(n)
		l.ranges = append(l.ranges, rangeOf{at, t.Top, entry})
		return at
	}
	for v := range l.shared {
		i := v - uint32(len(c.params))
		t.spots[v], t.need[v], t.s.Grad[v] = nowhere, true, NoOffset
		t.reader[v] = several
		if v < uint32(len(c.params)) {
			q := &c.params[v]
			t.s.Value[v], t.s.Segment[v] = reserve(t.size(v), c.atParams()+v), q.segment
			t.s.Resident[v] = b.r.Params[q.id].Matrix >= 0
			t.grads[v] = q.op == ops.Parameter
		} else {
			t.s.Value[v], t.s.Segment[v] = reserve(t.size(v), atSlots+i), isa.SegAct
			if l.joins && c.early>>min(i, 63)&1 == 0 {
				t.spots[v] = spot{0, t.NewCluster(0), -1}
			}
			t.grads[v] = c.slots>>min(i, 63)&1 != 0
		}
		t.wants[v] = t.grads[v] && l.r.Backward
	}
	l.findLate()
	for e := range c.wantedAt {
		v := t.end + uint32(e)
		t.s.Grad[v] = reserve(t.size(v), c.atExits()+uint32(e))
		t.wants[v], t.need[v] = true, false
	}
	if c.part != backwardPart {
		return
	}
	for k, v := range l.node {
		if !t.owns(v) {
			continue
		}
		t.s.Value[v] = reserve(t.size(v), c.atValues()+uint32(k))
		switch l.g.Op[v] {
		case ops.PickNegLogSoftmax:
			t.s.Aux[v] = reserve(t.size(v), c.atAux()+uint32(k))
		case ops.LogDet:
			t.s.Aux[v] = reserve(t.size(l.g.ArgsOf(v)[0]), c.atAux()+uint32(k))
		}
	}
}

// findLate finds the nodes that depend on slots which are not there early.
func (l *cellLowering) findLate() {
	t := l.b
	if t.late = t.late[:0]; !l.joins || l.r.Plan.CPU {
		return
	}
	t.late = memory.Extend(t.late, int(t.end), false)
	for v := range t.end {
		if v < t.first {
			t.late[v] = t.spots[v].cluster >= 0
			continue
		}
		for _, a := range t.g.ArgsOf(v) {
			t.late[v] = t.late[v] || t.late[a]
		}
	}
}

// lowerNodes lowers the nodes forward and backward.
func (l *cellLowering) lowerNodes() error {
	t, c := l.b, l.c
	if c.part == backwardPart {
		t.placeAgain(t.first, t.end)
	} else if err := l.lowerForward(); err != nil {
		return err
	}
	t.Ends[isa.InForward], l.gradients = t.MaxLevel, t.Top-l.first
	if l.r.Backward {
		l.lowerBackward()
	}
	return nil
}

// lowerForward lowers the nodes that are needed, or all.
func (l *cellLowering) lowerForward() error {
	t, c := l.b, l.c
	for _, k := range c.outs {
		if v := l.node[k]; t.owns(v) {
			t.need[v] = true
		}
	}
	for v := t.first; v < t.end && c.part.keepsValues(); v++ {
		t.need[v] = true
	}
	t.markArguments(t.need, t.first)
	t.findReaders()
	for _, k := range c.outs {
		if v := l.node[k]; t.owns(v) { // values that others read stay as they are
			t.reader[v] = several
		}
	}
	if err := t.forward(); err != nil {
		return err
	}
	for _, k := range c.outs {
		v := l.node[k]
		if !t.owns(v) {
			continue
		}
		if e := l.entryOf(t.s.Value[v]); e.entry != atBase { // another's value under another shape
			t.attribute(isa.InForward, v)
			from := len(t.Items)
			t.copyOf(v)
			t.dealOut(v, from, t.s.Value[v])
		}
	}
	return nil
}

// lowerBackward lowers the nodes' gradients.
func (l *cellLowering) lowerBackward() {
	t := l.b
	t.exitsIn = t.exitsIn[:0]
	for e := range l.c.derivatives {
		if l.c.derivatives[e].fn == isa.Copy {
			t.exitsIn = append(t.exitsIn, schedule.Elsewhere)
		} else { // the instance forms it, in its first level
			t.exitsIn = append(t.exitsIn, t.NewCluster(t.MaxLevel))
		}
	}
	for v := t.end; int(v) < l.g.Len(); v++ {
		if a := l.g.ArgsOf(v)[0]; t.owns(a) {
			t.wants[a] = true
		}
	}
	t.markAncestors()
	t.markGradients()
	t.collectUsers()
	t.backwardFrom(t.Ends[isa.InForward])
	l.gradientsOfShared()
}
