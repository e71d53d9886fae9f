package script

import (
	"libvpps/persist/isa"
	"libvpps/persist/memory"
)

// The items of batched clusters. All pieces of one do the same, each for its batch elements: the addresses of an item of
// one piece are at equal distances from those of the next. So an item of all batch elements stays one, with its batched
// cluster, until the pieces' streams are written. It is lowered, fused and ordered once.
//
// An item of single batch elements goes to their piece at once. A batched cluster with items of both kinds is cut before it
// is fused, so that they have one order.

// whole is what an item of all batch elements is to the pieces.
type whole struct {
	of, batch   uint32 // the item's signature,
	pieces      int32  // and what it is cut into
	each, final uint32 // the signatures of a piece's item, and of the last piece's
	steps       uint32 // where in pool is how far each word is from the next piece's
}

// chunk is how many batch elements a piece has.
func (x *cluster) chunk() uint32 { return (x.batch + uint32(x.pieces) - 1) / uint32(x.pieces) }

// dealBatch leaves an item of all batch elements with its batched cluster. Of any other one, each piece gets its batch
// elements.
func (b *Schedule) dealBatch(it *item, c int32, v, at, size uint32) {
	x := b.clusters[c]
	e := b.extentOf(it)
	each, chunk := size/x.batch, x.chunk()
	if e.covers(size) {
		at = e.at
	}
	first, within := (e.at-at)/each, (e.at-at)%each
	if first < x.batch && within+e.span < each { // of one batch element
		it.cluster = c + 1 + int32(first/chunk)
		b.putBack(it)
		return
	}
	if every := e.unit / each; every > 1 && every*each == e.unit && within+e.inner <= each { // of some batch elements
		for k := range uint32(x.pieces) {
			lo, hi := max(k*chunk, first)-first, max((k+1)*chunk, first)-first
			if lo, hi = (lo+every-1)/every, min((hi+every-1)/every, e.n); lo < hi {
				b.cutItem(it, &e, lo, hi, c+1+int32(k))
			}
		}
		return
	}
	parts := max(each/e.unit, 1) // of a batch element
	if first >= x.batch || parts*e.unit != each || e.n%parts != 0 || within+e.inner > e.unit {
		fail("an item of node %d, %d times %d elements from %d on, cannot be divided into %d batch elements of %d", v, e.n, e.unit, e.at-at, x.batch, each)
	}
	if e.n == parts*x.batch && !b.differsByPiece(it) {
		it.cluster = c
		b.items = append(b.items, *it)
		b.clusters[c].items++
		b.clusters[c].cost += max(e.cost/x.pieces, 1)
		return
	}
	for k := range uint32(x.pieces) {
		lo, hi := max(k*chunk, first), min((k+1)*chunk, first+e.n/parts)
		if lo < hi {
			b.cutItem(it, &e, (lo-first)*parts, (hi-first)*parts, c+1+int32(k))
		}
	}
}

// differsByPiece reports whether pieces of an item differ in more than addresses at steps that its signature says.
func (b *Schedule) differsByPiece(it *item) bool {
	switch w := b.signatureOf(it); isa.Opcode(w[0]) {
	case isa.Random:
		return true
	case isa.Row:
		f := &isa.RowTable[isa.RowFn(w[0]>>8)]
		return f.Parts != 0 && b.addresses(it)[f.Words-1] > 0
	}
	return false
}

// eachBatched calls f for all batched clusters with items that pieces share, but for those of parts that were taken over.
func (b *Schedule) eachBatched(f func(c int32, x *cluster)) {
	if !b.wide.on {
		return
	}
	taken := b.takenClusters()
	for c := int32(0); int(c) < len(b.clusters); c++ {
		if c == taken.first {
			c = taken.end - 1
			continue
		}
		if x := &b.clusters[c]; x.parent == c && x.isBatched() && x.items > 0 {
			f(c, x)
		}
	}
}

