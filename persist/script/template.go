package script

import (
	"fmt"
	"slices"

	"libvpps/bridge"
	"libvpps/bridge/cells"
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
)

// Lowering a template once. Its nodes are lowered and differentiated by the rules for all nodes, in a small graph of
// their own: parameters, the slots, the nodes, and one node after them for each output that a gradient comes back to.
// Every address in the items that result is one of a table's plus a constant. An instance fills in its table.

// Places in an instance's table of addresses. After them come the slots, the outputs' gradients, the parameters, the
// offsets of input words and the words read there.
const (
	atNowhere = iota // 0: what is added is the word itself
	atBase           // the instance's memory
	atStart          // the number of its first node
	atSlots
)

// word is an address, or another word, of an item: an entry of the table plus a number.
type word struct{ entry, add uint32 }

// cellItem is an item of a template. Its words are words[first:first+count].
type cellItem struct {
	cluster, sub int32
	sig          uint32 // in sigs; rawSig: the item is a whole instruction
	first, count uint32
}

// cellMatrix is a matrixItem of a template.
type cellMatrix struct {
	level int32
	sig   uint32
	words [2]word
}

// cellCluster is a cluster of a template; the level counts from the instance's.
type cellCluster struct {
	level, cost, items int32
	kind               clusterKind
}

// cellSource is a gradient that an instance leaves for another: count vectors, and the level in which they are there,
// counted from the instance's.
type cellSource struct {
	word
	count, apart uint32
	ready        int32
}

// cellSig is a signature with the words in it that change from batch to batch.
type cellSig struct {
	words    []uint32
	elements int32
	factor   int32 // the parameter whose factor word 4 is, -1: it is another number
	bias     int32 // of a product: number in params, -1: none
	draws    bool  // of random numbers
	number   uint32
}

// cellParam is a parameter that a template reads.
type cellParam struct {
	id      uint32
	op      ops.Code
	segment isa.Segment
}

// cellInput is an input word whose value is part of an address: input word number add of constant.
type cellInput struct {
	constant, add uint32
	node          uint32 // of the template, for errors
	table         int32  // a parameter's id: it is a row of that; -1: a label
	bound         uint32 // of a label
}

// cellRow is the gradients of a table's row.
type cellRow struct {
	param, input uint32 // input: number in inputs
	shift        uint32
	sources      []cellSource
}

// variant says in which surroundings a template was lowered.
type variant struct {
	slots    uint64 // that depend on a parameter
	needed   uint64 // outputs that are read
	wanted   uint64 // outputs that a gradient comes back to
	segments uint64 // parameters that are copied
	values   string // of input words that the shape of the items depends on
}

// loweredCell is a template, lowered.
type loweredCell struct {
	variant
	template *cells.Template
	outs     []uint32 // the nodes that needed and wanted count

	clusters [2][]cellCluster // forward, backward
	items    [2][]cellItem
	matrices [2][]cellMatrix
	outers   []cellMatrix
	words    []word
	sigs     []cellSig
	params   []cellParam
	inputs   []cellInput
	size     uint32 // floats of an instance
	tensors  []vector
	depth    [2]int32

	need     []int32  // by slot, then by parameter: in which level it is read first; -1: it is not
	ready    []int32  // by output: the level after which it is there
	value    []uint32 // by output: where in an instance's memory
	exits    []int32  // by output: number of its gradient, -1: none
	wantedAt []int32  // by number: the first level in which its gradient is read
	sources  [][]cellSource
	sums     []paramSum
	rows     []cellRow

	script uint64 // the one that the numbers of sigs belong to
}

// paramSum is a gradient of a parameter.
type paramSum struct {
	param uint32
	cellSource
}

func (c *loweredCell) atExits() uint32  { return atSlots + uint32(c.template.Slots) }
func (c *loweredCell) atParams() uint32 { return c.atExits() + uint32(len(c.wantedAt)) }
func (c *loweredCell) atConstants() uint32 {
	return c.atParams() + uint32(len(c.params))
}
func (c *loweredCell) atInputs() uint32 { return c.atConstants() + uint32(c.template.Constants) }
func (c *loweredCell) tableSize() int   { return int(c.atInputs()) + len(c.inputs) }

