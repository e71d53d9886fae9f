package script

import (
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
	"libvpps/persist/schedule"
	"math"
)

// What one use of a node adds to the node's gradient: the derivative of every operation.

// unchanged reports whether the use passes its gradient on as it is: v's gradient then is
// the user's from element at on.
func (b *Builder) unchanged(v uint32, u user) (at uint32, ok bool) {
	g := b.g
	switch g.Op[u.node] {
	case ops.CwiseSum, ops.Sum, ops.ConstantPlusX, ops.GaussianNoise:
		return 0, b.alike(u.node, v)
	case ops.AddVectorToAllColumns, ops.AffineTransform:
		return 0, u.arg == 0 && b.alike(u.node, v)
	case ops.Reshape:
		return 0, true
	case ops.Concatenate, ops.ConcatenateToBatch:
		if b.inOneRun(u.node) {
			return b.before(u), true
		}
	}
	return 0, false
}

// Up to so many vectors are added up where their sum is needed. More are divided among processors first. Shorter ones are summed
// by an instruction with strides, whose threads share the terms.
const mostVectors, leastVector = 256, 16

// broadcast is how many columns or batch elements of the user v was added to. Then v's gradient is the sum of that many vectors,
// which follow one another in the user's gradient. 0: v's gradient is something else.
func (b *Builder) broadcast(v uint32, u user) (vectors uint32) {
	switch op := b.g.Op[u.node]; {
	case op == ops.CwiseSum, op == ops.Sum, op == ops.AddVectorToAllColumns, op == ops.AffineTransform && u.arg == 0:
	default:
		return 0
	}
	x, y := b.g.DimOf(v), b.g.DimOf(u.node)
	n, axes := b.shape(v).size, int(x.Nd)
	for axes > 0 && x.Axis(axes-1) == 1 {
		axes--
	}
	for a := range axes {
		if x.Axis(a) != y.Axis(a) {
			return 0
		}
	}
	if vectors = b.shape(u.node).size / n; x.Bd > 1 || n < leastVector || vectors > mostVectors {
		return 0
	}
	return vectors
}

// source is the vectors that add up to what the use gives to v's gradient, which it passes on as it is.
func (b *Builder) source(v uint32, u user) schedule.Source {
	s := schedule.Source{At: b.s.Grad[u.node] + u.at, Count: uint32(u.terms)}
	if u.terms > 1 {
		s.Apart = b.shape(v).size
	}
	return s
}

// before is the number of elements of the arguments before the use.
func (b *Builder) before(u user) uint32 {
	n := 0
	for _, a := range b.g.ArgsOf(u.node)[:u.arg] {
		n += b.size(a)
	}
	return uint32(n)
}

// covers reports whether the use contributes to every element of the node.
func (b *Builder) covers(u user) bool {
	switch b.g.Op[u.node] {
	case ops.PickElement, ops.PickRange, ops.PickBatchElements, ops.SelectRows, ops.SelectCols, ops.StridedSelect, ops.Windows:
		return false
	}
	return true
}

// gradient is the gradient of node c as its arguments see it.
func (b *Builder) gradient(c uint32) schedule.Operand { return schedule.At(isa.SegAct, b.s.Grad[c]) }

