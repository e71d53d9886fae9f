package script

import (
	"math"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
	"libvpps/persist/schedule"
)

// Lowering of the functions of lines: a line is what lies along one axis of a tensor.

// lines are the lines of a tensor along an axis: elements and their distance, and how many lines there are.
type lines struct{ n, stride, count uint32 }

func linesOf(d *bridge.Dim, axis int) lines {
	l := lines{n: uint32(d.Axis(axis)), stride: stepOf(d, axis)}
	l.count = uint32(d.Size()) / l.n
	return l
}

// oneLine is a vector of n elements.
func oneLine(n uint32) lines { return lines{n, 1, 1} }

// at is where line i begins, if lines have n elements.
func (l lines) at(i, n uint32) uint32 { return i/l.stride*l.stride*n + i%l.stride }

// lineFunction is how a node's lines are computed.
type lineFunction struct {
	lines
	fn, back isa.RowFn
	p        float32
	k        uint32 // elements of a line of the result
}

// lineFunctionOf describes a node that is a function of lines; ok is false if it is not.
func (b *Builder) lineFunctionOf(v uint32) (f lineFunction, ok bool) {
	g := b.g
	x, a := g.DimOf(g.ArgsOf(v)[0]), g.AttrsOf(v)
	vector := bridge.Dim{Nd: 1, Bd: x.Bd}
	vector.D[0] = uint32(x.Batch())
	switch g.Op[v] {
	case ops.LogSumExpDimension:
		f = lineFunction{linesOf(x, int(a[0])), isa.LogSumExp, isa.LogSumExpB, 0, 1}
	case ops.MaxDimension:
		f = lineFunction{linesOf(x, int(a[0])), isa.KMax, isa.KMaxB, 1, 1}
	case ops.MinDimension:
		f = lineFunction{linesOf(x, int(a[0])), isa.KMax, isa.KMaxB, -1, 1}
	case ops.KMaxPooling:
		f = lineFunction{linesOf(x, int(a[1])), isa.KMax, isa.KMaxB, 1, a[0]}
	case ops.Argmax:
		f = lineFunction{linesOf(&vector, 0), isa.ArgMax, 0, 0, vector.D[0]}
	case ops.CumulativeSum:
		f = lineFunction{linesOf(x, int(a[0])), isa.CumSum, isa.CumSum, 0, uint32(x.Axis(int(a[0])))}
	case ops.HingeDim:
		f = lineFunction{linesOf(x, int(a[1])), isa.Hinge, isa.HingeB, math.Float32frombits(a[0]), 1}
	case ops.Sparsemax:
		f = lineFunction{linesOf(&vector, 0), isa.Sparsemax, isa.SparsemaxB, 0, vector.D[0]}
	case ops.ConstrainedSoftmax:
		f = lineFunction{linesOf(&vector, 0), isa.ConstrainedSoftmax, isa.ConstrainedSoftmaxB, 0, vector.D[0]}
	default:
		return f, false
	}
	return f, true
}

// linesTogether is as many of node v's lines as one item is of: all, unless several have the same label.
func (b *Builder) linesTogether(v uint32, f *lineFunction) lines {
	l := f.lines
	if b.g.Op[v] == ops.HingeDim {
		if l.count = b.labelledTogether(f.count); b.g.AttrsOf(v)[3] != f.count {
			l.count = 1
		}
	}
	return l
}

// lowerLines lowers a function of lines, and what else takes a tensor or matrix as a whole.
func (b *Builder) lowerLines(v uint32) error {
	g := b.g
	op, args, a := g.Op[v], g.ArgsOf(v), g.AttrsOf(v)
	f, ok := b.lineFunctionOf(v)
	if !ok {
		return b.lowerWhole(v)
	}
	if op == ops.HingeDim {
		for i := range a[3] {
			if label := g.Inputs[a[2]+i]; label >= f.n {
				return fault(v, op, "label %d of %d classes", label, f.n)
			}
		}
	}
	c, s := b.place(v, args...)
	y, x := b.output(v), b.value(args[0])
	some := b.linesTogether(v, &f)
	for i := uint32(0); i < f.count; i += some.count {
		to, from := y.Plus(f.at(i, f.k)), x.Plus(f.at(i, f.n))
		switch op {
		case ops.MaxDimension, ops.MinDimension, ops.KMaxPooling:
			b.rowItem(c, s, f.fn, 0, f.p, some, f.k-1, to, from)
		case ops.HingeDim:
			b.labelledRow(c, s, f.fn, 0, f.p, some, b.labels(a[2]+i%a[3], some.count), to, from)
		case ops.ConstrainedSoftmax:
			b.rowItem(c, s, f.fn, 0, f.p, some, 0, to, from, b.value(args[1]).Plus(f.at(i, f.n)))
		default:
			b.rowItem(c, s, f.fn, 0, f.p, some, 0, to, from)
		}
	}
	return nil
}

