package script

import (
	"fmt"

	"libvpps/bridge/ops"
	"libvpps/persist/isa"
)

// Wide work. A cluster is one processor's, so a node with much work would leave all others waiting. Two kinds of clusters
// are divided into pieces, which are ordinary clusters of the same level:
//
//   - A batched cluster has nodes of one number of batch elements. Batch elements have nothing to do with one another, so
//     each piece has some of them, and a chain of operations needs no barrier between.
//   - A private cluster has one node, and each piece has some of its elements. Others read the node one level later.
//
// Each element of a result is formed by one processor as before, so results do not depend on the pieces.

// Wideness says from when on work is divided, in elements that are read or written.
type Wideness struct {
	Batched int // work of a node from which its batch elements are divided,
	Single  int // or its elements
	Piece   int // work that a piece has at least
	Terms   int // terms of a sum that a partial result has at least
	Columns int // that a matrix is multiplied by, from which all processors may share the product,
	Faster  int // if a holder of the matrix has more than so many times a processor's share
}

// usualWidth divides what takes one of an H200's processors about as long as a barrier.
var usualWidth = Wideness{Batched: 4096, Single: 16384, Piece: 1024, Terms: 64, Columns: 32, Faster: 3}

// wideMemory is the memory of dividing.
type wideMemory struct {
	on bool // the graph may have wide nodes
	Wideness
	items, some []item
	unfolded    []item
	extents     []extent
	words       []uint32
	cut         struct{ sig, axis, n, of uint32 } // the signature sig of an item of which n parts along an axis are those of signature of
	large       []bool                            // [dim]: nodes of it may be wide
	ofAll       []bool                            // [matrix]: all processors multiply by it, not its holders; empty: there is none
	steps       []uint32                          // of one item's words
	wholes      []whole                           // what items are that pieces share: their signature is its number
	wholeOf     []uint32                          // [signature]: the latest of wholes that is of it; 0: none
}

// findWide finds whether any node of the graph may be wide.
func (b *Builder) findWide() {
	x := &b.wide
	x.Wideness, x.on = b.r.wideness(), false
	if b.r.Plan.Processors == 1 || b.g == nil || b.symbolic {
		return
	}
	any := false
	x.large = resize(x.large, len(b.dims))
	for i := range b.dims {
		x.large[i] = x.isLarge(int(b.dims[i].size), b.dims[i].batch)
		any = any || x.large[i]
	}
	for v := uint32(0); any && v <= b.r.Node && !x.on; v++ {
		x.on = x.large[b.g.Dim[v]] && !b.isParameter(v)
	}
	for v := uint32(0); x.on && v <= b.r.Node; v++ {
		switch b.g.Op[v] {
		case ops.MatrixInverse, ops.LogDet: // they write beside their value: nothing around them is divided
			x.on = false
		}
	}
}

// wideness is from when on a request's work is divided.
func (r *Request) wideness() Wideness {
	if r.Wide == (Wideness{}) {
		return usualWidth
	}
	return r.Wide
}

// isLarge reports whether nodes of so many elements and batch elements may be wide.
func (w *Wideness) isLarge(size int, batch uint32) bool {
	return size >= w.Single/4 || batch > 1 && size >= w.Batched/4
}

// hasWide reports whether any node of a request's graph may be wide.
func hasWide(r *Request) bool {
	g, w := r.Graph, r.wideness()
	for v := range r.Node + 1 {
		switch d := g.DimOf(v); {
		case g.Op[v] == ops.Parameter, g.Op[v] == ops.ConstParameter:
		case w.isLarge(d.Size(), d.Bd):
			return true
		}
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
	x, p := &b.wide, b.r.Plan
	x.ofAll = x.ofAll[:0]
	if !x.on || p.RowsPerWarp == 0 || !b.r.Forward || b.s.Done > 0 || b.r.Copy {
		return
	}
	few := func(m int32) bool {
		c := b.plan.copies[m]
		return b.across(m) == 1 && len(c)*len(c[0])*fewHoldersOf <= p.Processors
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
			if m >= 0 && few(m) && int(b.columns(v)) >= manyColumns*len(b.plan.copies[m]) {
				x.ofAll = extend(x.ofAll, len(p.Matrices), false)
				x.ofAll[m] = true
			}
		}
	}
}

