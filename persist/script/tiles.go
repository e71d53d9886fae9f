package script

import (
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
	"libvpps/persist/schedule"
)

// Products in tiles. A matrix that is multiplied by many columns would be multiplied by its holders alone, each of which
// reads all columns. So all processors share such a product: each has some rows and columns of the result and reads only
// the rows and columns that these are made of, from memory. Results of a transposed product may be too few for all
// processors. Then several have the same results and sum some of the terms each: these are partial results, which the
// reader adds. Outer products remain the holders'.

// sumTerms is how many terms a partial result has at least.
const sumTerms = 128

// memoryColumns is from how many columns on all processors share the product of a matrix that is read from memory anyway:
// its holders form eight columns at a time.
const memoryColumns = 9

// inTiles reports whether all processors share the product of a matrix, or its transpose, that node c has by its argument
// right. Columns that the node has several times are the holders'.
func (b *Builder) inTiles(c, right uint32, m int32) bool {
	return b.dividesColumns() && m >= 0 && b.columnsInTiles(m, int(b.columns(c)), b.size(right))
}

// dividesColumns reports whether any product may be in tiles.
func (b *Builder) dividesColumns() bool { return b.Wide.On && !b.r.Plan.CPU }

// columnsInTiles reports whether all processors share the product of a matrix by so many columns, of so many elements. They
// do if the matrix is read from memory, if there are very many columns, or if its holders would have much more work each.
func (b *Builder) columnsInTiles(m int32, columns, elements int) bool {
	if !b.r.isForTiles(m, columns, elements, &b.Wide.Wideness) {
		return false
	}
	x := &b.r.Plan.Matrices[m]
	if b.symbolic { // a template knows no address of a matrix
		b.unfit = true
	}
	if columns >= manyColumns || b.r.Plan.Residence(int(m)).Columns > 0 {
		return true
	}
	held := b.holders.Copies[m]
	r, n := schedule.PieceOfProduct(uint32(x.Rows), uint32(columns), uint32(b.r.Plan.Processors), false)
	return x.Rows*columns > b.Wide.Faster*len(held)*len(held[0])*int(r*n)
}

// isForTiles reports whether a matrix is multiplied by so many columns, of so many elements, that tiles come into question.
func (r *Request) isForTiles(m int32, columns, elements int, w *schedule.Wideness) bool {
	x, least := &r.Plan.Matrices[m], w.Columns
	if r.Plan.Residence(int(m)).Columns > 0 {
		least = min(least, memoryColumns)
	}
	return columns >= least && columns*x.Cols == elements && schedule.GemmElements(x.Rows, columns, x.Cols) >= w.Single
}

// dividedInTiles reports whether tiles come into question for a product of node v.
func (r *Request) dividedInTiles(v uint32, w *schedule.Wideness) bool {
	g := r.Graph
	op := g.Op[v]
	if op != ops.MatrixMultiply && op != ops.AffineTransform {
		return false
	}
	d := g.DimOf(v)
	columns := d.Size() / max(1, d.Rows())
	if columns < min(w.Columns, memoryColumns) {
		return false
	}
	args := g.ArgsOf(v)
	for k, l := range args {
		if !isLeftOf(op, k) || g.Op[l] != ops.Parameter && g.Op[l] != ops.ConstParameter {
			continue
		}
		if m := r.Params[g.AttrsOf(l)[0]].Matrix; m >= 0 && r.isForTiles(m, columns, g.DimOf(args[k+1]).Size(), w) {
			return true
		}
	}
	return false
}

// termInTiles is inTiles of a product of node v.
func (b *Builder) termInTiles(v uint32, p *term) bool { return b.inTiles(v, p.right, p.matrix) }

// productInTiles forms a product of so many columns from y on in a level, with a bias unless that is NoOffset.
func (b *Builder) productInTiles(p term, columns uint32, y, right schedule.Operand, level int32, flags, bias uint32) {
	x := &b.r.Plan.Matrices[p.matrix]
	rows, cols := uint32(x.Rows), uint32(x.Cols)
	var at schedule.Operand
	if bias != NoOffset {
		flags, at = flags|isa.Bias, b.value(bias)
	}
	b.Tiles(level, flags, b.factorOf(p.left), at, [3]uint32{rows, columns, cols}, 1,
		schedule.MatrixView{Op: y, Row: 1, Col: rows, Batch: 0}, schedule.MatrixView{Op: schedule.At(isa.SegParam, x.Offset), Row: 1, Col: rows, Batch: 0}, schedule.MatrixView{Op: right, Row: 1, Col: cols, Batch: 0})
}

// transposedInTiles forms W^T dy of so many columns of gradients in a level, and returns the partial results.
func (b *Builder) transposedInTiles(left, columns uint32, dy schedule.Operand, level int32) schedule.Source {
	m := b.matrixOf(left)
	x := &b.r.Plan.Matrices[m]
	rows, cols, sums := uint32(x.Rows), uint32(x.Cols), b.sumsInTiles(m, columns)
	size := columns * cols
	s := schedule.Source{At: b.AllocHolders(sums, size), Count: sums, Apart: size}
	b.Tiles(level, 0, b.factorOf(left), schedule.Operand{}, [3]uint32{cols, columns, rows}, sums,
		schedule.MatrixView{Op: schedule.At(isa.SegAct, s.At), Row: 1, Col: cols, Batch: 0}, schedule.MatrixView{Op: schedule.At(isa.SegParam, x.Offset), Row: rows, Col: 1, Batch: 0}, schedule.MatrixView{Op: dy, Row: 1, Col: rows, Batch: 0})
	return s
}

// sumsInTiles is how many partial results W^T dy of so many columns leaves.
func (b *Builder) sumsInTiles(m int32, columns uint32) uint32 {
	x := &b.r.Plan.Matrices[m]
	return schedule.SumsOfProduct(uint32(x.Cols), columns, uint32(x.Rows), uint32(b.r.Plan.Processors), sumTerms, schedule.HasBlocks(uint32(x.Cols), uint32(x.Rows)))
}
