package script

import (
	"math"
	"slices"

	"libvpps/bridge/cells"
	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/schedule"
)

// Joining instances. A cluster that reads what others of its level form becomes one with them, as among nodes: then no
// barrier is between. So a chain of small cells is as deep as its products are, wherever the templates begin and end.

// joinsInstances reports whether clusters of instances become one. A processor that is alone does not wait for any.
func (b *Builder) joinsInstances() bool { return b.r.Plan.Processors > 1 }

// joinedTo is a cluster of an instance that becomes one with another cluster, and its first order there.
type joinedTo struct{ cluster, other, sub int32 }

// formedBy says when a value is there, and which cluster forms it last in which order; -1: a product does.
type formedBy struct{ ready, cluster, sub int32 }

// levelForward gives an instance its level, and finds which of its clusters join others.
func (b *Builder) levelForward(x *cells.Instance, y *present) {
	m, c := &b.cells, y.lowered
	args := m.argsOf(x)
	m.joined = m.joined[:0]
	for k, a := range args {
		need := c.need[k]
		if b.joinsInstances() {
			need = c.products[k]
		}
		if need >= 0 && a.instance != earlier {
			y.level = max(y.level, m.outputOf(a).ready-need)
		}
	}
	if !b.joinsInstances() {
		return
	}
	for _, r := range c.reads {
		if a := args[r.slot]; a.instance != earlier {
			y.level = max(y.level, m.outputOf(a).inCluster()-c.clusters[0][r.cluster].level)
		}
	}
	for _, r := range c.reads {
		if a := args[r.slot]; a.instance != earlier {
			m.meets(b, m.outputOf(a), r.cluster, y.level+c.clusters[0][r.cluster].level)
		}
	}
	if !b.canJoin(c.clusters[0], clusterCost) {
		y.level++
	}
}

// orderProductsOf has products that are added up begin with the slots that are there first: those of other slots are a level
// later anyway.
func (b *Builder) orderProductsOf(x *cells.Instance, y *present) (err error) {
	m, c := &b.cells, y.lowered
	if len(c.added) < 2 {
		return nil
	}
	last, early := int32(0), uint64(0)
	ready := func(k int32) int32 {
		if a := m.argsOf(x)[k]; a.instance != earlier {
			return m.outputOf(a).ready
		}
		return 0
	}
	for _, k := range c.added {
		last = max(last, ready(k))
	}
	for _, k := range c.added {
		if ready(k) < last {
			early |= 1 << k
		}
	}
	if early != 0 {
		y.lowered, err = b.loweredFor(y, x, early)
	}
	return err
}

// outputOf is the output that a slot reads.
func (m *cellMemory) outputOf(a slotValue) *formedBy {
	return &m.outputAt(&m.list[a.instance], a.node).formedBy
}

// inCluster is the first level in which a cluster may read a value: that of the cluster that forms it, which it joins.
func (f *formedBy) inCluster() int32 {
	if f.cluster >= 0 {
		return f.ready - 1
	}
	return f.ready
}

// meets notes that a cluster of an instance, in a level, joins the cluster that forms a value, if that is in the same one.
func (m *cellMemory) meets(b *Builder, f *formedBy, cluster, level int32) {
	if f.cluster >= 0 && f.ready-1 == level {
		m.joined = append(m.joined, joinedTo{cluster, b.Find(f.cluster), f.sub + 1})
	}
}

// backwardCost bounds the clusters of a backward part: they are those of the forward part, with all sums.
const backwardCost = 4 * clusterCost

// canJoin reports whether what is to join costs one processor at most so much; if not, nothing joins.
func (b *Builder) canJoin(list []cellCluster, most int32) bool {
	m := &b.cells
	for i, j := range m.joined {
		if slices.ContainsFunc(m.joined[:i], func(o joinedTo) bool { return o.cluster == j.cluster }) {
			continue // counted
		}
		cost, kind := list[j.cluster].cost, list[j.cluster].kind
		for k, o := range m.joined {
			if o.cluster != j.cluster || slices.ContainsFunc(m.joined[:k], func(p joinedTo) bool { return p.cluster == o.cluster && p.other == o.other }) {
				continue
			}
			kind |= b.Clusters[o.other].Kind
			if cost += b.Clusters[o.other].Cost; cost > most || kind&^schedule.Fused != 0 { // soon, where many join
				m.joined = m.joined[:0]
				return false
			}
		}
	}
	return true
}

