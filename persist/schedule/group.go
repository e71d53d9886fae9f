package schedule

import "libvpps/persist/memory"

// Items and products are put in order: items by cluster, products by level and signature.

// grouping is the memory of that.
type grouping struct {
	grouped   []uint32 // where the items of a cluster end; its number is that of the first cluster it is made of
	sorted    []Item
	count     []uint32
	matrixAlt []Product
}

// GroupItems orders items by cluster, those of a cluster as they came: in an order in which they could run
// one by one.
func (s *Schedule) GroupItems() {
	at := uint32(0)
	s.grouped = memory.Resize(s.grouped, len(s.Clusters))
	for c := range s.Clusters {
		if x := &s.Clusters[c]; x.Parent == int32(c) {
			s.grouped[c] = at
			at += uint32(x.Items)
		}
	}
	s.sorted = memory.Resize(s.sorted, len(s.Items))
	for i := range s.Items {
		it := &s.Items[i]
		it.Cluster = s.Find(it.Cluster)
		at := &s.grouped[it.Cluster]
		s.sorted[*at] = *it
		*at++
	}
	s.Items, s.sorted = s.sorted, s.Items
}

// itemsOf is the items of a cluster, by which they are grouped.
func (s *Schedule) itemsOf(c uint32) []Item {
	end := s.grouped[c]
	return s.Items[end-uint32(s.Clusters[c].Items) : end]
}

// OrderProducts orders product items by level and signature, those of equal ones as they came. Outer products come last.
func (s *Schedule) OrderProducts() {
	sigs, levels := s.Sigs.Count(), int(s.MaxLevel)+1
	s.Products, s.matrixAlt = SortByTwo(&s.count, s.Products, s.matrixAlt, levels, sigs,
		func(x *Product) uint32 { return uint32(x.Level) }, func(x *Product) uint32 { return x.Sig })
	s.matrixAlt = memory.Resize(s.matrixAlt, len(s.Outers))
	s.count = memory.Resize(s.count, sigs+1)
	CountingSort(s.count, s.Outers, s.matrixAlt, func(x *Product) uint32 { return x.Sig })
	s.Outers, s.matrixAlt = s.matrixAlt, s.Outers
	s.Products = append(s.Products, s.Outers...)
}

// SortByTwo sorts a list by a key below majors, and those of one by another below minors, equal ones as they came. It returns
// the sorted list and the other of list and spare, which are memory for both.
func SortByTwo[T any](count *[]uint32, list, spare []T, majors, minors int, major, minor func(*T) uint32) (sorted, other []T) {
	spare = memory.Resize(spare, len(list))
	if keys := majors * minors; keys < 8*len(list) { // in one go
		*count = memory.Resize(*count, keys+1)
		CountingSort(*count, list, spare, func(x *T) uint32 { return major(x)*uint32(minors) + minor(x) })
		return spare, list
	}
	*count = memory.Resize(*count, max(majors, minors)+1)
	CountingSort((*count)[:minors+1], list, spare, minor)
	CountingSort((*count)[:majors+1], spare, list, major)
	return list, spare
}

// CountingSort writes from to to in the order of a key, equal keys as they came. Keys are below
// len(count)-1; count[k] is left as the end of key k.
func CountingSort[T any](count []uint32, from, to []T, key func(*T) uint32) {
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

// OrderByLevel orders items by level, those of one as they came; ends[l] is where level l ends.
func (s *Schedule) OrderByLevel(levels int) (ends []uint32) {
	s.count = memory.Resize(s.count, levels+1)
	count := s.count[:levels+1]
	clear(count)
	for i := range s.Items {
		it := &s.Items[i]
		it.Cluster = s.Find(it.Cluster)
		count[s.Clusters[it.Cluster].Level+1]++
	}
	for l := range levels {
		count[l+1] += count[l]
	}
	s.sorted = memory.Resize(s.sorted, len(s.Items))
	for i := range s.Items {
		at := &count[s.Clusters[s.Items[i].Cluster].Level]
		s.sorted[*at] = s.Items[i]
		*at++
	}
	s.Items, s.sorted = s.sorted, s.Items
	return count
}
