package script

import (
	"math"
	"slices"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
	"libvpps/persist/schedule"
)

// Forward lowering: walks the nodes in order, or by height (joint.go), gives each a level, a
// cluster and an address, and adds its items.
//
// A local node (element-wise, gather, ...) joins the cluster of the arguments that come last,
// so that a chain of them runs on one processor without a barrier. A product's output is
// spread over the processors that hold the matrix; whoever reads it does so one level later.

// clusterCost bounds a cluster, so that joining does not serialise a whole level.
const clusterCost = 48

func (b *Builder) forward() error {
	done := uint32(b.s.Done)
	for v := b.first; v < done && v < b.end; v++ {
		b.spots[v] = nowhere // there already
	}
	lower := b.lowerInOrder
	if len(b.joints.products) > 0 {
		lower = b.lowerByHeight
	}
	err := lower()
	b.attribute(isa.InForward, nobody)
	return err
}

// lowerInOrder lowers the nodes in their order.
func (b *Builder) lowerInOrder() error {
	for v := max(b.first, uint32(b.s.Done)); v < b.end; v++ {
		if !b.need[v] {
			b.s.Value[v] = NoOffset
		} else if err := b.evaluateNode(v); err != nil {
			return err
		}
	}
	return nil
}

// evaluateNode adds the forward items of node v, which is needed.
func (b *Builder) evaluateNode(v uint32) error {
	from := len(b.Items)
	b.attribute(isa.InForward, v)
	if err := b.lower(v); err != nil {
		return err
	}
	b.dealOut(v, from, b.s.Value[v])
	if b.s.Segment[v] != isa.SegAct && (b.keeps(v) || b.symbolic) { // a parameter under another shape
		from = len(b.Items)
		b.copyOf(v)
		b.dealOut(v, from, b.s.Value[v])
	}
	return nil
}

// keeps reports whether v's value is read after the call.
func (b *Builder) keeps(v uint32) bool {
	_, found := slices.BinarySearch(b.r.Keep, v)
	return b.r.Copy || found
}

// copyOf gives v a value of its own.
func (b *Builder) copyOf(v uint32) {
	from := b.value(v)
	c, s := b.place(v, v)
	b.Map1(c, s, isa.Copy, 0, 0, b.size(v), b.output(v), from)
}

// markNeeded marks the nodes to evaluate: all, or the ancestors of the last.
func (b *Builder) markNeeded() {
	first, last := max(b.first, uint32(b.s.Done)), b.r.Node
	if !b.r.Needed {
		for v := first; v < b.end; v++ {
			b.need[v] = true
		}
		return
	}
	b.need[last] = true
	for _, v := range b.r.Keep {
		b.need[v] = v >= first
	}
	b.markArguments(b.need, first)
}

// markArguments marks what marked nodes from first on have as arguments, and those theirs.
func (b *Builder) markArguments(marks []bool, first uint32) {
	for v := int(b.end) - 1; v >= int(first); v-- {
		if marks[v] {
			for _, a := range b.g.ArgsOf(uint32(v)) {
				if a < b.first { // these are, and nobody writes them
					a = uint32(v)
				}
				marks[a] = true
			}
		}
	}
}

// ready is the level at which node a's value can be read by another cluster or product.
func (b *Builder) ready(a uint32) int32 {
	if b.spots[a].level < 0 {
		return 0
	}
	return b.spots[a].level + 1
}

// place gives the local node v its level, cluster and order; it returns the latter two.
func (b *Builder) place(v uint32, args ...uint32) (cluster, sub int32) {
	level := int32(0)
	for _, a := range args {
		at := &b.spots[a]
		if at.level >= 0 && at.cluster < 0 { // spread over processors
			level = max(level, at.level+1)
		} else {
			level = max(level, at.level)
		}
	}
	if b.Wide.On {
		return b.placeWide(v, level, args)
	}
	cluster = b.join(level, args)
	if cluster < 0 || b.Clusters[cluster].Cost > clusterCost {
		if cluster != unjoined {
			level++
		}
		cluster = b.NewCluster(level)
	} else {
		for _, a := range args {
			if at := &b.spots[a]; at.level == level && at.cluster >= 0 {
				sub = max(sub, at.sub+1)
			}
		}
	}
	b.spots[v] = spot{level, cluster, sub}
	return cluster, sub
}

