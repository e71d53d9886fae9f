package script

import "libvpps/persist/isa"

// Products in tiles. A matrix that is multiplied by many columns would be multiplied by its holders alone, each of which
// reads all columns. So all processors share such a product: each has some rows and columns of the result and reads only
// the rows and columns that these are made of, from memory. Results of a transposed product may be too few for all
// processors. Then several have the same results and sum some of the terms each: these are partial results, which the
// reader adds. Outer products remain the holders'.

// sumTerms is how many terms a partial result has at least.
const sumTerms = 128

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
	held := b.holders.Copies[m]
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
