package script

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// Groups of a template. What is done backward waits for the gradients of some outputs: a loss's for that of the loss, a
// recurrent cell's for those of the next cell, too. What depends on the same ones is a group, and each group of an instance
// has a level of its own. So all losses of a sequence are differentiated at once, although their cells are a chain.
//
// Levels in a template are the same in all groups. A group depends on all that the groups depend on that it reads from, so
// its level is never before theirs, and what is formed in a level of the template is there in the next one.

// cellGroup is the clusters and products that depend on the same gradients of outputs.
type cellGroup struct {
	exits uint64 // bits, as bitOf says
	depth int32  // how many levels of the template there are up to its last
}

// bitOf is the bit that stands for an exit: the last one for all that there are no more bits for.
func bitOf(exit int) int { return min(exit, 63) }

// touch is a use, in a level, of a vector of gradients: by a cluster, a product or what another instance reads, in this order.
type touch struct{ level, by, vector int32 }

// collectGroups finds the groups of both parts.
func (l *cellLowering) collectGroups() {
	c := l.c
	list := l.listTouches()
	depends := make([]uint64, len(c.clusters[1])+len(c.matrices[1])+l.countSources())
	// By exit and vector: what those depend on that have touched it so far.
	held := make([]uint64, len(c.wantedAt)+len(c.tensors))
	for e := range c.wantedAt {
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
	if !l.relieves(depends) {
		for i := range depends {
			depends[i] = math.MaxUint64
		}
	}
	l.assignGroups(depends)
}

// relieves reports whether groups make a chain of instances faster: what waits for less has a cluster as costly as what waits
// for all. Otherwise its work fits beside the rest, level by level. All at once it may overload the few processors that hold its
// matrix.
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

// assignGroups gives all of the template its group.
func (l *cellLowering) assignGroups(depends []uint64) {
	c := l.c
	c.groups[0] = []cellGroup{{}}
	within := func(k int, exits uint64, level int32) int32 {
		g := slices.IndexFunc(c.groups[k], func(x cellGroup) bool { return x.exits == exits })
		if g < 0 {
			g = len(c.groups[k])
			c.groups[k] = append(c.groups[k], cellGroup{exits: exits})
		}
		c.groups[k][g].depth = max(c.groups[k][g].depth, level+1)
		return int32(g)
	}
	for i := range c.clusters[0] {
		within(0, 0, c.clusters[0][i].level)
	}
	for i := range c.matrices[0] {
		within(0, 0, c.matrices[0][i].level)
	}
	for i := range c.clusters[1] {
		x := &c.clusters[1][i]
		x.group, depends = within(1, depends[0], x.level), depends[1:]
	}
	for i := range c.matrices[1] {
		x := &c.matrices[1][i]
		x.group, depends = within(1, depends[0], x.level), depends[1:]
	}
	for _, list := range c.sources {
		for i := range list {
			if x := &list[i]; x.in >= 0 {
				x.group = c.clusters[1][x.in].group
			} else {
				x.group = within(1, depends[0], -1)
			}
			depends = depends[1:]
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

// listTouches lists, by levels, who uses which exit's vector or which of the instance's own that the backward part forms.
func (l *cellLowering) listTouches() (list []touch) {
	c := l.c
	add := func(w word, level, by int32) {
		if w.entry >= c.atPicks() {
			w.entry = c.picks[w.entry-c.atPicks()].entry
		}
		switch {
		case w.entry >= c.atExits() && w.entry < c.atParams():
			list = append(list, touch{level, by, int32(w.entry - c.atExits())})
		case w.entry == atBase && w.add >= l.gradients:
			k := sort.Search(len(c.tensors), func(i int) bool { return c.tensors[i].at > w.add }) - 1
			list = append(list, touch{level, by, int32(len(c.wantedAt) + k)})
		}
	}
	for i := range c.items[1] {
		x := &c.items[1][i]
		for _, w := range c.words[x.first : x.first+x.count] {
			add(w, c.clusters[1][x.cluster].level, x.cluster)
		}
	}
	by := int32(len(c.clusters[1]))
	for i := range c.matrices[1] {
		for _, w := range c.matrices[1][i].words {
			add(w, c.matrices[1][i].level, by)
		}
		by++
	}
	for _, sources := range c.sources {
		for i := range sources {
			add(sources[i].word, sources[i].ready, by)
			by++
		}
	}
	slices.SortStableFunc(list, func(x, y touch) int { return cmp.Compare(x.level, y.level) })
	return list
}
