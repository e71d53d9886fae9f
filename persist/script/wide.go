package script

import (
	"slices"

	"libvpps/bridge/ops"
	"libvpps/persist/memory"
	"libvpps/persist/plan"
	"libvpps/persist/schedule"
)

// Wide work. A cluster is one processor's, so a node with much work would leave all others waiting. Two kinds of clusters
// are divided into pieces, which are ordinary clusters of the same level:
//
//   - A batched cluster has nodes of one number of batch elements. Batch elements have nothing to do with one another, so
//     each piece has some of them, and a chain of operations needs no barrier between.
//   - A private cluster has one node, and each piece has some of its elements. Others read the node one level later.
//
// Each element of a result is formed by one processor as before, so results do not depend on the pieces.

// findWide finds whether any node of the graph may be wide.
func (b *Builder) findWide() {
	x := &b.Wide
	x.Wideness, x.On, b.unfit = b.r.wideness(), false, false
	if b.r.Plan.Processors == 1 || b.g == nil || b.symbolic {
		return
	}
	any := false
	b.large = memory.Resize(b.large, len(b.dims))
	for i := range b.dims {
		b.large[i] = x.IsLarge(int(b.dims[i].size), b.dims[i].batch)
		any = any || b.large[i]
	}
	for v := uint32(0); any && v <= b.r.Node && !x.On; v++ {
		x.On = b.large[b.g.Dim[v]] && !b.isParameter(v)
	}
	for v := uint32(0); x.On && v <= b.r.Node; v++ {
		switch b.g.Op[v] {
		case ops.MatrixInverse, ops.LogDet: // they write beside their value: nothing around them is divided
			x.On = false
		}
	}
	if x.On {
		b.findAhead()
	}
}

// findAhead finds which nodes are read by one of the same batch that may be wide, or by others that are.
func (b *Builder) findAhead() {
	b.ahead = memory.Resize(b.ahead, int(b.r.Node)+1)
	clear(b.ahead)
	for v := int(b.r.Node); v >= 0; v-- {
		if batch := b.shape(uint32(v)).batch; batch > 1 && (b.ahead[v] || b.large[b.g.Dim[v]]) {
			for _, a := range b.g.ArgsOf(uint32(v)) {
				b.ahead[a] = b.ahead[a] || b.shape(a).batch == batch
			}
		}
	}
}

// wideness is from when on a request's work is divided.
func (r *Request) wideness() schedule.Wideness {
	if r.Wide == (schedule.Wideness{}) {
		return schedule.UsualWidth
	}
	return r.Wide
}

// InCells reports whether a request is lowered by instances under a GPU's plan, if they are known. No node may be wide whose
// work is divided by batch elements, in tiles or by an input word, for instances of one template would differ in that. Nor may
// products be joined that instances would form level by level.
func InCells(r *Request) bool {
	if r.joinsInMemory() {
		return false
	}
	g, w := r.Graph, r.wideness()
	for v := range r.Node + 1 {
		if d := g.DimOf(v); d.Bd > 1 && w.IsLarge(d.Size(), d.Bd) || r.dividedByWord(v, &w) || r.dividedInTiles(v, &w) {
			return false
		}
	}
	return true
}

// A small graph has few columns by a matrix. If that is in memory, instances read it in each level of theirs, and node by node
// its products are joined.
const (
	inMemory    = 1 << 20 // elements of a matrix that are read slowly enough
	mostToJoin  = 64      // columns: with more, such as those of several sentences, instances have several in each level
	fewestTiled = 9       // columns: fewer are not in tiles
)

// joinsInMemory reports whether a small graph has products by a matrix in memory that may be joined.
func (r *Request) joinsInMemory() bool {
	p := r.Plan
	if p.Where == nil || !slices.ContainsFunc(p.Matrices, func(m plan.Matrix) bool { return m.Rows*m.Cols >= inMemory }) {
		return false
	}
	g, columns := r.Graph, make([]int, len(p.Matrices))
	for v := range r.Node + 1 {
		if op := g.Op[v]; op != ops.AffineTransform && op != ops.MatrixMultiply {
			continue
		}
		for k, a := range g.ArgsOf(v) {
			if isLeftOf(g.Op[v], k) && (g.Op[a] == ops.Parameter || g.Op[a] == ops.ConstParameter) {
				if m := r.Params[g.AttrsOf(a)[0]].Matrix; m >= 0 && r.readsFromMemory(m) {
					columns[m] += g.DimOf(v).Size() / p.Matrices[m].Rows
				}
			}
		}
	}
	return slices.ContainsFunc(columns, func(n int) bool { return n >= fewestTiled && n <= mostToJoin })
}