// firstAddress is where addresses of a template's small graph begin: smaller words are none.
const firstAddress = 1 << 24

// cellLowering lowers templates.
type cellLowering struct {
	b       *Builder // of the small graph
	all     []Param  // with factors that stand for the present ones
	g       bridge.Graph
	s       State
	r       Request
	c       *loweredCell
	node    []uint32 // by node of the template: its number in the small graph
	shared  uint32
	first   uint32    // where the instance's memory begins
	ranges  []rangeOf // of the addresses that stand for others', ascending
	offsets []uint32  // by constant: where in the small graph's input words it begins
	params  *cellParams
	sig     []int32 // by the builder's signature: number in sigs, 0: none
	where   []int32 // by the builder's cluster
}

// vector is size floats of an instance's memory.
type vector struct{ at, size uint32 }

// rangeOf is addresses [from, end) that stand for an entry of the table.
type rangeOf struct{ from, end, entry uint32 }

// lower lowers a template in some surroundings. outs are the nodes that variant counts; x is an instance of it.
func (l *cellLowering) lower(b *Builder, p *cells.Program, x *cells.Instance, outs []uint32, v variant) (*loweredCell, error) {
	c := &loweredCell{variant: v, template: x.Template, outs: slices.Clone(outs)}
	l.c, l.params, l.offsets = c, &b.cells.params, l.offsets[:0]
	l.makeGraph(b, p, x)
	if l.b == nil {
		l.b = &Builder{symbolic: true}
	}
	t := l.b
	t.reset(&l.r)
	t.nodeRange = nodeRange{first: l.shared, end: uint32(l.g.Len() - len(c.wantedAt)), shared: l.shared}
	t.tail = t.end
	t.top = firstAddress
	l.placeShared(b)
	l.first = t.top
	if err := l.lowerNodes(); err != nil {
		return nil, err
	}
	c.size = t.top - l.first
	for k := 0; k < len(t.tensors); k += 3 {
		if at := t.tensors[k+1]; at >= l.first {
			c.tensors = append(c.tensors, vector{at - l.first, t.tensors[k+2]})
		}
	}
	if t.full {
		return nil, errFull
	}
	return c, l.collect()
}

// makeGraph makes the small graph.
func (l *cellLowering) makeGraph(b *Builder, p *cells.Program, x *cells.Instance) {
	c, g, t := l.c, &l.g, x.Template
	g.Reset()
	if len(g.ArgStart) == 0 {
		g.ArgStart, g.AttrStart = append(g.ArgStart, 0), append(g.AttrStart, 0)
	}
	g.Inputs = nil
	param := func(op ops.Code, id uint32) uint32 {
		for i := range c.params {
			if c.params[i].id == id && c.params[i].op == op {
				return uint32(i)
			}
		}
		c.params = append(c.params, cellParam{id: id, op: op, segment: b.cells.params.node[id].segment})
		return uint32(len(c.params) - 1)
	}
	// Parameters first: which there are has to be known before the nodes are numbered.
	for k := range t.Nodes {
		n := &t.Nodes[k]
		if n.Op == ops.Parameter || n.Op == ops.ConstParameter {
			param(n.Op, n.Attrs[0])
		}
		for _, a := range n.Args {
			switch a.Kind {
			case cells.Param:
				param(ops.Parameter, a.At)
			case cells.ConstParam:
				param(ops.ConstParameter, a.At)
			}
		}
	}
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
			l.node = append(l.node, param(n.Op, n.Attrs[0]))
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
				args = append(args, param(ops.Parameter, a.At))
			default:
				args = append(args, param(ops.ConstParameter, a.At))
			}
		}
		attrs := slices.Clone(n.Attrs)
		for i, a := range ops.Table[n.Op].Attrs {
			if a.Kind == ops.Offset {
				attrs[i] = uint32(len(g.Inputs))
				g.Inputs = l.addInputs(b, n, uint32(k), constant, constants[constant])
				constant++
			}
		}
		l.node = append(l.node, uint32(g.Len()))
		l.addNode(n.Op, n.Dim, attrs, args...)
	}
	c.exits = make([]int32, len(c.outs))
	for i, k := range c.outs {
		if c.exits[i] = -1; c.wanted>>i&1 != 0 {
			c.exits[i] = int32(len(c.wantedAt))
			c.wantedAt = append(c.wantedAt, 1<<30)
			l.addNode(ops.Reshape, t.Nodes[k].Dim, nil, l.node[k])
		}
	}
	l.s.Truncate(0)
	l.all = append(l.all[:0], b.r.Params...)
	for i := range l.all {
		l.all[i].Factor = float(symbolicFactor | uint32(i))
	}
	l.r = Request{Graph: g, State: &l.s, Params: l.all, Plan: b.r.Plan, Node: uint32(g.Len() - 1), Forward: true, Needed: true,
		Backward: len(c.wantedAt) > 0, Base: firstAddress, Result: NoOffset, Tensors: true}
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

