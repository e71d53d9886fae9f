package script

import (
	"libvpps/persist/crew"
	"libvpps/persist/memory"
	"libvpps/persist/schedule"
)

// The products of all parts, in order. Each part sorts its own; then only stretches of equal ones are put in
// order, and their items go from where they are to the script.

// products is the memory of putting them in order.
type products struct {
	stretches []schedule.Stretch // of all sources, in order
	unsorted  []schedule.Stretch
	inline    []schedule.Product // of runs without a list
	listWords int
}

// source is one of those whose products there are: the parts', in the order in which they were taken over, and b's own.
func (b *emitter) source(k int) *schedule.Schedule {
	if k < len(b.Parts) {
		return b.Parts[k]
	}
	return b.Schedule
}

// gatherProducts orders the stretches of all sources.
func (b *emitter) gatherProducts() {
	b.OrderProducts()
	all := b.unsorted[:0]
	for k := range len(b.Parts) + 1 {
		p := b.source(k)
		for _, x := range p.Stretches {
			if p != b.Schedule {
				x.Sig = p.InWhole.Signature[x.Sig]
			}
			if x.Source = int32(k); x.Level < 0 {
				if b.LibraryOf(x.Sig) != nil {
					continue
				}
				x.Level = b.OuterLevel
			}
			all = append(all, x)
		}
	}
	b.unsorted = all
	if len(b.Parts) == 0 {
		b.stretches, b.unsorted = b.unsorted, b.stretches
		return
	}
	b.stretches = memory.Resize(b.stretches, len(all))
	b.count = memory.Resize(b.count, max(b.Sigs.Count(), int(b.MaxLevel)+1)+1)
	schedule.CountingSort(b.count[:b.Sigs.Count()+1], all, b.stretches, func(x *schedule.Stretch) uint32 { return x.Sig })
	schedule.CountingSort(b.count[:b.MaxLevel+2], b.stretches, all, func(x *schedule.Stretch) uint32 { return uint32(x.Level) })
	b.stretches, b.unsorted = all, b.stretches
}

// takeItems appends the items of stretches.
func (b *emitter) takeItems(to []schedule.Product, from []schedule.Stretch) []schedule.Product {
	for _, x := range from {
		to = append(to, b.source(int(x.Source)).Products[x.From:x.To]...)
	}
	return to
}

// fillLists writes the items of all listed stretches to the words of the lists.
func (b *emitter) fillLists(to []uint32) {
	const shares = crew.MostGoroutines
	if b.listWords == 0 {
		return
	}
	b.crew.Share(shares, func(k int) {
		for i := range b.stretches {
			x := &b.stretches[i]
			if x.At == schedule.NoList || int(x.Source)%shares != k {
				continue
			}
			items := b.source(int(x.Source)).Products[x.From:x.To]
			at := to[x.At:][:2*len(items)]
			for j := range items {
				*(*[2]uint32)(at[2*j:]) = items[j].Words
			}
		}
	})
}