// What join returns instead of a cluster.
const (
	unjoined = -1 // no argument is in a cluster of the level
	tooMuch  = -2 // together they would be too much for one processor
)

// join makes one cluster of those of a level that the arguments are in.
func (b *Builder) join(level int32, args []uint32) int32 {
	cluster := int32(unjoined)
	for _, a := range args {
		at := &b.spots[a]
		if at.level != level || at.cluster < 0 {
			continue
		}
		c := b.Find(at.cluster)
		if cluster < 0 {
			cluster = c
		} else if cluster != c {
			if b.CostOf(cluster)+b.CostOf(c) > clusterCost {
				return tooMuch
			}
			cluster = b.Union(cluster, c)
		}
	}
	return cluster
}

// alias makes v's value part of a's.
func (b *Builder) alias(v, a, shift uint32) {
	b.s.Value[v], b.s.Segment[v] = b.s.Value[a]+shift, b.s.Segment[a]
	b.spots[v] = b.spots[a]
	if c := b.spots[v].cluster; c >= 0 && b.Clusters[c].IsBatched() && !b.goesWith(v, &b.Clusters[c]) {
		b.spots[v].cluster = -1
	}
}

func (b *Builder) value(v uint32) schedule.Operand { return schedule.At(b.s.Segment[v], b.s.Value[v]) }

// output reserves v's value, unless it has a place already.
func (b *Builder) output(v uint32) schedule.Operand {
	at := uint32(NoOffset)
	if len(b.joints.products) > 0 {
		at = b.joints.seats[v]
	}
	if at == NoOffset {
		at = b.Alloc(b.size(v))
	}
	b.s.Value[v], b.s.Segment[v] = at, isa.SegAct
	return b.value(v)
}

// unaryRule is ops.Element with numbers for names.
type unaryRule struct {
	fn, back     isa.Fn
	p, q, dp, dq ops.Number
	fromY, ok    bool
}

// unaryRules is indexed by operation.
var unaryRules = func() (rules [256]unaryRule) {
	fns := map[string]isa.Fn{}
	for fn := range isa.FnTable {
		fns[isa.FnTable[fn].Name] = isa.Fn(fn)
	}
	for op := range ops.Table {
		if e := ops.Table[op].Element; e != nil {
			rules[op] = unaryRule{fns[e.Function], fns[e.Derivative], e.P, e.Q, e.DP, e.DQ, e.FromY, true}
		}
	}
	return rules
}()

// constant is a rule's number for node v.
func (b *Builder) constant(c ops.Number, v uint32) float32 {
	if c.Attr > 0 {
		return math.Float32frombits(b.g.AttrsOf(v)[c.Attr-1])
	}
	return c.Value
}

