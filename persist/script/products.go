package script

import (
	"libvpps/persist/crew"
	"libvpps/persist/memory"
)

// The products of all parts, in order. Each part sorts its own; then only stretches of equal ones are put in
// order, and their items go from where they are to the script.

// products is the memory of putting them in order.
type products struct {
	stretches []stretch // of all sources, in order
	unsorted  []stretch
	inline    []matrixItem // of runs without a list
	listWords int
}

// source is one of those whose products there are: the parts', in the order in which they were taken over, and b's own.
func (b *emitter) source(k int) *Schedule {
	if k < len(b.parts) {
		return b.parts[k]
	}
	return b.Schedule
}

// gatherProducts orders the stretches of all sources.
func (b *emitter) gatherProducts() {
	b.orderProducts()
	all := b.unsorted[:0]
	for k := range len(b.parts) + 1 {
		p := b.source(k)
		for _, x := range p.stretches {
			if p != b.Schedule {
				x.sig = p.in.signature[x.sig]
			}
			if x.source = int32(k); x.level < 0 {
				if b.libraryOf(x.sig) != nil {
					continue
				}
				x.level = b.outerLevel
			}
			all = append(all, x)
		}
	}
	b.unsorted = all
	if len(b.parts) == 0 {
		b.stretches, b.unsorted = b.unsorted, b.stretches
		return
	}
	b.stretches = memory.Resize(b.stretches, len(all))
	b.count = memory.Resize(b.count, max(b.sigs.count(), int(b.maxLevel)+1)+1)
	countingSort(b.count[:b.sigs.count()+1], all, b.stretches, func(x *stretch) uint32 { return x.sig })
	countingSort(b.count[:b.maxLevel+2], b.stretches, all, func(x *stretch) uint32 { return uint32(x.level) })
	b.stretches, b.unsorted = all, b.stretches
}

// takeItems appends the items of stretches.
func (b *emitter) takeItems(to []matrixItem, from []stretch) []matrixItem {
	for _, x := range from {
		to = append(to, b.source(int(x.source)).matrices[x.from:x.to]...)
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
			if x.at == noList || int(x.source)%shares != k {
				continue
			}
			items := b.source(int(x.source)).matrices[x.from:x.to]
			at := to[x.at:][:2*len(items)]
			for j := range items {
				*(*[2]uint32)(at[2*j:]) = items[j].words
			}
		}
	})
}
