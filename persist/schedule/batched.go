package schedule

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
	steps       uint32 // where in pool is how far each word is from the next piece's or, with views, batch element's
	views       bool   // a piece has an item for each batch element
}

// viewed is a chain with views of a batched cluster: which of its items, and where in pool its steps are.
type viewed struct {
	item  int
	steps uint32
}

// chunk is how many batch elements a piece has.
func (x *Cluster) chunk() uint32 { return chunkOf(x.Batch, x.Pieces) }

func chunkOf(batch uint32, pieces int32) uint32 { return (batch + uint32(pieces) - 1) / uint32(pieces) }

// dealBatch leaves an item of all batch elements with its batched cluster. Of any other one, each piece gets its batch
// elements.
func (s *Schedule) dealBatch(it *Item, c int32, v, at, size uint32) {
	x := s.Clusters[c]
	e := s.extentOf(it)
	each, chunk := size/x.Batch, x.chunk()
	if e.covers(size) {
		at = e.at
	}
	first, within := (e.at-at)/each, (e.at-at)%each
	if first < x.Batch && within+e.span < each { // of one batch element
		it.Cluster = c + 1 + int32(first/chunk)
		s.putBack(it)
		return
	}
	if every := e.unit / each; every > 1 && every*each == e.unit && within+e.inner <= each { // of some batch elements
		for k := range uint32(x.Pieces) {
			lo, hi := max(k*chunk, first)-first, max((k+1)*chunk, first)-first
			if lo, hi = (lo+every-1)/every, min((hi+every-1)/every, e.n); lo < hi {
				s.cutItem(it, &e, lo, hi, c+1+int32(k))
			}
		}
		return
	}
	if e.unit > each && e.n > 1 { // each of its parts has several of the cluster's
		for k := range e.n {
			part := s.part(it, &e, k, k+1)
			s.dealBatch(&part, c, v, at, size)
		}
		return
	}
	parts := max(each/e.unit, 1) // of a batch element
	if first >= x.Batch || parts*e.unit != each || e.n%parts != 0 || within+e.inner > e.unit {
		fail("an item of node %d, %d times %d elements from %d on, cannot be divided into %d batch elements of %d", v, e.n, e.unit, e.at-at, x.Batch, each)
	}
	if e.n == parts*x.Batch && !s.differsByPiece(it) {
		it.Cluster = c
		s.Items = append(s.Items, *it)
		s.Clusters[c].Items++
		s.Clusters[c].Cost += max(e.cost/x.Pieces, 1)
		return
	}
	for k := range uint32(x.Pieces) {
		lo, hi := max(k*chunk, first), min((k+1)*chunk, first+e.n/parts)
		if lo < hi {
			s.cutItem(it, &e, (lo-first)*parts, (hi-first)*parts, c+1+int32(k))
		}
	}
}

// differsByPiece reports whether pieces of an item differ in more than addresses at steps that its signature says.
func (s *Schedule) differsByPiece(it *Item) bool {
	switch w := s.SignatureOf(it); isa.Opcode(w[0]) {
	case isa.Random:
		return true
	case isa.Row:
		f := &isa.RowTable[isa.RowFn(w[0]>>8)]
		return f.Parts != 0 && s.Addresses(it)[f.Words-1] > 0
	}
	return false
}

// eachBatched calls f for all batched clusters with items that pieces share.
func (s *Schedule) eachBatched(f func(c int32, x *Cluster)) {
	if !s.Wide.On {
		return
	}
	for c := int32(0); int(c) < len(s.Clusters); c++ {
		if x := &s.Clusters[c]; x.Parent == c && x.IsBatched() && x.Items > 0 {
			f(c, x)
		}
	}
}

// SettleBatched gives the pieces their share of the costs, and, where some have items of their own, of the items.
func (s *Schedule) SettleBatched() {
	any := false
	s.eachBatched(func(c int32, x *Cluster) {
		own := false
		for k := range x.Pieces {
			own = own || s.Clusters[s.Find(c+1+k)].Items > 0
		}
		if own {
			x.Kind |= cutEarly
			any = true
		} else {
			for k := range x.Pieces {
				s.Clusters[s.Find(c+1+k)].Cost += x.Cost
			}
		}
		x.Cost = 0
	})
	if !any {
		return
	}
	list := append(s.Wide.items[:0], s.Items...)
	s.Wide.items, s.Items = list, s.Items[:0]
	for i := range list {
		it := &list[i]
		c := s.Find(it.Cluster)
		x := s.Clusters[c]
		if x.Kind&cutEarly == 0 || !x.IsBatched() {
			s.Items = append(s.Items, *it)
			continue
		}
		s.Clusters[c].Items = 0
		e := s.extentOf(it)
		parts := e.n / x.Batch
		for k := range uint32(x.Pieces) {
			s.cutItem(it, &e, k*x.chunk()*parts, min((k+1)*x.chunk(), x.Batch)*parts, c+1+int32(k))
		}
	}
}

