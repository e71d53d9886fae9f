package emit

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

// source is one of those whose products there are: the parts', in the order in which they were taken over, and the schedule's own.
func (e *Emitter) source(k int) *schedule.Schedule {
	if k < len(e.Parts) {
		return e.Parts[k]
	}
	return e.Schedule
}

// gatherProducts orders the stretches of all sources.
func (e *Emitter) gatherProducts() {
	e.OrderProducts()
	all := e.unsorted[:0]
	for k := range len(e.Parts) + 1 {
		p := e.source(k)
		for _, x := range p.Stretches {
			if p != e.Schedule {
				x.Sig = p.InWhole.Signature[x.Sig]
			}
			if x.Source = int32(k); x.Level < 0 {
				if e.LibraryOf(x.Sig) != nil {
					continue
				}
				x.Level = e.OuterLevel
			}
			all = append(all, x)
		}
	}
	e.unsorted = all
	if len(e.Parts) == 0 {
		e.stretches, e.unsorted = e.unsorted, e.stretches
		return
	}
	e.stretches = memory.Resize(e.stretches, len(all))
	e.count = memory.Resize(e.count, max(e.Sigs.Count(), int(e.MaxLevel)+1)+1)
	schedule.CountingSort(e.count[:e.Sigs.Count()+1], all, e.stretches, func(x *schedule.Stretch) uint32 { return x.Sig })
	schedule.CountingSort(e.count[:e.MaxLevel+2], e.stretches, all, func(x *schedule.Stretch) uint32 { return uint32(x.Level) })
	e.stretches, e.unsorted = all, e.stretches
}

// takeItems appends the items of stretches.
func (e *Emitter) takeItems(to []schedule.Product, from []schedule.Stretch) []schedule.Product {
	for _, x := range from {
		to = append(to, e.source(int(x.Source)).Products[x.From:x.To]...)
	}
	return to
}

// fillLists writes the items of all listed stretches to the words of the lists.
func (e *Emitter) fillLists(to []uint32) {
	const shares = crew.MostGoroutines
	if e.listWords == 0 {
		return
	}
	e.Crew.Share(shares, func(k int) {
		for i := range e.stretches {
			x := &e.stretches[i]
			if x.At == schedule.NoList || int(x.Source)%shares != k {
				continue
			}
			items := e.source(int(x.Source)).Products[x.From:x.To]
			at := to[x.At:][:2*len(items)]
			for j := range items {
				*(*[2]uint32)(at[2*j:]) = items[j].Words
			}
		}
	})
}
