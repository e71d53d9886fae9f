package emit

import (
	"slices"

	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/schedule"
)

// Where products form their vectors, groups share the clusters that wait for nothing, mostly copies of embeddings. These
// are written once for all processors of a group.

// groups is the memory of that.
type groups struct {
	groupLoads []int32    // by group: the cost of its clusters
	byGroup    [][]uint32 // its clusters, all of level 0
}

// shareCopies gives each cluster of level 0 that is element-wise to the group with the least load: each of its processors
// takes its elements of the vectors, with one stream for all.
func (e *Emitter) shareCopies() {
	n := e.Holders.Groups
	e.groupLoads = memory.Resize(e.groupLoads, n)
	clear(e.groupLoads)
	e.byGroup = memory.Extend(e.byGroup[:cap(e.byGroup)], n, nil)
	for g := range e.byGroup {
		e.byGroup[g] = e.byGroup[g][:0]
	}
	if n == 0 || !e.FormsVectors {
		return
	}
	m := &e.writers[0]
	for c := range e.Clusters {
		x := &e.Clusters[c]
		if !x.IsListed(c) || x.Level > 0 {
			continue
		}
		m.items = e.AppendItemsOf(m.items[:0], uint32(c))
		if slices.ContainsFunc(m.items, e.isDependent) {
			continue
		}
		g := slices.Index(e.groupLoads, slices.Min(e.groupLoads))
		x.Kind = schedule.Groupwide
		e.groupLoads[g] += x.Cost
		e.byGroup[g] = append(e.byGroup[g], uint32(c))
	}
}

// isDependent reports whether an item is not element-wise, waits for another one of its cluster, or is shorter than the
// group.
func (e *Emitter) isDependent(it schedule.Item) bool {
	return it.Sig == schedule.RawSig || it.Sub > 0 || e.Sigs.Fuses[it.Sig] != schedule.Operation || e.Sigs.Of(it.Sig)[3] < e.Holders.Each
}

// ofGroup writes what the group of a class does.
func (w *streamWriter) ofGroup(class int) {
	e := w.e
	g := e.Holders.Group[class]
	if g < 0 {
		return
	}
	w.items = w.items[:0]
	for _, c := range e.byGroup[g] {
		w.items = e.AppendItemsOf(w.items, c)
	}
	list := w.sorter.sort(w.items, e.Sigs.Count())
	for flags := uint32(isa.Own | isa.Sync); len(list) > 0; flags = isa.Own {
		n := 1
		for n < len(list) && list[n].Sig == list[0].Sig {
			n++
		}
		w.run(flags, list[:n])
		list = list[n:]
	}
}