// lower adds the forward items of node v.
func (b *Builder) lower(v uint32) error {
	g := b.g
	op, args := g.Op[v], g.ArgsOf(v)
	b.s.Resident[v] = false
	b.ReleaseAxes()
	if r := &unaryRules[op]; r.ok {
		if b.reader[v] == lowered {
			return nil
		}
		c, s := b.place(v, args...)
		y := b.output(v)
		if p, q := b.constant(r.p, v), b.constant(r.q, v); q != 0 {
			b.AddMap(c, s, r.fn, 0, p, q, b.size(v), y, b.value(args[0]))
		} else {
			b.Map1(c, s, r.fn, 0, p, b.size(v), y, b.value(args[0]))
		}
		return nil
	}
	switch op {
	case ops.Input, ops.ScalarInput, ops.SparseInput, ops.Constant, ops.RandomNormal, ops.RandomBernoulli, ops.RandomUniform, ops.RandomGumbel,
		ops.Parameter, ops.ConstParameter, ops.Lookup, ops.ConstLookup:
		return b.lowerLeaf(v)
	case ops.CwiseSum, ops.CwiseMultiply, ops.CwiseQuotient, ops.Pow, ops.Min, ops.Max, ops.AddVectorToAllColumns:
		b.lowerBinary(v)
	case ops.Sum, ops.Average:
		b.lowerSum(v)
	case ops.SumElements, ops.SumDimension, ops.MomentDimension, ops.DotProduct, ops.SquaredEuclideanDistance,
		ops.SquaredNorm, ops.L2Norm, ops.BinaryLogLoss, ops.HuberDistance:
		b.lowerReduction(v)
	case ops.AffineTransform, ops.MatrixMultiply:
		b.lowerAffine(v)
	case ops.Reshape, ops.NoBackprop:
		b.alias(v, args[0], 0)
	case ops.Transpose, ops.Concatenate, ops.ConcatenateToBatch, ops.PickElement, ops.PickRange, ops.PickBatchElements,
		ops.SelectRows, ops.SelectCols, ops.StridedSelect, ops.Windows:
		return b.lowerMove(v)
	case ops.Softmax, ops.LogSoftmax, ops.PickNegLogSoftmax, ops.Hinge:
		return b.lowerRow(v)
	case ops.RestrictedLogSoftmax:
		return b.lowerRestricted(v)
	case ops.Dropout, ops.GaussianNoise:
		c, s := b.place(v, args[0])
		b.randomItem(c, s, v, 0, b.output(v), b.value(args[0]))
	default:
		return b.lowerLines(v)
	}
	return nil
}

// lowerLeaf lowers nodes without arguments.
func (b *Builder) lowerLeaf(v uint32) error {
	op, a, d := b.g.Op[v], b.g.AttrsOf(v), b.g.DimOf(v)
	switch op {
	case ops.Parameter, ops.ConstParameter:
		b.lowerParameter(v, b.keeps(v))
		return nil
	case ops.Lookup, ops.ConstLookup:
		return b.lowerLookup(v)
	}
	c, s := b.place(v)
	y := b.output(v)
	switch op {
	case ops.Input, ops.ScalarInput:
		b.Map1(c, s, isa.Copy, 0, 0, d.Size(), y, schedule.At(isa.SegInput, a[0]))
	case ops.Constant:
		b.Fill(c, s, math.Float32frombits(a[0]), d.Size(), y.At)
	case ops.SparseInput:
		b.Fill(c, s, math.Float32frombits(a[0]), d.Size(), y.At)
		b.spots[v].sub = s + 1
		if b.turns == nil {
			b.turns = map[uint32]int32{}
		}
		clear(b.turns)
		for i := a[2]; i > 0; i-- {
			id := b.g.Inputs[a[1]+i-1]
			if int(id) >= d.Size() {
				return fault(v, op, "index %d is outside the tensor %v", id, *d)
			}
			if b.turns[id] == 0 { // of equal indices the last wins
				b.turns[id] = 1
				b.Map1(c, s+1, isa.Copy, 0, 0, 1, y.Plus(id), schedule.At(isa.SegInput, a[1]+a[2]+i-1))
			}
		}
	default:
		b.randomItem(c, s, v, 0, y, schedule.Operand{})
	}
	return nil
}

