package script

import "libvpps/persist/isa"

// Products in tiles. A matrix that is multiplied by many columns would be multiplied by its holders alone, each of which
// reads all columns. So all processors share such a product: each has some rows and columns of the result and reads only
// the rows and columns that these are made of, from memory. Results of a transposed product may be too few for all
// processors. Then several have the same results and sum some of the terms each: these are partial results, which the
// reader adds. Outer products remain the holders'.

const (
	tile     = 32  // rows and columns that the kernel forms at a time (jit/kernel/gemm.h)
	sumTerms = 128 // terms that a partial result has at least
)

// inTiles reports whether all processors share the product of a matrix, or its transpose, that node c has by its argument
// right. They do if the matrix is read from memory anyway, if there are very many columns, or if its holders would have much
// more work each. Columns that the node has several times are the holders'.
func (b *Builder) inTiles(c, right uint32, m int32) bool {
	if m < 0 || !b.wide.on || b.r.Plan.CPU || b.across(m) > 1 {
		return false
	}
	x, columns := &b.r.Plan.Matrices[m], int(b.columns(c))
	if columns < b.wide.Columns || columns*x.Cols != b.size(right) || gemmElements(x.Rows, columns, x.Cols) < b.wide.Single {
		return false
	}
	if columns >= manyColumns || b.r.Plan.Residence(int(m)).Columns > 0 {
		return true
	}
	held := b.plan.copies[m]
	r, n := pieceOfProduct(uint32(x.Rows), uint32(columns), uint32(b.r.Plan.Processors))
	return x.Rows*columns > b.wide.Faster*len(held)*len(held[0])*int(r*n)
}

// termInTiles is inTiles of a product of node v.
func (b *Builder) termInTiles(v uint32, p *term) bool { return b.inTiles(v, p.right, p.matrix) }

// productInTiles forms a product of node v in a level, with a bias unless that is NoOffset.
func (b *Builder) productInTiles(v uint32, p term, y operand, level int32, flags, bias uint32) {
	x := &b.r.Plan.Matrices[p.matrix]
	rows, cols := uint32(x.Rows), uint32(x.Cols)
	var at operand
	if bias != NoOffset {
		flags, at = flags|isa.Bias, b.value(bias)
	}
	b.tiles(level, flags, b.factorOf(p.left), at, [3]uint32{rows, b.columns(v), cols}, 1,
		matrixView{y, 1, rows, 0}, matrixView{operand{isa.SegParam, x.Offset}, 1, rows, 0}, matrixView{b.value(p.right), 1, cols, 0})
}

// transposedInTiles forms W^T dy of node c's gradient in a level, and returns the partial results.
func (b *Builder) transposedInTiles(c, left uint32, level int32) source {
	m := b.matrixOf(left)
	x, columns := &b.r.Plan.Matrices[m], b.columns(c)
	rows, cols, sums := uint32(x.Rows), uint32(x.Cols), b.sumsInTiles(c, m)
	size := columns * cols
	s := source{b.allocHolders(sums, size), sums, size}
	b.tiles(level, 0, b.factorOf(left), operand{}, [3]uint32{cols, columns, rows}, sums,
		matrixView{operand{isa.SegAct, s.at}, 1, cols, 0}, matrixView{operand{isa.SegParam, x.Offset}, rows, 1, 0}, matrixView{b.gradient(c), 1, rows, 0})
	return s
}

// sumsInTiles is how many partial results W^T dy of node c's gradient leaves.
func (b *Builder) sumsInTiles(c uint32, m int32) uint32 {
	x := &b.r.Plan.Matrices[m]
	return max(1, min(uint32(b.r.Plan.Processors)/unitsOfProduct(uint32(x.Cols), b.columns(c)), uint32(x.Rows)/sumTerms))
}

// tiles adds a product of m by n results that are sums of k terms: pieces for as many processors as there are. Partial
// results follow one another.
func (b *Builder) tiles(level int32, flags uint32, scale float32, bias operand, mnk [3]uint32, sums uint32, y, left, right matrixView) {
	segs := uint32(y.op.seg) | uint32(left.op.seg)<<4 | uint32(right.op.seg)<<8 | uint32(bias.seg)<<12
	all, terms := uint32(b.r.Plan.Processors), (mnk[2]+sums-1)/sums
	for s := range sums {
		n := min(terms, mnk[2]-s*terms)
		b.sigs.head(isa.Gemm, 0, flags, segs, mnk[0], mnk[1], n, y.row, y.col, left.row, left.col, right.row, right.col, bits(scale), bias.at)
		it := item{sig: b.sigs.intern(gemmElements(int(mnk[0]), int(mnk[1]), int(n)))}
		it.words = [fewWords]uint32{y.op.at + s*mnk[0]*mnk[1], left.op.at + s*terms*left.col, right.op.at + s*terms*right.row}
		b.cutProduct(&it, all, b.newClusters(level, piecesOfProduct(mnk[0], mnk[1], all)))
	}
}

// newClusters starts so many clusters and returns the first.
func (b *Builder) newClusters(level int32, n uint32) (first int32) {
	first = int32(len(b.clusters))
	for range n {
		b.newCluster(level)
	}
	return first
}

// isProduct reports whether an item is a Gemm's.
func (b *Builder) isProduct(it *item) bool { return isa.Opcode(b.signatureOf(it)[0]) == isa.Gemm }

// cutProduct adds the pieces of a Gemm that so many processors share to the clusters from one on.
func (b *Builder) cutProduct(it *item, processors uint32, to int32) {
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
