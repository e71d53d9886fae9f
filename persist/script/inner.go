package script

import (
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
)

// Division over the inner dimension. A gradient of few elements may be a sum of many terms: that of a convolution's
// filter, of a bias of many columns. To divide it by elements leaves most processors without work. So each of several
// processors sums some of the terms and leaves a partial result, as the holders of a matrix do for a transposed product.
// The reader of the gradient adds the partial results in their order. How many there are depends on the graph and the
// plan only, so every run gives the same bits.

const (
	sumElements = 64 // elements of sums that a processor has at least, before they are divided
)

// partialResults is how many partial results the use u leaves of v's gradient; 1: it is not divided over its terms.
func (b *Builder) partialResults(v uint32, u user) int {
	batch := b.shape(v).batch
	if !b.wide.on || u.kind != useOther || !b.byElements(batch, b.size(u.node)) {
		return 1
	}
	size := b.size(v)
	terms, work, pieces := b.size(u.node)/size, b.size(u.node), size/sumElements
	switch b.g.Op[u.node] {
	case ops.AffineTransform, ops.MatrixMultiply:
		product := b.isLeft(u)
		if batch > 1 {
			return 1
		}
		if product {
			terms = b.size(u.node) / int(b.shape(u.node).rows)
		} else if _, product = b.isRight(u); product {
			terms = b.size(u.node) / int(b.shape(u.node).cols)
			if x := b.shape(u.node); x.batch > 1 {
				return b.partsOfProducts(int(b.shape(v).rows), int(b.shape(v).cols), int(x.rows), int(x.batch))
			}
		}
		if product {
			return b.partsOfProduct(int(b.shape(v).rows), int(b.shape(v).cols), terms)
		}
	case ops.CwiseSum, ops.Sum, ops.Average, ops.AddVectorToAllColumns, ops.CwiseMultiply, ops.CwiseQuotient, ops.Pow, ops.Min, ops.Max:
	default:
		return 1
	}
	return b.partsOf(work, pieces, terms)
}

// partsOf is how many parts sums of so many terms have, which are so much work, and of whose elements there are so many
// pieces.
func (b *Builder) partsOf(work, pieces, terms int) int {
	if work < b.wide.Single {
		return 1
	}
	return max(1, min(work/(4*b.wide.Piece), b.r.Plan.Processors/max(1, pieces), terms/max(1, b.wide.Terms)))
}

// partsOfProduct is partsOf m by n results that are sums of k terms.
func (b *Builder) partsOfProduct(m, n, k int) int {
	if b.isSums(1, [3]uint32{uint32(m), uint32(n), uint32(k)}) {
		return b.partsOf(2*m*n*k, 1, k)
	}
	return b.partsOf(gemmElements(m, n, k), int(unitsOfProduct(uint32(m), uint32(n))), k)
}

// fullTerms is the number of terms from which a tile takes much longer than the instruction that it is of.
const fullTerms = 256

// partsOfProducts is partsOf m by n results that are sums of several products, each of so many terms. A piece has an
// instruction for each product, and several tiles if the terms are few. There are two parts at least: they are cut by rows
// and columns, and products that are added in order by columns only.
func (b *Builder) partsOfProducts(m, n, terms, products int) int {
	work := gemmElements(m, n, terms*products)
	if work < b.wide.Single {
		return 1
	}
	pieces := int(unitsOfProduct(uint32(m), uint32(n))) * min(terms, fullTerms) / fullTerms
	return max(2, b.partsOf(work, pieces, terms*products))
}

// leavePartialResults forms what the use u adds to v's gradient as partial results, in a level.
func (b *Builder) leavePartialResults(v uint32, u user, level int32) source {
	n, size, from := b.partialResults(v, user{u.node, u.arg, useOther, 0}), uint32(b.size(v)), len(b.items)
	s := source{b.allocHolders(uint32(n), size), 0, size}
	c := b.newCluster(level)
	b.contribute(v, u, operand{isa.SegAct, s.at}, 0, c, 0)
	s.count = b.dealSums(from, size, n, c)
	return s
}

// dealSums divides the sums of the items from one on, all there are in cluster c, into about n partial results of so many
// elements, one behind the other, and returns how many these are.
func (b *Builder) dealSums(from int, size uint32, n int, c int32) (count uint32) {
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

// mostOfPartial bounds the floats of a node's partial results: those of a part of a batch have to fit into its memory.
const mostOfPartial = 1 << 13

// sumInParts forms node v, sums of so many terms in all, in the level behind that of its cluster c, as partial results of
// several processors. It has few elements, or false is returned, and nothing has happened.
func (b *Builder) sumInParts(v uint32, e *element, terms int, c int32) bool {
	size := b.size(v)
	if !b.wide.on || !b.clusters[c].isPrivate() || size >= 2*b.r.Plan.Processors {
		return false
	}
	n := min(terms/(4*b.wide.Piece), b.r.Plan.Processors/max(1, size/sumElements), terms/size/max(1, b.wide.Terms), mostOfPartial/size)
	if n <= 1 {
		return false
	}
	from, y, x := len(b.items), e.ops[0], b.partsFor(n, size)
	e.ops[0] = operand{isa.SegAct, x.at}
	b.emitElement(e, c, 0)
	b.addParts(v, x, from, n, c, y, 0)
	return true
}

// partsFor has room for so many partial results of so many elements, of which there are none yet.
func (b *Builder) partsFor(n, size int) source {
	return source{b.allocHolders(uint32(n), uint32(size)), 0, uint32(size)}
}

// addParts makes about n partial results of the items from one on, all there are in cluster c, and adds them up to node v's
// value y in the next level.
func (b *Builder) addParts(v uint32, x source, from, n int, c int32, y operand, flags uint32) {
	x.count = b.dealSums(from, x.apart, n, c)
	b.linear = append(b.linear[:0], x)
	level := b.clusters[c].level + 1
	to := b.newWide(level, v, int(x.count*x.apart))
	b.spots[v] = spot{level, to, b.sumItems(to, 0, flags, y, isa.SegAct, 1, int(x.apart), b.linear) - 1}
	if b.clusters[to].isPrivate() {
		b.spots[v].cluster = -1
	}
}

// dealTerms forms a partial result of so many terms of each of the items, from term at on, so far behind the items' own
// result. Of n partial results each is divided by elements among its share of the processors.
func (b *Builder) dealTerms(list []item, at, terms, behind uint32, n int, level int32) {
	share := max(1, uint32(b.r.Plan.Processors/n))
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
func (b *Builder) termsOf(it *item) uint32 {
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
func (b *Builder) cutTerms(it *item, at, terms, behind uint32, first bool) {
	w, width := b.signatureOf(it), int(b.sigs.width[it.sig])
	words := append(b.wide.words[:0], b.wordsOf(it)[:width]...)
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