// joinClusters joins the clusters of an instance, the first of which is given, to others. m.shifts is by how much the order
// of their items moves.
func (b *Builder) joinClusters(first int32, n int) {
	m := &b.cells
	m.shifts = memory.Resize(m.shifts, n)
	clear(m.shifts)
	for _, j := range m.joined {
		m.shifts[j.cluster] = max(m.shifts[j.cluster], j.sub)
		b.Clusters[b.Union(first+j.cluster, j.other)].Kind &^= schedule.Fused
	}
}

// placeOutputs notes when an instance's outputs are there, and in which clusters. The first of these is given.
func (b *Builder) placeOutputs(y *present, first int32) {
	m, c := &b.cells, y.lowered
	for i, k := range c.outs {
		f := &m.outputAt(y, k).formedBy
		*f = formedBy{m.levels[c.formedBy[i]] + c.ready[i], -1, 0}
		if in := c.formedIn[i]; in >= 0 && b.joinsInstances() {
			f.cluster, f.sub = first+in, c.clusters[0][in].top+m.shifts[in]
		}
	}
}

// levelBackward fills in where the gradients of an instance's outputs are, finds the levels of its backward groups, from
// start on, and which of its clusters join others. Sums that the instance's own clusters form are left in m.sums.
func (b *Builder) levelBackward(y *present, start int32) {
	m, c := &b.cells, y.lowered
	m.levels = memory.Extend(m.levels[:0], len(c.groups[1]), start)
	m.apart = memory.Resize(m.apart, len(c.wantedAt))
	m.exits, m.sums, m.summed, m.joined = memory.Resize(m.exits, len(c.wantedAt)), m.sums[:0], m.summed[:0], m.joined[:0]
	for e, k := range c.exits {
		m.apart[e] = c.sumIn[e] < 0
		o := m.outputAt(y, k)
		from, last := len(m.summed), b.returnedTo(o)
		list := m.summed[from:]
		at := list[0].At
		if len(list) == 1 && list[0].Count == 1 && c.derivatives[e].fn == isa.Copy {
			m.summed = m.summed[:from]
		} else {
			at = b.Alloc(c.template.Nodes[k].Dim.Size())
			v := m.table[atStart] + k
			m.apart[e] = m.apart[e] || b.isWide(v, b.workOfSum(v, m.summed[from:]))
			if x := (exitSum{e, at, from, len(m.summed)}); !m.apart[e] {
				m.sums = append(m.sums, x)
			} else {
				last = b.sumApart(y, &x, o, last.ready)
			}
		}
		m.table[c.atExits()+uint32(e)], m.exits[e] = at, last
		if c.wantedAt[e] == 1<<30 {
			continue
		}
		ready := last.ready
		if b.joinsInstances() && !m.apart[e] {
			ready = start
			for k := o.first; k != 0; k = m.returned[k].next {
				ready = max(ready, m.returned[k].inCluster())
			}
		}
		c.waitFor(e, ready, m.levels)
	}
	b.joinBackward(y)
}

// waitFor has no group that depends on an exit read it before it is ready.
func (c *loweredCell) waitFor(e int, ready int32, levels []int32) {
	for g := range c.groups[1] {
		if c.groups[1][g].depends>>bitOf(e)&1 != 0 {
			levels[g] = max(levels[g], ready-c.wantedAt[e])
		}
	}
}

// sumApart adds a sum to a cluster of its own, which joins those that form what it sums up; else all is there in a level.
func (b *Builder) sumApart(y *present, x *exitSum, o *output, ready int32) formedBy {
	m, c := &b.cells, y.lowered
	level, sub := int32(0), int32(0)
	for k := o.first; k != 0 && b.joinsInstances(); k = m.returned[k].next {
		level = max(level, m.returned[k].inCluster())
	}
	v := m.table[atStart] + c.exits[x.exit]
	if work := b.workOfSum(v, m.summed[x.first:x.end]); b.isWide(v, work) {
		from := len(b.Items)
		b.sumExit(y, x, b.newWide(ready, v, work), 0)
		b.dealOut(v, from, x.at)
		return formedBy{ready + 1, -1, 0}
	}
	own := b.NewCluster(ready)
	if b.joinsInstances() && level < ready {
		m.joined = m.joined[:0]
		for k := o.first; k != 0; k = m.returned[k].next {
			m.meets(b, &m.returned[k].formedBy, 0, level)
		}
		if b.canJoin([]cellCluster{{}}, backwardCost) {
			ready, b.Clusters[own].Level = level, level
			for _, j := range m.joined {
				sub = max(sub, j.sub)
				b.Clusters[b.Union(own, j.other)].Kind &^= schedule.Fused
			}
		}
		m.joined = m.joined[:0]
	}
	return formedBy{ready + 1, own, b.sumExit(y, x, own, sub) - 1}
}