// readsFromMemory reports whether each product by a matrix reads much of it from memory.
func (r *Request) readsFromMemory(m int32) bool {
	x := &r.Plan.Matrices[m]
	return x.Rows*x.Cols >= inMemory && r.Plan.Residence(int(m)).Kind == plan.Streamed
}

// dividedByWord reports whether input words say where a part of wide node v reads: labels and rows do.
func (r *Request) dividedByWord(v uint32, w *schedule.Wideness) bool {
	switch g := r.Graph; g.Op[v] {
	case ops.PickNegLogSoftmax:
		return g.DimOf(g.ArgsOf(v)[0]).Batch() >= w.Single
	case ops.Lookup, ops.ConstLookup:
		return g.DimOf(v).Size() >= w.Single
	}
	return false
}

// A matrix of few rows has few holders, who would form all columns of a wide product while the others wait. In a graph
// with such a product it is an operand like any other, of products that all processors share.
const (
	fewHoldersOf = 8   // its holders are at most one of so many processors
	manyColumns  = 256 // that each of its copies multiplies by for one node
)

// findMatricesOfAll finds the matrices of few rows that are multiplied by many columns. A call that goes on with a graph
// leaves them to their holders: how it has been evaluated so far is not known.
func (b *Builder) findMatricesOfAll() {
	p := b.r.Plan
	b.ofAll = b.ofAll[:0]
	if !b.Wide.On || p.RowsPerWarp == 0 || !b.r.Forward || b.s.Done > 0 || b.r.Copy {
		return
	}
	few := func(m int32) bool {
		c := b.holders.Copies[m]
		return len(c)*len(c[0])*fewHoldersOf <= p.Processors
	}
	for v := uint32(0); v <= b.r.Node; v++ {
		op := b.g.Op[v]
		if op != ops.MatrixMultiply && op != ops.AffineTransform || b.columns(v) < manyColumns {
			continue
		}
		for k, l := range b.g.ArgsOf(v) {
			if !b.isLeft(user{node: v, arg: uint32(k)}) || !b.isParameter(l) {
				continue
			}
			m := b.r.Params[b.g.AttrsOf(l)[0]].Matrix
			if m >= 0 && few(m) && int(b.columns(v)) >= manyColumns*len(b.holders.Copies[m]) {
				b.ofAll = memory.Extend(b.ofAll, len(p.Matrices), false)
				b.ofAll[m] = true
			}
		}
	}
}

// newWide starts a cluster for node v, or its gradient, whose work it is.
func (b *Builder) newWide(level int32, v uint32, work int) int32 {
	return b.newDivided(level, v, work, 1, 0)
}

// newDivided is newWide, where batch elements may be divided into so many columns, and there are so many pieces at least.
func (b *Builder) newDivided(level int32, v uint32, work int, columns uint32, least int32) int32 {
	batch := b.shape(v).batch
	switch {
	case least == 0 && !b.isWide(v, work):
		return b.NewCluster(level)
	case b.byElements(batch, columns, work):
		return b.NewPrivate(level)
	case b.symbolic:
		b.unfit = true
		return b.NewCluster(level)
	}
	if n := max(least, b.piecesOf(batch*columns, work)); columns > 1 && n > int32(batch) {
		return b.NewBatched(level, n, batch*columns, schedule.ByColumns)
	}
	return b.NewBatched(level, max(least, b.piecesOf(batch, work)), batch, 0)
}

// fewBatch is how many times as many processors as batch elements there are, if large batch elements are divided, too.
const fewBatch = 4

// byElements reports whether so much wide work is divided by elements: there is no batch, or it has a few large elements, of
// too few columns for all processors.
func (b *Builder) byElements(batch, columns uint32, work int) bool {
	p := b.r.Plan.Processors
	return batch == 1 || fewBatch*int(batch) <= p && int(batch*columns) < p && work >= 2*b.Wide.Single*int(batch)
}

// isWide reports whether so much work for node v is divided, in a graph that may have wide nodes.
func (b *Builder) isWide(v uint32, work int) bool {
	if !b.Wide.On {
		return false
	}
	if b.shape(v).batch > 1 {
		return work >= b.Wide.Batched
	}
	return work >= b.Wide.Single
}

// muchMore is how many times as many pieces of gradients as of values there have to be, or there are as many.
const muchMore = 4