// lowerParameter reads a parameter where it stands, unless a weight decay factor or a graph
// that outlives the call ask for a copy. A resident matrix keeps Resident either way.
func (b *Builder) lowerParameter(v uint32, kept bool) {
	p := &b.r.Params[b.g.AttrsOf(v)[0]]
	seg := isa.SegParam
	if p.Lookup {
		seg = isa.SegTable
	}
	b.s.Resident[v] = p.Matrix >= 0
	kept = kept || !b.r.Needed && !b.symbolic && (p.Lookup || p.Factor != 1)
	// A matrix that only products use needs no value of its own within one call.
	if !kept && (p.Factor == 1 || b.matrixOf(v) >= 0 && b.onlyProducts(v)) {
		b.s.Value[v], b.s.Segment[v] = p.Offset, seg
		b.spots[v] = nowhere
		return
	}
	c, s := b.place(v)
	// Copied in pieces, so that several processors share a large one.
	y := b.output(v)
	const piece = 4096
	for at := uint32(0); at < p.Size; at += piece {
		n := min(piece, p.Size-at)
		if at > 0 {
			c = b.NewCluster(0)
		}
		b.Map1(c, s, isa.Scale, 0, p.Factor, int(n), schedule.At(y.Seg, y.At+at), schedule.At(seg, p.Offset+at))
	}
	if p.Size > piece {
		b.spots[v].cluster = -1 // spread over processors, like a product's output
	}
}

// onlyProducts reports whether every node that uses v so far multiplies by it from the left.
func (b *Builder) onlyProducts(v uint32) bool {
	if !b.knowsOthers {
		b.markOtherwise()
	}
	return !b.otherwise[v]
}

// markOtherwise marks the nodes that are used but from the left of a product.
func (b *Builder) markOtherwise() {
	clear(b.otherwise[b.first:b.end])
	for v := b.first; v <= b.r.Node; v++ {
		if !b.need[v] {
			continue
		}
		for k, a := range b.g.ArgsOf(v) {
			if b.owns(a) && !b.isLeft(user{node: v, arg: uint32(k)}) {
				b.otherwise[a] = true
			}
		}
	}
	b.knowsOthers = true
}

func (b *Builder) lowerLookup(v uint32) error {
	op, a, d := b.g.Op[v], b.g.AttrsOf(v), b.g.DimOf(v)
	p := &b.r.Params[a[0]]
	c, s := b.place(v)
	b.unfit = b.unfit || b.symbolic && b.Clusters[c].IsPrivate() // a symbolic row is no address
	y := b.output(v)
	for i := range d.Bd {
		row := b.g.Inputs[a[1]+i]
		from := p.Offset + row*p.Row
		if b.symbolic {
			from = row
		} else if row >= p.Size/p.Row {
			return fault(v, op, "row %d of a table of %d rows", row, p.Size/p.Row)
		}
		b.Map1(c, s, isa.Scale, 0, p.Factor, int(p.Row), schedule.At(y.Seg, y.At+i*p.Row), schedule.At(isa.SegTable, from))
	}
	return nil
}

func (b *Builder) randomItem(cluster, sub int32, v uint32, flags uint32, dst, src schedule.Operand) {
	a := b.g.AttrsOf(v)
	var fn isa.RandomFn
	var p, q float32
	switch b.g.Op[v] {
	case ops.RandomNormal:
		fn, p, q = isa.Normal, math.Float32frombits(a[0]), math.Float32frombits(a[1])
	case ops.RandomBernoulli:
		fn, p, q = isa.Bernoulli, math.Float32frombits(a[0]), math.Float32frombits(a[1])
	case ops.RandomUniform:
		fn, p, q = isa.Uniform, math.Float32frombits(a[0]), math.Float32frombits(a[1])
	case ops.RandomGumbel:
		fn, p, q = isa.Gumbel, math.Float32frombits(a[0]), math.Float32frombits(a[1])
	case ops.GaussianNoise:
		fn, p = isa.Noise, math.Float32frombits(a[0])
	default:
		fn, p = isa.Drop, math.Float32frombits(a[0])
	}
	n := b.size(v)
	b.Sigs.Head(isa.Random, uint8(fn), flags, uint32(dst.Seg)|uint32(src.Seg)<<4, uint32(n), isa.Float(p), isa.Float(q),
		b.r.Seed, b.r.GraphID, b.r.ForwardCount, 0)
	if isa.RandomTable[fn].Words == 3 {
		b.Add(cluster, sub, b.Sigs.Intern(8*n), dst.At, src.At, v)
	} else {
		b.Add(cluster, sub, b.Sigs.Intern(8*n), dst.At, v, 0)
	}
}