// contribute adds to dst, v's gradient, what the use u passes back. It returns the next order.
func (b *Builder) contribute(v uint32, u user, dst schedule.Operand, flags uint32, cl, sub int32) int32 {
	g, c := b.g, u.node
	b.attribute(isa.InBackward, c)
	op, args := g.Op[c], g.ArgsOf(c)
	dy := b.gradient(c)
	if r := &unaryRules[op]; r.ok {
		p, q, n := b.constant(r.dp, c), b.constant(r.dq, c), b.size(v)
		from := v
		if r.fromY {
			from = c
		}
		switch {
		case r.back == isa.Scale:
			b.Map1(cl, sub, isa.Scale, flags, p, n, dst, dy)
		case q != 0:
			b.AddMap(cl, sub, r.back, flags, p, q, n, dst, dy, b.value(from))
		default:
			b.Map2(cl, sub, r.back, flags, p, n, dst, dy, b.value(from))
		}
		return sub + 1
	}
	switch op {
	case ops.CwiseSum, ops.Sum, ops.AddVectorToAllColumns:
		b.broadcastBack(v, c, isa.Copy, 0, dst, flags, cl, sub, dy)
	case ops.AffineTransform, ops.MatrixMultiply:
		return b.contributeProduct(v, u, dst, flags, cl, sub)
	case ops.Average:
		b.broadcastBack(v, c, isa.Scale, 1/float32(len(args)), dst, flags, cl, sub, dy)
	case ops.CwiseMultiply:
		other := args[1-u.arg]
		b.broadcastBack(v, c, isa.Mul, 1, dst, flags, cl, sub, dy, other)
	case ops.CwiseQuotient:
		if u.arg == 0 {
			b.broadcastBack(v, c, isa.Div, 0, dst, flags, cl, sub, dy, args[1])
		} else {
			b.broadcastBack(v, c, isa.DivB, 0, dst, flags, cl, sub, dy, args[0], args[1])
		}
	case ops.Pow, ops.Min, ops.Max:
		fn := [2]isa.Fn{isa.PowBX, isa.PowBY}
		switch op {
		case ops.Min:
			fn = [2]isa.Fn{isa.MinBX, isa.MinBY}
		case ops.Max:
			fn = [2]isa.Fn{isa.MaxBX, isa.MaxBY}
		}
		b.broadcastBack(v, c, fn[u.arg], 0, dst, flags, cl, sub, dy, args[0], args[1])
	case ops.SumElements, ops.SumDimension, ops.MomentDimension, ops.DotProduct, ops.SquaredEuclideanDistance,
		ops.SquaredNorm, ops.L2Norm, ops.BinaryLogLoss, ops.HuberDistance:
		b.contributeReduction(v, u, dst, flags, cl, sub)
	case ops.Transpose, ops.Concatenate, ops.PickElement, ops.PickRange, ops.PickBatchElements,
		ops.SelectRows, ops.SelectCols, ops.StridedSelect, ops.Windows:
		return b.contributeMove(v, u, dst, flags, cl, sub)
	case ops.Softmax, ops.LogSoftmax, ops.PickNegLogSoftmax, ops.Hinge:
		b.contributeRow(v, c, dst, flags, cl, sub)
	case ops.RestrictedLogSoftmax:
		return b.contributeRestricted(c, dst, flags, cl, sub)
	case ops.Dropout:
		b.randomItem(cl, sub, c, flags, dst, dy)
	default:
		return b.contributeLines(v, u, dst, flags, cl, sub)
	}
	return sub + 1
}

// broadcastBack runs fn(dy, values...) over user c's elements and sums into v's, over the axes
// that v was broadcast along.
func (b *Builder) broadcastBack(v, c uint32, fn isa.Fn, p float32, dst schedule.Operand, flags uint32, cl, sub int32, dy schedule.Operand, values ...uint32) {
	plain := b.alike(c, v)
	for _, x := range values {
		plain = plain && b.alike(c, x)
	}
	switch {
	case plain && len(values) == 0:
		b.Map1(cl, sub, fn, flags, p, b.size(c), dst, dy)
		return
	case plain && len(values) == 1:
		b.Map2(cl, sub, fn, flags, p, b.size(c), dst, dy, b.value(values[0]))
		return
	case plain:
		list := [5]schedule.Operand{dst, dy}
		for i, x := range values {
			list[i+2] = b.value(x)
		}
		b.AddMap(cl, sub, fn, flags, p, 0, b.size(c), list[:2+len(values)]...)
		return
	}
	full := b.g.DimOf(c)
	e := schedule.Element{Fn: fn, Flags: flags, P: p}
	dims := dimList{*full, *full}
	e.Ops[0], e.Ops[1] = dst, dy
	for i, x := range values {
		dims[i+2] = *b.g.DimOf(x)
		e.Ops[i+2] = b.value(x)
	}
	e.Kept, e.Red = b.splitAxes(b.spread(dims[:2+len(values)]), b.g.DimOf(v))
	b.AddElement(&e, cl, sub)
}