// settleBatched gives the pieces their share of the costs, and, where some have items of their own, of the items.
func (b *Schedule) settleBatched() {
	any := false
	b.eachBatched(func(c int32, x *cluster) {
		own := false
		for k := range x.pieces {
			own = own || b.clusters[b.find(c+1+k)].items > 0
		}
		if own {
			x.kind |= cutEarly
			any = true
		} else {
			for k := range x.pieces {
				b.clusters[b.find(c+1+k)].cost += x.cost
			}
		}
		x.cost = 0
	})
	if !any {
		return
	}
	list := append(b.wide.items[:0], b.items...)
	b.wide.items, b.items = list, b.items[:0]
	for i := range list {
		it := &list[i]
		c := b.find(it.cluster)
		x := b.clusters[c]
		if x.kind&cutEarly == 0 || !x.isBatched() {
			b.items = append(b.items, *it)
			continue
		}
		b.clusters[c].items = 0
		e := b.extentOf(it)
		parts := e.n / x.batch
		for k := range uint32(x.pieces) {
			b.cutItem(it, &e, k*x.chunk()*parts, min((k+1)*x.chunk(), x.batch)*parts, c+1+int32(k))
		}
	}
}

// cutBatched finds what the items that pieces share are to each.
func (b *Schedule) cutBatched() {
	b.wide.wholes, b.wide.wholeOf = append(b.wide.wholes[:0], whole{}), b.wide.wholeOf[:0] // number 0 is rawSig
	b.eachBatched(func(c int32, x *cluster) {
		list := b.items[b.grouped[c]:][:x.items]
		for i := range list {
			it := &list[i]
			if it.sig == rawSig {
				n := b.signatureOf(it)[3]
				it.words[1], it.words[2] = n/x.batch*x.chunk(), n
			} else {
				it.sig = b.wholeFor(it.sig, x)
			}
		}
	})
}

// wholeFor is the number of what an item of a signature is to the pieces of a batched cluster.
func (b *Schedule) wholeFor(sig uint32, x *cluster) uint32 {
	m := &b.wide
	m.wholeOf = memory.Extend(m.wholeOf, int(sig)+1, 0)
	if k := m.wholeOf[sig]; k > 0 && m.wholes[k].batch == x.batch && m.wholes[k].pieces == x.pieces {
		return k
	}
	w := b.sigs.of(sig)
	axis := max(w[3]&255, 1) - 1 // of a Strided: the last
	at, each := partsAt(w, axis)
	e := extent{n: w[at] / each, axis: axis, cost: b.sigs.cost(sig)}
	parts, width := e.n/x.batch, int(b.sigs.width[sig])
	steps := uint32(len(b.pool))
	for _, s := range b.stepsOf(w, width, axis, 1) {
		b.pool = append(b.pool, s*parts*x.chunk())
	}
	for range fewWords - width {
		b.pool = append(b.pool, 0)
	}
	last := (x.pieces - 1) * int32(x.chunk())
	m.wholes = append(m.wholes, whole{sig, x.batch, x.pieces,
		b.cutSignature(sig, &e, 0, x.chunk()*parts), b.cutSignature(sig, &e, 0, (x.batch-uint32(last))*parts), steps})
	m.wholeOf[sig] = uint32(len(m.wholes)) - 1
	return m.wholeOf[sig]
}

// appendPiece appends what a piece, counted from 0, does of items that the pieces share.
func (b *Schedule) appendPiece(list, shared []item, k uint32, last bool) []item {
	for i := range shared {
		it := shared[i]
		if it.sig == rawSig {
			it.words[1], it.words[2] = k*it.words[1], min(it.words[1], it.words[2]-k*it.words[1])
			list = append(list, it)
			continue
		}
		x := &b.wide.wholes[it.sig]
		it.sig = x.each
		if last {
			it.sig = x.final
		}
		if b.sigs.width[it.sig] > fewWords {
			it.words[1], it.words[2] = k, 1+x.steps
		} else {
			steps := b.pool[x.steps:][:fewWords]
			for s := range it.words {
				it.words[s] += k * steps[s]
			}
		}
		list = append(list, it)
	}
	return list
}
