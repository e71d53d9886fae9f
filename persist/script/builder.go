// Building a script. A Builder lowers the nodes of a graph to items, schedules them by
// levels (paper §III-B1) and writes every processor's instructions.
//
// An item is one element of an instruction's list. Items of the same level, processor
// and order merge into one instruction when their signature (all words but the list) is the
// same. A level ends with a barrier among the processors that took part.
package script

import (
	"fmt"
	"math"
	"slices"

	"libvpps/bridge"
	"libvpps/bridge/cells"
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
)

// Param is what lowering must know of a parameter.
type Param struct {
	Lookup  bool
	Offset  uint32  // in segment param, or table for a lookup table
	Size    uint32  // elements
	Row     uint32  // elements of one row of a table
	Column  uint32  // elements of the first column, of a table's row
	Factor  float32 // weight decay factor that reading multiplies by
	Matrix  int32   // its matrix in the plan, -1: none
	Updated bool    // trainers change it

	// The gradient at present: none, of some rows (Rows), or of all elements.
	Pending bool
	Rows    []uint32 // rows of a table with a pending gradient, ascending
}

// State is what is known of a graph's nodes between calls. Slices are indexed by node.
type State struct {
	Value    []uint32      // offset of the value
	Segment  []isa.Segment // and its segment
	Aux      []uint32      // offset of what the node keeps besides (logsumexp, ...)
	Grad     []uint32      // offset in act of the gradient of the last backward, NoOffset: none
	Resident []bool        // a parameter node whose value is the parameter's present value
	Done     int           // nodes evaluated so far
}

// NoOffset marks a node without a value or gradient.
const NoOffset = math.MaxUint32

// Request is one call.
type Request struct {
	Graph  *bridge.Graph
	Cells  *cells.Program // the nodes that are evaluated or, without Forward, all up to Node as instances; nil: not known
	State  *State
	Params []Param
	Plan   *plan.Plan

	Node     uint32   // evaluate up to here; the loss if Backward
	Forward  bool     // evaluate nodes State.Done..Node
	Needed   bool     // only those that Node needs (fb)
	Keep     []uint32 // nodes whose values stay, needed or not; ascending, at most Node
	Before   []uint32 // with Cells: the parameter nodes that were evaluated before
	Copy     bool     // parameter nodes keep a copy of their value (the graph outlives the call)
	Backward bool
	Full     bool     // gradients also of nodes without parameters
	Nodes    bool     // gradients of nodes alone: parameters keep theirs; with Copy
	Apart    bool     // evaluate equal nodes each by itself
	Wide     Wideness // from when on work is divided; zero: as is usual
	Update   *Apply   // apply gradients at the end
	Cut      bool     // with Forward and Backward: the script pauses after forward. The values of all nodes stay; those of parameters are the parameters

	Base                        uint32 // first free float of segment act
	Result                      uint32 // where in segment result: loss, then Clip's four words; NoOffset: nowhere
	Seed, GraphID, ForwardCount uint32
	Tensors                     bool  // write the tensor table
	Work                        *Work // whose items' costs are added to; nil: they are not counted

	Space []uint32 // memory for the script, if it is enough; nil: the builder's own
}

// Apply says how gradients are applied at the end.
type Apply struct {
	Params    []uint32 // ids, in the trainer's order
	State     []uint32 // for each of Params where in segment state the rule's first vector is; the others follow
	Rule      isa.Rule
	Rate      float32  // for SGD, learning rate / weight decay factor
	P, Q, R   float32  // the rule's other constants
	Dense     bool     // tables change as a whole, also rows without a gradient
	Threshold float32  // clipping; +Inf: none
	All       []uint32 // ids of all parameters with gradients that count in the norm
}

// Built is what a build tells besides the script.
type Built struct {
	Script  isa.Script
	Used    uint32   // floats of segment act used from Base on
	Values  uint32   // of these, the ones that hold values (they come first)
	Formed  []uint32 // ids of dense parameters (and whole tables) whose gradient was formed
	Touched []TouchedRow
	// ByInstances: the nodes were lowered by instances. A backward by instances leaves no gradients of nodes.
	ByInstances bool
}