// isBatched reports whether c is a batched cluster, isPrivate whether it is a private one.
func (x *cluster) isBatched() bool { return x.pieces > 0 }
func (x *cluster) isPrivate() bool { return x.kind&private != 0 }

// newWide starts a cluster for node v, or its gradient, whose work it is.
func (b *Builder) newWide(level int32, v uint32, work int) int32 {
	batch := b.shape(v).batch
	switch {
	case !b.isWide(v, work):
		return b.newCluster(level)
	case b.byElements(batch, work):
		return b.newPrivate(level)
	}
	return b.newBatched(level, b.piecesOf(batch, work), batch)
}

// fewBatch is how many times as many processors as batch elements there are, if large batch elements are divided, too.
const fewBatch = 4

// byElements reports whether so much wide work is divided by elements: there is no batch, or it has a few large elements.
func (b *Builder) byElements(batch uint32, work int) bool {
	return batch == 1 || fewBatch*int(batch) <= b.r.Plan.Processors && work >= 2*b.wide.Single*int(batch)
}

// isWide reports whether so much work for node v is divided.
func (b *Builder) isWide(v uint32, work int) bool {
	if b.shape(v).batch > 1 {
		return work >= b.wide.Batched
	}
	return work >= b.wide.Single
}

func (b *Builder) newPrivate(level int32) int32 {
	c := b.newCluster(level)
	b.clusters[c].kind = private
	return c
}

// newBatched starts a batched cluster; its pieces follow it.
func (b *Builder) newBatched(level int32, pieces int32, batch uint32) int32 {
	c := b.newCluster(level)
	b.clusters[c].pieces, b.clusters[c].batch = pieces, batch
	for k := range pieces {
		b.clusters[b.newCluster(level)].piece = 1 + k
	}
	return c
}

// newLike starts a cluster that forms gradients and is divided like another one, or into more pieces if these are much
// more work.
func (b *Builder) newLike(like, level int32) int32 {
	if !b.wide.on { // of a piece of the backward part, like is the whole's
		return b.newCluster(level)
	}
	switch x := b.clusters[like]; {
	case x.isBatched():
		return b.newBatched(level, max(x.pieces, x.gradientPieces), x.batch)
	case x.isPrivate():
		return b.newPrivate(level)
	}
	return b.newCluster(level)
}

// fewPieces is how many pieces a batched cluster has at most, unless each is four times the work of one: the host writes
// every piece.
const fewPieces = 8

// muchMore is how many times as many pieces of gradients as of values there have to be, or there are as many.
const muchMore = 4

// piecesOf is how many pieces have batch elements of so much work.
func (b *Builder) piecesOf(batch uint32, work int) int32 {
	n := min(work/b.wide.Piece, int(batch), b.r.Plan.Processors, max(fewPieces, work/(4*b.wide.Piece)))
	each := (int(batch) + n - 1) / max(n, 1)
	return int32((int(batch) + each - 1) / each)
}

// costly is c, or its first piece: what has the costs for one processor.
func (b *Builder) costly(c int32) int32 {
	if c = b.find(c); b.clusters[c].isBatched() {
		return c + 1
	}
	return c
}

func (b *Builder) costOf(c int32) int32 {
	cost, first := b.clusters[b.costly(c)].cost, b.find(c)
	if b.clusters[first].isBatched() { // what each piece has of items that all share
		cost += b.clusters[first].cost
	}
	return cost
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
		if b.size(v) >= pieceOf {
			work *= len(args)
		}
	case ops.PickNegLogSoftmax, ops.LogSoftmax, ops.Softmax:
		work *= 2
	}
	return work
}

// gemmWork estimates the work of a product that is node v, or of one of its gradients.
func (b *Builder) gemmWork(v, left uint32) int {
	if d := b.shape(v); b.isSums(d.batch, [3]uint32{d.rows, d.size / (d.rows * d.batch), b.shape(left).cols}) {
		return 2 * b.size(v) * int(b.shape(left).cols)
	}
	return gemmElements(int(b.shape(v).rows), b.size(v)/int(b.shape(v).rows), int(b.shape(left).cols))
}