// contributeReduction spreads the gradient of a sum back over its input.
func (b *Builder) contributeReduction(v uint32, u user, dst schedule.Operand, flags uint32, cl, sub int32) {
	g, c := b.g, u.node
	args := g.ArgsOf(c)
	fwd, p, q, out := b.reduction(c)
	full := joined(g, args)
	e := schedule.Element{Flags: flags}
	e.Ops[0], e.Ops[1] = dst, b.gradient(c)
	dims, n := dimList{full, out}, 2
	values := func(nodes ...uint32) {
		for _, x := range nodes {
			e.Ops[n], dims[n] = b.value(x), b.aligned(x, &full)
			n++
		}
	}
	switch fwd {
	case isa.Copy:
		e.Fn = isa.Copy
	case isa.Scale:
		e.Fn, e.P = isa.Scale, p
	case isa.Moment:
		e.Fn, e.P, e.Q = isa.MomentB, p, q
		values(v)
	case isa.Square:
		e.Fn, e.P = isa.Mul, 2
		values(v)
		if g.Op[c] == ops.L2Norm {
			e.Fn, e.P = isa.MulDiv, 1
			e.Ops[n], dims[n] = b.value(c), out
			n++
		}
	case isa.Mul:
		e.Fn, e.P = isa.Mul, 1
		values(args[1-u.arg])
	case isa.SquareDiff:
		e.Fn, e.P = isa.SquareDiffB, 1
		if u.arg == 1 {
			e.P = -1
		}
		values(args[0], args[1])
	case isa.Huber:
		e.Fn, e.P, e.Q = isa.HuberB, p, 1
		if u.arg == 1 {
			e.Q = -1
		}
		values(args[0], args[1])
	case isa.BinLog: // DyNet passes the targets the same formula with the roles swapped
		e.Fn = isa.BinLogB
		values(args[u.arg], args[1-u.arg])
	}
	to := b.aligned(v, &full)
	e.Kept, e.Red = b.splitAxes(b.spread(dims[:n]), &to)
	b.AddElement(&e, cl, sub)
}

// contributeProduct is the gradient of a product's side through Gemm, or of an affine
// transform's bias.
func (b *Builder) contributeProduct(v uint32, u user, dst schedule.Operand, flags uint32, cl, sub int32) int32 {
	g, c := b.g, u.node
	args, d := g.ArgsOf(c), g.DimOf(c)
	dy := b.gradient(c)
	x := g.DimOf(v)
	if b.isLeft(u) { // dA = dC B^T
		r := args[u.arg+1]
		rd := g.DimOf(r)
		m, k, n := uint32(x.Rows()), uint32(x.Cols()), uint32(rd.Cols())
		return b.GemmItems(cl, sub, flags, d.Bd, [3]uint32{m, k, n},
			schedule.MatrixView{Op: dst, Row: 1, Col: m, Batch: batchStep(x)},
			schedule.MatrixView{Op: dy, Row: 1, Col: m, Batch: batchStep(d)},
			schedule.MatrixView{Op: b.value(r), Row: k, Col: 1, Batch: batchStep(rd)})
	}
	if left, ok := b.isRight(u); ok { // dB = A^T dC
		ld := g.DimOf(left)
		m, k, n := uint32(ld.Rows()), uint32(ld.Cols()), uint32(x.Cols())
		return b.GemmItems(cl, sub, flags, d.Bd, [3]uint32{k, n, m},
			schedule.MatrixView{Op: dst, Row: 1, Col: k, Batch: batchStep(x)},
			schedule.MatrixView{Op: b.value(left), Row: m, Col: 1, Batch: batchStep(ld)},
			schedule.MatrixView{Op: dy, Row: 1, Col: m, Batch: batchStep(d)})
	}
	b.broadcastBack(v, c, isa.Copy, 0, dst, flags, cl, sub, dy)
	return sub + 1
}

