package script

import (
	"math"

	"libvpps/bridge"
	"libvpps/bridge/cells"
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
	"libvpps/persist/schedule"
)

// Lowering of the nodes that only move elements, and of the row functions. A slice that is
// contiguous is an alias and costs nothing.

// move is a copy between a tensor and a part of another: axes with slot 0 the part-taker's
// side as forward writes it and slot 1 the source; shifts to add to either address.
type move struct {
	dst, src uint32
	axes     []schedule.Axis
}

// contiguous reports whether the moves are one run of n elements; at is its source shift.
func contiguous(m []move, n int) (at uint32, ok bool) {
	if len(m) != 1 || m[0].dst != 0 {
		return 0, false
	}
	var room [6]schedule.Axis
	a := schedule.MergeAxes(append(room[:0], m[0].axes...), 2)
	if len(a) == 0 {
		return m[0].src, n == 1
	}
	return m[0].src, len(a) == 1 && a[0].Stride[0] == 1 && a[0].Stride[1] == 1
}

// moves lists what a moving node copies from its argument number k, good until the next call.
func (b *Builder) moves(v uint32, k int) ([]move, error) {
	b.moved = b.moved[:0]
	err := b.listMoves(v, k)
	return b.moved, err
}

func (b *Builder) move(dst, src uint32, axes []schedule.Axis) {
	b.moved = append(b.moved, move{dst, src, axes})
}

// moveRun is a move of n elements that lie behind one another on both sides.
func (b *Builder) moveRun(dst, src, n uint32) {
	axes := b.NewAxes(1)
	axes[0] = schedule.Axis{Size: n, Stride: [5]uint32{1, 1}}
	b.move(dst, src, axes)
}

func (b *Builder) listMoves(v uint32, k int) error {
	g := b.g
	d, x, a := g.DimOf(v), g.DimOf(g.ArgsOf(v)[k]), g.AttrsOf(v)
	switch g.Op[v] {
	case ops.Transpose:
		b.move(0, 0, b.transposition(d, x, a[0]))
	case ops.Concatenate:
		at := uint32(0)
		for _, y := range g.ArgsOf(v)[:k] {
			at += uint32(g.DimOf(y).Axis(int(a[0])))
		}
		b.move(at*stepOf(d, int(a[0])), 0, b.partAxes(d, x, x))
	case ops.ConcatenateToBatch:
		at := uint32(0)
		for _, y := range g.ArgsOf(v)[:k] {
			at += uint32(g.DimOf(y).Size())
		}
		b.moveRun(at, 0, uint32(x.Size()))
	case ops.PickRange:
		part := *x
		part.D[a[2]] = a[1] - a[0]
		b.move(0, a[0]*stepOf(x, int(a[2])), swapped(b.partAxes(x, &part, &part)))
	case ops.PickBatchElements:
		n := uint32(x.Batch())
		for i := range a[1] {
			e := g.Inputs[a[0]+i]
			if e >= x.Bd {
				return fault(v, g.Op[v], "batch element %d of %v", e, *x)
			}
			b.moveRun(i*n, e*n, n)
		}
	case ops.SelectRows, ops.SelectCols:
		return b.selectMoves(v, d, x, a)
	case ops.StridedSelect:
		from, axes := uint32(0), b.NewAxes(int(x.Nd)+1)
		to, step := uint32(1), uint32(1)
		for i := range axes {
			first, stride, n, of := a[3*i], a[3*i+2], uint32(d.Axis(i)), uint32(x.Axis(i))
			if i == int(x.Nd) {
				first, stride, n, of = a[12], a[14], d.Bd, x.Bd
			}
			axes[i] = schedule.Axis{Size: n, Stride: [5]uint32{to, step * stride}}
			from, to, step = from+first*step, to*n, step*of
		}
		b.move(0, from, axes)
	case ops.Windows:
		b.windowMoves(d, x, a)
	default:
		return b.pickMoves(v, d, x, a)
	}
	return nil
}

// selectMoves is a row or column for each number.
func (b *Builder) selectMoves(v uint32, d, x *bridge.Dim, a []uint32) error {
	axis, part := 0, *x
	if b.g.Op[v] == ops.SelectCols {
		axis = 1
	}
	part.D[axis] = 1
	for i := range a[1] {
		row := b.g.Inputs[a[0]+i]
		if int(row) >= x.Axis(axis) {
			return fault(v, b.g.Op[v], "index %d on axis %d of %v", row, axis, *x)
		}
		axes := b.partAxes(x, &part, &part)
		for k, to := range b.partAxes(d, &part, &part) {
			axes[k].Stride[0], axes[k].Stride[1] = to.Stride[0], axes[k].Stride[0]
		}
		b.move(i*stepOf(d, axis), row*stepOf(x, axis), axes)
	}
	return nil
}