// dimList is the dims of an element-wise instruction's operands.
type dimList [5]bridge.Dim

// spread lists the axes of dst over which operands broadcast: the first four dimensions and
// the batch. dims[0] is dst's; a stride is 0 where an operand has size 1.
func (b *Builder) spread(dims []bridge.Dim) []schedule.Axis {
	nd := 0
	for i := range dims {
		nd = max(nd, int(dims[i].Nd))
	}
	out := b.NewAxes(nd + 1)
	for s := range dims {
		d, step := &dims[s], uint32(1)
		for i := range nd {
			n := uint32(d.Axis(i))
			if s == 0 {
				out[i].Size = n
			}
			if n > 1 {
				out[i].Stride[s] = step
			}
			step *= n
		}
		if s == 0 {
			out[nd].Size = d.Bd
		}
		if d.Bd > 1 {
			out[nd].Stride[s] = step
		}
	}
	return out
}

// binaryFns is indexed by operation.
var binaryFns = [256]isa.Fn{
	ops.CwiseSum: isa.Add, ops.AddVectorToAllColumns: isa.Add, ops.CwiseMultiply: isa.Mul, ops.CwiseQuotient: isa.Div, ops.Pow: isa.Pow,
	ops.Min: isa.Min, ops.Max: isa.Max,
}

func (b *Builder) lowerBinary(v uint32) {
	g := b.g
	args := g.ArgsOf(v)
	x, y := args[0], args[1]
	fn, p := binaryFns[g.Op[v]], float32(1)
	c, s := b.place(v, args...)
	out := b.output(v)
	if b.alike(x, v) && b.alike(y, v) {
		b.Map2(c, s, fn, 0, p, b.size(v), out, b.value(x), b.value(y))
		return
	}
	dims := [...]bridge.Dim{*g.DimOf(v), *g.DimOf(x), *g.DimOf(y)}
	e := schedule.Element{Fn: fn, P: p, Kept: b.spread(dims[:])}
	e.Ops = [5]schedule.Operand{out, b.value(x), b.value(y)}
	b.AddElement(&e, c, s)
}

// lowerSum adds all arguments of the output's size in one go, then the broadcast ones.
func (b *Builder) lowerSum(v uint32) {
	g := b.g
	args, d := g.ArgsOf(v), g.DimOf(v)
	scale := float32(1)
	if g.Op[v] == ops.Average {
		scale = 1 / float32(len(args))
	}
	c, s := b.place(v, args...)
	y := b.output(v)
	if len(args) == 2 && scale == 1 && b.alike(args[0], v) && b.alike(args[1], v) {
		b.Map2(c, s, isa.Add, 0, 0, d.Size(), y, b.value(args[0]), b.value(args[1]))
		return
	}
	flags := uint32(0)
	for seg := isa.Segment(0); seg < isa.Segments; seg++ {
		src := b.linear[:0]
		for _, a := range args {
			if b.alike(a, v) && b.s.Segment[a] == seg {
				src = append(src, schedule.One(b.s.Value[a]))
			}
		}
		b.linear = src
		if len(src) > 0 {
			s = b.SumItems(c, s, flags, y, seg, scale, d.Size(), src)
			flags = isa.Acc
		}
	}
	for _, a := range args {
		if !b.alike(a, v) {
			dims := [...]bridge.Dim{*d, *g.DimOf(a)}
			e := schedule.Element{Fn: isa.Scale, Flags: flags, P: scale, Kept: b.spread(dims[:])}
			e.Ops = [5]schedule.Operand{y, b.value(a)}
			b.AddElement(&e, c, s)
			s++
			flags = isa.Acc
		}
	}
	b.spots[v].sub = s - 1
}