// contributeLines is the gradient of what lowerLines lowers.
func (b *Builder) contributeLines(v uint32, u user, dst schedule.Operand, flags uint32, cl, sub int32) int32 {
	g, node := b.g, u.node
	op, args, a := g.Op[node], g.ArgsOf(node), g.AttrsOf(node)
	y, dy := b.value(node), b.gradient(node)
	f, ok := b.lineFunctionOf(node)
	if !ok {
		return b.contributeWhole(v, u, dst, flags, cl, sub)
	}
	if op == ops.Argmax {
		b.Map1(cl, sub, isa.Scale, flags, math.Float32frombits(a[0]), b.size(v), dst, dy)
		return sub + 1
	}
	x := b.value(args[0])
	some := b.linesTogether(node, &f)
	for i := uint32(0); i < f.count; i += some.count {
		long, short := f.at(i, f.n), f.at(i, f.k)
		to, from, back := dst.Plus(long), x.Plus(long), dy.Plus(short)
		switch op {
		case ops.LogSumExpDimension:
			b.rowItem(cl, sub, f.back, flags, f.p, some, 0, to, from, y.Plus(short), back)
		case ops.CumulativeSum:
			b.rowItem(cl, sub, f.back, flags, 1, some, 0, to, back)
		case ops.HingeDim:
			b.labelledRow(cl, sub, f.back, flags, f.p, some, b.labels(a[2]+i%a[3], some.count), to, from, back)
		case ops.Sparsemax:
			b.rowItem(cl, sub, f.back, flags, f.p, some, 0, to, y.Plus(long), back)
		case ops.ConstrainedSoftmax:
			b.rowItem(cl, sub, f.back, flags, float32(u.arg), some, 0, to, y.Plus(long), b.value(args[1]).Plus(long), back)
		default:
			b.rowItem(cl, sub, f.back, flags, f.p, some, f.k-1, to, from, back)
		}
	}
	return sub + 1
}

// lowerWhole lowers inverse, determinant and the Poisson loss.
func (b *Builder) lowerWhole(v uint32) error {
	g := b.g
	x, a := g.ArgsOf(v)[0], g.AttrsOf(v)
	switch g.Op[v] {
	case ops.PoissonRegressionLoss:
		n := float64(g.Inputs[a[0]])
		factorial, _ := math.Lgamma(n + 1)
		c, s := b.place(v, x)
		b.AddMap(c, s, isa.Poisson, 0, float32(n), float32(factorial), b.size(v), b.output(v), b.value(x))
	case ops.MatrixInverse, ops.LogDet:
		d := g.DimOf(x)
		m, n := uint32(d.Rows()), uint32(d.Batch())
		c, s := b.place(v, x)
		y, other := b.output(v), schedule.Operand{Seg: isa.SegAct}
		scratch := schedule.At(isa.SegAct, b.Alloc(int(n)))
		inverse, logDet := y, other
		if g.Op[v] == ops.LogDet {
			other.At = b.Alloc(d.Size())
			inverse, logDet = other, y
			b.s.Aux[v] = other.At
		} else {
			logDet.At = b.Alloc(int(d.Bd))
		}
		for e := range d.Bd {
			b.rowItem(c, s+int32(e), isa.Invert, 0, 0, oneLine(n), m-1, logDet.Plus(e), inverse.Plus(e*n), scratch, b.value(x).Plus(e*n))
		}
		b.spots[v].sub = s + int32(d.Bd) - 1
	default:
		return fault(v, g.Op[v], "not implemented")
	}
	return nil
}

// contributeWhole is the gradient of what lowerWhole lowers.
func (b *Builder) contributeWhole(v uint32, u user, dst schedule.Operand, flags uint32, cl, sub int32) int32 {
	g, node := b.g, u.node
	dy, d := b.gradient(node), g.DimOf(v)
	m, n := uint32(d.Rows()), uint32(d.Batch())
	switch g.Op[node] {
	case ops.PoissonRegressionLoss:
		b.Map2(cl, sub, isa.PoissonB, flags, float32(g.Inputs[g.AttrsOf(node)[0]]), b.size(v), dst, dy, b.value(v))
		return sub + 1
	case ops.LogDet: // dy times the inverse, transposed
		e := schedule.Element{Fn: isa.Mul, Flags: flags, P: 1, Kept: []schedule.Axis{
			{Size: m, Stride: [5]uint32{1, 0, m}}, {Size: m, Stride: [5]uint32{m, 0, 1}}, {Size: d.Bd, Stride: [5]uint32{n, 1, n}},
		}}
		e.Ops = [5]schedule.Operand{dst, dy, schedule.At(isa.SegAct, b.s.Aux[node])}
		b.AddElement(&e, cl, sub)
		return sub + 1
	case ops.MatrixInverse: // -Y^T dY Y^T
		size := d.Size()
		first, second := schedule.At(isa.SegAct, b.Alloc(size)), schedule.At(isa.SegAct, b.Alloc(size))
		y := b.value(node)
		b.GemmItems(cl, sub, 0, d.Bd, [3]uint32{m, m, m}, schedule.MatrixView{Op: first, Row: 1, Col: m, Batch: n}, schedule.MatrixView{Op: y, Row: m, Col: 1, Batch: n}, schedule.MatrixView{Op: dy, Row: 1, Col: m, Batch: n})
		b.GemmItems(cl, sub+1, 0, d.Bd, [3]uint32{m, m, m}, schedule.MatrixView{Op: second, Row: 1, Col: m, Batch: n}, schedule.MatrixView{Op: first, Row: 1, Col: m, Batch: n}, schedule.MatrixView{Op: y, Row: m, Col: 1, Batch: n})
		b.Map1(cl, sub+2, isa.Scale, flags, -1, size, dst, second)
		return sub + 3
	}
	return sub + 1
}
