package script

import (
	"slices"

	"libvpps/persist/isa"
)

// What groups do: the clusters in slices of a level are shared out among the copies of their matrices, and written
// once for all processors of a group.

// groups is the memory of that.
type groups struct {
	sliced      []uint32 // clusters in slices, by level
	slicedStart []uint32 // where in sliced those of a level begin; one more than there are
	groupLoads  []int32  // by level and group
	groupStart  []uint32 // by level and group, where in byGroup theirs begin; one more than there are
	byGroup     []uint32 // clusters in slices
	groupOf     []int32  // by their place in sliced
}

// shareCopies has groups share, where products form their vectors, what is element-wise and waits for nothing, mostly
// copies of embeddings: each processor takes its elements of its group's vectors, with one stream for all.
func (b *Builder) shareCopies() {
	if b.plan.groups == 0 || b.plan.rows > 0 || !b.formsVectors {
		return
	}
	m := &b.writers[0]
	for c := range b.clusters {
		x := &b.clusters[c]
		if x.parent != int32(c) || x.level > 0 || x.cost == 0 {
			continue
		}
		if m.items = b.appendItemsOf(m.items[:0], uint32(c)); !slices.ContainsFunc(m.items, b.isDependent) {
			x.kind = sliced
		}
	}
}

// isDependent reports whether an item is not element-wise, waits for another one of its cluster, or is shorter than the
// group.
func (b *Builder) isDependent(it item) bool {
	return it.sig == rawSig || it.sub > 0 || !b.isMap(&it) || b.sigs.of(it.sig)[3] < b.plan.each
}

// planGroups gives each cluster in slices to the group of its level with the least load. Goroutines share the levels.
func (b *Builder) planGroups(levels int) {
	n, all := b.plan.groups, len(b.sliced)
	b.groupLoads = resize(b.groupLoads, levels*n)
	clear(b.groupLoads)
	b.groupStart = resize(b.groupStart, levels*n+1)
	clear(b.groupStart)
	b.byGroup, b.groupOf = resize(b.byGroup, all), resize(b.groupOf, all)
	if n == 0 {
		return
	}
	b.groupStart[levels*n] = uint32(all)
	pieces := min(mostGoroutines, 1+all>>10) // a few are shared out at once
	levelOf := func(k int) int {
		l, _ := slices.BinarySearch(b.slicedStart[:levels], uint32(all*k/pieces))
		return l
	}
	b.crew.share(pieces, func(k int) {
		first, end := levelOf(k), levelOf(k+1)
		if k == pieces-1 {
			end = levels
		}
		for l := first; l < end; l++ {
			b.groupLevel(l)
		}
	})
}

// groupLevel is planGroups for one level.
func (b *Builder) groupLevel(level int) {
	n, first, end := b.plan.groups, b.slicedStart[level], b.slicedStart[level+1]
	loads, starts := b.groupLoads[level*n:][:n], b.groupStart[level*n:][:n]
	list, of := b.sliced[first:end], b.groupOf[first:end]
	for i, c := range list {
		g := 0
		for k := range loads {
			if loads[k] < loads[g] {
				g = k
			}
		}
		loads[g] += b.clusters[c].cost
		starts[g]++
		of[i] = int32(g)
	}
	for g, at := 0, first; g < n; g++ {
		at, starts[g] = at+starts[g], at
	}
	for i, c := range list {
		at := &starts[of[i]]
		b.byGroup[*at] = c
		*at++
	}
	copy(starts[1:], starts) // each was moved to the next one's
	starts[0] = first
}

// ofGroup writes what the group of a class does in a level.
func (w *streamWriter) ofGroup(s *classStream, class, level int) {
	b := w.b
	g := b.plan.group[class]
	if g < 0 {
		return
	}
	k := level*b.plan.groups + int(g)
	w.items = w.items[:0]
	for _, c := range b.byGroup[b.groupStart[k]:b.groupStart[k+1]] {
		w.items = b.appendItemsOf(w.items, c)
	}
	list := w.sorter.sort(w.items, len(b.sigs.start))
	for last := int32(-1); len(list) > 0; {
		it, n, most := &list[0], 1, b.sigs.of(list[0].sig)[0]&runsOf
		for n < len(list) && list[n].sub == it.sub && (list[n].sig == it.sig || b.collectAlike(list[n].sig, it.sig)) {
			most = max(most, b.sigs.of(list[n].sig)[0]&runsOf)
			n++
		}
		w.groupRun(s, it.sub != last, most, list[:n])
		last, list = it.sub, list[n:]
	}
}

// runsOf is where in the first word of a Collect the number of its runs is.
const runsOf = (isa.Derived - 1) << 8

// collectAlike reports whether two signatures are of sums that have nothing but other numbers of runs.
func (b *Builder) collectAlike(x, y uint32) bool {
	s, t := b.sigs.of(x), b.sigs.of(y)
	return isa.Opcode(s[0]) == isa.Collect && s[0]&^runsOf == t[0]&^runsOf && equal(s[2:], t[2:])
}

// inlineWords is how many words of items an instruction has rather with itself than in a list.
const inlineWords = 8

// groupRun writes items as instructions for all processors of a group; those of products and sums, if they are
// several, are in lists. They are of one signature, but for the runs of sums, of which most has the largest number.
func (w *streamWriter) groupRun(s *classStream, sync bool, most uint32, list []item) {
	b := w.b
	words := b.sigs.of(list[0].sig)
	n := int(b.sigs.width[list[0].sig])
	op := isa.Opcode(words[0])
	multiplies := op == isa.Product || op == isa.ProductT || op == isa.Affine || op == isa.AffineT
	flags := uint32(isa.Own)
	if multiplies {
		flags = isa.Sync
	}
	if sync {
		flags |= isa.Sync
	}
	if op == isa.Collect {
		n += int(most>>8) - int(words[0]&runsOf>>8)
	}
	listed := (multiplies || op == isa.Collect) && n*len(list) > inlineWords
	room := (isa.MaxWords - len(words) - 3) / n
	for len(list) > 0 {
		k := min(len(list), room)
		at := len(w.words)
		w.words = appendFew(w.words, words)
		w.words[at] |= flags << 16
		if op == isa.Collect {
			w.words[at] = w.words[at]&^runsOf | most
		}
		if listed {
			w.words[at] |= isa.Listed << 16
			s.listed = append(s.listed, uint32(len(w.words)))
			w.words = append(w.words, uint32(len(s.lists)))
			s.lists = b.appendGroup(slices.Grow(s.lists, k*n), list[:k], n)
		} else {
			w.words = b.appendGroup(w.words, list[:k], n)
		}
		w.words[at+1] = uint32(len(w.words)-at) | uint32(k)<<16
		list = list[k:]
	}
}

// appendGroup appends the words of items, n each: sums of fewer runs get some that are absent.
func (b *Builder) appendGroup(to []uint32, list []item, n int) []uint32 {
	for len(list) > 0 {
		k, have := 1, int(b.sigs.width[list[0].sig])
		for k < len(list) && list[k].sig == list[0].sig {
			k++
		}
		if have == n {
			to = b.appendItems(to, list[:k], n)
			list = list[k:]
			continue
		}
		runs := int(b.sigs.of(list[0].sig)[0] & runsOf >> 8)
		for i := range list[:k] {
			from := list[i].words[:]
			if have > fewWords {
				from = b.pool[list[i].words[0]:]
			}
			to = append(to, from[:1+runs]...)
			for range n - have {
				to = append(to, isa.Absent)
			}
			to = append(to, from[1+runs:have]...)
		}
		list = list[k:]
	}
	return to
}
