package schedule

// Parts of a batch (persist/script). Each is lowered to a schedule of its own. The whole takes over clusters and signatures;
// items and products stay where they are until they are written.

// taking is the parts that were taken over and, of a part, what has become of it in the whole.
type taking struct {
	Parts    []*Schedule // in the order in which they were taken over
	partEnds []int32     // where the clusters of each of these end
	tensors  int         // that the whole had before it took over any
	InWhole  struct {
		Signature []uint32 // number of its signatures
		cluster   int32    // where its clusters begin
		pool      uint32   // and its words in pool
	}
}

// TakeOver adds what a part has, but for its items and products.
func (s *Schedule) TakeOver(p *Schedule) {
	if len(s.Parts) == 0 {
		s.tensors = len(s.Tensors)
	}
	s.Parts = append(s.Parts, p)
	s.Top, s.Full, s.MaxLevel = max(s.Top, p.Top), s.Full || p.Full, max(s.MaxLevel, p.MaxLevel)
	in := &p.InWhole
	in.Signature = s.Sigs.adopt(&p.Sigs, in.Signature)
	in.cluster = int32(len(s.Clusters))
	for i := range p.Clusters {
		c := p.Clusters[i]
		c.Parent += in.cluster
		s.Clusters = append(s.Clusters, c)
	}
	s.partEnds = append(s.partEnds, int32(len(s.Clusters)))
	in.pool = uint32(len(s.Pool))
	s.Pool = append(s.Pool, p.Pool...)
	s.Tensors = append(s.Tensors, p.Tensors...)
}

type clusterRange struct{ first, end int32 }

// takenClusters is where those begin and end that are parts'; nowhere without parts.
func (s *Schedule) takenClusters() (r clusterRange) {
	r.first = -1
	if list := s.Parts; len(list) > 0 {
		last := list[len(list)-1]
		r.first, r.end = list[0].InWhole.cluster, last.InWhole.cluster+int32(len(last.Clusters))
	}
	return r
}

// takenFrom is the part that a cluster was taken over from, nil: none.
func (s *Schedule) takenFrom(c int32) *Schedule {
	ends := s.partEnds
	k, end := 0, len(ends)
	for k < end {
		if m := (k + end) / 2; c < ends[m] {
			end = m
		} else {
			k = m + 1
		}
	}
	if k == len(ends) || c < s.Parts[k].InWhole.cluster {
		return nil
	}
	return s.Parts[k]
}

// AppendItemsOf appends the items of a cluster, wherever they are.
func (s *Schedule) AppendItemsOf(list []Item, c uint32) []Item {
	x := &s.Clusters[c]
	from, first := c, len(list)
	if whole := c - uint32(x.piece); x.piece > 0 && s.Clusters[whole].Items > 0 { // the pieces share them
		from = whole
	}
	p := s.takenFrom(int32(c))
	owner, at := s, from
	if p != nil {
		owner, at = p, from-uint32(p.InWhole.cluster)
	}
	n := int(s.Clusters[from].Items)
	if n == 0 {
		return list
	}
	items := owner.Items[owner.grouped[at]:][:n]
	if from != c {
		list = owner.appendPiece(list, items, uint32(x.piece-1), x.piece == s.Clusters[from].Pieces)
	} else {
		list = append(list, items...)
	}
	if p != nil {
		s.adopt(p, list[first:])
	}
	return list
}

// adopt makes copies of a part's items the whole's.
func (s *Schedule) adopt(p *Schedule, list []Item) {
	x := &p.InWhole
	for i := range list {
		it := &list[i]
		if it.Sig == RawSig {
			it.Words[0] += x.pool
		} else if p.Sigs.Width[it.Sig] > FewWords {
			it.Words[0] += x.pool
			if it.Words[2] > 0 {
				it.Words[2] += x.pool
			}
		}
		it.Sig = x.Signature[it.Sig]
	}
}
