package script

import (
	"cmp"
	"slices"

	"libvpps/bridge/ops"
	"libvpps/persist/memory"
	"libvpps/persist/schedule"
)

// Joint products. A sequence's scores are a product by one matrix in each step: each has few columns, so tiles are half
// empty, and there is one such product between any two of the recurrent ones. Products of a graph that cannot depend on
// one another are one product of all their columns.
//
// The height of a node is how many products by parameter matrices are at most on a path from it to the end, its own
// included. Who depends on a product is lower than it, so products of one height do not depend on one another. A joint
// product has those of one height by the same matrix, with the same bias. It waits for all its operands, each of which
// has at least that height. So all heights stay what they are: there is no cycle, and no path with more products than
// before.
//
// Operands lie side by side, and so do results and their gradients. So their places are reserved before they are
// lowered.

// joint is a product of several nodes.
type joint struct {
	term    // of its first node
	bias    uint32
	nodes   []uint32 // ascending; backward those whose gradients lie side by side
	waiting int      // of these, so many have not had their turn
	columns uint32   // of all
	formed  bool     // as one

	gradients uint32          // where they are
	level     int32           // of the last of them, -1: not known yet
	sums      schedule.Source // of the transposed product; no partial results: it is not there yet
}

// jointMemory is what is known of a graph's joint products. Without any, nothing is known by node.
type jointMemory struct {
	off      bool // nodes are lowered in their order
	begun    bool // what is known by node is of this graph
	products []joint
	found    []jointNode
	runs     []jointRun
	nodes    []uint32 // of all products
	heights  []uint32 // by node
	seats    []uint32 // by node: the address that is reserved for its value, or NoOffset
	of       []int32  // by node: its product, or -1
	starts   []uint32 // by height
	order    []uint32 // the nodes by descending height
}

// jointNode is a node that may be a part of a joint product.
type jointNode struct {
	term
	node, bias, height uint32
	same               uint32 // number of the bias that equal ones have in common
}

// jointRun is nodes of one height, matrix and bias: found[first:end].
type jointRun struct {
	first, end int
	work       uint64
}

func (x *jointMemory) forget() { x.begun, x.products = false, x.products[:0] }

// findJoints finds the joint products of a graph that is evaluated as a whole.
func (b *Builder) findJoints() {
	if !b.dividesColumns() || b.symbolic || b.s.Done > 0 || b.joints.off {
		return
	}
	x := &b.joints
	x.found = x.found[:0]
	for v := b.first; v < b.end; v++ {
		if op := b.g.Op[v]; (op == ops.AffineTransform || op == ops.MatrixMultiply) && b.need[v] {
			b.findJointNode(v)
		}
	}
	if len(x.found) < 2 {
		return
	}
	b.findHeights()
	for i := range x.found {
		x.found[i].height = x.heights[x.found[i].node]
	}
	slices.SortFunc(x.found, func(v, w jointNode) int {
		return cmp.Or(cmp.Compare(w.height, v.height), cmp.Compare(v.matrix, w.matrix), cmp.Compare(v.same, w.same), cmp.Compare(v.node, w.node))
	})
	b.findRuns()
	x.nodes = memory.Resize(x.nodes, len(x.found))[:0]
	for _, r := range x.runs {
		b.makeJoint(x.found[r.first:r.end])
	}
	for _, v := range x.nodes {
		b.seatArgument(b.operandOf(v))
	}
}

// findRuns finds the runs of several nodes whose product is in tiles. A node has one place, so those with most work
// choose first.
func (b *Builder) findRuns() {
	x := &b.joints
	x.runs = x.runs[:0]
	for first, end := 0, 0; first < len(x.found); first = end {
		v := &x.found[first]
		for end = first + 1; end < len(x.found); end++ {
			if w := &x.found[end]; w.height != v.height || w.matrix != v.matrix || w.same != v.same {
				break
			}
		}
		if list := x.found[first:end]; b.joinable(list) {
			m := &b.r.Plan.Matrices[v.matrix]
			x.runs = append(x.runs, jointRun{first, end, uint64(b.columnsOf(list)) * uint64(m.Rows) * uint64(m.Cols)})
		}
	}
	slices.SortFunc(x.runs, func(v, w jointRun) int {
		return cmp.Or(cmp.Compare(w.work, v.work), cmp.Compare(v.first, w.first))
	})
}

// largeMatrix is how many elements of a matrix are too many for a GPU's L2 cache, with all else that is there.
const largeMatrix = 1 << 23

// joinable reports whether there are several nodes, and their columns are multiplied in tiles. Fewer columns than those of a
// tile stay where they are: there they are formed while recurrent products leave processors idle. But a large matrix, or one
// that is not in registers, would be read from memory for each of them.
func (b *Builder) joinable(list []jointNode) bool {
	if len(list) < 2 {
		return false
	}
	m, n := list[0].matrix, int(b.columnsOf(list))
	x := &b.r.Plan.Matrices[m]
	return (n >= b.Wide.Columns || x.Rows*x.Cols >= largeMatrix || b.r.readsFromMemory(m)) && b.columnsInTiles(m, n, n*x.Cols)
}

// findJointNode notes node v if it is one product by a matrix that may be joined with others.
func (b *Builder) findJointNode(v uint32) {
	bias := b.listTerms(v)
	if len(b.terms) != 1 || b.terms[0].matrix < 0 || bias != NoOffset && !b.plainBias(v, bias) {
		return
	}
	p := b.terms[0]
	switch b.g.Op[p.right] {
	case ops.Parameter, ops.ConstParameter, ops.Reshape, ops.NoBackprop: // where these are others decide
		return
	}
	if int(b.columns(v))*b.r.Plan.Matrices[p.matrix].Cols == b.size(p.right) {
		b.joints.found = append(b.joints.found, jointNode{p, v, bias, 0, b.sameBias(bias)})
	}
}

