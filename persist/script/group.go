package script

import "libvpps/persist/memory"

// Items and products are put in order: items by cluster, products by level and signature.

// grouping is the memory of that.
type grouping struct {
	grouped   []uint32 // where the items of a cluster are; its number is that of the first cluster it is made of
	sorted    []item
	count     []uint32
	stretches []stretch // of products
	matrixAlt []matrixItem
}

// groupItems orders items by cluster, those of a cluster as they came: in an order in which they could run
// one by one.
func (b *Schedule) groupItems() {
	at, taken := uint32(0), b.takenClusters()
	b.grouped = memory.Resize(b.grouped, len(b.clusters))
	for c := int32(0); int(c) < len(b.clusters); c++ {
		if c == taken.first {
			c = taken.end - 1
			continue
		}
		if x := &b.clusters[c]; x.parent == c {
			b.grouped[c] = at
			at += uint32(x.items)
		}
	}
	b.sorted = memory.Resize(b.sorted, len(b.items))
	for i := range b.items {
		it := &b.items[i]
		it.cluster = b.find(it.cluster)
		at := &b.grouped[it.cluster]
		b.sorted[*at] = *it
		*at++
	}
	b.items, b.sorted = b.sorted, b.items
}

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

// orderProducts orders product items by level and signature, those of equal ones as they came, and lists
// their stretches. Outer products come last, their level is not known yet.
func (b *Schedule) orderProducts() {
	b.matrixAlt = memory.Resize(b.matrixAlt, len(b.matrices))
	b.count = memory.Resize(b.count, max(b.sigs.count(), int(b.maxLevel)+1)+1)
	countingSort(b.count[:b.sigs.count()+1], b.matrices, b.matrixAlt, func(x *matrixItem) uint32 { return x.sig })
	countingSort(b.count[:b.maxLevel+2], b.matrixAlt, b.matrices, func(x *matrixItem) uint32 { return uint32(x.level) })
	b.matrixAlt = memory.Resize(b.matrixAlt, len(b.outers))
	countingSort(b.count[:b.sigs.count()+1], b.outers, b.matrixAlt, func(x *matrixItem) uint32 { return x.sig })
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

// countingSort writes from to to in the order of a key, equal keys as they came. Keys are below
// len(count)-1; count[k] is left as the end of key k.
func countingSort[T any](count []uint32, from, to []T, key func(*T) uint32) {
	clear(count)
	for i := range from {
		count[key(&from[i])+1]++
	}
	for i := range len(count) - 1 {
		count[i+1] += count[i]
	}
	for i := range from {
		k := key(&from[i])
		to[count[k]] = from[i]
		count[k]++
	}
}

// orderByLevel orders items by level, those of one as they came; ends[l] is where level l ends.
func (b *Schedule) orderByLevel(levels int) (ends []uint32) {
	b.count = memory.Resize(b.count, levels+1)
	count := b.count[:levels+1]
	clear(count)
	for i := range b.items {
		it := &b.items[i]
		it.cluster = b.find(it.cluster)
		count[b.clusters[it.cluster].level+1]++
	}
	for l := range levels {
		count[l+1] += count[l]
	}
	b.sorted = memory.Resize(b.sorted, len(b.items))
	for i := range b.items {
		at := &count[b.clusters[b.items[i].cluster].level]
		b.sorted[*at] = b.items[i]
		*at++
	}
	b.items, b.sorted = b.sorted, b.items
	return count
}