// windowAxis is an axis of windows: how many there are, of how many elements, the distance from one to the next, and how
// far the first one begins before the n elements of x.
type windowAxis struct{ windows, size, stride, before, n uint32 }

// runs calls run for what of the windows is inside x: each element of all windows, or all elements of each window,
// whichever makes fewer runs. A run begins at an element of a window and goes over count windows, or over count elements.
func (a windowAxis) runs(run func(window, element, count uint32, overWindows bool)) {
	if a.windows < a.size {
		for o := range a.windows {
			first := max(a.before, o*a.stride) - o*a.stride
			if end := min(a.size+o*a.stride, a.n+a.before); end > first+o*a.stride {
				run(o, first, end-o*a.stride-first, false)
			}
		}
		return
	}
	for k := range a.size {
		first := (max(a.before, k) - k + a.stride - 1) / a.stride
		if a.n+a.before <= k {
			return
		}
		if end := min(a.windows, (a.n+a.before-k-1)/a.stride+1); end > first {
			run(first, k, end-first, true)
		}
	}
}

// windowMoves moves what of the windows is inside x.
func (b *Builder) windowMoves(d, x *bridge.Dim, a []uint32) {
	kh, kw, sh, sw, oh, ow, top, left := a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]
	h, w := uint32(x.Rows()), uint32(x.Cols())
	windowAxis{ow, kw, sw, left, w}.runs(func(col, j, cols uint32, overCols bool) {
		windowAxis{oh, kh, sh, top, h}.runs(func(row, i, rows uint32, overRows bool) {
			axes := b.NewAxes(4)
			axes[0] = schedule.Axis{Size: rows, Stride: [5]uint32{oh * ow, 1}}
			if overRows {
				axes[0].Stride = [5]uint32{1, sh}
			}
			axes[1] = schedule.Axis{Size: cols, Stride: [5]uint32{oh * ow * kh, h}}
			if overCols {
				axes[1].Stride = [5]uint32{oh, sw * h}
			}
			axes[2] = schedule.Axis{Size: uint32(x.Axis(2)), Stride: [5]uint32{oh * ow * kh * kw, h * w}}
			axes[3] = schedule.Axis{Size: x.Bd, Stride: [5]uint32{uint32(d.Batch()), uint32(x.Batch())}}
			b.move(row+oh*col+oh*ow*(i+kh*j), (row*sh+i-top)+h*(col*sw+j-left), axes)
		})
	})
}

// pickMoves is PickElement: one slice for the whole batch or one a batch element.
func (b *Builder) pickMoves(v uint32, d, x *bridge.Dim, a []uint32) error {
	dim, n := int(a[0]), a[2]
	part, whole := *x, *x
	part.D[dim] = 1
	if n > 1 {
		part.Bd, whole.Bd = 1, 1
	}
	for i := range n {
		row, from := b.g.Inputs[a[1]+i], uint32(0)
		switch {
		case b.symbolic && n <= cells.MostPicked && x.Axis(dim) == 1: // what writes all of x is found by its address
		case b.symbolic && n <= cells.MostPicked:
			from = b.picked(row, stepOf(x, dim))
		case int(row) >= x.Axis(dim):
			return fault(v, b.g.Op[v], "index %d on axis %d of %v", row, dim, *x)
		default:
			from = row * stepOf(x, dim)
		}
		if n > 1 && x.Bd > 1 {
			from += i * uint32(x.Batch())
		}
		b.move(i*uint32(d.Batch()), from, swapped(b.partAxes(&whole, &part, &part)))
	}
	return nil
}

// stepOf is the distance of neighbours along an axis.
func stepOf(d *bridge.Dim, dim int) uint32 {
	n := uint32(1)
	for i := range dim {
		n *= uint32(d.Axis(i))
	}
	return n
}

