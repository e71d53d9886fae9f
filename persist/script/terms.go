package script

import "libvpps/persist/isa"

// Sums of many terms are divided into partial results of some of the terms each.

// sumElements is how many elements of sums a processor has at least, before they are divided.
const sumElements = 64

// dealSums divides the sums of the items from one on, all there are in cluster c, into about n partial results of so many
// elements, one behind the other, and returns how many these are.
func (b *Schedule) dealSums(from int, size uint32, n int, c int32) (count uint32) {
	level := b.clusters[c].level
	list := append(b.wide.items[:0], b.items[from:]...)
	b.wide.items, b.items = list, b.items[:from]
	b.clusters[c].items, b.clusters[c].cost = 0, 0
	// Each part has several whole items, or there are several parts of each item.
	terms := b.termsOf(&list[0])
	each, chunk := (len(list)+n-1)/n, terms
	if n > len(list) {
		k := uint32(n / len(list))
		chunk = (terms + k - 1) / k
	}
	for len(list) > 0 {
		some := list[:min(each, len(list))]
		for at := uint32(0); at < terms; at += chunk {
			b.dealTerms(some, at, min(chunk, terms-at), count*size, n, level)
			count++
		}
		list = list[len(some):]
	}
	return count
}

// dealTerms forms a partial result of so many terms of each of the items, from term at on, so far behind the items' own
// result. Of n partial results each is divided by elements among its share of the processors.
func (b *Schedule) dealTerms(list []item, at, terms, behind uint32, n int, level int32) {
	share := max(1, uint32(b.Plan.Processors/n))
	pieces, first := uint32(1), int32(len(b.clusters))
	for i := range list {
		it := list[i]
		b.cutTerms(&it, at, terms, behind, i == 0)
		w, e, product := b.signatureOf(&it), b.extentOf(&it), b.isProduct(&it)
		if i == 0 {
			least := (sumElements + e.inner - 1) / e.inner
			if pieces = max(1, min(e.n/least, share)); product {
				pieces = piecesOfProduct(w[3], w[4], share)
			}
			b.newClusters(level, pieces)
		}
		if it.sub = int32(i); product {
			b.cutProduct(&it, share, first)
			continue
		}
		for p := range pieces {
			b.cutItem(&it, &e, e.n*p/pieces, e.n*(p+1)/pieces, first+int32(p))
		}
	}
}

// termsOf is how many terms of an item's sums its operands have along the axis that cutTerms cuts.
func (b *Schedule) termsOf(it *item) uint32 {
	w := b.signatureOf(it)
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
func (b *Schedule) cutTerms(it *item, at, terms, behind uint32, first bool) {
	w, width := b.signatureOf(it), int(b.sigs.width[it.sig])
	words := append(b.wide.words[:0], b.addresses(it)...)
	b.wide.words = words
	words[0] += behind
	b.sigs.buf = append(b.sigs.buf[:0], w...)
	buf, work := b.sigs.buf, 0
	buf[0] |= isa.Acc << 16
	if first {
		buf[0] &^= isa.Acc << 16
	}
	if isa.Opcode(w[0]) == isa.Gemm {
		buf[5] = terms
		words[1], words[2] = words[1]+at*w[9], words[2]+at*w[10]
		work = gemmElements(int(w[3]), int(w[4]), int(terms))
	} else {
		all, axis := w[3]&255+w[3]>>8&255, longestReduced(w)
		buf[6+axis], work = terms, 2
		for _, n := range buf[6 : 6+all] {
			work *= int(n)
		}
		for s := range words[1:] {
			words[1+s] += at * w[6+all+uint32(1+s)*all+axis]
		}
	}
	it.sig = b.sigs.intern(work)
	if width > fewWords {
		it.words[0] = uint32(len(b.pool))
		b.pool = append(b.pool, words...)
	} else {
		copy(it.words[:], words)
	}
}