// workOfSum estimates the work of a sum as large as node v.
func (b *Builder) workOfSum(v uint32, list []schedule.Source) int {
	n := uint32(0)
	for i := range list {
		n += list[i].Count
	}
	return b.size(v) * int(n)
}

// joinBackward finds which clusters of an instance, whose groups have levels, join those that form the gradients of its
// outputs.
func (b *Builder) joinBackward(y *present) {
	m, c := &b.cells, y.lowered
	if !b.joinsInstances() {
		return
	}
	for e, k := range c.exits {
		if m.apart[e] {
			continue
		}
		o, in := m.outputAt(y, k), c.sumIn[e]
		for k := o.first; k != 0; k = m.returned[k].next {
			m.meets(b, &m.returned[k].formedBy, in, m.levels[c.clusters[1][in].group]+c.wantedAt[e])
		}
	}
	if b.canJoin(c.clusters[1], backwardCost) {
		return
	}
	for e, k := range c.exits {
		if m.apart[e] {
			continue
		}
		for k := m.outputAt(y, k).first; k != 0; k = m.returned[k].next {
			c.waitFor(e, m.returned[k].ready, m.levels)
		}
	}
}

// returnedTo appends an output's gradients to m.summed, and returns the one that is there last.
func (b *Builder) returnedTo(o *output) (last formedBy) {
	m := &b.cells
	last.ready = math.MinInt32
	for k := o.first; k != 0; k = m.returned[k].next {
		s := &m.returned[k]
		m.summed = append(m.summed, s.Source)
		if s.ready > last.ready {
			last = s.formedBy
		}
	}
	return last
}

// exitSum is a sum of m.summed[first:end], which is the gradient of an output.
type exitSum struct {
	exit       int
	at         uint32
	first, end int
}

// sumExit adds the items of a sum to a cluster, and returns the next free order.
func (b *Builder) sumExit(y *present, x *exitSum, cluster, sub int32) int32 {
	m, c := &b.cells, y.lowered
	b.linear = append(b.linear[:0], m.summed[x.first:x.end]...)
	list, k := b.inOrder(b.linear), c.exits[x.exit]
	n, dst, d := c.template.Nodes[k].Dim.Size(), schedule.At(isa.SegAct, x.at), &c.derivatives[x.exit]
	b.attribute(isa.InBackward, m.table[atStart]+k)
	defer b.attribute(isa.InBackward, nobody)
	if d.fn == isa.Copy {
		return b.SumItems(cluster, sub, 0, dst, isa.SegAct, 1, n, list)
	}
	value := schedule.At(isa.SegAct, m.table[d.y.entry]+d.y.add)
	if runs, ok := b.SumOfRuns(list); ok {
		b.Sum(cluster, sub, schedule.FirstWord(isa.Sum, uint8(d.fn), 0), dst, isa.SegAct, 1, n, b.SumList, runs, value)
		return sub + 1
	}
	from := schedule.At(isa.SegAct, list[0].At)
	if len(list) > 1 || list[0].Count > 1 {
		sub, from = b.SumItems(cluster, sub, 0, dst, isa.SegAct, 1, n, list), dst
	}
	b.Map2(cluster, sub, d.fn, 0, d.p, n, dst, from, value)
	return sub + 1
}

// sumExits adds the sums that an instance's clusters, the first of which is given, begin with; m.shifts grows by their
// orders.
func (b *Builder) sumExits(y *present, first int32) {
	m, c := &b.cells, y.lowered
	for i := range m.sums {
		x := &m.sums[i]
		in := c.sumIn[x.exit]
		b.Clusters[b.Find(first+in)].Kind &^= schedule.Fused
		m.ends = append(m.ends[:i], b.sumExit(y, x, first+in, m.shifts[in]))
	}
	for i := range m.sums {
		e := m.sums[i].exit
		in := c.sumIn[e]
		m.shifts[in] = max(m.shifts[in], m.ends[i])
		m.exits[e] = formedBy{m.levels[c.clusters[1][in].group] + c.wantedAt[e] + 1, first + in, m.ends[i] - 1}
	}
}
