package script

// Parts of a batch (persist/script). Each is lowered to a schedule of its own. The whole takes over clusters and signatures;
// items and products stay where they are until they are written.

// taking is the parts that were taken over and, of a part, what has become of it in the whole.
type taking struct {
	parts    []*Schedule // in the order in which they were taken over
	partEnds []int32     // where the clusters of each of these end
	in       struct {
		signature []uint32 // number of its signatures
		cluster   int32    // where its clusters begin
		pool      uint32   // and its words in pool
	}
}

// takeOver adds what a part has, but for its items and products.
func (b *Schedule) takeOver(p *Schedule) {
	b.parts = append(b.parts, p)
	b.top, b.full, b.maxLevel = max(b.top, p.top), b.full || p.full, max(b.maxLevel, p.maxLevel)
	in := &p.in
	in.signature = b.sigs.adopt(&p.sigs, in.signature)
	in.cluster = int32(len(b.clusters))
	for i := range p.clusters {
		c := p.clusters[i]
		c.parent += in.cluster
		b.clusters = append(b.clusters, c)
	}
	b.partEnds = append(b.partEnds, int32(len(b.clusters)))
	in.pool = uint32(len(b.pool))
	b.pool = append(b.pool, p.pool...)
	b.tensors = append(b.tensors, p.tensors...)
}

type clusterRange struct{ first, end int32 }

// takenClusters is where those begin and end that are parts'; nowhere without parts.
func (b *Schedule) takenClusters() (r clusterRange) {
	r.first = -1
	if list := b.parts; len(list) > 0 {
		last := list[len(list)-1]
		r.first, r.end = list[0].in.cluster, last.in.cluster+int32(len(last.clusters))
	}
	return r
}

// takenFrom is the part that a cluster was taken over from, nil: none.
func (b *Schedule) takenFrom(c int32) *Schedule {
	ends := b.partEnds
	k, end := 0, len(ends)
	for k < end {
		if m := (k + end) / 2; c < ends[m] {
			end = m
		} else {
			k = m + 1
		}
	}
	if k == len(ends) || c < b.parts[k].in.cluster {
		return nil
	}
	return b.parts[k]
}

// appendItemsOf appends the items of a cluster, wherever they are.
func (b *Schedule) appendItemsOf(list []item, c uint32) []item {
	x := &b.clusters[c]
	from, first := c, len(list)
	if whole := c - uint32(x.piece); x.piece > 0 && b.clusters[whole].items > 0 { // the pieces share them
		from = whole
	}
	p := b.takenFrom(int32(c))
	owner, at := b, from
	if p != nil {
		owner, at = p, from-uint32(p.in.cluster)
	}
	n := int(b.clusters[from].items)
	if n == 0 {
		return list
	}
	items := owner.items[owner.grouped[at]:][:n]
	if from != c {
		list = owner.appendPiece(list, items, uint32(x.piece-1), x.piece == b.clusters[from].pieces)
	} else {
		list = append(list, items...)
	}
	if p != nil {
		b.adopt(p, list[first:])
	}
	return list
}

// adopt makes copies of a part's items the whole's.
func (b *Schedule) adopt(p *Schedule, list []item) {
	x := &p.in
	for i := range list {
		it := &list[i]
		if it.sig == rawSig {
			it.words[0] += x.pool
		} else if p.sigs.width[it.sig] > fewWords {
			it.words[0] += x.pool
			if it.words[2] > 0 {
				it.words[2] += x.pool
			}
		}
		it.sig = x.signature[it.sig]
	}
}