// sameBias is a number that biases of the same value have in common: nodes of one parameter do.
func (b *Builder) sameBias(bias uint32) uint32 {
	if bias != NoOffset && b.isParameter(bias) {
		return b.g.AttrsOf(bias)[0] << 1
	}
	return bias<<1 | 1
}

// findHeights finds the heights of the nodes.
func (b *Builder) findHeights() {
	b.joints.heights = memory.Resize(b.joints.heights, int(b.end))
	heights := b.joints.heights
	clear(heights)
	for v := int(b.end) - 1; v >= int(b.first); v-- {
		if !b.need[v] {
			continue
		}
		args := b.g.ArgsOf(uint32(v))
		if b.multipliesParameter(b.g.Op[v], args) {
			heights[v]++
		}
		for _, a := range args {
			heights[a] = max(heights[a], heights[v])
		}
	}
}

// multipliesParameter reports whether an operation is a product with a parameter on its left.
func (b *Builder) multipliesParameter(op ops.Code, args []uint32) bool {
	for k := range args {
		if isLeftOf(op, k) && b.isParameter(args[k]) {
			return true
		}
	}
	return false
}

// makeJoint makes one product of those of several nodes. Ones whose operand or result has a place elsewhere are left
// out.
func (b *Builder) makeJoint(list []jointNode) {
	x, m := &b.joints, &b.r.Plan.Matrices[list[0].matrix]
	x.begin(int(b.end))
	results := b.inARow(list, false)
	if !results {
		list = b.withoutPlace(list)
	}
	operands := b.inARow(list, true)
	if !operands {
		list = b.seatOperands(list)
	}
	formed := b.joinable(list) && (!results || b.inARow(list, false))
	if !operands {
		b.settleOperands(list, formed)
	}
	if !formed {
		return
	}
	j := joint{term: list[0].term, bias: list[0].bias, waiting: len(list), columns: b.columnsOf(list)}
	y, at := uint32(NoOffset), len(x.nodes)
	if !results {
		y = b.Alloc(int(j.columns) * m.Rows)
	}
	for i := range list {
		v := list[i].node
		if x.nodes, x.of[v] = append(x.nodes, v), int32(len(x.products)); !results {
			x.seats[v] = y
			y += uint32(b.size(v))
		}
	}
	j.nodes = x.nodes[at:]
	x.products = append(x.products, j)
}

// begin prepares what is known of each of n nodes.
func (x *jointMemory) begin(n int) {
	if x.begun {
		return
	}
	x.begun = true
	x.seats, x.of = memory.Resize(x.seats, n), memory.Resize(x.of, n)
	for v := range n {
		x.seats[v], x.of[v] = NoOffset, -1
	}
}

// columnsOf is how many columns nodes have in all.
func (b *Builder) columnsOf(list []jointNode) (n uint32) {
	for i := range list {
		n += b.columns(list[i].node)
	}
	return n
}

// inARow reports whether the nodes' operands, or results, have places already, one after the other: another product's.
func (b *Builder) inARow(list []jointNode, operands bool) bool {
	at := uint32(NoOffset)
	for i := range list {
		v := list[i].node
		if operands {
			v = list[i].right
		}
		x := b.joints.seats[v]
		if x == NoOffset || i > 0 && x != at {
			return false
		}
		at = x + uint32(b.size(v))
	}
	return len(list) > 0
}

// withoutPlace returns the nodes whose results have none.
func (b *Builder) withoutPlace(list []jointNode) []jointNode {
	n := 0
	for i := range list {
		if b.joints.seats[list[i].node] == NoOffset {
			list[n] = list[i]
			n++
		}
	}
	return list[:n]
}

// seatOperands gives the operands places one after the other, counted from 0, and returns the nodes whose operand had
// none.
func (b *Builder) seatOperands(list []jointNode) []jointNode {
	at, n := uint32(0), 0
	for i := range list {
		if seat := &b.joints.seats[list[i].right]; *seat == NoOffset {
			*seat, list[n] = at, list[i]
			at += uint32(b.size(list[n].right))
			n++
		}
	}
	return list[:n]
}

// settleOperands counts the operands' places from where there is memory for them, or takes them back.
func (b *Builder) settleOperands(list []jointNode, formed bool) {
	at := uint32(0)
	if formed {
		n := 0
		for i := range list {
			n += b.size(list[i].right)
		}
		at = b.Alloc(n)
	}
	for i := range list {
		if x := &b.joints.seats[list[i].right]; formed {
			*x += at
		} else {
			*x = NoOffset
		}
	}
}

// seatArgument gives the place of node h to its argument, if h is a function that is applied to that one's sums as they are
// stored. If it is not applied there, it is applied in place: nobody else reads the argument.
func (b *Builder) seatArgument(h uint32) {
	if !unaryRules[b.g.Op[h]].ok {
		return
	}
	a := b.g.ArgsOf(h)[0]
	if op := b.g.Op[a]; op != ops.AffineTransform && op != ops.MatrixMultiply || b.joints.seats[a] != NoOffset {
		return
	}
	if f, ok := b.functionOf(a); ok && f == h {
		b.joints.seats[a] = b.joints.seats[h]
	}
}