// partAxes runs over part inside whole (slot 0 strides) and over the dense tensor of dim
// dense (slot 1), whose sizes of 1 broadcast.
func (b *Builder) partAxes(whole, part, dense *bridge.Dim) []schedule.Axis {
	nd := max(whole.Nd, part.Nd)
	out := b.NewAxes(int(nd) + 1)
	ws, ds := uint32(1), uint32(1)
	for i := range int(nd) {
		out[i].Size = uint32(part.Axis(i))
		out[i].Stride[0] = ws
		if dense.Axis(i) > 1 {
			out[i].Stride[1] = ds
		}
		ws *= uint32(whole.Axis(i))
		ds *= uint32(dense.Axis(i))
	}
	out[nd].Size = whole.Bd
	out[nd].Stride[0] = ws
	if dense.Bd > 1 {
		out[nd].Stride[1] = ds
	}
	return out
}

func swapped(a []schedule.Axis) []schedule.Axis {
	for i := range a {
		a[i].Stride[0], a[i].Stride[1] = a[i].Stride[1], a[i].Stride[0]
	}
	return a
}

func (b *Builder) transposition(d, x *bridge.Dim, perm uint32) []schedule.Axis {
	nd := int(max(d.Nd, x.Nd))
	out := b.NewAxes(nd + 1)
	step := uint32(1)
	for i := range nd {
		out[i].Size = uint32(d.Axis(i))
		out[i].Stride[0] = step
		out[i].Stride[1] = stepOf(x, int(perm>>(4*i)&15))
		step *= out[i].Size
	}
	out[nd].Size = d.Bd
	out[nd].Stride[0] = uint32(d.Batch())
	out[nd].Stride[1] = uint32(x.Batch())
	return out
}

// inOneRun reports whether the parts of a concatenation lie behind one another.
func (b *Builder) inOneRun(v uint32) bool {
	if b.g.Op[v] == ops.ConcatenateToBatch {
		return true
	}
	d := b.g.DimOf(v)
	if b.g.Op[v] != ops.Concatenate || d.Bd != 1 {
		return false
	}
	for i := int(b.g.AttrsOf(v)[0]) + 1; i < int(d.Nd); i++ {
		if d.D[i] != 1 {
			return false
		}
	}
	return true
}

func (b *Builder) lowerMove(v uint32) error {
	g := b.g
	args := g.ArgsOf(v)
	if g.Op[v] != ops.Concatenate && g.Op[v] != ops.ConcatenateToBatch && g.Op[v] != ops.Windows {
		if b.symbolic && g.Op[v] == ops.PickElement && b.isPicked(b.s.Value[args[0]]) {
			b.copyOf(args[0])
		}
		m, err := b.moves(v, 0)
		if err != nil {
			return err
		}
		if at, ok := contiguous(m, b.size(v)); ok {
			n := uint32(b.size(v))
			b.Mixed = b.Mixed || at%n != 0 || uint32(b.size(args[0]))%n != 0
			b.alias(v, args[0], at)
			return nil
		}
	}
	c, s := b.place(v, args...)
	y := b.output(v)
	if labels, ok := b.picksOfLines(v); ok {
		b.Mixed = true
		x := b.shape(args[0])
		b.labelledRow(c, s, isa.Pick, 0, 0, lines{x.size / x.batch, 1, x.batch}, schedule.At(isa.SegInput, labels), y, b.value(args[0]))
		return nil
	}
	if b.inOneRun(v) {
		for _, a := range args {
			n := b.size(a)
			b.Mixed = b.Mixed || n != b.size(args[0])
			b.Map1(c, s, isa.Copy, 0, 0, n, y, b.value(a))
			y.At += uint32(n)
		}
		return nil
	}
	b.Mixed = true
	if g.Op[v] == ops.Windows { // what is outside x is not moved
		b.Fill(c, s, math.Float32frombits(g.AttrsOf(v)[8]), b.size(v), y.At)
		s++
		b.spots[v].sub = s
	}
	for k, a := range args {
		m, err := b.moves(v, k)
		if err != nil {
			return err
		}
		for _, x := range m {
			e := schedule.Element{Fn: isa.Copy, Kept: x.axes}
			e.Ops[0], e.Ops[1] = schedule.At(y.Seg, y.At+x.dst), schedule.At(b.s.Segment[a], b.s.Value[a]+x.src)
			b.AddElement(&e, c, s)
		}
	}
	return nil
}

// rowItem adds a row function of lines, whose operands ops are. They have one label.
func (b *Builder) rowItem(c, s int32, fn isa.RowFn, flags uint32, p float32, l lines, label uint32, ops ...schedule.Operand) {
	b.labelledRow(c, s, fn, flags, p, l, schedule.Operand{At: label}, ops...)
}

