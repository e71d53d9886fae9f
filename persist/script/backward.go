package script

import (
	"libvpps/bridge/ops"
	"libvpps/persist/finish"
	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/schedule"
)

// Backward lowering. Every node's gradient is formed where it is needed, from its users:
// gradients that arrive unchanged (through sums, slices) and the partial results of transposed
// products are added in one Sum; other contributions follow one by one. So nothing is
// added by two processors, and results do not depend on timing.
//
// Clusters get their levels in the reverse order of the forward levels; a product's output belongs
// to the cluster that reads it. Then nodes are lowered from the last to the first.

func (b *Builder) backward() error {
	loss := b.r.Node
	if d := b.g.DimOf(loss); d.Size() != 1 {
		return fault(loss, b.g.Op[loss], "backward starts from a scalar, but its dim is %v", *d)
	}
	if b.partial {
		b.placeAgain(0, loss+1)
	}
	b.joinGradients()
	b.backwardFrom(b.Ends[isa.InForward] + 1)
	return nil
}

// backwardFrom lowers the gradients of the nodes, behind those elsewhere that they are made of, the last of
// which come about in a level.
func (b *Builder) backwardFrom(level int32) {
	b.groupGradients(level)
	b.levelGradients()
	b.lowerGradients()
	if b.first == 0 {
		return
	}
	for v := range b.first { // outer products of what all instances share
		if b.wants[v] {
			b.outerProducts(v, false)
		}
	}
	b.attribute(isa.InBackward, nobody)
}

// placeAgain gives nodes [from, to) levels and clusters where the forward part covered only some.
func (b *Builder) placeAgain(from, to uint32) {
	top, first := b.MaxLevel, len(b.Clusters)
	for v := from; v < to; v++ {
		args := b.g.ArgsOf(v)
		switch b.g.Op[v] {
		case ops.Reshape, ops.NoBackprop:
			b.spots[v] = b.spots[args[0]]
		case ops.AffineTransform, ops.MatrixMultiply:
			level := int32(0)
			for _, a := range args {
				level = max(level, b.ready(a))
			}
			b.spots[v] = spot{level, -1, 0}
		default:
			c, _ := b.place(v, args...)
			b.Clusters[b.Costly(c)].Cost += int32(1 + b.size(v)>>8)
		}
	}
	b.MaxLevel = top
	for c := range b.Clusters[first:] {
		b.Clusters[first+c].Cost = 0 // these clusters have no items
	}
}

// groupGradients assigns every node to the cluster that forms its gradient, and counts the nodes by
// that cluster's forward level, of which the first is -1.
func (b *Builder) groupGradients(before int32) {
	top := b.MaxLevel
	b.bucket = memory.Resize(b.bucket, int(top)+3)
	clear(b.bucket)
	for v := int(b.end) - 1; v >= int(b.first); v-- {
		if !b.wants[v] {
			continue
		}
		c := b.spots[v].cluster
		if c >= 0 {
			c = b.Find(c)
		}
		if c < 0 { // a product's output
			c = b.readers(uint32(v))
		}
		if b.Wide.On {
			c = b.gradientCluster(uint32(v), c)
		}
		b.gcluster[v] = c
		l := int(b.Clusters[c].Level) + 2
		b.bucket = memory.Extend(b.bucket, l+1, 0)
		b.bucket[l]++
	}
	b.MaxLevel = top
	b.blevel = memory.Resize(b.blevel, len(b.Clusters))
	b.bcluster = memory.Resize(b.bcluster, len(b.Clusters))
	for i := range b.blevel {
		b.blevel[i], b.bcluster[i] = b.Ends[isa.InForward]+1, -1
	}
	b.blevel[schedule.Elsewhere] = before
}

// formedIn is the cluster that stands for the one forming node u's gradient.
func (b *Builder) formedIn(u uint32) int32 {
	if b.owns(u) {
		return b.gcluster[u]
	}
	if k := u - b.end; b.symbolic && u >= b.end && int(k) < len(b.exitsIn) {
		return b.exitsIn[k]
	}
	return schedule.Elsewhere
}

// readers is the one cluster whose nodes read the spread node v, or a new one. A parameter read
// where it stands comes before level 0, so that its gradient is formed behind those of level 0.
func (b *Builder) readers(v uint32) int32 {
	only := int32(-1)
	for _, u := range b.usersOf(v) {
		c := b.formedIn(u.node)
		if _, right := b.isRight(u); right || b.isLeft(u) || only >= 0 && only != c || c == schedule.Elsewhere || b.partialResults(v, u) > 1 {
			return b.NewCluster(b.spots[v].level)
		}
		only = c
	}
	if only < 0 {
		return b.NewCluster(b.spots[v].level)
	}
	return only
}

