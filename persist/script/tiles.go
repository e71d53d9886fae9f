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
	r, n := b.pieceInTiles(uint32(x.Rows), uint32(columns))
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
	tiles := tilesOf(uint32(x.Cols)) * tilesOf(b.columns(c))
	return max(1, min(uint32(b.r.Plan.Processors)/tiles, uint32(x.Rows)/sumTerms))
}

func tilesOf(n uint32) uint32 { return (n + tile - 1) / tile }

// tiles adds a product of m by n results that are sums of k terms: pieces for as many processors as there are. Partial
// results follow one another.
func (b *Builder) tiles(level int32, flags uint32, scale float32, bias operand, mnk [3]uint32, sums uint32, y, left, right matrixView) {
	rows, columns := b.pieceInTiles(mnk[0], mnk[1])
	terms := (mnk[2] + sums - 1) / sums
	segs := uint32(y.op.seg) | uint32(left.op.seg)<<4 | uint32(right.op.seg)<<8 | uint32(bias.seg)<<12
	var of, last [4]uint32 // rows, columns, terms and bias of a piece, and of the one before
	sig := uint32(0)
	for s := range sums {
		for j := uint32(0); j < mnk[1]; j += columns {
			for i := uint32(0); i < mnk[0]; i += rows {
				of = [4]uint32{min(rows, mnk[0]-i), min(columns, mnk[1]-j), min(terms, mnk[2]-s*terms)}
				if flags&isa.Bias != 0 {
					of[3] = bias.at + i
				}
				if of != last {
					b.sigs.head(isa.Gemm, 0, flags, segs, of[0], of[1], of[2], y.row, y.col, left.row, left.col, right.row, right.col, bits(scale), of[3])
					sig, last = b.sigs.intern(gemmElements(int(of[0]), int(of[1]), int(of[2]))), of
				}
				b.local(b.newCluster(level), 0, sig, y.op.at+s*mnk[0]*mnk[1]+i*y.row+j*y.col,
					left.op.at+i*left.row+s*terms*left.col, right.op.at+s*terms*right.row+j*right.col)
			}
		}
	}
}

// pieceInTiles is how many rows and columns of m by n results a piece has, so that there are as many pieces as processors
// at most, and the largest has as few tiles as possible.
func (b *Builder) pieceInTiles(m, n uint32) (rows, columns uint32) {
	down, across, all := tilesOf(m), tilesOf(n), uint32(b.r.Plan.Processors)
	least := down * across
	for r := uint32(1); r <= down && r < least; r++ {
		if k := all / ((down + r - 1) / r); k > 0 {
			if c := (across + k - 1) / k; r*c < least {
				least, rows, columns = r*c, r*tile, c*tile
			}
		}
	}
	if rows == 0 {
		return m, n
	}
	return rows, columns
}