// piecesOf is how many pieces have parts of so much work, batch elements or columns. A piece may have half as much as others
// have, for most of its items are cut when its stream is written.
func (b *Builder) piecesOf(parts uint32, work int) int32 {
	return int32(max(1, min(2*work/b.Wide.Piece, int(parts), b.r.Plan.Processors)))
}

// goesWith reports whether node v is divided as a batched cluster is.
func (b *Builder) goesWith(v uint32, x *schedule.Cluster) bool {
	parts := b.shape(v).batch
	if x.Kind&schedule.ByColumns != 0 {
		parts *= b.columnsIn[v]
	}
	return x.Batch == parts
}

// workOf estimates a node's work.
func (b *Builder) workOf(v uint32) int {
	args := b.g.ArgsOf(v)
	work := b.size(v)
	for _, a := range args {
		work = max(work, b.size(a))
	}
	switch b.g.Op[v] {
	case ops.Parameter, ops.ConstParameter: // these have their own way
		return 0
	case ops.AffineTransform, ops.MatrixMultiply:
		work = b.size(v)
		for k := range args {
			if left, ok := b.isRight(user{node: v, arg: uint32(k)}); ok && b.matrixOf(left) < 0 {
				work = max(work, b.gemmWork(v, left))
			}
		}
	case ops.Sum, ops.Average:
		if b.size(v) >= schedule.PieceOf {
			work *= len(args)
		}
	case ops.PickNegLogSoftmax, ops.LogSoftmax, ops.Softmax:
		work *= 2
	}
	return work
}

// gemmWork estimates the work of a product that is node v, or of one of its gradients.
func (b *Builder) gemmWork(v, left uint32) int {
	if d := b.shape(v); b.IsSums(d.batch, [3]uint32{d.rows, d.size / (d.rows * d.batch), b.shape(left).cols}) {
		return 2 * b.size(v) * int(b.shape(left).cols)
	}
	return schedule.GemmElements(int(b.shape(v).rows), b.size(v)/int(b.shape(v).rows), int(b.shape(left).cols))
}

// gradientWork estimates the work of forming node v's gradient.
func (b *Builder) gradientWork(v uint32) int {
	work, parts := 0, 0
	for _, u := range b.usersOf(v) {
		switch {
		case u.kind == useOuter:
		case u.kind == useTransposed:
			work += b.transposedWork(v, u)
		case u.kind == useSame:
			work += b.size(v) * int(u.terms)
		case takesPart(b.g.Op[u.node]):
			parts += b.size(u.node)
		default:
			work += max(b.size(v), b.size(u.node))
			if left, ok := b.isRight(u); ok {
				work += b.gemmWork(u.node, left)
			} else if b.isLeft(u) {
				work += b.gemmWork(u.node, v)
			}
		}
	}
	if parts > 0 { // all of the gradient is filled
		parts += b.size(v)
	}
	return work + parts
}

// takesPart reports whether an operation's result is a part of its argument: its gradient is added to that part alone.
func takesPart(op ops.Code) bool {
	switch op {
	case ops.PickElement, ops.PickRange, ops.PickBatchElements, ops.SelectRows, ops.SelectCols, ops.StridedSelect:
		return true
	}
	return false
}

// transposedWork estimates the work of adding up the partial results of a transposed product.
func (b *Builder) transposedWork(v uint32, u user) int {
	left, _ := b.isRight(u)
	m := b.matrixOf(left)
	holders := b.holdersOf(m)
	if x := b.jointOf(u.node); x != nil {
		holders = b.sumsInTiles(m, x.columns)
	} else if b.inTiles(u.node, v, m) {
		holders = b.sumsInTiles(m, b.columns(u.node))
	}
	return b.size(v) * int(holders)
}

// placeWide is place in a graph with wide nodes: level is that of v's latest arguments.
func (b *Builder) placeWide(v uint32, level int32, args []uint32) (cluster, sub int32) {
	work := b.workOf(v)
	wide, columns := b.isWide(v, work), b.columnsIn[v]
	if b.multiplies(v) {
		columns = 1
	}
	alone := wide && b.byElements(b.shape(v).batch, columns, work)
	least := int32(0)
	cluster = unjoined
	if !b.joins(v, level, args, alone, wide) {
		cluster = tooMuch
	} else if cluster = b.join(level, args); cluster >= 0 && b.CostOf(cluster) > clusterCost {
		cluster = tooMuch
	}
	switch {
	case cluster >= 0:
		for _, a := range args {
			if at := &b.spots[a]; at.level == level && at.cluster >= 0 {
				sub = max(sub, at.sub+1)
			}
		}
		b.spots[v] = spot{level, cluster, sub}
		return cluster, sub
	case cluster == tooMuch:
		if !b.symbolic && (wide || b.ahead[v]) {
			least = b.piecesBefore(v, level, args)
		}
		level++
	}
	cluster = b.newDivided(level, v, work, columns, least)
	b.spots[v] = spot{level, cluster, 0}
	if b.Clusters[cluster].IsPrivate() {
		b.spots[v].cluster = -1 // spread over processors, like a product's output
	}
	return cluster, 0
}