// TouchedRow is a table row whose gradient was formed.
type TouchedRow struct{ Param, Row uint32 }

// Builder holds the memory of builds; it is reused and used by one goroutine.
type Builder struct {
	r *Request
	g *bridge.Graph
	s *State

	nodeRange
	arena

	dims []shape // of the graph's dims

	lefts []leftSide // of the nodes that are parameters at the beginning

	// Per node (forward).
	need         []bool
	otherwise    []bool // used by others than products, or from their right
	spots        []spot
	reader       []uint32 // the only node that reads it
	room         []uint32 // for how many parts of its gradient there has to be room behind its value
	formsVectors bool     // products form the vectors that they read
	inParts      []uint32 // of how many parts behind it its value is formed; of a product, the value of what reads it
	stored       []bool   // a product stores its value, which is formed
	taken        []taken

	// Per node (backward).
	grads         []bool // depends on a parameter
	wants         []bool // wants a gradient
	useStart      []uint32
	uses          []user
	gcluster      []int32 // the forward cluster that stands for the one forming the gradient
	gsub          []int32
	withUser      []bool   // its gradient was formed with its user's
	passFrom      []uint32 // the only user whose gradient the node's is a part of,
	passAt        []uint32 // from this element on; NoOffset: it has one of its own
	bucket, order []uint32 // nodes sorted by the forward level of gcluster
	linear        []source // the sources that are added unchanged, of one node

	clusters []cluster

	// Per forward cluster: level and number of the cluster that forms its gradients.
	blevel, bcluster []int32

	sigs       sigTable
	items      []item
	pool       []uint32
	matrices   []matrixItem
	terms      []term           // of one node
	outers     []matrixItem     // of Outer; their level, outerLevel, is known at the end
	beside     []source         // results of an affine transform's products that are added at its end
	axes       []axis           // of one node
	moved      []move           // of one node
	turns      map[uint32]int32 // by address: how many moves of one node add there, or whether something was put there
	usedDims   []bool
	spanList   []span
	paramSrc   []paramSource
	paramAlt   []paramSource
	lastFormed []uint64 // by parameter: the latest script that forms its gradient
	placeOf    []int32  // by parameter: its place in Update.Params, from 1; 0: it has none
	rowSrc     []rowSource
	rowAlt     []rowSource
	rowPool    []source
	sumList    []uint32 // the items of one Sum
	ids        []uint32

	tensors     []uint32 // the tensor table so far: triples
	maxLevel    int32
	outerLevel  int32             // of outer products
	cut         int32             // the first level of the script's second part, or noCut
	ends        [isa.Phases]int32 // the last level of each phase
	partial     bool              // some nodes were evaluated by an earlier call
	knowsOthers bool              // otherwise is filled in
	mixed       bool              // vectors of one length may overlap without being the same
	out         Built
	space       []uint32 // for scripts
	division    division
	pieces      pieceMemory
	crew        crew
	closing     closing
	cells       cellMemory
	scripts     uint64  // that were built
	symbolic    bool    // of a template: input words are not known
	picks       []pick  // that addresses are of, if symbolic
	exitsIn     []int32 // of a template's nodes for gradients that come back: the cluster that stands for the one forming it
	wide        wideMemory
	tally       *tally // nil: nobody asks whose work it is
	emitter
}

// shape is what is often asked of a dim: how many elements, rows, columns of a batch element, batch
// elements.
type shape struct{ size, rows, cols, batch uint32 }

// spot is where a node's value comes about.
type spot struct {
	level   int32 // -1: it is there before
	cluster int32 // -1: a product's output, spread over processors
	sub     int32 // its order in the cluster
}

// nowhere is the spot of what is there before level 0.
var nowhere = spot{level: -1, cluster: -1}

// cluster is items of one level that one processor executes, or, with another parent than itself, has
// become a part of that.
type cluster struct {
	parent, level, cost, items int32
	kind                       clusterKind
	pieces                     int32  // of a batched cluster: how many clusters behind it are its pieces; 0: it is none
	piece                      int32  // of a piece: which one it is, from 1 on; its batched cluster is so many before it
	batch                      uint32 // and how many batch elements its nodes have
	gradientPieces             int32  // as many pieces has, at least, the cluster that forms its gradients
}

