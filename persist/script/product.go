package script

import (
	"slices"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
	"libvpps/persist/schedule"
)

// Lowering of products. A parameter that the plan holds is multiplied where its rows live,
// one item a column; anything else goes through Gemm.

// term is one left*right of an affine transform.
type term struct {
	left, right uint32
	matrix      int32 // in the plan, -1: Gemm
}

// listTerms lists the products of an affine transform or a matrix product in b.terms, and returns the
// bias (NoOffset: none).
func (b *Builder) listTerms(v uint32) (bias uint32) {
	args := b.g.ArgsOf(v)
	bias, b.terms = NoOffset, b.terms[:0]
	if b.g.Op[v] == ops.AffineTransform {
		bias, args = args[0], args[1:]
	}
	for i := 0; i+1 < len(args); i += 2 {
		b.terms = append(b.terms, term{args[i], args[i+1], b.matrixOf(args[i])})
	}
	return bias
}

// leftSide is what a node is as the left side of a product: the matrix, -1 if it is none or not resident, and its factor.
type leftSide struct {
	matrix int32
	factor float32
}

// findLefts finds that of the nodes at the beginning, which are asked for often.
func (b *Builder) findLefts() {
	b.lefts = b.lefts[:0]
	if b.g == nil {
		return
	}
	for l := range leavesOfAll(b.g, b.r.Node) {
		x := leftSide{matrix: b.findMatrix(l)}
		if x.matrix >= 0 {
			x.factor = b.findFactor(l)
		}
		b.lefts = append(b.lefts, x)
	}
}

// leavesOfAll is how many of a graph's nodes before last are the parameters and constants that come before all others.
func leavesOfAll(g *bridge.Graph, last uint32) uint32 {
	for v := range last {
		switch g.Op[v] {
		case ops.Parameter, ops.ConstParameter, ops.Constant, ops.Input, ops.ScalarInput:
		default:
			return v
		}
	}
	return last
}

// matrixOf is the plan's number of the matrix that node l holds, -1 if it is not resident.
func (b *Builder) matrixOf(l uint32) int32 {
	if int(l) < len(b.lefts) {
		return b.lefts[l].matrix
	}
	return b.findMatrix(l)
}

// factorOf is the factor of node l, which holds a matrix.
func (b *Builder) factorOf(l uint32) float32 {
	if int(l) < len(b.lefts) {
		return b.lefts[l].factor
	}
	return b.findFactor(l)
}

func (b *Builder) findMatrix(l uint32) int32 {
	if !b.isParameter(l) {
		return -1
	}
	if old := !b.r.Forward || l < uint32(b.s.Done); old && !b.s.Resident[l] {
		return -1
	}
	m := b.r.Params[b.g.AttrsOf(l)[0]].Matrix
	if m >= 0 && len(b.ofAll) > 0 && b.ofAll[m] {
		return -1
	}
	return m
}

func (b *Builder) findFactor(l uint32) float32 { return b.r.Params[b.g.AttrsOf(l)[0]].Factor }

func (b *Builder) lowerAffine(v uint32) {
	bias := b.listTerms(v)
	y := b.output(v)
	level, acc := int32(0), false
	if bias != NoOffset {
		if b.plainBias(v, bias) {
			level = b.ready(bias)
		} else {
			b.copyBias(v, bias, y)
			level, acc = b.ready(v), true
		}
	}
	b.sortTerms()
	b.productChain(v, bias, y, level, acc)
}

// mostSorted is how many products of a node are sorted.
const mostSorted = 4