// gradientWork estimates the work of forming node v's gradient.
func (b *Builder) gradientWork(v uint32) int {
	work := 0
	for _, u := range b.usersOf(v) {
		switch u.kind {
		case useOuter:
		case useTransposed:
			left, _ := b.isRight(u)
			m := b.matrixOf(left)
			holders := b.holdersOf(m)
			if b.inTiles(u.node, v, m) {
				holders = b.sumsInTiles(u.node, m)
			}
			work += b.size(v) * int(holders)
		case useSame:
			work += b.size(v)
		default:
			work += max(b.size(v), b.size(u.node))
			if left, ok := b.isRight(u); ok {
				work += b.gemmWork(u.node, left)
			} else if b.isLeft(u) {
				work += b.gemmWork(u.node, v)
			}
		}
	}
	return work
}

// placeWide is place in a graph with wide nodes: level is that of v's latest arguments.
func (b *Builder) placeWide(v uint32, level int32, args []uint32) (cluster, sub int32) {
	work := b.workOf(v)
	wide := b.isWide(v, work)
	alone := wide && b.byElements(b.shape(v).batch, work)
	cluster = unjoined
	if !b.joins(v, level, args, alone, wide) {
		cluster = tooMuch
	} else if cluster = b.join(level, args); cluster >= 0 && b.costOf(cluster) > clusterCost {
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
		level++
	}
	cluster = b.newWide(level, v, work)
	b.spots[v] = spot{level, cluster, 0}
	if b.clusters[cluster].isPrivate() {
		b.spots[v].cluster = -1 // spread over processors, like a product's output
	}
	return cluster, 0
}

// joins reports whether v may be in one cluster with those of its arguments that are in clusters of a level. Of a
// batched cluster are only nodes with as many batch elements, each of which depends on the same one of the arguments.
func (b *Builder) joins(v uint32, level int32, args []uint32, alone, wide bool) bool {
	var first *cluster
	for _, a := range args {
		at := &b.spots[a]
		if at.level != level || at.cluster < 0 {
			continue
		}
		x := &b.clusters[b.find(at.cluster)]
		if first == nil {
			first = x
		}
		if alone || x.pieces != first.pieces || x.batch != first.batch || !x.isBatched() && wide {
			return false
		}
		if x.isBatched() && (b.shape(v).batch != x.batch || b.shape(a).batch != x.batch) {
			return false
		}
	}
	if first != nil && first.isBatched() {
		return b.g.Op[v] != ops.PickBatchElements && b.g.Op[v] != ops.ConcatenateToBatch
	}
	return true
}

// unionPieces makes the pieces of two batched clusters one by one the same, which the clusters themselves are already.
func (b *Builder) unionPieces(x, y int32) {
	for k := range b.clusters[x].pieces {
		b.union(x+1+k, y+1+k)
	}
}

