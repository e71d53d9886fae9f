package script

import (
	"libvpps/persist/isa"
)

// Dealing out: which piece of a batched or private cluster (wide.go) has which of a node's items, or which part of one
// (cut.go).

// dealOut divides the items from one on, which node v's lowering has added, among the pieces of their clusters. They write
// to a tensor of so many elements at an address.
func (b *Schedule) dealOut(v uint32, from int, at, size uint32) {
	list := b.wide.items[:0]
	whole := b.items[:from]
	for _, it := range b.items[from:] {
		if x := &b.clusters[b.find(it.cluster)]; x.isBatched() || x.isPrivate() {
			list = append(list, it)
		} else {
			whole = append(whole, it)
		}
	}
	b.wide.items, b.items = list, whole
	for len(list) > 0 {
		c, rest, some := b.find(list[0].cluster), list[:0], b.wide.some[:0]
		for _, it := range list {
			if b.find(it.cluster) == c {
				some = append(some, it)
			} else {
				rest = append(rest, it)
			}
		}
		list, b.wide.some = rest, some
		switch x := &b.clusters[c]; {
		case x.isBatched():
			x.items -= int32(len(some))
			for i := range some {
				x.cost -= b.itemCost(&some[i])
				b.dealBatch(&some[i], c, v, at, size)
				x = &b.clusters[c]
			}
		case x.isPrivate():
			x.items, x.cost = 0, 0
			b.dealPrivate(some, c, at, size)
		}
	}
}

// dealPrivate divides the items of a private cluster among new ones of its level: if these have an order, at the same
// elements of their results.
func (b *Schedule) dealPrivate(list []item, c int32, at, size uint32) {
	level := b.clusters[c].level
	if len(list) < b.Plan.Processors {
		b.wide.unfolded = b.wide.unfolded[:0]
		for _, it := range list {
			b.wide.unfolded = b.appendUnfolded(b.wide.unfolded, it)
		}
		list = b.wide.unfolded
	}
	cost, written, unit, least, ordered, inside := int64(0), int64(0), uint32(1), uint32(1), false, true
	first, end := ^uint32(0), uint32(0)
	extents := b.wide.extents[:0]
	for i := range list {
		e := b.extentOf(&list[i])
		extents = append(extents, e)
		cost += int64(e.cost)
		written += int64(e.span) + 1
		inside = inside && (e.covers(size) || e.at-at < size)
		ordered = ordered || list[i].sub != list[0].sub
		unit, least = max(unit, e.unit), max(least, e.least*e.unit)
		first, end = min(first, e.at), max(end, e.at+e.span+1)
	}
	b.wide.extents = extents
	pieces := int(min(cost*256/int64(b.wide.Piece), int64(b.Plan.Processors)))
	if pieces <= 1 || ordered && !inside {
		b.putAllBack(list)
		return
	}
	if !ordered {
		b.dealUnordered(list, level, cost, pieces)
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
		b.putAllBack(list)
		return
	}
	chunk := max(uint32((units+pieces-1)/pieces)*unit, (least+unit-1)/unit*unit)
	if unit == 1 && b.wide.Wideness == usualWidth { // a warp's width, aligned
		chunk = max(32, (chunk+15)&^15)
	}
	to := int32(len(b.clusters))
	for lo := first; lo-first < end-first; lo += chunk {
		b.newCluster(level)
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
				b.cutItem(&list[i], e, from, until, to+int32(k))
			}
		}
	}
}

// mostUnfolded bounds how many parts of an item become items of their own.
const mostUnfolded = 32

// appendUnfolded appends an item, or items of its parts if these are too few for all processors and can be cut further.
func (b *Schedule) appendUnfolded(list []item, it item) []item {
	e := b.extentOf(&it)
	if e.n == 1 || e.n > mostUnfolded || int(e.n) >= b.Plan.Processors || !b.unfolds(&it, &e) {
		return append(list, it)
	}
	for k := range e.n {
		list = b.appendUnfolded(list, b.part(&it, &e, k, k+1))
	}
	return list
}

// unfolds reports whether each part of an item has parts itself that are worth a processor.
func (b *Schedule) unfolds(it *item, e *extent) bool {
	if it.sig == rawSig || b.isProduct(it) {
		return false
	}
	if int(e.unit) >= b.wide.Single && e.inner < e.unit { // whose distance others cannot be cut at
		return true
	}
	if int(e.cost)*256/int(e.n) < b.wide.Single {
		return false
	}
	switch w := b.signatureOf(it); isa.Opcode(w[0]) {
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

func (b *Schedule) putAllBack(list []item) {
	for i := range list {
		b.putBack(&list[i])
	}
}

// dealUnordered divides items that have nothing to do with one another among pieces of about the same cost.
func (b *Schedule) dealUnordered(list []item, level int32, cost int64, pieces int) {
	share := int32(cost/int64(pieces)) + 1
	to, left := int32(-1), int32(0)
	for i := range list {
		e := b.extentOf(&list[i])
		if b.isProduct(&list[i]) {
			if k := uint32(int64(e.cost) * int64(pieces) / cost); k > 1 {
				w := b.signatureOf(&list[i])
				b.cutProduct(&list[i], k, b.newClusters(level, piecesOfProduct(w[3], w[4], k)))
				continue
			}
		}
		for from := uint32(0); from < e.n; {
			if left <= 0 {
				to, left = b.newCluster(level), share
			}
			n := e.n - from
			if each := max(e.cost/int32(e.n), 1); e.cost > left && e.n > 1 {
				n = min(n, uint32(max(left/each, 1)))
				if e.cost/int32(e.n) == 0 {
					n = min(e.n-from, uint32(max(int64(left)*int64(e.n)/int64(e.cost), 1)))
				}
				n = min(e.n-from, max(n, e.least))
			}
			b.cutItem(&list[i], &e, from, from+n, to)
			left -= int32(int64(e.cost)*int64(n)/int64(e.n)) + 1
			from += n
		}
	}
}