// CutBatched fuses the items that pieces share, and finds what they are to each.
func (s *Schedule) CutBatched() {
	s.Wide.Wholes, s.Wide.wholeOf = append(s.Wide.Wholes[:0], whole{}), s.Wide.wholeOf[:0] // number 0 is rawSig
	s.eachBatched(func(c int32, x *Cluster) {
		if x.Kind&ByColumns == 0 {
			s.fuseViews(x.Batch, 0)
		}
		s.Wide.viewed = s.Wide.viewed[:0]
		s.Wide.items = s.appendFused(s.Wide.items[:0], uint32(c))
		first := s.grouped[c] - uint32(x.Items)
		x.Items = int32(copy(s.Items[first:], s.Wide.items))
		s.grouped[c] = first + uint32(x.Items)
		list := s.itemsOf(uint32(c))
		views := s.Wide.viewed
		for i := range list {
			it := &list[i]
			switch {
			case it.Sig == RawSig:
				n := s.SignatureOf(it)[3]
				it.Words[1], it.Words[2] = n/x.Batch*x.chunk(), n
			case len(views) > 0 && views[0].item == i:
				s.Wide.Wholes = append(s.Wide.Wholes, whole{it.Sig, x.Batch, x.Pieces, it.Sig, it.Sig, views[0].steps, true})
				it.Sig, views = uint32(len(s.Wide.Wholes))-1, views[1:]
			default:
				it.Sig = s.wholeFor(it.Sig, x)
			}
		}
	})
	s.fuseViews(0, mostViews)
}

// wholeFor is the number of what an item of a signature is to the pieces of a batched cluster.
func (s *Schedule) wholeFor(sig uint32, x *Cluster) uint32 {
	m := &s.Wide
	m.wholeOf = memory.Extend(m.wholeOf, int(sig)+1, 0)
	if k := m.wholeOf[sig]; k > 0 && m.Wholes[k].batch == x.Batch && m.Wholes[k].pieces == x.Pieces {
		return k
	}
	w := s.Sigs.Of(sig)
	axis := max(w[3]&255, 1) - 1 // of a Strided: the last
	at, each := partsAt(w, axis)
	e := extent{n: w[at] / each, axis: axis, cost: s.Sigs.Cost(sig)}
	parts, width := e.n/x.Batch, int(s.Sigs.Width[sig])
	steps := uint32(len(s.Pool))
	for _, step := range s.stepsOf(w, width, axis, 1) {
		s.Pool = append(s.Pool, step*parts*x.chunk())
	}
	for range FewWords - width {
		s.Pool = append(s.Pool, 0)
	}
	last := (x.Pieces - 1) * int32(x.chunk())
	m.Wholes = append(m.Wholes, whole{sig, x.Batch, x.Pieces,
		s.cutSignature(sig, &e, 0, x.chunk()*parts), s.cutSignature(sig, &e, 0, (x.Batch-uint32(last))*parts), steps, false})
	m.wholeOf[sig] = uint32(len(m.Wholes)) - 1
	return m.wholeOf[sig]
}

// appendPiece appends what a piece, counted from 0, does of items that the pieces share.
func (s *Schedule) appendPiece(list, shared []Item, k uint32, last bool) []Item {
	for i := range shared {
		it := shared[i]
		if it.Sig == RawSig {
			it.Words[1], it.Words[2] = k*it.Words[1], min(it.Words[1], it.Words[2]-k*it.Words[1])
			list = append(list, it)
			continue
		}
		x := &s.Wide.Wholes[it.Sig]
		it.Sig = x.each
		if last {
			it.Sig = x.final
		}
		if !x.views {
			list = append(list, s.stepped(it, k, x.steps))
			continue
		}
		chunk := chunkOf(x.batch, x.pieces)
		for e := k * chunk; e < min((k+1)*chunk, x.batch); e++ {
			list = append(list, s.stepped(it, e, x.steps))
		}
	}
	return list
}

// stepped is an item whose words are k steps further.
func (s *Schedule) stepped(it Item, k, steps uint32) Item {
	if s.Sigs.Width[it.Sig] > FewWords {
		it.Words[1], it.Words[2] = k, 1+steps
		return it
	}
	for slot, step := range s.Pool[steps:][:FewWords] {
		it.Words[slot] += k * step
	}
	return it
}

// AppendItemsOf appends the items of a cluster, fused.
func (s *Schedule) AppendItemsOf(list []Item, c uint32) []Item {
	x := &s.Clusters[c]
	if whole := c - uint32(x.piece); x.piece > 0 && s.Clusters[whole].Items > 0 { // the pieces share them
		return s.appendPiece(list, s.itemsOf(whole), uint32(x.piece-1), x.piece == s.Clusters[whole].Pieces)
	}
	return s.appendFused(list, c)
}
