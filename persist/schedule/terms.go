package schedule

import "libvpps/persist/isa"

// Sums of many terms are divided into partial results of some of the terms each.

// SumElements is how many elements of sums a processor has at least, before they are divided.
const SumElements = 64

// DealSums divides the sums of the items from one on, all there are in cluster c, into about n partial results of so many
// elements, one behind the other, and returns how many these are.
func (s *Schedule) DealSums(from int, size uint32, n int, c int32) (count uint32) {
	level := s.Clusters[c].Level
	list := append(s.Wide.items[:0], s.Items[from:]...)
	s.Wide.items, s.Items = list, s.Items[:from]
	s.Clusters[c].Items, s.Clusters[c].Cost = 0, 0
	// Each part has several whole items, or there are several parts of each item.
	terms := s.termsOf(&list[0])
	each, chunk := (len(list)+n-1)/n, terms
	if n > len(list) {
		k := uint32(n / len(list))
		if chunk = (terms + k - 1) / k; !s.Plan.CPU && s.isProduct(&list[0]) {
			chunk = TermsOfSum(terms, k)
		}
	}
	for len(list) > 0 {
		some := list[:min(each, len(list))]
		for at := uint32(0); at < terms; at += chunk {
			s.dealTerms(some, at, min(chunk, terms-at), count*size, n, level)
			count++
		}
		list = list[len(some):]
	}
	return count
}

// dealTerms forms a partial result of so many terms of each of the items, from term at on, so far behind the items' own
// result. Of n partial results each is divided by elements among its share of the processors.
func (s *Schedule) dealTerms(list []Item, at, terms, behind uint32, n int, level int32) {
	share := max(1, uint32(s.Plan.Processors/n))
	pieces, first := uint32(1), int32(len(s.Clusters))
	for i := range list {
		it := list[i]
		s.cutTerms(&it, at, terms, behind, i == 0)
		e, product := s.extentOf(&it), s.isProduct(&it)
		if i == 0 {
			least := (SumElements + e.inner - 1) / e.inner
			if pieces = max(1, min(e.n/least, share)); product {
				pieces = s.piecesOfItem(&it, share)
			}
			s.newClusters(level, pieces)
		}
		if it.Sub = int32(i); product {
			s.cutProduct(&it, share, first)
			continue
		}
		for p := range pieces {
			s.cutItem(&it, &e, e.n*p/pieces, e.n*(p+1)/pieces, first+int32(p))
		}
	}
}

// termsOf is how many terms of an item's sums its operands have along the axis that cutTerms cuts.
func (s *Schedule) termsOf(it *Item) uint32 {
	w := s.SignatureOf(it)
	if isa.Opcode(w[0]) == isa.Gemm {
		return w[5]
	}
	return w[6+longestReduced(w)]
}

// longestReduced is the longest of the axes that a Strided sums over, of equal ones the last.
func longestReduced(w []uint32) (axis uint32) {
	kept, all := w[3]&255, w[3]&255+w[3]>>8&255
	axis = kept
	for a := kept; a < all; a++ {
		if w[6+a] >= w[6+axis] {
			axis = a
		}
	}
	return axis
}

// cutTerms makes an item that of so many terms, from term at on, with a result so far behind its own, which it stores if
// it is the first of a partial result.
func (s *Schedule) cutTerms(it *Item, at, terms, behind uint32, first bool) {
	w, width := s.SignatureOf(it), int(s.Sigs.Width[it.Sig])
	words := append(s.Wide.words[:0], s.Addresses(it)...)
	s.Wide.words = words
	words[0] += behind
	s.Sigs.buf = append(s.Sigs.buf[:0], w...)
	buf, work := s.Sigs.buf, 0
	buf[0] |= isa.Acc << 16
	if first {
		buf[0] &^= isa.Acc << 16
	}
	if isa.Opcode(w[0]) == isa.Gemm {
		buf[5] = terms
		words[1], words[2] = words[1]+at*w[9], words[2]+at*w[10]
		work = GemmElements(int(w[3]), int(w[4]), int(terms))
	} else {
		all, axis := w[3]&255+w[3]>>8&255, longestReduced(w)
		buf[6+axis], work = terms, 2
		for _, n := range buf[6 : 6+all] {
			work *= int(n)
		}
		for slot := range words[1:] {
			words[1+slot] += at * w[6+all+uint32(1+slot)*all+axis]
		}
	}
	it.Sig = s.Sigs.Intern(work)
	if width > FewWords {
		it.Words[0] = uint32(len(s.Pool))
		s.Pool = append(s.Pool, words...)
	} else {
		copy(it.Words[:], words)
	}
}
