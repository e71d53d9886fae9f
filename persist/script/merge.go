package script

// Common subexpressions. Sentences of a batch have words in common, and so have the sentences themselves: nodes of the same operation
// over the same operands, of which one is enough. The gradient that comes back to it is the sum of those of all. What the
// nodes left over are is found in one walk; a graph of them is made only if it is noticeably smaller, and lowered instead. In it
// those that all operands of are shared by the sentences come first, so that they are shared, too.

import (
	"slices"

	"libvpps/bridge"
	"libvpps/bridge/ops"
)

// merger is the memory of merging.
type merger struct {
	request Request // with the merged graph
	graph   bridge.Graph
	state   State
	origin  []uint32 // by node of the merged graph: that of the request's
	shared  uint32   // so many nodes at its beginning belong to no sentence

	need   []bool   // the last node depends on it
	passes []bool   // a gradient comes back to it
	same   []uint32 // the first node that is equal; then, of these, their number in the merged graph
	twice  []bool   // others are equal to it
	first  []uint32 // by the last operand, or a hash of leaves: the latest node that has it
	next   []uint32 // the one before
}

const (
	leafLists = 1 << 10 // lists of nodes without operands
	mostTried = 16      // nodes of a list that are compared
	fewerBy   = 16      // a merged graph has at most 1-1/fewerBy of the nodes

	tellingNodes = 1000 // so many are enough to tell that there is too little
)

// mergeable reports whether a request is one to train with all nodes of a graph of some size, of which nobody asks for anything but the
// loss, on a device that takes longer for a node than this does: a GPU waits for its scripts.
func mergeable(r *Request) bool {
	return r.Backward && !r.Apart && divisible(r) && r.Plan.CPU
}

// merge is the request for the merged graph, nil: there is too little to merge.
func (m *merger) merge(r *Request) *Request {
	g, n := r.Graph, r.Node+1
	if some := n / 4; some >= tellingNodes && m.findEqual(g, some, nil)*2*fewerBy < int(some) {
		return nil
	}
	m.mark(g, n)
	if equal := m.findEqual(g, n, m.passes); equal*fewerBy < int(n) {
		return nil
	}
	m.number(g, n)
	m.copyNodes(g)
	m.state.Truncate(0)
	m.request = *r
	m.request.Graph, m.request.State, m.request.Node = &m.graph, &m.state, uint32(m.graph.Len()-1)
	return &m.request
}

// mark marks what the last node depends on.
func (m *merger) mark(g *bridge.Graph, n uint32) {
	m.need, m.passes = resize(m.need, int(n)), resize(m.passes, int(n))
	clear(m.need)
	clear(m.passes)
	m.need[n-1], m.passes[n-1] = true, true
	for v := n; v > 0; {
		if v--; !m.need[v] {
			continue
		}
		passes := m.passes[v] && g.Op[v] != ops.NoBackprop
		for _, a := range g.ArgsOf(v) {
			m.need[a] = true
			m.passes[a] = m.passes[a] || passes
		}
	}
}

// findEqual finds for every node before the last of n the first that is equal to it, and returns how many have one. Others than
// those that pass a gradient back are left alone; nil: all do.
func (m *merger) findEqual(g *bridge.Graph, n uint32, passes []bool) (equal int) {
	m.same, m.twice, m.next = resize(m.same, int(n)), resize(m.twice, int(n)), resize(m.next, int(n))
	m.first = resize(m.first, int(n)+leafLists)
	clear(m.twice)
	for i := range m.first {
		m.first[i] = NoOffset
	}
	for v := range max(n, 1) - 1 {
		m.same[v] = v
		if passes != nil && !passes[v] || draws(g.Op[v]) {
			continue
		}
		list := &m.first[m.listOf(g, v, n)]
		u := *list
		for k := 0; u != NoOffset && k < mostTried && !m.equal(g, u, v); k++ {
			u = m.next[u]
			if k == mostTried-1 {
				u = NoOffset
			}
		}
		if u != NoOffset {
			m.same[v], m.twice[u] = u, true
			equal++
			continue
		}
		m.next[v], *list = *list, v
	}
	if n > 0 {
		m.same[n-1] = n - 1
	}
	return equal
}

// draws reports whether every node of an operation has numbers of its own.
func draws(op ops.Code) bool {
	switch op {
	case ops.RandomNormal, ops.RandomBernoulli, ops.RandomUniform, ops.Dropout, ops.GaussianNoise:
		return true
	}
	return false
}

// listOf is the list that nodes equal to v are in.
func (m *merger) listOf(g *bridge.Graph, v, n uint32) uint32 {
	args := g.ArgsOf(v)
	if len(args) == 0 {
		return n + g.Hash(v)%leafLists
	}
	last := uint32(0)
	for _, a := range args {
		last = max(last, m.same[a])
	}
	return last
}

// equal reports whether two nodes have the same value.
func (m *merger) equal(g *bridge.Graph, u, v uint32) bool {
	if g.Op[u] != g.Op[v] {
		return false
	}
	x, y := g.ArgsOf(u), g.ArgsOf(v)
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if m.same[x[i]] != m.same[y[i]] {
			return false
		}
	}
	return g.Alike(u, v)
}

// number gives the nodes that are left their numbers: first the parameters and constants before all sentences and what there is several
// times of these alone, then the others in order.
func (m *merger) number(g *bridge.Graph, n uint32) {
	m.origin = m.origin[:0]
	front := leavesOfAll(g, n-1)
	place := m.next // nobody needs the lists any more
	for v := range n {
		place[v] = NoOffset
		if m.need[v] && m.same[v] == v && (v < front || m.twice[v] && m.placed(g, v)) {
			place[v] = uint32(len(m.origin))
			m.origin = append(m.origin, v)
		}
	}
	m.shared = uint32(len(m.origin))
	for v := range n {
		switch {
		case !m.need[v]:
		case m.same[v] != v:
			m.same[v] = m.same[m.same[v]]
			continue
		case place[v] == NoOffset:
			place[v] = uint32(len(m.origin))
			m.origin = append(m.origin, v)
		}
		m.same[v] = place[v]
	}
}

// placed reports whether all operands of v have a number.
func (m *merger) placed(g *bridge.Graph, v uint32) bool {
	for _, a := range g.ArgsOf(v) {
		if m.next[m.same[a]] == NoOffset {
			return false
		}
	}
	return true
}

// copyNodes makes the merged graph.
func (m *merger) copyNodes(g *bridge.Graph) {
	to := &m.graph
	to.Reset()
	to.Dims, to.Inputs = g.Dims, g.Inputs
	to.Op, to.Dim = slices.Grow(to.Op, len(m.origin)), slices.Grow(to.Dim, len(m.origin))
	to.ArgStart, to.AttrStart = append(to.ArgStart[:0], 0), append(to.AttrStart[:0], 0)
	to.Args, to.Attrs = to.Args[:0], to.Attrs[:0]
	for _, v := range m.origin {
		to.Op, to.Dim = append(to.Op, g.Op[v]), append(to.Dim, g.Dim[v])
		for _, a := range g.ArgsOf(v) {
			to.Args = append(to.Args, m.same[a])
		}
		to.Attrs = append(to.Attrs, g.AttrsOf(v)...)
		to.ArgStart, to.AttrStart = append(to.ArgStart, uint32(len(to.Args))), append(to.AttrStart, uint32(len(to.Attrs)))
	}
}