// sortTerms puts products whose right side is ready early first: the late ones then wait for
// nothing else. In a template that is what depends on no slot. Insertion sort of short lists; long ones stay as they are.
func (b *Builder) sortTerms() {
	list := b.terms
	if len(list) > mostSorted || b.symbolic && b.r.Plan.CPU { // there a template's order does not depend on what else is in it
		return
	}
	for i := 1; i < len(list); i++ {
		for j := i; j > 0 && b.isSooner(list[j].right, list[j-1].right); j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
}

// isSooner reports whether node v is ready before node w.
func (b *Builder) isSooner(v, w uint32) bool {
	if b.isLate(v) != b.isLate(w) {
		return b.isLate(w)
	}
	return b.ready(v) < b.ready(w)
}

// isLate reports whether a node of a template depends on slots. Whatever else it reads is there before.
func (b *Builder) isLate(v uint32) bool { return int(v) < len(b.late) && b.late[v] }

// plainBias reports whether the first product can add the bias itself: a vector as long as
// the output's columns, the same for all.
func (b *Builder) plainBias(v, bias uint32) bool {
	if len(b.terms) == 0 || b.shape(bias).size != b.shape(v).rows || b.symbolic && !b.isParameter(bias) {
		return false
	}
	for i := range b.terms {
		if b.terms[i].matrix < 0 {
			return false
		}
	}
	return true
}

// isParameter reports whether a node is a parameter.
func (b *Builder) isParameter(v uint32) bool {
	return b.g.Op[v] == ops.Parameter || b.g.Op[v] == ops.ConstParameter
}

// copyBias starts the output with the bias, broadcast over columns and batch.
func (b *Builder) copyBias(v, bias uint32, y schedule.Operand) {
	c, s := b.place(v, bias)
	dims := [...]bridge.Dim{*b.g.DimOf(v), *b.g.DimOf(bias)}
	e := schedule.Element{Fn: isa.Copy, Kept: b.spread(dims[:])}
	e.Ops[0], e.Ops[1] = y, b.value(bias)
	b.AddElement(&e, c, s)
}

// productChain adds the products one after another, each a level behind the one before. One
// that is ready earlier and whose matrix lives elsewhere does not wait: such results are added at the end. In a template
// slots come after the products that depend on none.
func (b *Builder) productChain(v, bias uint32, y schedule.Operand, level int32, acc bool) {
	b.beside = b.beside[:0]
	fresh, chain, late := !acc && bias != NoOffset, int32(-1), int32(-1)
	for k, p := range b.terms {
		if p.matrix < 0 {
			b.gemmForward(v, p, y, acc)
			level, acc, chain = b.spots[v].level+1, true, -1
			continue
		}
		ready, biased := b.ready(p.right), uint32(NoOffset)
		if b.isLate(p.right) {
			if late < 0 {
				late = level
			}
			ready = max(ready, late)
		}
		if b.termInTiles(v, &p) {
			level = max(level, ready)
			biased := uint32(NoOffset)
			if fresh {
				biased, fresh = bias, false
			}
			b.productInTiles(p, b.columns(v), y, b.value(p.right), level, accFlag(acc), biased)
			b.spots[v] = spot{level, -1, 0}
			level, acc, chain = level+1, true, -1
			continue
		}
		if chain >= 0 && ready < level && b.apart(chain, p.matrix) {
			t := b.Alloc(b.size(v))
			b.product(v, p, schedule.At(isa.SegAct, t), ready, isa.Copy, 0, NoOffset)
			b.beside = append(b.beside, schedule.One(t))
			continue
		}
		level = max(level, ready)
		flags := accFlag(acc)
		if fresh {
			biased, fresh = bias, false
		}
		fn, last := isa.Copy, v
		if k == len(b.terms)-1 && len(b.beside) == 0 {
			fn, last = b.behindSums(v, y)
		}
		b.product(v, p, y, level, fn, flags, biased)
		b.spots[v] = spot{level, -1, 0}
		b.spots[last] = b.spots[v]
		level, acc, chain = level+1, true, p.matrix
	}
	if len(b.beside) > 0 {
		c, s := b.place(v, v)
		b.spots[v].sub = b.SumItems(c, s, isa.Acc, y, isa.SegAct, 1, b.size(v), b.beside) - 1
	}
}

// accFlag is the flag of an instruction that adds to what is there.
func accFlag(acc bool) uint32 {
	if acc {
		return isa.Acc
	}
	return 0
}

// apart reports whether other processors hold matrix m than matrix o.
func (b *Builder) apart(m, o int32) bool {
	return !slices.Equal(b.holders.Copies[m][0], b.holders.Copies[o][0])
}

// productSignature is the signature of one product, with the result y.
func (b *Builder) productSignature(p term, y schedule.Operand, fn isa.Fn, flags, bias uint32) uint32 {
	segs, biasAt := uint32(y.Seg)|uint32(b.s.Segment[p.right])<<4, uint32(0)
	if bias != NoOffset {
		flags, biasAt = flags|isa.Bias, b.s.Value[bias]
		segs |= uint32(b.s.Segment[bias]) << 8
	}
	cols := b.r.Plan.Matrices[p.matrix].Cols
	return b.Sigs.Short(6, cols, schedule.FirstWord(isa.Product, uint8(fn), flags), segs, uint32(p.matrix), isa.Float(b.factorOf(p.left)), biasAt, isa.Float(1))
}

// product adds the items of one product, one a column of the result y.
func (b *Builder) product(v uint32, p term, y schedule.Operand, level int32, fn isa.Fn, flags, bias uint32) {
	m := &b.r.Plan.Matrices[p.matrix]
	rows, cols := uint32(m.Rows), uint32(m.Cols)
	sig, x := b.productSignature(p, y, fn, flags, bias), b.s.Value[p.right]
	for i := range b.columns(v) {
		b.AddProduct(level, sig, y.At+i*rows, x+b.columnOf(p.right, i)*cols)
	}
}

// columns is the number of columns of v, the batch included.
func (b *Builder) columns(v uint32) uint32 {
	d := b.shape(v)
	if d.size == d.rows {
		return 1
	}
	return d.size / d.rows
}

// columnOf is the column of right that column i of a product is made of: right may be unbatched.
func (b *Builder) columnOf(right, i uint32) uint32 {
	if r := b.shape(right); i > 0 && r.batch == 1 {
		return i % r.cols
	}
	return i
}

// gemmForward multiplies two operands of any kind; the node becomes local.
func (b *Builder) gemmForward(v uint32, p term, y schedule.Operand, acc bool) {
	l, r, d := b.g.DimOf(p.left), b.g.DimOf(p.right), b.g.DimOf(v)
	var c, s int32
	if acc {
		c, s = b.place(v, v, p.left, p.right)
	} else {
		c, s = b.place(v, p.left, p.right)
	}
	flags := accFlag(acc)
	m, n, k := uint32(l.Rows()), uint32(r.Cols()), uint32(l.Cols())
	left, right := schedule.MatrixView{Op: b.value(p.left), Row: 1, Col: m, Batch: batchStep(l)}, schedule.MatrixView{Op: b.value(p.right), Row: 1, Col: k, Batch: batchStep(r)}
	size := b.size(v)
	if parts := b.partsOfProduct(int(m), int(n), int(k)); d.Bd == 1 && parts > 1 && b.Wide.On && b.Clusters[c].IsPrivate() {
		x, from := b.partsFor(parts, size), len(b.Items)
		b.GemmItems(c, s, 0, 1, [3]uint32{m, n, k}, schedule.MatrixView{Op: schedule.At(isa.SegAct, x.At), Row: 1, Col: m, Batch: 0}, left, right)
		b.addParts(v, x, from, parts, c, y, flags)
		return
	}
	b.GemmItems(c, s, flags, d.Bd, [3]uint32{m, n, k}, schedule.MatrixView{Op: y, Row: 1, Col: m, Batch: batchStep(d)}, left, right)
}

func batchStep(d *bridge.Dim) uint32 {
	if d.Bd == 1 {
		return 0
	}
	return uint32(d.Batch())
}
