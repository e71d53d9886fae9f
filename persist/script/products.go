package script

// The products of all parts, in order. Each part sorts its own; then only stretches of equal ones are put in
// order, and their items go from where they are to the script.

// stretch is product items [from, to) of one signature and level that a part has lowered.
type stretch struct {
	level  int32
	sig    uint32
	source int32 // whose: see source
	from   int32 // in its matrices
	to     int32
	at     uint32 // where in the lists they go, noList: nowhere
}

const noList = 1<<32 - 1

// products is the memory of putting them in order.
type products struct {
	stretches []stretch
	unsorted  []stretch
	inline    []matrixItem // of runs without a list
	listWords int
}

// orderProducts orders product items by level and signature, those of equal ones as they came, and lists
// their stretches. Outer products come last, their level is not known yet.
func (b *Builder) orderProducts() {
	b.matrixAlt = resize(b.matrixAlt, len(b.matrices))
	b.count = resize(b.count, max(len(b.sigs.start), int(b.maxLevel)+1)+1)
	countingSort(b.count[:len(b.sigs.start)+1], b.matrices, b.matrixAlt, func(x *matrixItem) uint32 { return x.sig })
	countingSort(b.count[:b.maxLevel+2], b.matrixAlt, b.matrices, func(x *matrixItem) uint32 { return uint32(x.level) })
	b.matrixAlt = resize(b.matrixAlt, len(b.outers))
	countingSort(b.count[:len(b.sigs.start)+1], b.outers, b.matrixAlt, func(x *matrixItem) uint32 { return x.sig })
	b.outers, b.matrixAlt = b.matrixAlt, b.outers
	b.stretches = b.stretches[:0]
	b.matrices = append(b.matrices, b.outers...)
	for from := 0; from < len(b.matrices); {
		x, to := &b.matrices[from], from+1
		for to < len(b.matrices) && b.matrices[to].sig == x.sig && b.matrices[to].level == x.level {
			to++
		}
		b.stretches = append(b.stretches, stretch{x.level, x.sig, 0, int32(from), int32(to), noList})
		from = to
	}
}

// source is one of those whose products there are: the parts', in the order in which they were taken over, and b's own.
func (b *Builder) source(k int) *Builder {
	if taken := b.division.taken; k < len(taken) {
		return taken[k]
	}
	return b
}

// gatherProducts orders the stretches of all sources.
func (b *Builder) gatherProducts() {
	b.orderProducts()
	all := b.unsorted[:0]
	for k := range len(b.division.taken) + 1 {
		p := b.source(k)
		for _, x := range p.stretches {
			if p != b {
				x.sig = p.division.signature[x.sig]
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
	if len(b.division.taken) == 0 {
		b.stretches, b.unsorted = b.unsorted, b.stretches
		return
	}
	b.stretches = resize(b.stretches, len(all))
	b.count = resize(b.count, max(len(b.sigs.start), int(b.maxLevel)+1)+1)
	countingSort(b.count[:len(b.sigs.start)+1], all, b.stretches, func(x *stretch) uint32 { return x.sig })
	countingSort(b.count[:b.maxLevel+2], b.stretches, all, func(x *stretch) uint32 { return uint32(x.level) })
	b.stretches, b.unsorted = all, b.stretches
}

// takeItems appends the items of stretches.
func (b *Builder) takeItems(to []matrixItem, from []stretch) []matrixItem {
	for _, x := range from {
		to = append(to, b.source(int(x.source)).matrices[x.from:x.to]...)
	}
	return to
}

// fillLists writes the items of all listed stretches to the words of the lists.
func (b *Builder) fillLists(to []uint32) {
	const shares = mostGoroutines
	b.crew.share(shares, func(k int) {
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