type clusterKind uint32

const (
	groupwide clusterKind = 1 << iota // a group executes it, each processor for its elements
	single                            // its items are copies that have nothing to do with one another: no chains
	private                           // its items are one node's, and are divided when that is lowered
	fused                             // its items are chains already
	cutEarly                          // batched, and pieces have items of their own, too
)

type item struct {
	cluster int32
	sub     int32
	sig     uint32
	words   [fewWords]uint32 // the first of them is where in pool they are if they are more
}

const fewWords = 3

// matrixItem is an item for every processor that holds a matrix.
type matrixItem struct {
	level int32
	sig   uint32
	words [2]uint32
}

// Build writes the script of a request. The result is valid until the next Build.
func (b *Builder) Build(r *Request) (*Built, error) {
	defer b.crew.end() // which begins if it is divided
	b.scripts++
	b.tally = b.tally.begin(r)
	b.reset(r)
	if err := b.lowerAll(); err != nil {
		return nil, err
	}
	if r.Update != nil {
		b.close()
	}
	b.ends[isa.InUpdate] = b.maxLevel
	if r.Cut {
		b.cut = b.ends[isa.InForward] + 1
	}
	b.out.Script.Cut = b.cut != noCut
	if b.full {
		return nil, errFull
	}
	b.out.Used = b.top - r.Base
	b.emit()
	if len(b.out.Script.Words) > math.MaxUint32 {
		return nil, errLong
	}
	return &b.out, nil
}

// phaseOf is the phase that a level belongs to.
func (b *Builder) phaseOf(level int32) isa.Phase {
	p := isa.InForward
	for p < isa.InUpdate && level > b.ends[p] {
		p++
	}
	return p
}

// lowerAll adds the items of forward, backward and gradients.
func (b *Builder) lowerAll() error {
	r := b.r
	b.partial = b.s != nil && b.s.Done > 0 || !r.Forward
	b.mixed = b.partial
	if err := b.lowerGraph(); err != nil {
		return err
	}
	b.ends[isa.InBackward] = b.maxLevel
	if r.Backward {
		b.formParameters()
	}
	b.ends[isa.InGradients] = b.maxLevel
	return nil
}

// lowerGraph adds the items of forward and backward: by instances or, if one of them cannot be lowered, node by node. That
// also finds an error's node.
func (b *Builder) lowerGraph() error {
	if b.schedulable() {
		if err := b.lowerInstances(); err == nil {
			b.out.ByInstances = true
			return nil
		}
		b.reset(b.r)
	}
	b.clearNodes()
	if b.divide() {
		return b.lowerParts()
	}
	return b.lowerNodes()
}

// lowerNodes adds the items of forward and backward, all nodes' in one go.
func (b *Builder) lowerNodes() error {
	r := b.r
	if r.Backward {
		b.findUsers()
	}
	if r.Forward {
		b.markNeeded()
		b.findReaders()
		if err := b.forward(); err != nil {
			return err
		}
	}
	b.out.Values = b.top - r.Base
	if r.Backward {
		b.reportLoss()
	}
	b.ends[isa.InForward] = b.maxLevel
	if r.Backward {
		return b.backward()
	}
	return nil
}

// reportLoss copies the loss to where the host reads it.
func (b *Builder) reportLoss() {
	if b.r.Result == NoOffset {
		return
	}
	v := b.r.Node
	at := b.spots[v]
	c, s := at.cluster, at.sub+1
	if at.level < 0 || c < 0 {
		c, s = b.newCluster(at.level+1), 0
	}
	b.map1(c, s, isa.Copy, 0, 0, 1, operand{isa.SegResult, b.r.Result}, b.value(v))
}

