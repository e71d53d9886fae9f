// Building a script. A Builder lowers the nodes of a graph to a schedule: items by levels (paper §III-B1). persist/finish
// adds its end, persist/emit writes every processor's instructions.
package script

import (
	"fmt"
	"math"

	"libvpps/bridge"
	"libvpps/bridge/cells"
	"libvpps/bridge/ops"
	"libvpps/persist/emit"
	"libvpps/persist/finish"
	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/plan"
	"libvpps/persist/schedule"
)

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
	Params []schedule.Param
	Plan   *plan.Plan

	Node     uint32   // evaluate up to here; the loss if Backward
	Forward  bool     // evaluate nodes State.Done..Node
	Needed   bool     // only those that Node needs (fb)
	Keep     []uint32 // nodes whose values stay, needed or not; ascending, at most Node
	Before   []uint32 // with Cells: the parameter nodes that were evaluated before
	Copy     bool     // parameter nodes keep a copy of their value (the graph outlives the call)
	Backward bool
	Full     bool              // gradients also of nodes without parameters
	Nodes    bool              // gradients of nodes alone: parameters keep theirs; with Copy
	Apart    bool              // evaluate equal nodes each by itself
	Wide     schedule.Wideness // from when on work is divided; zero: as is usual
	PerShape int               // how many nodes a graph has to have for each shape of items; zero: as is usual
	Update   *finish.Apply     // apply gradients at the end
	Split    bool              // with Forward and Backward: these have a script each. The values of all nodes stay; those of parameters are the parameters

	Base                        uint32   // first free float of segment act
	Result                      uint32   // where in segment result: the answers, or the loss and Clip's four words; NoOffset: nowhere
	Answers                     []uint32 // with Forward alone: nodes whose values are copied to Result, one after the other
	Seed, GraphID, ForwardCount uint32
	Tensors                     bool  // write the tensor table
	Work                        *Work // whose items' costs are added to; nil: they are not counted

	Space []uint32 // memory for the script, or the first one, if it is enough; nil: the builder's own
}

// Built is what a build tells besides the script.
type Built struct {
	Script  isa.Script
	Used    uint32   // floats of segment act used from Base on
	Values  uint32   // of these, the ones that hold values (they come first)
	Formed  []uint32 // ids of dense parameters (and whole tables) whose gradient was formed
	Touched []finish.TouchedRow
	// ByInstances: the nodes were lowered by instances. A backward by instances leaves no gradients of nodes.
	ByInstances bool
}

