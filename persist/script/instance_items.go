package script

// The items of an instance: those of its template, with the addresses that the instance's table has.

import (
	"fmt"
	"slices"

	"libvpps/bridge/cells"
	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/schedule"
)

// fillTable fills in an instance's table but for the gradients of its outputs.
func (b *Builder) fillTable(x *cells.Instance, y *present) error {
	m, p, c := &b.cells, b.r.Cells, y.lowered
	m.table = memory.Resize(m.table, c.tableSize())
	t := m.table
	t[atNowhere], t[atBase], t[atStart] = 0, y.base, x.Start
	for k, a := range m.argsOf(x) {
		if v := p.SlotsOf(x)[k]; c.part != bothParts {
			if t[atSlots+k] = b.s.Value[v]; b.s.Segment[v] != isa.SegAct {
				return fmt.Errorf("node %d is in segment %d", v, b.s.Segment[v])
			}
		} else if c.need[k] >= 0 {
			z := &m.list[a.instance]
			t[atSlots+k] = z.base + z.lowered.value[a.node]
		}
	}
	at := c.atParams()
	for i := range c.params {
		t[at] = b.s.Value[m.params.node[c.params[i].id].node]
		at++
	}
	constants := p.ConstantsOf(x)
	copy(t[at:], constants)
	at = c.atInputs()
	for i := range c.inputs {
		in := &c.inputs[i]
		w := b.g.Inputs[constants[in.constant]+in.add]
		if in.table >= 0 {
			q := &b.r.Params[in.table]
			if w >= q.Size/q.Row {
				return fault(x.Start+in.node, x.Template.Nodes[in.node].Op, "row %d of a table of %d rows", w, q.Size/q.Row)
			}
			w = q.Offset + w*q.Row
		} else if w >= in.bound {
			return fault(x.Start+in.node, x.Template.Nodes[in.node].Op, "label %d of %d classes", w, in.bound)
		}
		t[at] = w
		at++
	}
	defer c.fillPicks(t)
	if c.part == backwardPart {
		n := uint32(len(x.Template.Nodes))
		copy(t[c.atValues():], b.s.Value[x.Start:][:n])
		copy(t[c.atAux():], b.s.Aux[x.Start:][:n])
		for k, seg := range b.s.Segment[x.Start:][:n] {
			if seg != isa.SegAct && !b.isParameter(x.Start+uint32(k)) {
				return fmt.Errorf("node %d is in segment %d", x.Start+uint32(k), seg)
			}
		}
	}
	return nil
}

// signatures gives the signatures of a template their numbers in the present script, for the instance whose table is
// filled in.
func (b *Builder) signatures(c *loweredCell) {
	if c.script == b.scripts {
		for _, i := range c.numbered {
			if s := &c.sigs[i]; s.takeNumbers(b.cells.table) {
				b.intern(s)
			}
		}
		return
	}
	c.script, b.Mixed = b.scripts, b.Mixed || c.mixed
	for i := 1; i < len(c.sigs); i++ {
		s := &c.sigs[i]
		s.takeNumbers(b.cells.table)
		if s.draws {
			s.words[6], s.words[7], s.words[8] = b.r.Seed, b.r.GraphID, b.r.ForwardCount
		}
		if s.factor >= 0 {
			s.words[4] = isa.Float(b.r.Params[s.factor].Factor)
		}
		if s.bias >= 0 {
			s.words[5] = b.s.Value[b.cells.params.node[c.params[s.bias].id].node]
		}
		b.intern(s)
	}
}

// takeNumbers makes numbers in a signature those of an instance's table, and reports whether they were others.
func (s *cellSig) takeNumbers(table []uint32) (others bool) {
	for _, x := range s.numbers {
		others = others || s.words[x.at] != table[x.entry]
		s.words[x.at] = table[x.entry]
	}
	return others
}

// intern gives a template's signature its number in the present script.
func (b *Builder) intern(s *cellSig) { s.number = b.Sigs.Put(s.words, s.cost) }

// addItems adds the items of one part of a lowered template, whose groups' levels are known, and returns the number of its
// first cluster.
func (b *Builder) addItems(y *present, part int) (first int32) {
	m, c := &b.cells, y.lowered
	first = b.addClusters(c.clusters[part])
	for g, level := range m.levels {
		b.MaxLevel = max(b.MaxLevel, level+c.groups[part][g].depth-1)
	}
	b.joinClusters(first, len(c.clusters[part]))
	if part == 1 {
		b.sumExits(y, first)
	}
	t, n := m.table, len(b.Items)
	b.Items = slices.Grow(b.Items, len(c.items[part]))[:n+len(c.items[part])]
	items := b.Items[n:]
	for i := range c.items[part] {
		from, to := &c.items[part][i], &items[i]
		to.Cluster, to.Sub, to.Sig = first+from.cluster, from.sub+m.shifts[from.cluster], c.sigs[from.sig].number
		if !from.pooled {
			for k := range to.Words {
				to.Words[k] = t[from.few[k].entry] + from.few[k].add
			}
			continue
		}
		to.Words = [schedule.FewWords]uint32{uint32(len(b.Pool))}
		for _, w := range c.words[from.first : from.first+from.count] {
			b.Pool = append(b.Pool, t[w.entry]+w.add)
		}
	}
	b.Products = c.appendMatrices(b.Products, c.matrices[part], m.levels, t)
	return first
}

// addClusters adds an instance's clusters, and returns the number of the first one.
func (b *Builder) addClusters(list []cellCluster) (first int32) {
	levels := b.cells.levels
	first = int32(len(b.Clusters))
	b.Clusters = slices.Grow(b.Clusters, len(list))[:int(first)+len(list)]
	to := b.Clusters[first:]
	for i := range list {
		k := &list[i]
		to[i] = schedule.Cluster{Parent: first + int32(i), Level: levels[k.group] + k.level, Cost: k.cost, Items: k.items, Kind: k.kind}
	}
	return first
}

// appendMatrices appends items of matrices whose levels count from their groups', with the addresses of an instance's table.
func (c *loweredCell) appendMatrices(to []schedule.Product, list []cellMatrix, levels []int32, table []uint32) []schedule.Product {
	n := len(to)
	to = slices.Grow(to, len(list))[:n+len(list)]
	for i := range list {
		x, y := &list[i], &to[n+i]
		y.Level, y.Sig = levels[x.group]+x.level, c.sigs[x.sig].number
		y.Words[0], y.Words[1] = table[x.words[0].entry]+x.words[0].add, table[x.words[1].entry]+x.words[1].add
	}
	return to
}