// reduction describes a node that sums over axes: dims of out extended by 1 where x is
// reduced, so that spread gives the strides.
func (b *Builder) reduction(v uint32) (fn isa.Fn, p, q float32, out bridge.Dim) {
	g := b.g
	x := *g.DimOf(g.ArgsOf(v)[0])
	out = x
	all := func() {
		for i := range out.Nd {
			out.D[i] = 1
		}
	}
	p = 1
	switch a := g.AttrsOf(v); g.Op[v] {
	case ops.SumElements:
		all()
		fn = isa.Copy
	case ops.SquaredNorm, ops.L2Norm:
		all()
		fn = isa.Square
	case ops.DotProduct, ops.SquaredEuclideanDistance, ops.BinaryLogLoss, ops.HuberDistance:
		all()
		out.Bd = g.DimOf(v).Bd
		switch g.Op[v] {
		case ops.DotProduct:
			fn = isa.Mul
		case ops.BinaryLogLoss:
			fn = isa.BinLog
		case ops.HuberDistance:
			fn, p = isa.Huber, math.Float32frombits(a[0])
		default:
			fn = isa.SquareDiff
		}
	case ops.SumDimension, ops.MomentDimension:
		n, batch := 1, a[1]
		if g.Op[v] == ops.MomentDimension {
			batch = a[2]
		}
		for i := range out.Nd {
			if a[0]>>i&1 != 0 {
				n *= int(out.D[i])
				out.D[i] = 1
			}
		}
		if batch != 0 {
			n *= int(out.Bd)
			out.Bd = 1
		}
		fn = isa.Copy
		if g.Op[v] == ops.MomentDimension {
			if a[3] != 0 {
				n = int(a[3])
			}
			fn, p, q = isa.Scale, 1/float32(n), float32(a[1])
			if a[1] != 1 {
				fn = isa.Moment
			}
		}
	}
	return fn, p, q, out
}

func (b *Builder) lowerReduction(v uint32) {
	g := b.g
	args := g.ArgsOf(v)
	fn, p, q, out := b.reduction(v)
	c, s := b.place(v, args...)
	y := b.output(v)
	e := schedule.Element{Fn: fn, P: p, Q: q}
	e.Ops[0] = y
	full := joined(g, args)
	dims := dimList{full}
	for i, a := range args {
		e.Ops[i+1] = b.value(a)
		dims[i+1] = b.aligned(a, &full)
	}
	e.Kept, e.Red = b.splitAxes(b.spread(dims[:1+len(args)]), &out)
	inParts := b.sumInParts(v, &e, full.Size(), c)
	if !inParts {
		b.AddElement(&e, c, s)
	}
	if g.Op[v] == ops.L2Norm {
		if inParts {
			c, s = b.place(v, v)
		} else {
			s++
			b.spots[v].sub = s
		}
		b.Map1(c, s, isa.Sqrt, 0, 0, b.size(v), y, y)
	}
}

// joined is the dim over which a reduction runs: the first argument's, with the larger batch.
func joined(g *bridge.Graph, args []uint32) bridge.Dim {
	d := *g.DimOf(args[0])
	for _, a := range args[1:] {
		d.Bd = max(d.Bd, g.DimOf(a).Bd)
	}
	return d
}

// aligned is a's dim in the shape of full: operands of a distance may differ in trailing ones.
func (b *Builder) aligned(a uint32, full *bridge.Dim) bridge.Dim {
	d := *full
	d.Bd = b.g.DimOf(a).Bd
	return d
}

// splitAxes turns axes over the whole input (whose slot 0 strides are the input's own) into
// those kept in out and those summed, with slot 0 strides of out.
func (b *Builder) splitAxes(axes []schedule.Axis, out *bridge.Dim) (kept, red []schedule.Axis) {
	kept, red = axes[:0], b.NewAxes(len(axes))[:0]
	step := uint32(1)
	for i := range axes {
		n := out.Bd
		if i < len(axes)-1 {
			n = uint32(out.Axis(i))
		}
		if n == 1 && axes[i].Size > 1 {
			axes[i].Stride[0] = 0
			red = append(red, axes[i])
			continue
		}
		axes[i].Stride[0] = 0
		if n > 1 {
			axes[i].Stride[0] = step
		}
		step *= n
		kept = append(kept, axes[i])
	}
	return kept, red
}
