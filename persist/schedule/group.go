package schedule

import "libvpps/persist/memory"

// Items and products are put in order: items by cluster, products by level and signature.

// grouping is the memory of that.
type grouping struct {
	grouped   []uint32 // where the items of a cluster are; its number is that of the first cluster it is made of
	sorted    []Item
	count     []uint32
	Stretches []Stretch // of products
	matrixAlt []Product
}

// GroupItems orders items by cluster, those of a cluster as they came: in an order in which they could run
// one by one.
func (s *Schedule) GroupItems() {
	at, taken := uint32(0), s.takenClusters()
	s.grouped = memory.Resize(s.grouped, len(s.Clusters))
	for c := int32(0); int(c) < len(s.Clusters); c++ {
		if c == taken.first {
			c = taken.end - 1
			continue
		}
		if x := &s.Clusters[c]; x.Parent == c {
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

// Stretch is product items [from, to) of one signature and level that a part has lowered.
type Stretch struct {
	Level  int32
	Sig    uint32
	Source int32 // whose: see source
	From   int32 // in its matrices
	To     int32
	At     uint32 // where in the lists they go, noList: nowhere
}

// NoList is where a stretch without a list is.
const NoList = 1<<32 - 1

// OrderProducts orders product items by level and signature, those of equal ones as they came, and lists
// their stretches. Outer products come last, their level is not known yet.
func (s *Schedule) OrderProducts() {
	sigs, levels := s.Sigs.Count(), int(s.MaxLevel)+1
	if sigs*levels < 8*len(s.Products) {
		s.Products, s.matrixAlt = s.sortProducts(s.Products, s.matrixAlt, sigs*levels, uint32(sigs), 1)
	} else {
		s.Products, s.matrixAlt = s.sortProducts(s.Products, s.matrixAlt, sigs, 0, 1)
		s.Products, s.matrixAlt = s.sortProducts(s.Products, s.matrixAlt, levels, 1, 0)
	}
	s.Outers, s.matrixAlt = s.sortProducts(s.Outers, s.matrixAlt, sigs, 0, 1)
	s.Stretches = s.Stretches[:0]
	s.Products = append(s.Products, s.Outers...)
	for from := 0; from < len(s.Products); {
		x, to := &s.Products[from], from+1
		for to < len(s.Products) && s.Products[to].Sig == x.Sig && s.Products[to].Level == x.Level {
			to++
		}
		s.Stretches = append(s.Stretches, Stretch{x.Level, x.Sig, 0, int32(from), int32(to), NoList})
		from = to
	}
}

// sortProducts sorts by level times ofLevel plus signature times ofSig, which is below keys, equal ones as they came. It
// returns the sorted list, which is in spare, and the other one.
func (s *Schedule) sortProducts(list, spare []Product, keys int, ofLevel, ofSig uint32) (sorted, other []Product) {
	s.count = memory.Resize(s.count, keys+1)
	count := s.count
	clear(count)
	for i := range list {
		count[uint32(list[i].Level)*ofLevel+list[i].Sig*ofSig+1]++
	}
	for i := range keys {
		count[i+1] += count[i]
	}
	spare = memory.Resize(spare, len(list))
	for i := range list {
		x := &list[i]
		at := &count[uint32(x.Level)*ofLevel+x.Sig*ofSig]
		y := &spare[*at]
		*at++
		y.Level, y.Sig, y.Words[0], y.Words[1] = x.Level, x.Sig, x.Words[0], x.Words[1]
	}
	return spare, list
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