// gradientCluster is the cluster that stands for the one forming v's gradient: c, that of its value or of its only
// reader, unless they do not go together. A node that others of its cluster read stays there: these and what it reads
// there itself would wait for each other.
func (b *Builder) gradientCluster(v uint32, c int32) int32 {
	x, work := &b.clusters[c], b.gradientWork(v)
	if x.isBatched() && x.batch == b.shape(v).batch && !b.mixesBatch(v, c) && !b.byElements(x.batch, work) {
		if n := b.piecesOf(x.batch, work); n >= muchMore*x.pieces {
			x.gradientPieces = max(x.gradientPieces, n)
		}
		return c
	}
	if !x.isBatched() && !x.isPrivate() && !b.isWide(v, work) {
		return c
	}
	if own := b.spots[v].cluster; own >= 0 && b.find(own) == c {
		for _, u := range b.usersOf(v) {
			if b.formedIn(u.node) == c {
				return c
			}
		}
	}
	return b.newWide(b.spots[v].level, v, work)
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

// dealOut divides the items from one on, which v's lowering has added, among the pieces of their clusters. They write to a
// tensor at an address.
func (b *Builder) dealOut(v uint32, from int, at uint32) {
	if !b.wide.on || len(b.items) == from {
		return
	}
	if b.tally != nil {
		b.tally.count(b)
	}
	list := b.wide.items[:0]
	whole := b.items[:from]
	for _, it := range b.items[from:] {
		if x := &b.clusters[b.find(it.cluster)]; x.isBatched() || x.isPrivate() {
			list = append(list, it)
		} else {
			whole = append(whole, it)
		}
	}
	b.wide.items, b.items = list, whole
	for len(list) > 0 {
		c, rest, some := b.find(list[0].cluster), list[:0], b.wide.some[:0]
		for _, it := range list {
			if b.find(it.cluster) == c {
				some = append(some, it)
			} else {
				rest = append(rest, it)
			}
		}
		list, b.wide.some = rest, some
		switch x := &b.clusters[c]; {
		case x.isBatched():
			x.items -= int32(len(some))
			for i := range some {
				x.cost -= b.itemCost(&some[i])
				b.dealBatch(&some[i], c, v, at)
				x = &b.clusters[c]
			}
		case x.isPrivate():
			x.items, x.cost = 0, 0
			b.dealPrivate(some, c, v, at)
		}
	}
	if b.tally != nil { // counted before
		b.tally.restart(b)
	}
}

// dealPrivate divides the items of a private cluster among new ones of its level: if these have an order, at the same
// elements of their results.
func (b *Builder) dealPrivate(list []item, c int32, v, at uint32) {
	level, size := b.clusters[c].level, uint32(b.size(v))
	if len(list) < b.r.Plan.Processors {
		b.wide.unfolded = b.wide.unfolded[:0]
		for _, it := range list {
			b.wide.unfolded = b.appendUnfolded(b.wide.unfolded, it)
		}
		list = b.wide.unfolded
	}
	cost, written, unit, least, ordered, inside := int64(0), int64(0), uint32(1), uint32(1), false, true
	first, end := ^uint32(0), uint32(0)
	extents := b.wide.extents[:0]
	for i := range list {
		e := b.extentOf(&list[i])
		extents = append(extents, e)
		cost += int64(e.cost)
		written += int64(e.span) + 1
		inside = inside && (e.covers(size) || e.at-at < size)
		ordered = ordered || list[i].sub != list[0].sub
		unit, least = max(unit, e.unit), max(least, e.least*e.unit)
		first, end = min(first, e.at), max(end, e.at+e.span+1)
	}
	b.wide.extents = extents
	pieces := int(min(cost*256/int64(b.wide.Piece), int64(b.r.Plan.Processors)))
	if pieces <= 1 || ordered && !inside {
		b.putAllBack(list)
		return
	}
	if !ordered {
		b.dealUnordered(list, level, cost, pieces)
		return
	}
	// Pieces of so many units, at which every item can be cut.
	alike := true
	for i := range extents {
		e := &extents[i]
		alike = alike && unit%e.unit == 0 && (e.at-first)%e.unit+e.inner <= e.unit
	}
	units := int(end-first+unit-1) / int(unit)
	if pieces = min(pieces, units, 1+int(mostCuts*int64(end-first)/written)); !alike || pieces <= 1 {
		b.putAllBack(list)
		return
	}
	chunk := max(uint32((units+pieces-1)/pieces)*unit, (least+unit-1)/unit*unit)
	if unit == 1 && b.wide.Wideness == usualWidth { // a warp's width, aligned
		chunk = max(32, (chunk+15)&^15)
	}
	to := int32(len(b.clusters))
	for lo := first; lo-first < end-first; lo += chunk {
		b.newCluster(level)
	}
	for i := range list {
		e := &extents[i]
		begin := e.at - (e.at-first)%e.unit // of the unit that it begins in
		for k := (e.at - first) / chunk; k <= (e.at-first+e.span)/chunk; k++ {
			from, until := uint32(0), e.n
			if lo := first + k*chunk; lo > begin {
				from = (lo - begin) / e.unit
			}
			if hi := first + (k+1)*chunk; (hi-begin)/e.unit < e.n {
				until = (hi - begin) / e.unit
			}
			if from < until {
				b.cutItem(&list[i], e, from, until, to+int32(k))
			}
		}
	}
}

// mostUnfolded bounds how many parts of an item become items of their own.
const mostUnfolded = 32

// appendUnfolded appends an item, or items of its parts if these are too few for all processors and can be cut further.
func (b *Builder) appendUnfolded(list []item, it item) []item {
	e := b.extentOf(&it)
	if e.n == 1 || e.n > mostUnfolded || int(e.n) >= b.r.Plan.Processors || !b.unfolds(&it, &e) {
		return append(list, it)
	}
	for k := range e.n {
		list = b.appendUnfolded(list, b.part(&it, &e, k, k+1))
	}
	return list
}

// unfolds reports whether each part of an item has parts itself that are worth a processor.
func (b *Builder) unfolds(it *item, e *extent) bool {
	if it.sig == rawSig || b.isProduct(it) {
		return false
	}
	if int(e.unit) >= b.wide.Single && e.inner < e.unit { // whose distance others cannot be cut at
		return true
	}
	if int(e.cost)*256/int(e.n) < b.wide.Single {
		return false
	}
	switch w := b.signatureOf(it); isa.Opcode(w[0]) {
	case isa.Strided:
		for a := range e.axis {
			if w[6+a] > 1 {
				return true
			}
		}
	case isa.Row:
		return w[4] > 1 && w[6] > w[4]
	}
	return false
}

// mostCuts bounds how many items more a private cluster's items are cut into.
const mostCuts = 8192

func (b *Builder) putAllBack(list []item) {
	for i := range list {
		b.putBack(&list[i])
	}
}

// dealUnordered divides items that have nothing to do with one another among pieces of about the same cost.
func (b *Builder) dealUnordered(list []item, level int32, cost int64, pieces int) {
	share := int32(cost/int64(pieces)) + 1
	to, left := int32(-1), int32(0)
	for i := range list {
		e := b.extentOf(&list[i])
		if b.isProduct(&list[i]) {
			if k := uint32(int64(e.cost) * int64(pieces) / cost); k > 1 {
				w := b.signatureOf(&list[i])
				b.cutProduct(&list[i], k, b.newClusters(level, piecesOfProduct(w[3], w[4], k)))
				continue
			}
		}
		for from := uint32(0); from < e.n; {
			if left <= 0 {
				to, left = b.newCluster(level), share
			}
			n := e.n - from
			if each := max(e.cost/int32(e.n), 1); e.cost > left && e.n > 1 {
				n = min(n, uint32(max(left/each, 1)))
				if e.cost/int32(e.n) == 0 {
					n = min(e.n-from, uint32(max(int64(left)*int64(e.n)/int64(e.cost), 1)))
				}
				n = min(e.n-from, max(n, e.least))
			}
			b.cutItem(&list[i], &e, from, from+n, to)
			left -= int32(int64(e.cost)*int64(n)/int64(e.n)) + 1
			from += n
		}
	}
}

// extent is where an item writes and how it can be cut: it has n neighbouring parts, each some of the unit elements that are
// from one to the next.
type extent struct {
	at, span uint32 // the first element, and how far the last one is from it
	n, unit  uint32
	least    uint32 // parts that are worth an item
	inner    uint32 // of a unit: how far it reaches
	dense    bool   // it leaves nothing out
	axis     uint32 // of a Strided: that of the parts
	cost     int32
}

// covers reports whether the item writes all of a tensor of so many elements.
func (e *extent) covers(size uint32) bool { return e.dense && e.span+1 == size }

// signatureOf is the words of an item's instruction.
func (b *Builder) signatureOf(it *item) []uint32 {
	if it.sig == rawSig {
		return b.pool[it.words[0]:]
	}
	return b.sigs.of(it.sig)
}

// extentOf finds the extent of an item.
func (b *Builder) extentOf(it *item) extent {
	w := b.signatureOf(it)
	e := extent{at: it.words[0], n: 1, unit: 1, least: 1, inner: 1, dense: true, cost: b.itemCost(it)}
	if it.sig == rawSig {
		e.at, e.n = w[5], w[3]
		e.span = e.n - 1
		return e
	}
	if b.sigs.width[it.sig] > fewWords {
		e.at = b.pool[it.words[0]]
	}
	switch isa.Opcode(w[0]) {
	case isa.Map, isa.Fill, isa.Random:
		e.n = w[3]
		e.span = e.n - 1
	case isa.Strided:
		b.stridedExtent(w, &e)
	case isa.Gemm: // its result is column-major
		e.n, e.unit, e.inner = w[4], w[7], w[3]
		if w[3] >= gemmLeast {
			e.least = gemmLeast
		}
		if e.n == 1 {
			e.n, e.unit, e.inner = w[3], w[6], 1
		}
		e.span, e.dense = (e.n-1)*e.unit+e.inner-1, e.unit == e.inner
	case isa.Row:
		k := uint32(1) // elements of a line of the result
		switch f := &isa.RowTable[isa.RowFn(w[0]>>8)]; {
		case f.Rows&1 != 0:
			k = w[3]
		case f.Parts&1 != 0: // as many as the label says
			k = b.wordsOf(it)[f.Words-1] + 1
		}
		if stride, lines := w[4], w[6]; lines > stride {
			e.n, e.unit, e.inner, e.span = lines/stride, stride*k, stride*k, lines*k-1
		} else { // they lie between one another
			e.n, e.span, e.dense = lines, (k-1)*stride+lines-1, k == 1 || lines == stride
			e.inner = (k-1)*stride + 1
			if lines == 1 {
				e.unit = e.inner
			}
		}
	default:
		fail("opcode %d is divided", w[0]&255)
	}
	return e
}

// wordsOf is the words of an item that is no whole instruction.
func (b *Builder) wordsOf(it *item) []uint32 {
	if n := uint32(b.sigs.width[it.sig]); n > fewWords {
		return b.pool[it.words[0]:][:n]
	}
	return it.words[:]
}

// stridedExtent is that of a Strided, which is cut along its last kept axis of several.
func (b *Builder) stridedExtent(w []uint32, e *extent) {
	kept, all := w[3]&255, w[3]&255+w[3]>>8&255
	sizes, strides := w[6:6+all], w[6+all:]
	count := uint32(1)
	for a := range kept {
		e.span += (sizes[a] - 1) * strides[a]
		count *= sizes[a]
	}
	e.dense = e.span+1 == count
	if kept > 0 {
		e.axis = kept - 1
		for e.axis > 0 && sizes[e.axis] == 1 { // of a part of an unfolded item
			e.axis--
		}
		e.n, e.unit = sizes[e.axis], strides[e.axis]
		e.inner = e.span - (e.n-1)*e.unit + 1
		if e.n == 1 {
			e.unit = e.inner
		}
	}
}

// cutItem adds parts [from, to) of an item to a cluster.
func (b *Builder) cutItem(it *item, e *extent, from, to uint32, c int32) {
	part := b.part(it, e, from, to)
	part.cluster = c
	b.putBack(&part)
}

// part is parts [from, to) of an item.
func (b *Builder) part(it *item, e *extent, from, to uint32) item {
	part := *it
	if from == 0 && to == e.n {
		return part
	}
	w := b.signatureOf(it)
	if it.sig == rawSig {
		part.words[0] = b.partOfSum(w, from, to)
		return part
	}
	// Each word of an item is an address but for random nodes, which are not divided into several words' parts.
	width := int(b.sigs.width[it.sig])
	var room [8]uint32
	words := append(room[:0], it.words[:]...)
	if width > fewWords {
		words = append(room[:0], b.pool[it.words[0]:][:width]...)
	}
	k := uint32(1)
	if isa.Opcode(w[0]) == isa.Row {
		k += words[width-1] // if it is a label
	}
	for s, step := range b.stepsOf(w, width, e.axis, k) {
		words[s] += from * step
	}
	n, cut := to-from, &b.wide.cut
	if isa.Opcode(w[0]) == isa.Random {
		part.sig = b.cutSignature(it.sig, e, from, to)
	} else {
		if cut.sig != it.sig || cut.axis != e.axis || cut.n != n {
			cut.sig, cut.axis, cut.n, cut.of = it.sig, e.axis, n, b.cutSignature(it.sig, e, from, to)
		}
		part.sig = cut.of
	}
	if width > fewWords {
		part.words[0] = uint32(len(b.pool))
		b.pool = append(b.pool, words[:width]...)
	} else {
		copy(part.words[:], words)
	}
	return part
}

// stepsOf is how far each word of an instruction's item is from where the item's next part has it, good until the next
// call. axis is that of a Strided, k how many elements of a line a Row has where it has the first few.
func (b *Builder) stepsOf(w []uint32, width int, axis, k uint32) []uint32 {
	steps := b.wide.steps[:0]
	switch op := isa.Opcode(w[0]); op {
	case isa.Map, isa.Fill, isa.Chain, isa.Random:
		for range width {
			steps = append(steps, 1)
		}
		if op == isa.Random { // the last word is a node
			steps[width-1] = 0
		}
	case isa.Strided:
		all := w[3]&255 + w[3]>>8&255
		for s := range width {
			steps = append(steps, w[6+all+uint32(s)*all+axis])
		}
	case isa.Row:
		f, stride, row := &isa.RowTable[isa.RowFn(w[0]>>8)], uint32(1), uint32(1) // of a part
		if w[6] > w[4] {
			stride, row = w[4], w[4]*w[3]
		}
		for s := range width {
			switch {
			case f.Rows>>s&1 != 0:
				steps = append(steps, row)
			case f.Label && s == width-1 && isa.Segment(w[2]>>(4*s)&15) != isa.SegInput:
				steps = append(steps, 0)
			case f.Label && s == width-1:
				steps = append(steps, stride)
			case f.Parts>>s&1 != 0 && w[6] > w[4]:
				steps = append(steps, stride*k)
			default: // several lines have one element each
				steps = append(steps, stride)
			}
		}
	case isa.Gemm:
		if w[4] == 1 {
			steps = append(steps, w[6], w[8], 0)
		} else {
			steps = append(steps, w[7], 0, w[11])
		}
	default:
		fail("opcode %d is cut", w[0]&255)
	}
	b.wide.steps = steps
	return steps
}

// partsAt is which word of an instruction says how many parts its items have, those of a Strided along an axis, and how
// many it counts for each.
func partsAt(w []uint32, axis uint32) (at int, each uint32) {
	switch isa.Opcode(w[0]) {
	case isa.Chain:
		return 2, 1
	case isa.Row:
		if w[6] > w[4] {
			return 6, w[4]
		}
		return 6, 1
	case isa.Strided:
		return int(6 + axis), 1
	case isa.Gemm:
		if w[4] != 1 {
			return 4, 1
		}
	}
	return 3, 1
}

// cutSignature is the signature of parts [from, to) of an item.
func (b *Builder) cutSignature(sig uint32, e *extent, from, to uint32) uint32 {
	w := append(b.sigs.buf[:0], b.sigs.of(sig)...)
	b.sigs.buf = w
	at, each := partsAt(w, e.axis)
	w[at] = (to - from) * each
	if isa.Opcode(w[0]) == isa.Random {
		w[9] += from
	}
	return b.sigs.intern(int(int64(e.cost) * 256 * int64(to-from) / int64(e.n)))
}

func fail(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

func shift(words []uint32, by uint32) {
	for i := range words {
		words[i] += by
	}
}

// partOfSum is where in pool a whole Sum of elements [from, to) is.
func (b *Builder) partOfSum(w []uint32, from, to uint32) uint32 {
	at := uint32(len(b.pool))
	b.pool = append(b.pool, w[:w[1]&0xFFFF]...)
	narrowSum(b.pool[at:], from, to-from)
	return at
}

// narrowSum makes a Sum one of n elements from an element on.
func narrowSum(w []uint32, from, n uint32) {
	w[3], w[5] = n, w[5]+from
	if isa.FnTable[isa.Fn(w[0]>>8)].Arity == 2 { // a derivative, which reads y
		w[8] += from
	}
	shift(w[sumHead:w[1]&0xFFFF], from)
}

// putBack adds an item again.
func (b *Builder) putBack(it *item) {
	b.items = append(b.items, *it)
	x := &b.clusters[b.find(it.cluster)]
	x.items++
	x.cost += b.itemCost(it)
}

// itemCost is what an item costs.
func (b *Builder) itemCost(it *item) int32 {
	if it.sig != rawSig {
		return b.sigs.cost(it.sig)
	}
	w := b.signatureOf(it)
	return sumCost(int(w[1]>>16)+int(w[6]&0xFFFF)*int(w[6]>>16), int(w[3]))
}