// Builder holds the memory of builds; it is reused and used by one goroutine.
type Builder struct {
	r *Request
	g *bridge.Graph
	s *State

	first, end uint32 // the nodes that are lowered are [first, end): all but, in a template's small graph, what it reads and gives
	schedule.Schedule
	finish.Sources

	dims []shape // of the graph's dims

	lefts []leftSide // of the nodes that are parameters at the beginning

	// Per node (forward).
	need      []bool
	otherwise []bool // used by others than products, or from their right
	spots     []spot
	reader    []uint32 // the only node that reads it

	// Per node (backward).
	grads         []bool // depends on a parameter
	wants         []bool // wants a gradient
	useStart      []uint32
	uses          []user
	gcluster      []int32 // the forward cluster that stands for the one forming the gradient
	gsub          []int32
	withUser      []bool            // its gradient was formed with its user's
	passFrom      []uint32          // the only user whose gradient the node's is a part of,
	passAt        []uint32          // from this element on; NoOffset: it has one of its own
	bucket, order []uint32          // nodes sorted by the forward level of gcluster
	linear        []schedule.Source // the sources that are added unchanged, of one node

	// Per forward cluster: level and number of the cluster that forms its gradients.
	blevel, bcluster []int32

	terms  []term            // of one node
	beside []schedule.Source // results of an affine transform's products that are added at its end
	moved  []move            // of one node
	ranges []axisRange       // of uses whose contributions come in any order
	turns  map[uint32]int32  // by address: how many moves of one node add there, or whether something was put there

	partial     bool // some nodes were evaluated by an earlier call
	knowsOthers bool // otherwise is filled in
	way         way  // how the present graph is lowered
	out         Built
	finisher    finish.Finisher
	cells       cellMemory
	scripts     uint64   // that were built
	symbolic    bool     // of a template: input words are not known
	late        []bool   // nodes of a template that depend on slots which come late; empty: it is none
	picks       []pick   // that addresses are of, if symbolic
	exitsIn     []int32  // of a template's nodes for gradients that come back: the cluster that stands for the one forming it
	large       []bool   // [dim]: nodes of it may be wide
	ahead       []bool   // [node]: such nodes of its batch read it, or nodes that others of these read
	columnsIn   []uint32 // [node]: into so many columns are its batch elements divided, too; 1: they are not
	unfit       bool     // of a template: it has wide nodes that cannot be lowered once for all instances
	ofAll       []bool   // [matrix]: all processors multiply by it, not its holders; empty: there is none
	tally       *tally   // nil: nobody asks whose work it is
	emitter     emit.Emitter
	second      []uint32 // memory of second scripts
	holders     plan.Holders
	joints      jointMemory
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

// Build writes the script of a request, or the first of a split one. The result is valid until the next Build.
func (b *Builder) Build(r *Request) (*Built, error) {
	b.scripts++
	b.tally = b.tally.begin(r)
	b.reset(r)
	b.partial = b.s != nil && b.s.Done > 0 || !r.Forward
	b.Mixed = b.partial
	if err := b.lowerGraph(); err != nil {
		return nil, err
	}
	if len(r.Answers) > 0 {
		b.answer()
	}
	b.endFrom(isa.InBackward)
	if !r.Split {
		b.finish()
	}
	return b.write(r.Space)
}

// Second writes the second script of the split request that Build was called with last, in memory of its own or, if that is
// enough, in the given one. The words are valid until the next Second, all else until the next Build.
func (b *Builder) Second(space []uint32) (*Built, error) {
	b.Continue()
	if err := b.way.backward(b); err != nil {
		return nil, err
	}
	b.endFrom(isa.InBackward)
	b.finish()
	if space != nil {
		return b.write(space)
	}
	if b.second == nil {
		b.second = make([]uint32, 0, 1<<10)
	}
	built, err := b.write(b.second)
	if err == nil {
		b.second = built.Script.Words
	}
	return built, err
}

// finish adds what comes after the backward part of all nodes: the gradients of parameters, norm, clipping and update.
func (b *Builder) finish() {
	if b.r.Backward {
		b.finisher.Copies = b.r.Copy && !b.out.ByInstances
		b.finisher.Form()
	}
	b.endFrom(isa.InGradients)
	if b.r.Update != nil {
		b.close()
	}
	b.endFrom(isa.InUpdate)
}

// endFrom ends a phase, and those after it, of which nothing is known yet, with what was lowered so far.
func (b *Builder) endFrom(p isa.Phase) {
	for ; p < isa.Phases; p++ {
		b.Ends[p] = b.MaxLevel
	}
}

// write writes the script of what was lowered.
func (b *Builder) write(space []uint32) (*Built, error) {
	if b.Full {
		return nil, schedule.ErrFull
	}
	b.out.Used, b.out.Formed, b.out.Touched = b.Top-b.r.Base, b.finisher.Formed, b.finisher.Touched
	b.out.Script = isa.Script{Words: b.emitter.Emit(b.task(space))}
	if len(b.out.Script.Words) > math.MaxUint32 {
		return nil, schedule.ErrLong
	}
	return &b.out, nil
}

// close adds norm, clipping and update.
func (b *Builder) close() {
	var loss schedule.Operand
	if b.r.Backward {
		loss = b.value(b.r.Node)
	}
	b.finisher.Close(b.r.Update, b.r.Backward, loss, b.r.Result+1) // behind the loss; NoOffset and 1 is 0
}

// task is what the emitter writes.
func (b *Builder) task(space []uint32) emit.Task {
	t := emit.Task{Schedule: &b.Schedule, Holders: &b.holders, Closing: &b.finisher.Closing, Params: b.r.Params, Space: space}
	if b.readsInputs() {
		t.Inputs = b.g.Inputs
	}
	if b.r.Tensors {
		t.Tensors = b.tensorTable()
	}
	return t
}

// way is a way to lower a graph.
type way struct{ forward, backward func(b *Builder) error }

var (
	byNodes     = way{(*Builder).evaluateNodes, (*Builder).backward}
	byInstances = way{(*Builder).evaluateInstances, (*Builder).differentiateInstances}
)

// lowerGraph adds the items of forward and, unless that has another script, backward: by instances or, if one of them cannot
// be lowered, node by node. That also finds an error's node.
func (b *Builder) lowerGraph() error {
	if b.schedulable() {
		if err := b.lowerBy(byInstances); err == nil {
			b.out.ByInstances = true
			return nil
		}
		b.reset(b.r)
	}
	b.clearNodes()
	err := b.lowerBy(byNodes)
	if err != nil && len(b.joints.products) > 0 { // of several nodes with errors the first in the graph's order is meant
		b.reset(b.r)
		b.clearNodes()
		b.joints.off = true
		err = b.lowerBy(byNodes)
		b.joints.off = false
	}
	return err
}

func (b *Builder) lowerBy(w way) error {
	b.way = w
	if err := w.forward(b); err != nil || !b.r.Backward || b.r.Split {
		return err
	}
	return w.backward(b)
}

// evaluateNodes adds the items of forward.
func (b *Builder) evaluateNodes() error {
	r := b.r
	if r.Backward {
		b.findUsers()
	}
	if r.Forward {
		b.markNeeded()
		b.findReaders()
		b.findJoints()
		if err := b.forward(); err != nil {
			return err
		}
	}
	b.out.Values = b.Top - r.Base
	if r.Backward {
		b.reportLoss()
	}
	b.Ends[isa.InForward] = b.MaxLevel
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
		c, s = b.NewCluster(at.level+1), 0
	}
	b.Map1(c, s, isa.Copy, 0, 0, 1, schedule.At(isa.SegResult, b.r.Result), b.value(v))
}