// levelGradients finds the level of every cluster, by descending forward level.
func (b *Builder) levelGradients() {
	// Counting sort of the nodes; descending nodes inside.
	for i := range len(b.bucket) - 1 {
		b.bucket[i+1] += b.bucket[i]
	}
	b.order = memory.Resize(b.order, int(b.bucket[len(b.bucket)-1]))
	for v := int(b.end) - 1; v >= int(b.first); v-- {
		if b.wants[v] {
			at := &b.bucket[b.Clusters[b.gcluster[v]].Level+1]
			b.order[*at] = uint32(v)
			*at++
		}
	}
	end := len(b.order)
	for l := len(b.bucket) - 2; l >= 0; l-- {
		start := 0
		if l > 0 {
			start = int(b.bucket[l-1])
		}
		for _, v := range b.order[start:end] {
			b.levelGradient(v)
		}
		end = start
	}
}

// lowerGradients lowers the gradients of the nodes from the last to the first: a node's users come before the node, and memory
// is read in a row.
func (b *Builder) lowerGradients() {
	for v := int(b.end) - 1; v >= int(b.first); v-- {
		if b.wants[v] {
			from := len(b.Items)
			b.attribute(isa.InBackward, uint32(v))
			b.lowerGradient(uint32(v))
			b.dealOut(uint32(v), from, b.s.Grad[v])
		}
	}
	b.attribute(isa.InBackward, nobody)
}

// addedUpAfter is how many levels after a gradient the partial results that are made of it are added up. They are formed in
// the level between.
const addedUpAfter = 2

// levelGradient raises the level of v's cluster behind what v's gradient is made of.
func (b *Builder) levelGradient(v uint32) {
	b.passAt[v], b.withUser[v] = NoOffset, false
	if c, at, ok := b.passedOn(v); ok {
		b.gcluster[v] = b.formedIn(c) // formed where c's is
		b.passFrom[v], b.passAt[v] = c, at
		return
	}
	k, after := b.gcluster[v], int32(addedUpAfter)
	if b.workAhead(v) > 0 && !b.Clusters[k].IsPrivate() {
		after++ // v's cluster reads their sum
	}
	users := b.usersOf(v)
	for i := range users {
		u := &users[i]
		if u.kind == useOuter {
			continue
		}
		from := b.formedIn(u.node)
		switch {
		case u.kind == useTransposed:
			formed := b.blevel[from]
			if x := b.jointOf(u.node); x != nil {
				formed = b.jointFormed(x)
			}
			b.blevel[k] = max(b.blevel[k], formed+after)
		case from == k:
		case b.partialResults(v, *u) > 1:
			u.kind = usePartial
			b.blevel[k] = max(b.blevel[k], b.blevel[from]+addedUpAfter)
		default:
			b.blevel[k] = max(b.blevel[k], b.blevel[from]+1)
		}
	}
}

// passedOn reports whether v's gradient is part of its only user's, and where.
func (b *Builder) passedOn(v uint32) (c, at uint32, ok bool) {
	if b.g.Op[v] == ops.Parameter || v == b.r.Node {
		return 0, 0, false
	}
	uses := b.usersOf(v)
	if len(uses) != 1 || uses[0].kind != useSame || uses[0].terms > 1 {
		return 0, 0, false
	}
	return uses[0].node, uses[0].at, true
}

// home is the backward cluster for v, made on first use.
func (b *Builder) home(v uint32) int32 {
	k := b.gcluster[v]
	if b.bcluster[k] < 0 {
		b.bcluster[k] = b.NewLike(k, b.blevel[k])
	}
	return b.bcluster[k]
}

// lowerGradient adds the items that form v's gradient.
func (b *Builder) lowerGradient(v uint32) {
	switch {
	case b.passAt[v] != NoOffset:
		b.takeOverGradient(v)
	case b.withUser[v]: // its gradient is there
	case b.symbolic && !b.Clusters[b.gcluster[v]].IsPrivate():
		b.addUsesUp(v)
	default:
		sub, general := b.linearSources(v)
		b.attribute(isa.InBackward, v)
		if b.handedOver(v, sub, general) {
			return
		}
		b.gsub[v] = b.formGradient(v, sub) - 1
		b.linear = append(b.linear[:0], schedule.One(b.s.Grad[v]))
		switch b.g.Op[v] {
		case ops.Parameter:
			b.gradientToParameter(v, true)
		case ops.ConstParameter:
			b.outerProducts(v, true)
		case ops.Lookup:
			b.gradientToRows(v)
		}
	}
}