func (b *Builder) reset(r *Request) {
	b.r, b.g, b.s = r, r.Graph, r.State
	b.plan.update(r.Plan)
	b.arena = arena{top: r.Base, limit: highest}
	n := 0
	if b.g != nil {
		n = b.g.Len()
		b.s.grow(n)
		b.dims = resize(b.dims, len(b.g.Dims))
		for i := range b.g.Dims {
			d := &b.g.Dims[i]
			b.dims[i] = shape{uint32(d.Size()), uint32(d.Rows()), uint32(d.Cols()), d.Bd}
		}
	}
	b.need = resize(b.need, n)
	b.otherwise, b.knowsOthers = resize(b.otherwise, n), false
	b.spots = resize(b.spots, n)
	b.grads, b.wants = resize(b.grads, n), resize(b.wants, n)
	b.gcluster, b.gsub = resize(b.gcluster, n), resize(b.gsub, n)
	b.passFrom, b.passAt = resize(b.passFrom, n), resize(b.passAt, n)
	b.reader, b.withUser = resize(b.reader, n), resize(b.withUser, n)
	b.room, b.inParts, b.stored, b.taken = resize(b.room, n), resize(b.inParts, n), resize(b.stored, n), resize(b.taken, n)
	b.findForming()
	b.findWide()
	b.findMatricesOfAll()
	b.findLefts()
	b.nodeRange = nodeRange{end: r.Node + 1, tail: r.Node + 1}
	b.division.taken, b.division.ends = b.division.taken[:0], b.division.ends[:0]
	b.clear()
	b.forgetGradients()
	b.out.Formed, b.out.Touched = b.out.Formed[:0], b.out.Touched[:0]
	b.lastFormed = extend(b.lastFormed, len(r.Params), 0)
	b.out.Script.Library, b.cut = b.out.Script.Library[:0], noCut
	b.out.ByInstances = false
}

// clearNodes prepares for lowering node by node.
func (b *Builder) clearNodes() {
	clear(b.need)
	clear(b.wants)
	clear(b.room)
	clear(b.inParts)
	clear(b.stored)
}

// clear forgets what was lowered.
func (b *Builder) clear() {
	b.clusters = append(b.clusters[:0], cluster{}) // elsewhere
	b.sigs.reset()
	b.wide.cut.sig = 0
	b.items, b.pool, b.matrices, b.outers = b.items[:0], b.pool[:0], b.matrices[:0], b.outers[:0]
	b.paramSrc, b.rowSrc, b.rowPool = b.paramSrc[:0], b.rowSrc[:0], b.rowPool[:0]
	b.tensors = b.tensors[:0]
	b.maxLevel, b.closing.parts = -1, b.closing.parts[:0]
	if b.tally != nil {
		b.tally.node = nobody
		b.tally.restart(b)
	}
}

// forgetGradients drops those of the nodes that are evaluated, and, for a backward, of all.
func (b *Builder) forgetGradients() {
	if b.g == nil || !b.r.Forward && !b.r.Backward {
		return
	}
	first := b.s.Done
	if b.r.Backward {
		first = 0
	}
	for v := first; v <= int(b.r.Node); v++ {
		b.s.Grad[v] = NoOffset
	}
}

func (s *State) grow(n int) {
	s.Value, s.Aux, s.Grad = extend(s.Value, n, NoOffset), extend(s.Aux, n, NoOffset), extend(s.Grad, n, NoOffset)
	s.Segment, s.Resident = extend(s.Segment, n, isa.SegAct), extend(s.Resident, n, false)
}

// Truncate forgets nodes from n on.
func (s *State) Truncate(n int) {
	if n < len(s.Value) {
		s.Value, s.Segment, s.Aux, s.Grad, s.Resident = s.Value[:n], s.Segment[:n], s.Aux[:n], s.Grad[:n], s.Resident[:n]
	}
	s.Done = min(s.Done, n)
}

// CopyFrom makes s equal to another state, as far as that is evaluated.
func (s *State) CopyFrom(o *State) {
	n := min(o.Done, len(o.Value))
	s.Value = append(s.Value[:0], o.Value[:n]...)
	s.Segment = append(s.Segment[:0], o.Segment[:n]...)
	s.Aux = append(s.Aux[:0], o.Aux[:n]...)
	s.Grad = append(s.Grad[:0], o.Grad[:n]...)
	s.Resident = append(s.Resident[:0], o.Resident[:n]...)
	s.Done = o.Done
}