// answerPiece is the number of floats that a processor copies at a time: one of each thread's of a GPU, several times.
const answerPiece = 2048

// answer copies the values of the nodes asked for to where the host reads them, after all else.
func (b *Builder) answer() {
	level, at := b.MaxLevel+1, b.r.Result
	for _, v := range b.r.Answers {
		from := b.value(v)
		for rest := b.size(v); rest > 0; {
			n := min(rest, answerPiece)
			b.Map1(b.NewCluster(level), 0, isa.Copy, 0, 0, n, schedule.At(isa.SegResult, at), from)
			at, from.At, rest = at+uint32(n), from.At+uint32(n), rest-n
		}
	}
	b.Ends[isa.InForward] = b.MaxLevel
}

// answerFloats is the size of the answers.
func (r *Request) answerFloats() (n uint32) {
	for _, v := range r.Answers {
		n += uint32(r.Graph.DimOf(v).Size())
	}
	return n
}

func (b *Builder) reset(r *Request) {
	b.r, b.g, b.s = r, r.Graph, r.State
	b.holders.Update(r.Plan)
	b.Plan, b.Checked = r.Plan, r.Tensors
	b.StartAt(r.Base)
	n := 0
	if b.g != nil {
		n = b.g.Len()
		b.s.grow(n)
		b.dims = memory.Resize(b.dims, len(b.g.Dims))
		for i := range b.g.Dims {
			d := &b.g.Dims[i]
			b.dims[i] = shape{uint32(d.Size()), uint32(d.Rows()), uint32(d.Cols()), d.Bd}
		}
	}
	b.need = memory.Resize(b.need, n)
	b.otherwise, b.knowsOthers = memory.Resize(b.otherwise, n), false
	b.spots = memory.Resize(b.spots, n)
	b.grads, b.wants = memory.Resize(b.grads, n), memory.Resize(b.wants, n)
	b.gcluster, b.gsub = memory.Resize(b.gcluster, n), memory.Resize(b.gsub, n)
	b.passFrom, b.passAt = memory.Resize(b.passFrom, n), memory.Resize(b.passAt, n)
	b.reader, b.withUser = memory.Resize(b.reader, n), memory.Resize(b.withUser, n)
	b.findWide()
	b.findMatricesOfAll()
	b.findLefts()
	b.findColumns()
	b.first, b.end = 0, r.Node+1
	b.clear()
	b.forgetGradients()
	b.finisher.Begin(finish.Ending{Schedule: &b.Schedule, Sources: &b.Sources, Params: r.Params, Nodes: r.Nodes})
	b.out.ByInstances = false
	b.joints.forget()
}

// clearNodes prepares for lowering node by node.
func (b *Builder) clearNodes() {
	clear(b.need)
	clear(b.wants)
}

// clear forgets what was lowered.
func (b *Builder) clear() {
	b.Schedule.Clear()
	b.Sources.Clear()
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
	s.Value, s.Aux, s.Grad = memory.Extend(s.Value, n, NoOffset), memory.Extend(s.Aux, n, NoOffset), memory.Extend(s.Grad, n, NoOffset)
	s.Segment, s.Resident = memory.Extend(s.Segment, n, isa.SegAct), memory.Extend(s.Resident, n, false)
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

func fault(n uint32, op ops.Code, format string, a ...any) error {
	return &bridge.Error{Node: int(n), Op: op, Reason: fmt.Sprintf(format, a...)}
}

// owns reports whether v is one of the nodes that are lowered.
func (b *Builder) owns(v uint32) bool { return v-b.first < b.end-b.first }