// takeOverGradient makes v's gradient the part of its only user's that it is.
func (b *Builder) takeOverGradient(v uint32) {
	c := b.passFrom[v]
	b.gsub[v], b.s.Grad[v] = b.gsub[c], b.s.Grad[c]+b.passAt[v]
	if b.g.Op[v] == ops.Lookup {
		b.linear = append(b.linear[:0], schedule.One(b.s.Grad[v]))
		b.gradientToRows(v)
	}
}

// linearSources lists the vectors that v's gradient is a sum of, the order of what is formed from them in its cluster, and
// whether other uses have a formula of their own.
func (b *Builder) linearSources(v uint32) (sub int32, general bool) {
	k := b.gcluster[v]
	b.linear = b.linear[:0]
	b.ReleaseAxes()
	for _, u := range b.usersOf(v) {
		if u.kind == useOuter {
			continue
		}
		if b.formedIn(u.node) == k {
			sub = max(sub, b.gsub[u.node]+1)
		}
		switch u.kind {
		case useTransposed:
			left, _ := b.isRight(u)
			b.transposed(v, u, left)
		case useSame:
			b.linear = append(b.linear, b.source(v, u))
		case usePartial:
			b.attribute(isa.InBackward, u.node)
			b.linear = append(b.linear, b.leavePartialResults(v, u, b.blevel[b.formedIn(u.node)]+1))
		default:
			general = true
		}
	}
	return sub, general
}

// handedOver has the linear sources summed up elsewhere: with the gradients of a parameter or a table's row, or with the
// derivative of a function. False: v has a gradient of its own.
func (b *Builder) handedOver(v uint32, sub int32, general bool) bool {
	if general {
		return false
	}
	if v != b.r.Node { // the loss may be a leaf: its gradient is 1, although nobody uses it
		switch op := b.g.Op[v]; {
		case op == ops.Parameter && (!b.r.Copy || len(b.linear) == 0):
			b.gradientToParameter(v, false)
			return true
		case op == ops.Lookup && !b.r.Copy:
			b.gradientToRows(v)
			return true
		}
	}
	return len(b.linear) > 0 && b.derive(v, sub)
}

// formGradient forms v's gradient: the sum of its linear sources, to which what other uses give is added, use by use. It
// returns the next order.
func (b *Builder) formGradient(v uint32, sub int32) int32 {
	n, c := b.size(v), b.home(v)
	if b.s.Grad[v] == NoOffset {
		b.s.Grad[v] = b.Alloc(n)
	}
	dst, flags := schedule.At(isa.SegAct, b.s.Grad[v]), uint32(0)
	fill := func(value float32) {
		b.Fill(c, sub, value, n, dst.At)
		sub, flags = sub+1, isa.Acc
	}
	if len(b.linear) > 0 {
		sub, flags = b.SumItems(c, sub, 0, dst, isa.SegAct, 1, n, b.linear), isa.Acc
	}
	if v == b.r.Node {
		fill(1)
	}
	tiled := flags == 0 && b.tiled(v)
	b.ranges = b.ranges[:0]
	first := sub
	for _, u := range b.usersOf(v) {
		if u.kind != useOther {
			continue
		}
		if flags == 0 && !tiled && !b.covers(u) {
			fill(0)
		}
		if isRange := isRangeOf(b.g.Op[u.node]); !isRange || len(b.ranges) == 0 || !b.besides(u) { // it comes after those before
			if b.ranges, first = b.ranges[:0], sub; isRange {
				b.besides(u)
			}
		}
		if sub = max(sub, b.contribute(v, u, dst, flags, c, first)); !tiled {
			flags = isa.Acc
		}
	}
	if flags == 0 && !tiled {
		fill(0)
	}
	return sub
}

