package script

import "libvpps/persist/isa"

// Products of two operands: Gemm, and the rectangles of their results that processors share.

// tile is the rows and columns that the kernel forms at a time (jit/kernel/gemm.h).
const tile = 32

const gemmLeast = 8

// gemmElements is the work of a product of m by n results that are sums of k terms, in elements of element-wise work. A
// GPU forms results of at least gemmLeast rows and columns in tiles, and others four times as slowly
// (jit/kernel/gemm.h).
func gemmElements(m, n, k int) int {
	if min(m, n) < gemmLeast {
		return m * n * k / 4
	}
	return m * n * k / 16
}

// matrixView is an operand of Gemm: address, row and column strides, distance of batch elements.
type matrixView struct {
	op       operand
	row, col uint32
	batch    uint32
}

// gemmItems adds one product a batch element, or one for all where batch elements lie like further columns of the result or
// like further terms of its sums. Into an unbatched result they are added in order. It returns the next free order.
func (b *Schedule) gemmItems(c, s int32, flags, batch uint32, mnk [3]uint32, y, left, right matrixView) int32 {
	n, k := mnk[1], mnk[2]
	switch {
	case left.batch == 0 && right.batch == n*right.col && y.batch == n*y.col:
		mnk[1], batch = n*batch, 1
	case y.batch == 0 && left.batch == k*left.col && right.batch == k*right.row:
		mnk[2], batch = k*batch, 1
	}
	if b.isSums(batch, mnk) {
		b.productSums(c, s, flags, batch, mnk, y, left, right)
		return s + 1
	}
	segs := uint32(y.op.seg) | uint32(left.op.seg)<<4 | uint32(right.op.seg)<<8
	for i := range batch {
		b.sigs.head(isa.Gemm, 0, flags, segs, mnk[0], mnk[1], mnk[2], y.row, y.col, left.row, left.col, right.row, right.col, isa.Float(1), 0)
		b.local(c, s, b.sigs.intern(gemmElements(int(mnk[0]), int(mnk[1]), int(mnk[2]))),
			y.op.at+i*y.batch, left.op.at+i*left.batch, right.op.at+i*right.batch)
		if y.batch == 0 {
			s++
			flags |= isa.Acc
		}
	}
	if y.batch != 0 {
		s++
	}
	return s
}

// Many small products, and long sums of few results, are no work for Gemm's blocks: each product would be an item, and
// most of a block empty. They are sums of products of elements, along axes like other sums.
const (
	manyProducts = 256  // of which each has at most so many results
	fewResults   = 16   // of a product that are sums
	longSum      = 2048 // of so many terms: from there on all of a processor's threads form a sum (jit/kernel/team.h)
)

// isSums reports whether products, one a batch element, are formed as sums of products of elements. A CPU's blocks are
// small, and its host has little to do.
func (b *Schedule) isSums(batch uint32, mnk [3]uint32) bool {
	results := uint64(mnk[0]) * uint64(mnk[1])
	return !b.Plan.CPU && (batch >= manyProducts && results <= manyProducts || batch == 1 && results <= fewResults && mnk[2] >= longSum)
}

// productSums adds the item of products that isSums is true of.
func (b *Schedule) productSums(c, s int32, flags, batch uint32, mnk [3]uint32, y, left, right matrixView) {
	axes := b.newAxes(4)
	axes[0] = axis{mnk[0], [5]uint32{y.row, left.row, 0}}
	axes[1] = axis{mnk[1], [5]uint32{y.col, 0, right.col}}
	axes[2] = axis{batch, [5]uint32{y.batch, left.batch, right.batch}}
	axes[3] = axis{mnk[2], [5]uint32{0, left.col, right.row}}
	e := element{fn: isa.Mul, flags: flags, p: 1, kept: axes[:3], red: axes[3:]}
	if y.batch == 0 && batch > 1 { // of all batch elements
		axes[2], axes[3] = axes[3], axes[2]
		e.kept, e.red = axes[:2], axes[2:]
	}
	e.ops = [5]operand{y.op, left.op, right.op}
	b.emitElement(&e, c, s)
}