// labelledRow is rowItem of lines that have one label, or, in the input words, one each.
func (b *Builder) labelledRow(c, s int32, fn isa.RowFn, flags uint32, p float32, l lines, label schedule.Operand, ops ...schedule.Operand) {
	var segs uint32
	var words [6]uint32
	for i, o := range ops {
		segs |= uint32(o.Seg) << (4 * i)
		words[i] = o.At
	}
	k, work := len(ops), 4*int(l.n*l.count)
	if isa.RowTable[fn].Label {
		segs |= uint32(label.Seg) << (4 * k)
		words[k] = label.At
		k++
	}
	if fn == isa.Pick || fn == isa.PickB && flags&isa.Acc != 0 { // of an element
		work = pickWork * int(l.count)
	}
	sig := b.Sigs.Short(6, work, schedule.FirstWord(isa.Row, uint8(fn), flags), segs, l.n, l.stride, isa.Float(p), l.count)
	b.AddItem(c, s, sig, words[:k])
}

// pickWork is the work of the one element of a line that is read or written.
const pickWork = 8

// labelledTogether is how many lines of so many, which have labels in neighbouring input words, one item is of: all. A
// template's labels stand in its items.
func (b *Builder) labelledTogether(count uint32) uint32 {
	if b.symbolic {
		return 1
	}
	return count
}

// labels is the labels of so many lines in input words from one on: where they are, or what the only one is.
func (b *Builder) labels(at, count uint32) schedule.Operand {
	if count == 1 {
		return schedule.Operand{At: b.g.Inputs[at]}
	}
	return schedule.At(isa.SegInput, at)
}

// readsInputs reports whether the script reads input words: values do, and gradients of nodes with several labels.
func (b *Builder) readsInputs() bool {
	if b.g == nil || b.r.Forward {
		return b.g != nil
	}
	for v := uint32(0); b.r.Backward && v <= b.r.Node; v++ {
		switch b.g.Op[v] {
		case ops.PickNegLogSoftmax, ops.Hinge, ops.PickElement:
			if b.shape(v).batch > 1 {
				return true
			}
		case ops.HingeDim:
			return true
		}
	}
	return false
}

// picksOfLines reports whether a node picks one element of each of several vectors, by labels in the input words from one
// on.
func (b *Builder) picksOfLines(v uint32) (labels uint32, ok bool) {
	if b.g.Op[v] != ops.PickElement || b.symbolic {
		return 0, false
	}
	a, x := b.g.AttrsOf(v), b.g.DimOf(b.g.ArgsOf(v)[0])
	if a[2] == 1 || a[2] != x.Bd || x.Axis(int(a[0])) != x.Batch() {
		return 0, false
	}
	for _, label := range b.g.Inputs[a[1]:][:a[2]] {
		if int(label) >= x.Batch() { // whose error the moves have
			return 0, false
		}
	}
	return a[1], true
}

func (b *Builder) lowerRow(v uint32) error {
	g := b.g
	x, a, op := g.ArgsOf(v)[0], g.AttrsOf(v), g.Op[v]
	xd := g.DimOf(x)
	c, s := b.place(v, x)
	y, in := b.output(v), b.value(x)
	if op == ops.Softmax || op == ops.LogSoftmax {
		fn, dim := isa.LogSoftmax, uint32(0)
		if op == ops.Softmax {
			fn, dim = isa.Softmax, a[0]
		}
		b.rowItem(c, s, fn, 0, 0, linesOf(xd, int(dim)), 0, y, in)
		return nil
	}
	n, rows := uint32(xd.Batch()), a[0]
	var margin float32
	if op == ops.Hinge {
		rows, margin = a[1], math.Float32frombits(a[0])
	} else {
		b.s.Aux[v] = b.Alloc(int(xd.Bd))
	}
	for e := range xd.Bd {
		if label := g.Inputs[rows+e]; label >= n && !b.symbolic {
			return fault(v, op, "label %d of %d classes", label, n)
		}
	}
	if parts := b.rowParts(v, n, c); parts > 1 {
		to := b.NewCluster(b.Clusters[c].Level + 1)
		b.spots[v] = spot{b.Clusters[to].Level, to, 2}
		for e := range xd.Bd {
			z := schedule.At(isa.SegAct, b.s.Aux[v]+e)
			b.logSumExpInParts(c, s, to, parts, n, z, in.Plus(e*n))
			b.Map1(to, 1, isa.Scale, 0, -1, 1, y.Plus(e), in.Plus(e*n+g.Inputs[rows+e]))
			b.Map1(to, 2, isa.Copy, isa.Acc, 0, 1, y.Plus(e), z)
		}
		return nil
	}
	some := b.labelledTogether(xd.Bd)
	for e := uint32(0); e < xd.Bd; e += some {
		l, label := lines{n, 1, some}, b.labels(rows+e, some)
		if op == ops.Hinge {
			b.labelledRow(c, s, isa.Hinge, 0, margin, l, label, y.Plus(e), in.Plus(e*n))
		} else {
			b.labelledRow(c, s, isa.NegLogPick, 0, 0, l, label, y.Plus(e), in.Plus(e*n), schedule.At(isa.SegAct, b.s.Aux[v]+e))
		}
	}
	return nil
}