// contributeMove copies the gradient back along the moves of the user.
func (b *Builder) contributeMove(v uint32, u user, dst schedule.Operand, flags uint32, cl, sub int32) int32 {
	c := u.node
	if labels, ok := b.picksOfLines(c); ok {
		x := b.shape(v)
		b.labelledRow(cl, sub, isa.PickB, flags, 0, lines{x.size / x.batch, 1, x.batch}, schedule.At(isa.SegInput, labels), dst, b.gradient(c))
		return sub + 1
	}
	list, err := b.moves(c, int(u.arg))
	if err != nil { // forward has checked the same indices
		return sub
	}
	last := sub
	for i, m := range list {
		e := schedule.Element{Fn: isa.Copy, Flags: flags}
		if b.g.Op[c] == ops.Concatenate { // several batch elements may have come from one
			axes := swapped(m.axes)
			e.Kept = axes[:0]
			for _, a := range axes {
				if a.Stride[0] == 0 && a.Size > 1 {
					e.Red = append(e.Red, a)
				} else {
					e.Kept = append(e.Kept, a)
				}
			}
		} else {
			e.Kept = swapped(m.axes)
		}
		e.Ops[0], e.Ops[1] = dst.Plus(m.src), b.gradient(c).Plus(m.dst)
		at := sub + b.turn(c, list, i)
		b.AddElement(&e, cl, at)
		last = max(last, at)
	}
	return last + 1
}

// turn is how many others of a node's moves come before number i, for they add to the same elements.
func (b *Builder) turn(v uint32, list []move, i int) int32 {
	x := b.g.DimOf(b.g.ArgsOf(v)[0])
	switch op := b.g.Op[v]; {
	case len(list) == 1, op == ops.PickElement && x.Bd > 1: // each of another batch element
		return 0
	case op == ops.Windows, b.symbolic: // they overlap, or other instances' do
		return int32(i)
	}
	if i == 0 {
		clear(b.turns)
	}
	if b.turns == nil {
		b.turns = map[uint32]int32{}
	}
	n := b.turns[list[i].src] // slices are the same or have nothing in common
	b.turns[list[i].src] = n + 1
	return n
}

// contributeRow is the gradient of the row functions.
func (b *Builder) contributeRow(v, c uint32, dst schedule.Operand, flags uint32, cl, sub int32) {
	g := b.g
	a, x, y, dy := g.AttrsOf(c), b.value(v), b.value(c), b.gradient(c)
	xd := g.DimOf(v)
	n := uint32(xd.Batch())
	switch g.Op[c] {
	case ops.Softmax, ops.LogSoftmax:
		fn, dim := isa.LogSoftmaxB, uint32(0)
		if g.Op[c] == ops.Softmax {
			fn, dim = isa.SoftmaxB, a[0]
		}
		b.rowItem(cl, sub, fn, flags, 0, linesOf(xd, int(dim)), 0, dst, y, dy)
	case ops.PickNegLogSoftmax:
		parts, some := b.rowParts(c, n, b.Find(cl)), b.labelledTogether(xd.Bd)
		for e := uint32(0); parts == 1 && e < xd.Bd; e += some {
			z := schedule.At(isa.SegAct, b.s.Aux[c]+e)
			b.labelledRow(cl, sub, isa.NegLogPickB, flags, 0, lines{n, 1, some}, b.labels(a[0]+e, some), dst.Plus(e*n), x.Plus(e*n), z, dy.Plus(e))
		}
		for e := uint32(0); parts > 1 && e < xd.Bd; e++ {
			label, z := g.Inputs[a[0]+e], schedule.At(isa.SegAct, b.s.Aux[c]+e)
			eachPart(n, parts, func(at, size uint32) {
				to, from := dst.Plus(e*n+at), x.Plus(e*n+at)
				if label-at < size {
					b.rowItem(cl, sub, isa.NegLogPickB, flags, 0, oneLine(size), label-at, to, from, z, dy.Plus(e))
				} else {
					b.rowItem(cl, sub, isa.LogSumExpB, flags, 0, oneLine(size), 0, to, from, z, dy.Plus(e))
				}
			})
		}
	case ops.Hinge:
		some := b.labelledTogether(xd.Bd)
		for e := uint32(0); e < xd.Bd; e += some {
			b.labelledRow(cl, sub, isa.HingeB, flags, math.Float32frombits(a[0]), lines{n, 1, some}, b.labels(a[1]+e, some), dst.Plus(e*n), x.Plus(e*n), dy.Plus(e))
		}
	}
}