// tiles adds a product of m by n results that are sums of k terms: pieces for as many processors as there are. Partial
// results follow one another.
func (b *Schedule) tiles(level int32, flags uint32, scale float32, bias operand, mnk [3]uint32, sums uint32, y, left, right matrixView) {
	segs := uint32(y.op.seg) | uint32(left.op.seg)<<4 | uint32(right.op.seg)<<8 | uint32(bias.seg)<<12
	all, terms := uint32(b.Plan.Processors), (mnk[2]+sums-1)/sums
	for s := range sums {
		n := min(terms, mnk[2]-s*terms)
		b.sigs.head(isa.Gemm, 0, flags, segs, mnk[0], mnk[1], n, y.row, y.col, left.row, left.col, right.row, right.col, isa.Float(scale), bias.at)
		it := item{sig: b.sigs.intern(gemmElements(int(mnk[0]), int(mnk[1]), int(n)))}
		it.words = [fewWords]uint32{y.op.at + s*mnk[0]*mnk[1], left.op.at + s*terms*left.col, right.op.at + s*terms*right.row}
		b.cutProduct(&it, all, b.newClusters(level, piecesOfProduct(mnk[0], mnk[1], all)))
	}
}

// newClusters starts so many clusters and returns the first.
func (b *Schedule) newClusters(level int32, n uint32) (first int32) {
	first = int32(len(b.clusters))
	for range n {
		b.newCluster(level)
	}
	return first
}

// isProduct reports whether an item is a Gemm's.
func (b *Schedule) isProduct(it *item) bool { return isa.Opcode(b.signatureOf(it)[0]) == isa.Gemm }

// cutProduct adds the pieces of a Gemm that so many processors share to the clusters from one on.
func (b *Schedule) cutProduct(it *item, processors uint32, to int32) {
	w := append(b.wide.words[:0], b.sigs.of(it.sig)...) // where signatures are may change
	b.wide.words = w
	m, n := w[3], w[4]
	rows, columns := pieceOfProduct(m, n, processors)
	var of, last [3]uint32 // rows, columns and bias of a piece, and of the one before
	part := *it
	for j := uint32(0); j < n; j += columns {
		for i := uint32(0); i < m; i += rows {
			of = [3]uint32{min(rows, m-i), min(columns, n-j), w[13]}
			if w[0]>>16&isa.Bias != 0 {
				of[2] += i
			}
			if of != last {
				b.sigs.buf = append(b.sigs.buf[:0], w...)
				b.sigs.buf[3], b.sigs.buf[4], b.sigs.buf[13] = of[0], of[1], of[2]
				part.sig, last = b.sigs.intern(gemmElements(int(of[0]), int(of[1]), int(w[5]))), of
			}
			part.words = [fewWords]uint32{it.words[0] + i*w[6] + j*w[7], it.words[1] + i*w[8], it.words[2] + j*w[11]}
			part.cluster = to
			b.putBack(&part)
			to++
		}
	}
}

// unitOfProduct is the rows and columns of m by n results that a processor forms at a time: a tile, or, of few rows or
// columns, what a warp's threads form.
func unitOfProduct(m, n uint32) (rows, columns uint32) {
	switch {
	case m < gemmLeast:
		return m, tile
	case n < gemmLeast:
		return tile, n
	}
	return tile, tile
}

// unitsOfProduct is how many of these there are.
func unitsOfProduct(m, n uint32) uint32 {
	rows, columns := unitOfProduct(m, n)
	return ((m + rows - 1) / rows) * ((n + columns - 1) / columns)
}

// pieceOfProduct is how many rows and columns of m by n results a piece has, so that there are as many pieces as
// processors at most, and the largest has as few units as possible.
func pieceOfProduct(m, n, processors uint32) (rows, columns uint32) {
	height, width := unitOfProduct(m, n)
	down, across := (m+height-1)/height, (n+width-1)/width
	least := down * across
	for r := uint32(1); r <= down && r < least; r++ {
		if k := processors / ((down + r - 1) / r); k > 0 {
			if c := (across + k - 1) / k; r*c < least {
				least, rows, columns = r*c, r*height, c*width
			}
		}
	}
	if rows == 0 {
		return m, n
	}
	return rows, columns
}

// piecesOfProduct is how many such pieces there are.
func piecesOfProduct(m, n, processors uint32) uint32 {
	rows, columns := pieceOfProduct(m, n, processors)
	return ((m + rows - 1) / rows) * ((n + columns - 1) / columns)
}