// resize returns a slice of n elements, reusing s's memory; contents are undefined.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/2)
	}
	return s[:n]
}

// size is the number of elements of node v.
func (b *Builder) size(v uint32) int { return int(b.shape(v).size) }

func (b *Builder) shape(v uint32) *shape { return &b.dims[b.g.Dim[v]] }

// alike reports whether two nodes have the same size, batch and all.
func (b *Builder) alike(v, w uint32) bool {
	if b.g.Dim[v] == b.g.Dim[w] {
		return true
	}
	x, y := b.shape(v), b.shape(w)
	return x.size == y.size && x.batch == y.batch
}

// extend makes a slice at least n long; new elements are v.
func extend[T any](s []T, n int, v T) []T {
	old := len(s)
	if n <= old {
		return s
	}
	s = slices.Grow(s, n-old)[:n]
	for i := old; i < n; i++ {
		s[i] = v
	}
	return s
}

// alloc reserves n floats of segment act, 16-byte aligned.
func (b *Builder) alloc(n int) uint32 {
	at := b.take((uint64(n) + 3) &^ 3)
	if b.r.Tensors {
		b.tensors = append(b.tensors, uint32(isa.SegAct), at, uint32(n))
	}
	return at
}

// local adds an item to a cluster. The signature says how many of the words there are.
func (b *Builder) local(cluster, sub int32, sig, w0, w1, w2 uint32) {
	b.inCluster(cluster, sub, sig, w0, w1, w2, b.sigs.cost(sig))
}

func (b *Builder) inCluster(cluster, sub int32, sig, w0, w1, w2 uint32, cost int32) {
	n := len(b.items)
	if n == cap(b.items) {
		b.items = slices.Grow(b.items, max(n, 1<<10))
	}
	b.items = b.items[:n+1]
	it := &b.items[n] // field by field: a copy of a whole one takes longer
	it.cluster, it.sub, it.sig = cluster, sub, sig
	it.words[0], it.words[1], it.words[2] = w0, w1, w2
	c := &b.clusters[b.find(cluster)]
	c.cost += cost
	c.items++
}

// addItem adds an item of any number of words to a cluster.
func (b *Builder) addItem(cluster, sub int32, sig uint32, words []uint32) {
	if len(words) > fewWords {
		at := uint32(len(b.pool))
		b.pool = append(b.pool, words...)
		b.local(cluster, sub, sig, at, 0, 0)
		return
	}
	var w [fewWords]uint32
	copy(w[:], words)
	b.local(cluster, sub, sig, w[0], w[1], w[2])
}

// onMatrix adds an item for all processors that hold a matrix.
func (b *Builder) onMatrix(level int32, sig uint32, first, second uint32) {
	b.matrices = append(b.matrices, matrixItem{level, sig, [2]uint32{first, second}})
	b.maxLevel = max(b.maxLevel, level)
}

// newCluster starts a cluster: items of one level that one processor executes.
func (b *Builder) newCluster(level int32) int32 {
	c := int32(len(b.clusters))
	b.clusters = append(b.clusters, cluster{parent: c, level: level})
	b.maxLevel = max(b.maxLevel, level)
	return c
}

func (b *Builder) find(c int32) int32 {
	for b.clusters[c].parent != c {
		b.clusters[c].parent = b.clusters[b.clusters[c].parent].parent
		c = b.clusters[c].parent
	}
	return c
}

func (b *Builder) union(x, y int32) int32 {
	x, y = b.find(x), b.find(y)
	if x == y {
		return x
	}
	if y < x {
		x, y = y, x
	}
	b.clusters[y].parent = x
	b.clusters[x].cost += b.clusters[y].cost
	b.clusters[x].items += b.clusters[y].items
	b.clusters[x].kind |= b.clusters[y].kind
	if b.clusters[x].isBatched() {
		b.unionPieces(x, y)
	}
	return x
}

func bits(f float32) uint32 { return math.Float32bits(f) }

func fault(n uint32, op ops.Code, format string, a ...any) error {
	return &bridge.Error{Node: int(n), Op: op, Reason: fmt.Sprintf(format, a...)}
}

func float(w uint32) float32 { return math.Float32frombits(w) }
