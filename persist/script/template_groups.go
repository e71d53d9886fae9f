package script

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// Groups of a template. Forward, what depends on no slot is a group: words are looked up and multiplied at once, however long
// the chain of cells is that reads them. What is done backward waits for the gradients of some outputs: a loss's for that of the loss, a
// recurrent cell's for those of the next cell, too. What depends on the same ones is a group, and each group of an instance
// has a level of its own. So all losses of a sequence are differentiated at once, although their cells are a chain.
//
// Levels in a template are the same in all groups. A group depends on all that the groups depend on that it reads from, so
// its level is never before theirs, and what is formed in a level of the template is there in the next one.

// cellGroup is the clusters and products that depend on the same gradients of outputs or, forward, on any slot or none.
type cellGroup struct {
	depends uint64 // bits of exits, as bitOf says; forward: of slots
	depth   int32  // how many levels of the template there are up to its last
}

// bitOf is the bit that stands for an exit: the last one for all that there are no more bits for.
func bitOf(exit int) int { return min(exit, 63) }

// touch is a use, in a level, of a slot or exit, or of a vector that the part forms: by a cluster, a product or, backward, what
// another instance reads, in this order.
type touch struct{ level, by, vector int32 }

// collectGroups finds the groups of both parts.
func (l *cellLowering) collectGroups() {
	forward, backward := l.dependsOn(0, l.c.template.Slots), l.dependsOn(1, len(l.c.wantedAt))
	for i := range forward {
		if forward[i] != 0 || !l.joins || l.r.Plan.CPU {
			forward[i] = math.MaxUint64
		}
	}
	if !l.relieves(backward) {
		for i := range backward {
			backward[i] = math.MaxUint64
		}
	}
	l.assignGroups(0, forward)
	l.assignSources(l.assignGroups(1, backward))
	l.groupOutputs()
}

// dependsOn is what each cluster, product and source of a part depends on: which slots, or exits, of which there are so many.
func (l *cellLowering) dependsOn(part, shared int) []uint64 {
	c := l.c
	list := l.listTouches(part, int32(shared))
	depends := make([]uint64, len(c.clusters[part])+len(c.matrices[part])+part*l.countSources())
	held := make([]uint64, shared+len(c.tensors)) // by vector: what those depend on that have touched it so far
	for e := range shared {
		held[e] = 1 << bitOf(e)
	}
	for len(list) > 0 {
		n := sort.Search(len(list), func(i int) bool { return list[i].level > list[0].level })
		for _, x := range list[:n] {
			depends[x.by] |= held[x.vector]
		}
		for _, x := range list[:n] {
			held[x.vector] |= depends[x.by]
		}
		list = list[n:]
	}
	return depends
}

// relieves reports whether groups make a chain of instances faster. They do if operations that wait for less have a cluster as
// costly as those that wait for all. A cheaper cluster fits beside the others of each level. In a level of its own it may
// overload the few processors that hold its matrix.
func (l *cellLowering) relieves(depends []uint64) bool {
	clusters, all := l.c.clusters[1], uint64(0)
	for i := range clusters {
		all |= depends[i]
	}
	less, most := int32(0), int32(0)
	for i := range clusters {
		if depends[i] == all {
			most = max(most, clusters[i].cost)
		} else {
			less = max(less, clusters[i].cost)
		}
	}
	return less >= most
}

// assignGroups gives the clusters and products of a part their groups, and returns what the rest depends on.
func (l *cellLowering) assignGroups(part int, depends []uint64) []uint64 {
	c := l.c
	for i := range c.clusters[part] {
		x := &c.clusters[part][i]
		x.group, depends = c.groupOf(part, depends[0], x.level), depends[1:]
	}
	for i := range c.matrices[part] {
		x := &c.matrices[part][i]
		x.group, depends = c.groupOf(part, depends[0], x.level), depends[1:]
	}
	return depends
}

// groupOf is the group of what depends on these slots or exits and is done in a level.
func (c *loweredCell) groupOf(part int, depends uint64, level int32) int32 {
	g := slices.IndexFunc(c.groups[part], func(x cellGroup) bool { return x.depends == depends })
	if g < 0 {
		g = len(c.groups[part])
		c.groups[part] = append(c.groups[part], cellGroup{depends: depends})
	}
	c.groups[part][g].depth = max(c.groups[part][g].depth, level+1)
	return int32(g)
}

// assignSources gives what is left for slots its group.
func (l *cellLowering) assignSources(depends []uint64) {
	c := l.c
	for _, list := range c.sources {
		for i := range list {
			if x := &list[i]; x.in >= 0 {
				x.group = c.clusters[1][x.in].group
			} else {
				x.group = c.groupOf(1, depends[0], -1)
			}
			depends = depends[1:]
		}
	}
}

// groupOutputs finds the groups that form the outputs. What has to do with an output that several clusters form is one group.
func (l *cellLowering) groupOutputs() {
	c := l.c
	c.formedBy = make([]int32, len(c.outs))
	for i, k := range c.outs {
		see := func(w word, group int32) {
			if w.entry == atBase && w.add-c.value[k] < uint32(c.template.Nodes[k].Dim.Size()) && c.groups[0][group].depends != 0 {
				c.formedBy[i] = group
			}
		}
		if in := c.formedIn[i]; in >= 0 {
			c.formedBy[i] = c.clusters[0][in].group
			continue
		}
		for _, x := range c.items[0] {
			for _, w := range c.words[x.first : x.first+x.count] {
				see(w, c.clusters[0][x.cluster].group)
			}
		}
		for j := range c.matrices[0] {
			see(c.matrices[0][j].words[0], c.matrices[0][j].group)
		}
	}
}

// countSources is how many gradients the template leaves for its slots.
func (l *cellLowering) countSources() (n int) {
	for _, list := range l.c.sources {
		n += len(list)
	}
	return n
}

// listTouches lists, by levels, who uses which slot or exit, of which there are so many, or which of the instance's own vectors
// that the part forms.
func (l *cellLowering) listTouches(part int, shared int32) (list []touch) {
	c := l.c
	first, end := uint32(atSlots), c.atExits()
	if part == 1 {
		first, end = end, c.atParams()
	}
	add := func(w word, level, by int32) {
		if w.entry >= c.atPicks() {
			w.entry = c.picks[w.entry-c.atPicks()].entry
		}
		switch {
		case w.entry >= first && w.entry < end:
			list = append(list, touch{level, by, int32(w.entry - first)})
		case w.entry == atBase && (w.add >= l.gradients) == (part == 1):
			k := sort.Search(len(c.tensors), func(i int) bool { return c.tensors[i].at > w.add }) - 1
			list = append(list, touch{level, by, shared + int32(k)})
		}
	}
	for i := range c.items[part] {
		x := &c.items[part][i]
		for _, w := range c.words[x.first : x.first+x.count] {
			add(w, c.clusters[part][x.cluster].level, x.cluster)
		}
	}
	by := int32(len(c.clusters[part]))
	for i := range c.matrices[part] {
		for _, w := range c.matrices[part][i].words {
			add(w, c.matrices[part][i].level, by)
		}
		by++
	}
	for i := 0; part == 1 && i < len(c.sources); i++ {
		for j := range c.sources[i] {
			add(c.sources[i][j].word, c.sources[i][j].ready, by)
			by++
		}
	}
	slices.SortStableFunc(list, func(x, y touch) int { return cmp.Compare(x.level, y.level) })
	return list
}