// symbolicFactor marks a factor that stands for that of a parameter, whose id is added: it is no number.
const symbolicFactor = 0x7fc00000

// symbolicInput marks words that stand for input words, whose number is added.
const symbolicInput = 1 << 20

// addInputs appends the input words of a node: the instance's own where the shape of items depends on them, else
// numbers that stand for them.
func (l *cellLowering) addInputs(b *Builder, n *cells.Node, k uint32, constant int, offset uint32) []uint32 {
	in := l.g.Inputs
	l.offsets = append(l.offsets, uint32(len(in)))
	use, count := inputWords(n)
	for i := range count {
		switch use {
		case shapesItems:
			in = append(in, b.g.Inputs[offset+i])
		case copiedAsData:
			in = append(in, 0)
		default:
			x := cellInput{constant: uint32(constant), add: i, node: k, table: -1}
			if n.Op == ops.Lookup || n.Op == ops.ConstLookup {
				x.table = int32(n.Attrs[0])
			} else {
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

// inputUse is what input words are to a node's items.
type inputUse uint8

const (
	copiedAsData inputUse = iota
	partOfWords           // rows and labels: words of items, or parts of their addresses
	shapesItems           // how many items there are, or where their results are
)

// inputWords is how many input words a node reads, and what they are to its items.
func inputWords(n *cells.Node) (use inputUse, count uint32) {
	switch n.Op {
	case ops.Lookup, ops.ConstLookup, ops.PickNegLogSoftmax, ops.Hinge:
		return partOfWords, n.Dim.Bd
	case ops.Input, ops.ScalarInput:
		return copiedAsData, uint32(n.Dim.Size())
	case ops.SparseInput:
		return shapesItems, 2 * n.Attrs[2]
	case ops.PickElement:
		return shapesItems, n.Attrs[2]
	case ops.PickBatchElements, ops.RestrictedLogSoftmax, ops.SelectRows, ops.SelectCols, ops.SparsemaxLoss:
		return shapesItems, n.Attrs[1]
	case ops.HingeDim:
		return shapesItems, n.Attrs[3]
	case ops.PoissonRegressionLoss:
		return shapesItems, 1
	}
	return copiedAsData, 0
}

// placeShared says where parameters and slots are: at addresses that stand for others.
func (l *cellLowering) placeShared(b *Builder) {
	t, c := l.b, l.c
	l.ranges = l.ranges[:0]
	reserve := func(n int, entry uint32) uint32 {
		at := t.alloc(n)
		l.ranges = append(l.ranges, rangeOf{at, t.top, entry})
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
			t.grads[v] = c.slots>>min(i, 63)&1 != 0
		}
		t.wants[v] = t.grads[v] && l.r.Backward
	}
	for e := range c.wantedAt {
		v := t.end + uint32(e)
		t.s.Grad[v] = reserve(t.size(v), c.atExits()+uint32(e))
		t.wants[v], t.need[v] = true, false
	}
}

// lowerNodes lowers the nodes forward and backward.
func (l *cellLowering) lowerNodes() error {
	t, c := l.b, l.c
	for i, k := range c.outs {
		if v := l.node[k]; c.needed>>i&1 != 0 && t.owns(v) {
			t.need[v] = true
		}
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
	for i, k := range c.outs {
		v := l.node[k]
		if c.needed>>i&1 == 0 || !t.owns(v) {
			continue
		}
		if e := l.entryOf(t.s.Value[v]); e.entry != atBase { // another's value under another shape
			t.copyOf(v)
		}
	}
	t.ends[isa.InForward] = t.maxLevel
	if !l.r.Backward {
		return nil
	}
	for v := t.end; int(v) < l.g.Len(); v++ {
		if a := l.g.ArgsOf(v)[0]; t.owns(a) {
			t.wants[a] = true
		}
	}
	for v := int(t.end) - 1; v >= int(t.first); v-- {
		if t.wants[v] && t.g.Op[v] != ops.NoBackprop {
			for _, a := range t.g.ArgsOf(uint32(v)) {
				if t.owns(a) {
					t.wants[a] = true
				}
			}
		}
	}
	t.markGradients()
	t.collectUsers()
	t.backwardFrom(t.ends[isa.InForward])
	l.gradientsOfShared()
	return nil
}

// gradientsOfShared notes what comes back to slots and parameters: each use's gradient by itself, the latest use first.
func (l *cellLowering) gradientsOfShared() {
	t, c := l.b, l.c
	c.sources = make([][]cellSource, c.template.Slots)
	for v := range l.shared {
		if !t.wants[v] {
			continue
		}
		uses := t.usersOf(v)
		for k := len(uses) - 1; k >= 0; k-- {
			u := uses[k]
			if u.kind == useOuter {
				continue
			}
			t.linear = t.linear[:0]
			from := t.formedIn(u.node)
			ready := t.blevel[from] + 1
			switch u.kind {
			case useTransposed:
				left, _ := t.isRight(u)
				t.transposed(v, u, left)
				ready = t.blevel[from] + t.levelsOf(u.node)
			case useSame:
				t.linear = append(t.linear, one(t.s.Grad[u.node]+u.at))
			default:
				ready = l.contributes(v, u)
			}
			for _, s := range t.linear {
				x := cellSource{l.entryOf(s.at), s.count, s.apart, ready - t.ends[isa.InForward] - 1}
				if v < uint32(len(c.params)) {
					c.sums = append(c.sums, paramSum{c.params[v].id, x})
				} else {
					i := v - uint32(len(c.params))
					c.sources[i] = append(c.sources[i], x)
				}
			}
		}
	}
}

// contributes forms what a use adds to the gradient of v, in memory of its own, and returns when it is there.
func (l *cellLowering) contributes(v uint32, u user) (ready int32) {
	t := l.b
	k, cluster, sub := t.formedIn(u.node), int32(0), int32(0)
	if k == elsewhere {
		cluster = t.newCluster(t.blevel[k] + 1)
		ready = t.blevel[k] + 2
	} else {
		cluster, sub = t.home(u.node), t.gsub[u.node]+1
		ready = t.blevel[k] + 1
	}
	t.contributeApart(v, u, cluster, sub)
	return ready
}

// contributeApart appends what a use adds to v's gradient to the linear sources, in memory of its own, and returns the
// next order.
func (b *Builder) contributeApart(v uint32, u user, cluster, sub int32) int32 {
	dst := operand{isa.SegAct, b.alloc(b.size(v))}
	flags := uint32(0)
	b.axes = b.axes[:0]
	if !b.covers(u) {
		b.fill(cluster, sub, 0, b.size(v), dst.at)
		sub++
		flags = isa.Acc
	}
	sub = b.contribute(v, u, dst, flags, cluster, sub)
	b.linear = append(b.linear, one(dst.at))
	return sub
}

// addUsesUp forms the gradient of a template's node v: what each use adds, the latest use first. That is the order across
// templates, too: so a sum does not depend on which nodes are one template.
func (b *Builder) addUsesUp(v uint32) {
	k, sub := b.gcluster[v], int32(0)
	uses := b.usersOf(v)
	for _, u := range uses {
		if u.kind != useOuter && b.formedIn(u.node) == k {
			sub = max(sub, b.gsub[u.node]+1)
		}
	}
	b.linear = b.linear[:0]
	b.s.Grad[v] = NoOffset
	for i := len(uses) - 1; i >= 0; i-- {
		switch u := uses[i]; {
		case u.kind == useOuter:
		case u.kind == useTransposed:
			left, _ := b.isRight(u)
			b.transposed(v, u, left)
		case u.kind == useSame:
			b.linear = append(b.linear, one(b.s.Grad[u.node]+u.at))
		case b.covers(u):
			sub = b.contributeApart(v, u, b.home(v), sub)
		default: // of some elements, added to what later uses give
			sub = b.addLinear(v, sub)
			b.axes = b.axes[:0]
			sub = b.contribute(v, u, b.gradient(v), isa.Acc, b.home(v), sub)
		}
	}
	if b.linear = spelledOut(b.linear); b.s.Grad[v] == NoOffset && len(b.linear) == 1 {
		b.s.Grad[v] = b.linear[0].at
	} else if b.s.Grad[v] == NoOffset || len(b.linear) > 0 {
		sub = b.addLinear(v, sub)
	}
	b.gsub[v] = sub - 1
	if b.g.Op[v] == ops.Lookup {
		b.linear = append(b.linear[:0], one(b.s.Grad[v]))
		b.gradientToRows(v)
	}
}

// addLinear makes v's gradient the sum of what there is of it and the linear sources, in this order; 0 if there is none of
// both. It returns the next order.
func (b *Builder) addLinear(v uint32, sub int32) int32 {
	list := spelledOut(b.linear)
	if at := b.s.Grad[v]; at != NoOffset {
		if len(list) == 0 {
			return sub
		}
		list = append([]source{one(at)}, list...)
	} else {
		b.s.Grad[v] = b.alloc(b.size(v))
	}
	b.linear = b.linear[:0]
	if len(list) == 0 {
		b.fill(b.home(v), sub, 0, b.size(v), b.s.Grad[v])
		return sub + 1
	}
	return b.sumItems(b.home(v), sub, 0, b.gradient(v), isa.SegAct, 1, b.size(v), list)
}

// spelledOut has an item for each vector of some sources.
func spelledOut(list []source) []source {
	n := len(list)
	for _, s := range list[:n] {
		for k := range s.count {
			list = append(list, one(s.at+k*s.apart))
		}
	}
	return list[n:]
}

// entryOf is what an address of the small graph stands for.
func (l *cellLowering) entryOf(at uint32) word {
	if at >= l.first {
		return word{atBase, at - l.first}
	}
	if at < firstAddress {
		return word{atNowhere, at}
	}
	k, _ := slices.BinarySearchFunc(l.ranges, at, func(r rangeOf, at uint32) int {
		if r.end <= at {
			return -1
		}
		return 1
	})
	return word{l.ranges[k].entry, at - l.ranges[k].from}
}

// operandOf is what an address in a segment stands for.
func (l *cellLowering) operandOf(seg isa.Segment, at uint32) (word, error) {
	c := l.c
	switch seg {
	case isa.SegAct, isa.SegParam:
		return l.entryOf(at), nil
	case isa.SegTable:
		if i := at - symbolicInput; int(i) < len(c.inputs) {
			return word{c.atInputs() + i, 0}, nil
		}
		return l.entryOf(at), nil
	case isa.SegInput:
		for k := len(l.offsets) - 1; k >= 0; k-- {
			if at >= l.offsets[k] {
				return word{c.atConstants() + uint32(k), at - l.offsets[k]}, nil
			}
		}
	}
	return word{}, fmt.Errorf("segment %d in a template", seg)
}

// collect makes the template's items of what the small graph's builder has.
func (l *cellLowering) collect() error {
	if err := l.collectSigs(); err != nil {
		return err
	}
	t, c := l.b, l.c
	l.collectClusters()
	for i := range t.items {
		it := &t.items[i]
		k, at := l.placeOf(it.cluster)
		first := uint32(len(c.words))
		if err := l.collectWords(it); err != nil {
			return err
		}
		c.clusters[k][at].items++
		c.items[k] = append(c.items[k], cellItem{int32(at), it.sub, uint32(l.sig[it.sig]), first, uint32(len(c.words)) - first})
	}
	for _, m := range t.matrices {
		k, level := l.phaseOf(m.level)
		c.depth[k] = max(c.depth[k], level+1)
		x, err := l.collectMatrix(level, &m)
		if err != nil {
			return err
		}
		c.matrices[k] = append(c.matrices[k], x)
	}
	for _, m := range t.outers {
		x, err := l.collectMatrix(-1, &m)
		if err != nil {
			return err
		}
		c.outers = append(c.outers, x)
	}
	for _, r := range t.rowSrc {
		x := cellRow{param: uint32(r.key >> 32), input: uint32(r.key) - symbolicInput, shift: r.shift}
		for _, s := range t.rowPool[r.first : r.first+r.count] {
			x.sources = append(x.sources, cellSource{word: l.entryOf(s.at), count: s.count, apart: s.apart})
		}
		c.rows = append(c.rows, x)
	}
	for _, s := range t.paramSrc {
		return fmt.Errorf("a gradient of parameter %d in a template", s.param)
	}
	l.collectLevels()
	return nil
}

// phaseOf says whether a level is of the forward (0) or the backward part, and which one of it.
func (l *cellLowering) phaseOf(level int32) (k int, at int32) {
	if end := l.b.ends[isa.InForward]; l.r.Backward && level > end {
		return 1, level - end - 1
	}
	return 0, level
}

// collectClusters lists the clusters that have items.
func (l *cellLowering) collectClusters() {
	t, c := l.b, l.c
	l.where = extend(l.where[:0], len(t.clusters), -1)
	for i := range t.clusters {
		x := &t.clusters[i]
		if x.parent != int32(i) || x.items == 0 {
			continue
		}
		k, level := l.phaseOf(x.level)
		l.where[i] = int32(len(c.clusters[k]))
		c.clusters[k] = append(c.clusters[k], cellCluster{level, x.cost, 0, x.kind})
		c.depth[k] = max(c.depth[k], level+1)
	}
}

// placeOf is the phase and number of the cluster that an item is in.
func (l *cellLowering) placeOf(cluster int32) (k int, at int32) {
	i := l.b.find(cluster)
	k, _ = l.phaseOf(l.b.clusters[i].level)
	return k, l.where[i]
}

// collectWords appends the words of an item.
func (l *cellLowering) collectWords(it *item) error {
	t, c := l.b, l.c
	add := func(seg, at uint32) error {
		w, err := l.operandOf(isa.Segment(seg&15), at)
		c.words = append(c.words, w)
		return err
	}
	if it.sig == rawSig { // a Sum
		return l.collectSum(t.pool[it.words[0]:])
	}
	sig := t.sigs.of(it.sig)
	n := int(t.sigs.width[it.sig])
	words := it.words[:min(n, fewWords)]
	if n > fewWords {
		words = t.pool[it.words[0]:][:n]
	}
	op := isa.Opcode(sig[0])
	labelled := op == isa.Row && isa.RowTable[isa.RowFn(sig[0]>>8)].Label
	for i, w := range words {
		switch last := i == n-1; {
		case last && labelled && w-symbolicInput >= uint32(len(c.inputs)):
			c.words = append(c.words, word{atNowhere, w})
		case last && labelled:
			c.words = append(c.words, word{c.atInputs() + w - symbolicInput, 0})
		case last && op == isa.Random:
			c.words = append(c.words, word{atStart, l.templateNode(w)})
		default:
			if err := add(sig[2]>>(4*i), w); err != nil {
				return err
			}
		}
	}
	return nil
}

// templateNode is the template's node that a node of the small graph is.
func (l *cellLowering) templateNode(v uint32) uint32 { return uint32(slices.Index(l.node, v)) }

// collectSum appends the words of a Sum, which is an instruction of its own.
func (l *cellLowering) collectSum(w []uint32) error {
	c := l.c
	n := w[1] & 0xffff
	for i := range n {
		seg, address := w[2]>>4, i >= sumHead
		switch i {
		case 5:
			seg, address = w[2], true
		case 8:
			seg, address = w[2]>>8, uint8(w[0]>>8) != uint8(isa.Copy)
		}
		if !address {
			c.words = append(c.words, word{atNowhere, w[i]})
			continue
		}
		x, err := l.operandOf(isa.Segment(seg&15), w[i])
		if err != nil {
			return err
		}
		c.words = append(c.words, x)
	}
	return nil
}

// collectMatrix makes a template's of a product's item.
func (l *cellLowering) collectMatrix(level int32, m *matrixItem) (x cellMatrix, err error) {
	segs := l.b.sigs.of(m.sig)[2]
	x = cellMatrix{level: level, sig: uint32(l.sig[m.sig])}
	shift := 0
	if isa.Opcode(l.b.sigs.of(m.sig)[0]) == isa.Outer {
		shift = 4
	}
	for i := range x.words {
		if x.words[i], err = l.operandOf(isa.Segment(segs>>(4*i+shift)&15), m.words[i]); err != nil {
			return x, err
		}
	}
	return x, nil
}

// collectSigs lists the signatures, with what changes in them.
func (l *cellLowering) collectSigs() error {
	t, c := l.b, l.c
	l.sig = resize(l.sig, len(t.sigs.start))
	l.sig[rawSig] = rawSig
	c.sigs = append(c.sigs, cellSig{factor: -1, bias: -1}) // of whole instructions
	for i := uint32(1); int(i) < len(t.sigs.start)-1; i++ {
		w := slices.Clone(t.sigs.of(i))
		x := cellSig{words: w, elements: t.sigs.costs[i], factor: -1, bias: -1}
		switch isa.Opcode(w[0]) {
		case isa.Random:
			x.draws = true
		case isa.Product:
			if w[0]>>16&isa.Bias != 0 {
				e := l.entryOf(w[5])
				if e.entry < c.atParams() || e.entry >= c.atConstants() || e.add != 0 {
					return fmt.Errorf("a bias of a template is none of its parameters")
				}
				x.bias = int32(e.entry - c.atParams())
			}
		case isa.Outer:
			if isa.Segment(w[2]&15) != isa.SegGrad {
				return fmt.Errorf("an outer product of a template does not go to a parameter's gradient")
			}
		}
		if len(w) > 4 && w[4]&^(1<<22-1) == symbolicFactor && isa.Opcode(w[0]) != isa.Random {
			x.factor = int32(w[4] & (1<<22 - 1))
		}
		l.sig[i] = int32(len(c.sigs))
		c.sigs = append(c.sigs, x)
	}
	return nil
}

// collectLevels finds when slots are read, outputs are there, and gradients of outputs are read.
func (l *cellLowering) collectLevels() {
	t, c := l.b, l.c
	c.need = extend(c.need, c.template.Slots+len(c.params), -1)
	see := func(k int, level int32, w word) {
		switch {
		case w.entry >= atSlots && w.entry < c.atExits():
			if at := &c.need[w.entry-atSlots]; k == 0 && (*at < 0 || level < *at) {
				*at = level
			}
		case w.entry >= c.atParams() && w.entry < c.atConstants():
			if at := &c.need[uint32(c.template.Slots)+w.entry-c.atParams()]; k == 0 && (*at < 0 || level < *at) {
				*at = level
			}
		case w.entry >= c.atExits() && w.entry < c.atParams() && k == 1:
			at := &c.wantedAt[w.entry-c.atExits()]
			*at = min(*at, level)
		}
	}
	for k := range 2 {
		for _, it := range c.items[k] {
			for _, w := range c.words[it.first : it.first+it.count] {
				see(k, c.clusters[k][it.cluster].level, w)
			}
		}
		for _, m := range c.matrices[k] {
			for _, w := range m.words {
				see(k, m.level, w)
			}
		}
	}
	for i := range c.matrices[0] {
		if bias := c.sigs[c.matrices[0][i].sig].bias; bias >= 0 {
			see(0, c.matrices[0][i].level, word{c.atParams() + uint32(bias), 0})
		}
	}
	for _, m := range c.outers { // at the end, when all is there; but who reads a value needs its producer
		see(0, 1<<20, m.words[1])
	}
	c.ready, c.value = make([]int32, len(c.outs)), make([]uint32, len(c.outs))
	for i, k := range c.outs {
		v := l.node[k]
		if c.needed>>i&1 != 0 && t.owns(v) {
			c.ready[i], c.value[i] = t.ready(v), l.entryOf(t.s.Value[v]).add
		}
	}
}
