package schedule

import (
	"libvpps/persist/isa"
)

// Dealing out: which piece of a batched or private cluster (wide.go) has which of a node's items, or which part of one
// (cut.go).

// DealOut divides the items from one on, which node v's lowering has added, among the pieces of their clusters. They write
// to a tensor of so many elements at an address.
func (s *Schedule) DealOut(v uint32, from int, at, size uint32) {
	list := s.Wide.items[:0]
	whole := s.Items[:from]
	for _, it := range s.Items[from:] {
		if x := &s.Clusters[s.Find(it.Cluster)]; x.IsBatched() || x.IsPrivate() {
			list = append(list, it)
		} else {
			whole = append(whole, it)
		}
	}
	s.Wide.items, s.Items = list, whole
	for len(list) > 0 {
		c, rest, some := s.Find(list[0].Cluster), list[:0], s.Wide.some[:0]
		for _, it := range list {
			if s.Find(it.Cluster) == c {
				some = append(some, it)
			} else {
				rest = append(rest, it)
			}
		}
		list, s.Wide.some = rest, some
		switch x := &s.Clusters[c]; {
		case x.IsBatched():
			x.Items -= int32(len(some))
			for i := range some {
				x.Cost -= s.ItemCost(&some[i])
				s.dealBatch(&some[i], c, v, at, size)
				x = &s.Clusters[c]
			}
		case x.IsPrivate():
			x.Items, x.Cost = 0, 0
			first := len(s.Clusters)
			s.dealPrivate(some, c, at, size)
			for k := range s.Clusters[first:] {
				s.Clusters[first+k].Kind |= divided
			}
		}
	}
}

// dealPrivate divides the items of a private cluster among new ones of its level: if these have an order, at the same
// elements of their results.
func (s *Schedule) dealPrivate(list []Item, c int32, at, size uint32) {
	level := s.Clusters[c].Level
	if len(list) < s.Plan.Processors {
		s.Wide.unfolded = s.Wide.unfolded[:0]
		for _, it := range list {
			s.Wide.unfolded = s.appendUnfolded(s.Wide.unfolded, it)
		}
		list = s.Wide.unfolded
	}
	cost, written, unit, least, ordered, inside := int64(0), int64(0), uint32(1), uint32(1), false, true
	first, end := ^uint32(0), uint32(0)
	extents := s.Wide.extents[:0]
	for i := range list {
		e := s.extentOf(&list[i])
		extents = append(extents, e)
		cost += int64(e.cost)
		written += int64(e.span) + 1
		inside = inside && (e.covers(size) || e.at-at < size)
		ordered = ordered || list[i].Sub != list[0].Sub
		unit, least = max(unit, e.unit), max(least, e.least*e.unit)
		first, end = min(first, e.at), max(end, e.at+e.span+1)
	}
	s.Wide.extents = extents
	pieces := int(min(cost*256/int64(s.Wide.Piece), int64(s.Plan.Processors)))
	if pieces <= 1 || ordered && !inside {
		s.putAllBack(list)
		return
	}
	if !ordered {
		s.dealUnordered(list, level, cost, pieces)
		return
	}
	// Pieces of so many units, at which every item can be cut.
	alike := true
	for i := range extents {
		e := &extents[i]
		alike = alike && unit%e.unit == 0 && (e.at-first)%e.unit+e.inner <= e.unit
	}
	units := int(end-first+unit-1) / int(unit)
	if pieces = min(pieces, units, 1+int(mostCuts*int64(end-first)/written)); !alike || pieces <= 1 {
		s.putAllBack(list)
		return
	}
	chunk := max(uint32((units+pieces-1)/pieces)*unit, (least+unit-1)/unit*unit)
	if unit == 1 && s.Wide.Wideness == UsualWidth { // a warp's width, aligned
		chunk = max(32, (chunk+15)&^15)
	}
	to := int32(len(s.Clusters))
	for lo := first; lo-first < end-first; lo += chunk {
		s.NewCluster(level)
	}
	for i := range list {
		e := &extents[i]
		begin := e.at - (e.at-first)%e.unit // of the unit that it begins in
		for k := (e.at - first) / chunk; k <= (e.at-first+e.span)/chunk; k++ {
			from, until := uint32(0), e.n
			if lo := first + k*chunk; lo > begin {
				from = (lo - begin) / e.unit
			}
			if hi := first + (k+1)*chunk; (hi-begin)/e.unit < e.n {
				until = (hi - begin) / e.unit
			}
			if from < until {
				s.cutItem(&list[i], e, from, until, to+int32(k))
			}
		}
	}
}

// mostUnfolded bounds how many parts of an item become items of their own.
const mostUnfolded = 32

// appendUnfolded appends an item, or items of its parts if these are too few for all processors and can be cut further.
func (s *Schedule) appendUnfolded(list []Item, it Item) []Item {
	e := s.extentOf(&it)
	if e.n == 1 || e.n > mostUnfolded || int(e.n) >= s.Plan.Processors || !s.unfolds(&it, &e) {
		return append(list, it)
	}
	for k := range e.n {
		list = s.appendUnfolded(list, s.part(&it, &e, k, k+1))
	}
	return list
}

// unfolds reports whether each part of an item has parts itself that are worth a processor.
func (s *Schedule) unfolds(it *Item, e *extent) bool {
	if it.Sig == RawSig || s.isProduct(it) {
		return false
	}
	if int(e.unit) >= s.Wide.Single && e.inner < e.unit { // whose distance others cannot be cut at
		return true
	}
	if int(e.cost)*256/int(e.n) < s.Wide.Single {
		return false
	}
	switch w := s.SignatureOf(it); isa.Opcode(w[0]) {
	case isa.Strided:
		for a := range e.axis {
			if w[6+a] > 1 {
				return true
			}
		}
	case isa.Row:
		return w[4] > 1 && w[6] > w[4]
	}
	return false
}

// mostCuts bounds how many items more a private cluster's items are cut into.
const mostCuts = 8192

func (s *Schedule) putAllBack(list []Item) {
	for i := range list {
		s.putBack(&list[i])
	}
}

// dealUnordered divides items that have nothing to do with one another among pieces of about the same cost.
func (s *Schedule) dealUnordered(list []Item, level int32, cost int64, pieces int) {
	share := int32(cost/int64(pieces)) + 1
	to, left := int32(-1), int32(0)
	for i := range list {
		e := s.extentOf(&list[i])
		if s.isProduct(&list[i]) {
			if k := uint32(int64(e.cost) * int64(pieces) / cost); k > 1 {
				s.cutProduct(&list[i], k, s.newClusters(level, s.piecesOfItem(&list[i], k)))
				continue
			}
		}
		for from := uint32(0); from < e.n; {
			if left <= 0 {
				to, left = s.NewCluster(level), share
			}
			n := e.n - from
			if each := max(e.cost/int32(e.n), 1); e.cost > left && e.n > 1 {
				n = min(n, uint32(max(left/each, 1)))
				if e.cost/int32(e.n) == 0 {
					n = min(e.n-from, uint32(max(int64(left)*int64(e.n)/int64(e.cost), 1)))
				}
				n = min(e.n-from, max(n, e.least))
			}
			s.cutItem(&list[i], &e, from, from+n, to)
			left -= int32(int64(e.cost)*int64(n)/int64(e.n)) + 1
			from += n
		}
	}
}