// piecesBefore is the most pieces of any cluster of a level and of v's batch that forms an argument of v; 0: there is none. A
// cluster of fewer pieces could not join what these form later.
func (b *Builder) piecesBefore(v uint32, level int32, args []uint32) (pieces int32) {
	for _, a := range args {
		if at := &b.spots[a]; at.level == level && at.cluster >= 0 && b.shape(a).batch == b.shape(v).batch {
			pieces = max(pieces, b.Clusters[b.Find(at.cluster)].Pieces)
		}
	}
	return pieces
}

// joins reports whether v may be in one cluster with those of its arguments that are in clusters of a level. Of a
// batched cluster are only nodes with as many batch elements, each of which depends on the same one of the arguments.
func (b *Builder) joins(v uint32, level int32, args []uint32, alone, wide bool) bool {
	var first *schedule.Cluster
	for _, a := range args {
		at := &b.spots[a]
		if at.level != level || at.cluster < 0 {
			continue
		}
		x := &b.Clusters[b.Find(at.cluster)]
		if first == nil {
			first = x
		}
		if alone || x.Pieces != first.Pieces || x.Batch != first.Batch || !x.IsBatched() && wide {
			return false
		}
		if x.IsBatched() && !(b.goesWith(v, x) && b.goesWith(a, x)) {
			return false
		}
	}
	if first != nil && first.IsBatched() {
		switch b.g.Op[v] {
		case ops.PickBatchElements, ops.ConcatenateToBatch:
			return false
		}
		return first.Kind&schedule.ByColumns == 0 || !b.multiplies(v) // a column of which may read any of the operand's
	}
	return true
}

// gradientCluster is the cluster that stands for the one forming v's gradient: c, that of its value or of its only
// reader, unless they do not go together. A node that others of its cluster read stays there: these and what it reads
// there itself would wait for each other.
func (b *Builder) gradientCluster(v uint32, c int32) int32 {
	x, work := &b.Clusters[c], b.gradientWork(v)-b.workAhead(v)
	columns := b.columnsIn[v]
	if b.gradientMultiplies(v) {
		columns = 1
	}
	if x.IsBatched() && b.goesWith(v, x) && !b.mixesBatch(v, c) && !b.byElements(b.shape(v).batch, columns, work) {
		if n := b.piecesOf(x.Batch, work); n >= muchMore*x.Pieces {
			x.GradientPieces = max(x.GradientPieces, n)
		}
		return c
	}
	if !x.IsBatched() && !x.IsPrivate() && !b.isWide(v, work) {
		return c
	}
	if own := b.spots[v].cluster; own >= 0 && b.Find(own) == c {
		for _, u := range b.usersOf(v) {
			if b.formedIn(u.node) == c {
				return c
			}
		}
	}
	return b.newDivided(b.spots[v].level, v, work, columns, 0)
}

// gradientMultiplies reports whether node v's gradient has products that are formed in its cluster.
func (b *Builder) gradientMultiplies(v uint32) bool {
	for _, u := range b.usersOf(v) {
		if u.kind == useOther && b.multiplies(u.node) {
			return true
		}
	}
	return false
}

// dealOut divides the items from one on, which v's lowering has added, among the pieces of their clusters. They write to a
// tensor at an address.
func (b *Builder) dealOut(v uint32, from int, at uint32) {
	if !b.Wide.On || len(b.Items) == from {
		return
	}
	if b.tally != nil {
		b.tally.count(b)
	}
	b.Schedule.DealOut(v, from, at, uint32(b.size(v)))
	if b.tally != nil { // counted before
		b.tally.restart(b)
	}
}

// mixesBatch reports whether the gradient of a batch element of v is made of those of several in a cluster.
func (b *Builder) mixesBatch(v uint32, c int32) bool {
	for _, u := range b.usersOf(v) {
		if b.g.Op[u.node] == ops.PickBatchElements && b.formedIn(u.node) == c {
			return true
		}
	}
	return false
}