// transposed adds W^T dy for the use u of v as the right side of a resident product: every
// holder of the matrix leaves a partial result, which are v's linear sources.
func (b *Builder) transposed(v uint32, u user, left uint32) {
	c := u.node
	b.attribute(isa.InBackward, c)
	m := b.matrixOf(left)
	matrix := &b.r.Plan.Matrices[m]
	size := uint32(b.size(v))
	if x := b.jointOf(c); x != nil {
		b.linear = append(b.linear, b.transposedOfJoint(x, c))
		return
	}
	level := b.blevel[b.formedIn(c)] + 1
	if b.inTiles(c, v, m) {
		b.linear = append(b.linear, b.transposedInTiles(left, b.columns(c), b.gradient(c), level))
		return
	}
	holders, apart := b.holdersOf(m), size
	if b.r.Plan.Residence(int(m)).Columns > 0 { // every holder has results of its own
		holders, apart = 1, 0
	}
	sig := b.Sigs.Short(5, matrix.Rows, schedule.FirstWord(isa.ProductT, 0, 0), uint32(isa.SegAct)|uint32(isa.SegAct)<<4, uint32(m), isa.Float(b.factorOf(left)), apart, 0)
	cols := b.columns(c)
	own := size / uint32(matrix.Cols) // columns of v
	for first := uint32(0); first < cols; first += own {
		t := b.AllocHolders(holders, size)
		for i := range min(own, cols-first) {
			b.AddProduct(level, sig, t+b.columnOf(v, first+i)*uint32(matrix.Cols), b.s.Grad[c]+(first+i)*uint32(matrix.Rows))
		}
		b.linear = append(b.linear, schedule.Source{At: t, Count: holders, Apart: size})
	}
}

// holdersOf is how many partial results of a transposed product by matrix m are added.
func (b *Builder) holdersOf(m int32) uint32 {
	return uint32(len(b.holders.Copies[b.holders.ColumnPart(m)][0]))
}

// gradientToParameter hands b.linear over to the parameter.
func (b *Builder) gradientToParameter(v uint32, general bool) {
	id := b.g.AttrsOf(v)[0]
	for _, s := range b.linear {
		b.ParamSrc = append(b.ParamSrc, finish.ParamSource{Param: id, Source: s})
	}
	b.outerProducts(v, general)
}

// outerProducts adds dy x^T for every use of v as the left side of a resident product.
func (b *Builder) outerProducts(v uint32, formed bool) {
	if b.matrixOf(v) < 0 {
		return
	}
	uses := b.usersOf(v)
	for k := range uses {
		if b.symbolic {
			k = len(uses) - 1 - k
		}
		if uses[k].kind == useOuter {
			b.outerItems(v, uses[k], formed)
		}
	}
}

// outerItems notes the operands of dW = sum dy x^T; formed: v's own gradient holds other
// contributions already.
func (b *Builder) outerItems(v uint32, u user, formed bool) {
	c := u.node
	b.attribute(isa.InBackward, c)
	right := b.g.ArgsOf(c)[u.arg+1]
	m := b.matrixOf(v)
	matrix := &b.r.Plan.Matrices[m]
	dst, flags := schedule.At(isa.SegGrad, matrix.Offset), uint32(0)
	if b.r.Copy { // the node's own gradient is asked for, perhaps
		if b.s.Grad[v] == NoOffset {
			b.s.Grad[v] = b.Alloc(matrix.Rows * matrix.Cols)
			b.ParamSrc = append(b.ParamSrc, finish.ParamSource{Param: b.g.AttrsOf(v)[0], Source: schedule.One(b.s.Grad[v])})
		} else if formed {
			flags = isa.Acc
		}
		dst = b.gradient(v)
	}
	segs := uint32(dst.Seg) | uint32(isa.SegAct)<<4 | uint32(b.s.Segment[right])<<8
	sig := b.Sigs.Short(5, matrix.Cols, schedule.FirstWord(isa.Outer, 0, flags), segs, uint32(m), isa.Float(1), dst.At, 0)
	for i := range b.columns(c) {
		b.Outers = append(b.Outers, schedule.Product{Level: schedule.AtTheEnd, Sig: sig,
			Words: [2]uint32{b.s.Grad[c] + i*uint32(matrix.Rows), b.s.Value[right] + b.columnOf(right, i)*uint32(matrix.Cols)}})
	}
}

// gradientToRows hands b.linear over to the rows of a table.
func (b *Builder) gradientToRows(v uint32) {
	a, d := b.g.AttrsOf(v), b.g.DimOf(v)
	row := b.r.Params[a[0]].Row
	first := uint32(len(b.RowPool))
	b.RowPool = append(b.RowPool, b.linear...)
	for e := range d.Bd {
		key := uint64(a[0])<<32 | uint64(b.g.Inputs[a[1]+e])
		b.RowSrc = append(b.RowSrc, finish.RowSource{Key: key, First: first, Count: uint32(len(b.linear)), Shift: e * row})
	}
}