// rowParts is how many parts a row of n elements has, whose loss is node v, in a cluster c. Several processors share a long row
// of a log softmax. A hinge loss is cheaper: it has one part.
func (b *Builder) rowParts(v, n uint32, c int32) uint32 {
	if b.g.Op[v] == ops.Hinge || !b.Wide.On || !b.Clusters[c].IsPrivate() || int(n) < b.Wide.Single {
		return 1
	}
	b.unfit = b.unfit || b.symbolic // which part has the label differs
	return uint32(max(1, min(int(n)/(4*b.Wide.Piece), b.r.Plan.Processors)))
}

// eachPart calls f for the parts of a row of n elements: where they begin, and how long they are.
func eachPart(n, parts uint32, f func(at, size uint32)) {
	each := (n + parts - 1) / parts
	for at := uint32(0); at < n; at += each {
		f(at, min(each, n-at))
	}
}

// logSumExpInParts forms the logarithm of the sum of exp(x) over n elements: of each part in cluster c, and of those in
// cluster to, in its order 0.
func (b *Builder) logSumExpInParts(c, s, to int32, parts, n uint32, z, x schedule.Operand) {
	some, k := schedule.At(isa.SegAct, b.Alloc(int(parts))), uint32(0)
	eachPart(n, parts, func(at, size uint32) {
		b.rowItem(c, s, isa.LogSumExp, 0, 0, oneLine(size), 0, some.Plus(k), x.Plus(at))
		k++
	})
	b.rowItem(to, 0, isa.LogSumExp, 0, 0, oneLine(k), 0, z, some)
}

// lowerRestricted is the log softmax of a copy of x in which the other rows are -inf.
func (b *Builder) lowerRestricted(v uint32) error {
	x, d := b.g.ArgsOf(v)[0], b.g.DimOf(v)
	for _, row := range b.restriction(v) {
		if int(row) >= d.Size() {
			return fault(v, b.g.Op[v], "row %d of %d", row, d.Size())
		}
	}
	c, s := b.place(v, x)
	y := b.output(v)
	masked := b.masked(v, b.value(x), float32(math.Inf(-1)), c, s)
	b.spots[v].sub = s + 2
	b.rowItem(c, s+2, isa.LogSoftmax, 0, 0, oneLine(uint32(d.Size())), 0, y, masked)
	return nil
}

// contributeRestricted ignores the gradient of the other rows: they are constant.
func (b *Builder) contributeRestricted(c uint32, dst schedule.Operand, flags uint32, cl, sub int32) int32 {
	dy := b.masked(c, b.gradient(c), 0, cl, sub)
	b.rowItem(cl, sub+2, isa.LogSoftmaxB, flags, 0, oneLine(uint32(b.size(c))), 0, dst, b.value(c), dy)
	return sub + 3
}

// masked copies the rows of v's restriction from a vector into one that is fill elsewhere.
func (b *Builder) masked(v uint32, from schedule.Operand, fill float32, c, s int32) schedule.Operand {
	n := b.size(v)
	to := schedule.At(isa.SegAct, b.Alloc(n))
	b.Fill(c, s, fill, n, to.At)
	done := make(map[uint32]bool) // a row may be listed twice
	for _, row := range b.restriction(v) {
		if !done[row] {
			done[row] = true
			b.Map1(c, s+1, isa.Copy, 0, 0, 1, to.Plus(row), from.Plus(row))
		}
	}
	return to
}

func (b *Builder) restriction(v uint32) []uint32 {
	a := b.g.AttrsOf(v)
	return b.g.Inputs[a[0]:][:a[1]]
}
