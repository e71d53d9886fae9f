package persist

import (
	"fmt"
	"slices"

	"libvpps/bridge"
	"libvpps/bridge/cells"
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
	"libvpps/persist/script"
)

// Graphs: what was recorded, which nodes are evaluated and where their values are.

// Graph is one computation graph. Its methods are an engine's calls.
type Graph struct {
	e                   *Engine
	id, seeding, seeded uint32 // drawing's: the number of Seed's call, the forwards before it
	since               uint64 // when the program could begin to record what the next call brings
	place               int    // in the engine's graphs; unlisted: it is not among them any more
	*recording
	progress
}

// recording is the memory of a graph: its nodes and where their values are. When the graph is
// closed or cleared, another takes it over as soon as no batch in flight is made of it.
type recording struct {
	job       *job // the batch that a worker makes of it
	flights   int  // batches made of it whose results are not read yet
	retired   bool // no graph has it any more
	wire      bridge.Graph
	expanded  *bridge.Expanded // once a composite node was seen: it is in expansion
	expansion bridge.Expanded
	state     script.State
	words     [InFlight + 2][]uint32 // the inputs of as many calls: of unread batches, at most, and of the present one
	turn      int                    // the latest call's among them
	params    []paramNode
	marks     []watermark
	keep      []uint32 // nodes whose values the next fb keeps
	before    savepoint
	cells     cells.Program // of the latest call that found them
	matched   int           // the number of nodes that cells covers, counted from the first; 0: it begins with another
	stale     bool          // one of params has changed

	destroyed uint64 // the engine's, when all parameters that nodes mention were there
}

// progress is how far a graph's evaluation has come.
type progress struct {
	forwards uint32
	valueEnd uint32 // end of the values in segment act
	end      uint32 // end of everything, gradients included
	updates  uint64 // the engine's, when the first value was evaluated
	spent    bool   // fb consumed it; kept nodes have their values still
	kept     int
	values   []keptValue // of nodes that fb was asked to keep
	failures uint64      // the engine's, then: after a failure they do not count
	gradient int         // nodes below have gradients; 0: none
	borrows  bool        // values of parameter nodes are the parameters themselves
	formed   bool        // and these are in memory
}

// keptValue is where the value of a lowered node lies.
type keptValue struct{ node, at uint32 }

// watermark is where the values of the first nodes end.
type watermark struct {
	done     int
	valueEnd uint32
}

// savepoint is the graph before a call, for the case that it fails.
type savepoint struct {
	progress
	nodes, dims int
	params      []paramNode
	marks       []watermark
	state       script.State // a copy of it, if copied
	copied      bool
	done        int // nodes that were evaluated
	turn        int
	overwritten bool // a launch of this call wrote over old values
}

// paramNode is an evaluated parameter node and the parameter's version then; of a graph, all there are.
type paramNode struct {
	node, id uint32
	version  uint64
}

// NewGraph makes an empty graph.
func (e *Engine) NewGraph() *Graph {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := &Graph{e: e, recording: e.newRecording()}
	g.since = now()
	e.open(g)
	return g
}

// unlisted is the place of a graph that its engine does not know.
const unlisted = -1

// open adds a graph to those of the engine.
func (e *Engine) open(g *Graph) {
	g.place = len(e.graphs)
	e.graphs = append(e.graphs, g)
}

// forget takes a graph away from them.
func (e *Engine) forget(g *Graph) {
	last := len(e.graphs) - 1
	e.graphs[g.place], e.graphs[last].place = e.graphs[last], g.place
	e.graphs[last] = nil
	e.graphs, g.place = e.graphs[:last], unlisted
}

// drawing is which random numbers the present evaluation draws: the number of the graph among those
// evaluated since the seed was set, and the evaluation's of this graph.
func (g *Graph) drawing() (graph, forward uint32) {
	if g.seeding != g.e.seedings {
		g.e.graphIDs++
		g.seeding, g.id, g.seeded = g.e.seedings, g.e.graphIDs, g.forwards
	}
	return g.id, g.forwards - g.seeded
}

// Close forgets the graph; batches in flight over it finish.
func (g *Graph) Close() {
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	if g.e.foresight.keeps(g) {
		g.e.foresight.step.adopt(g)
		g.e.note(g.e.change())
		return
	}
	if g.place != unlisted {
		g.e.forget(g)
		g.e.retire(g.recording)
	}
}

// retire keeps a recording for another graph, as soon as no batch in flight is made of it.
func (e *Engine) retire(r *recording) {
	r.retired = true
	e.recycle(r)
}

// recycle keeps a recording that nobody needs, as many as batches in flight have use for.
func (e *Engine) recycle(r *recording) {
	if r.retired && r.flights == 0 && len(e.recordings) <= InFlight+1 {
		e.recordings = append(e.recordings, r)
	}
}

// pin keeps a batch's nodes as they are; nil: they are gone.
func (r *recording) pin() {
	if r != nil {
		r.flights++
	}
}

// unpin releases them.
func (e *Engine) unpin(r *recording) {
	if r != nil {
		r.flights--
		e.recycle(r)
	}
}

// newRecording is an empty recording, in memory of an old one if there is one that is free: the last one, what is in
// the processor's cache.
func (e *Engine) newRecording() *recording {
	n := len(e.recordings) - 1
	if n < 0 {
		return &recording{destroyed: e.destroyed}
	}
	r := e.recordings[n]
	e.recordings = e.recordings[:n]
	r.reset()
	r.destroyed = e.destroyed
	return r
}

// reset empties the recording.
func (r *recording) reset() {
	r.job, r.expanded, r.retired = nil, nil, false
	r.wire.Reset()
	r.matched = 0
	r.state.Truncate(0)
	r.params, r.marks, r.keep = r.params[:0], r.marks[:0], r.keep[:0]
	r.words[r.turn] = r.words[r.turn][:0]
}

// inputs are the input words of the latest call.
func (r *recording) inputs() []uint32 { return r.words[r.turn] }

// ir is the graph that is lowered, and the map of nodes to it.
func (r *recording) ir() *bridge.Graph {
	if r.expanded != nil {
		return &r.expanded.Graph
	}
	return &r.wire
}

func (r *recording) at(node uint32) uint32 {
	if r.expanded != nil {
		return r.expanded.At[node]
	}
	return node
}

// call is the frame of every call, which has a name and came at a moment: words are appended, do does the work,
// and if anything fails the graph is as it was before.
func (g *Graph) call(name string, came uint64, w *bridge.Words, node uint32, unread int, do func() error) error {
	if w != nil && w.NodeCount > 0 {
		g.recorded(came)
	}
	batch := g.e.batch + 1
	defer func() {
		g.since = now()
		g.e.timeline.to.Span(programTrack, name, uint64(batch), came, g.since)
	}()
	if err := g.e.ready(unread); err != nil {
		return err
	}
	if err := g.e.roomForWords(w); err != nil {
		return err
	}
	g.save()
	err := g.append(w)
	if err == nil {
		err = g.check(node)
	}
	if err == nil {
		err = g.e.roomForScript(g.ir())
	}
	if err == nil {
		g.compareVersions()
		err = do()
	}
	if err != nil {
		g.restore()
	}
	return err
}

// save notes what a failing call has to bring back. Values themselves stay where they are.
func (g *Graph) save() {
	b := &g.before
	b.progress, b.nodes, b.dims = g.progress, g.wire.Len(), len(g.wire.Dims)
	b.params, b.marks = append(b.params[:0], g.params...), append(b.marks[:0], g.marks...)
	b.overwritten, b.turn, b.copied = false, g.turn, false
	b.done = g.state.Done
}

// preserve has a failing call bring back what is known of evaluated nodes, which this call overwrites.
func (g *Graph) preserve() {
	if b := &g.before; !b.copied && b.done > 0 {
		b.state.CopyFrom(&g.state)
		b.copied = true
	}
}

func (g *Graph) restore() {
	if g.job != nil {
		<-g.job.done // a worker reads the graph
	}
	b := &g.before
	if g.wire.Len() > b.nodes {
		g.cut(b.nodes)
	}
	g.wire.Dims = g.wire.Dims[:b.dims]
	if g.turn != b.turn {
		g.turn = b.turn
		g.read(g.inputs())
	}
	g.progress = b.progress
	g.params, g.marks = append(g.params[:0], b.params...), append(g.marks[:0], b.marks...)
	if b.copied {
		g.state.CopyFrom(&b.state)
	} else {
		g.state.Truncate(b.done)
		g.state.Done = b.done
	}
	if b.overwritten {
		g.restart()
	}
}

// append adds recorded words; nil adds nothing.
func (g *Graph) append(w *bridge.Words) error {
	if w == nil {
		return nil
	}
	if w.NodeCount > 0 {
		t := now()
		defer func() {
			end := now()
			g.e.stats.DecodeNS += end - t
			g.e.timeline.to.Span(programTrack, "decode", uint64(g.e.batch+1), t, end)
		}()
	}
	first := g.wire.Len()
	if err := g.wire.Append(w, g.e.dimOf); exhausted(err) {
		return wrong(ErrMemory, "%v", err)
	} else if err != nil {
		return err
	}
	g.turn = (g.turn + 1) % len(g.words)
	g.words[g.turn] = append(g.inputs()[:0], w.Inputs...)
	g.read(g.inputs())
	g.e.stats.Nodes += uint64(w.NodeCount)
	if g.expanded == nil && slices.ContainsFunc(g.wire.Op[first:], bridge.Composite) {
		g.expansion.Reset()
		g.expanded = &g.expansion
	}
	if g.expanded != nil {
		if err := g.e.roomForExpansion(g.wire.Len()); err != nil {
			return err
		}
		g.expanded.Extend(&g.wire)
	}
	return nil
}

func (g *Graph) check(node uint32) error {
	if int(node) >= g.wire.Len() {
		return wrong(ErrArgument, "node %d of a graph of %d nodes", node, g.wire.Len())
	}
	return g.checkParameters()
}

// checkParameters looks for parameters that were destroyed since the graph's nodes were recorded.
func (g *Graph) checkParameters() error {
	if g.destroyed == g.e.destroyed {
		return nil
	}
	for n, op := range g.wire.Op {
		switch op {
		case ops.Parameter, ops.ConstParameter, ops.Lookup, ops.ConstLookup:
			if id := g.wire.AttrsOf(uint32(n))[0]; g.e.params[id].Size == 0 {
				return &bridge.Error{Node: n, Op: op, Reason: fmt.Sprintf("parameter %d was destroyed: record the graph without it", id)}
			}
		}
	}
	g.destroyed = g.e.destroyed
	return nil
}

// compareVersions: a product reads the matrix in its registers only while that is what the
// parameter node was evaluated to. What a program writes to engine memory raises no version.
func (g *Graph) compareVersions() {
	g.stale = false
	for _, p := range g.params {
		if now := &g.e.params[p.id]; now.version != p.version || now.host[Values].direct {
			g.state.Resident[p.node] = false
			g.stale = true
		}
	}
}

// restart forgets all values. Memory of values that fb has kept is left alone: the call may fail.
func (g *Graph) restart() {
	g.preserve()
	end := uint32(0)
	if len(g.values) > 0 {
		end = g.end
	}
	g.state.Done = 0
	g.stale = false
	g.params, g.marks = g.params[:0], g.marks[:0]
	g.progress = progress{forwards: g.forwards + 1, end: end}
}

// Forward evaluates up to node; restart (DyNet's forward) evaluates everything anew.
func (g *Graph) Forward(w *bridge.Words, node uint32, restart bool) error {
	came := now()
	g.e.enter()
	defer g.e.mu.Unlock()
	return g.call("forward", came, w, node, 0, func() error {
		if restart || g.spent {
			g.restart()
		}
		return g.evaluate(node)
	})
}

// evaluate runs the nodes from the watermark to node.
func (g *Graph) evaluate(node uint32) error {
	last := g.at(node)
	if int(last) < g.state.Done {
		return nil
	}
	done := g.state.Done
	if done == 0 {
		g.updates = g.e.updates
	}
	id, forward := g.drawing()
	r := &g.e.request
	*r = script.Request{Graph: g.ir(), State: &g.state, Node: last, Forward: true, Copy: g.e.lends(), Wide: g.e.wide, PerShape: g.e.perShape,
		Base: g.e.top(), Result: script.NoOffset, GraphID: id, ForwardCount: forward, Apart: g.e.apart, Before: r.Before[:0]}
	whole := g.e.foresee(r, g, node)
	g.findCells(r, uint32(done))
	for _, p := range g.params {
		r.Before = append(r.Before, p.node)
	}
	batch := g.e.batch
	built, err := g.e.run(r)
	if err != nil && whole && g.e.batch == batch { // forward alone may be possible
		whole = false
		g.e.unforesee(r)
		built, err = g.e.run(r)
	}
	if err != nil {
		g.e.foresight.step = nil
		return err
	}
	g.e.noteInstances(r, built)
	g.before.overwritten = done == 0 && g.before.done > 0
	g.valueEnd, g.end, g.borrows = r.Base+built.Used, r.Base+built.Used, g.borrows || !r.Copy
	if whole {
		g.valueEnd = r.Base + built.Values
		if err := g.e.prepare(built.Script, r); err != nil {
			return err
		}
	}
	g.state.Done = int(last) + 1
	g.marks = append(g.marks, watermark{g.state.Done, g.valueEnd})
	g.noteParameters(done)
	return g.e.awaitForward()
}

// noteParameters remembers the versions that parameter nodes from first on were read at.
func (g *Graph) noteParameters(first int) {
	ir := g.ir()
	for n := first; n < g.state.Done; n++ {
		if op := ir.Op[n]; op == ops.Parameter || op == ops.ConstParameter {
			id := ir.AttrsOf(uint32(n))[0]
			g.params = append(g.params, paramNode{uint32(n), id, g.e.params[id].version})
		}
	}
}

// Value copies node's value, evaluating what is missing.
func (g *Graph) Value(w *bridge.Words, node uint32, to []float32) error {
	came := now()
	g.e.enterReading()
	defer g.e.mu.Unlock()
	if w != nil && w.NodeCount > 0 || int(node) >= g.wire.Len() || int(g.at(node)) >= g.state.Done {
		if err := g.e.catchUp(); err != nil {
			return err
		}
	}
	return g.call("value", came, w, node, 0, func() error {
		n := g.at(node)
		at, valid := g.valueAfterFB(n)
		if g.spent && !valid {
			return wrong(ErrState, "node %d has no value: fb has consumed the graph and updated the parameters since; ask for its value before fb, name it by keep, or call forward again", node)
		}
		if want := g.wire.DimOf(node).Size(); want != len(to) {
			return wrong(ErrArgument, "node %d has %d elements, room for %d", node, want, len(to))
		}
		if g.spent {
			return g.e.download(isa.SegAct, uint64(at), to)
		}
		if err := g.evaluate(node); err != nil {
			return err
		}
		return g.valueOf(node, to)
	})
}

// valueOf copies the value of an evaluated node. That of a foreseen step's loss lies in the host's memory, too.
func (g *Graph) valueOf(node uint32, to []float32) error {
	if slot, known := g.e.foresight.lossOf(g, node); known {
		return g.e.download(isa.SegResult, uint64(slot), to)
	}
	n := g.at(node)
	return g.e.download(g.state.Segment[n], uint64(g.state.Value[n]), to)
}

// valueAfterFB is where a lowered node's value lies in segment act after fb, if it has one.
func (g *Graph) valueAfterFB(n uint32) (at uint32, ok bool) {
	if int(n) < g.kept {
		return g.state.Value[n], true // evaluated before, so in act
	}
	for _, v := range g.values {
		if v.node == n {
			return v.at, g.failures == g.e.failures
		}
	}
	return 0, false
}

// Backward adds the gradients of node to the parameters'.
func (g *Graph) Backward(w *bridge.Words, node uint32, full bool) error {
	return g.backward("backward", w, node, full, false)
}

// NodeGradients forms the gradients of node for Gradient, and leaves those of parameters as they are.
func (g *Graph) NodeGradients(w *bridge.Words, node uint32) error {
	return g.backward("node gradients", w, node, true, true)
}

// backward evaluates node and differentiates it, where that is a number.
func (g *Graph) backward(name string, w *bridge.Words, node uint32, full, nodes bool) error {
	came := now()
	g.e.enter()
	defer g.e.mu.Unlock()
	changed, err := g.e.synchronise()
	if err != nil {
		return err
	}
	return g.call(name, came, w, node, 0, func() error {
		if d := g.wire.DimOf(node); d.Size() != 1 {
			return wrong(ErrArgument, "node %d: backward starts from a scalar, its dim is %v", node, *d)
		}
		if g.spent || changed {
			g.restart()
		}
		if err := g.evaluate(node); err != nil {
			return err
		}
		if err := g.checkLoss(node); err != nil {
			return err
		}
		if !full && !nodes && g.e.awaits(g, node) {
			g.e.foresight.step.backward = true
			g.gradient = 0
			g.e.noneFused()
			return nil
		}
		if !full && !nodes {
			g.e.noteBackward(g, node)
		}
		return g.differentiate(node, full, nodes)
	})
}

// checkLoss refuses to differentiate a value that is not finite.
func (g *Graph) checkLoss(node uint32) error {
	few := g.e.few[:1]
	if err := g.valueOf(node, few); err != nil {
		return err
	}
	loss := few[0]
	if finite(loss) {
		return nil
	}
	why := ""
	if found := g.e.blameNode(g.recording, &g.state, node, g.valueEnd); found != "" {
		why = ": " + found
	}
	return wrong(ErrNumeric, "backward from node %d: its value is not finite (%g)%s; gradients are as before", node, loss, why)
}

// differentiate runs the backward part from node, which is evaluated; nodes: without the gradients of parameters.
func (g *Graph) differentiate(node uint32, full, nodes bool) error {
	g.end, g.gradient = g.valueEnd, 0
	id, forward := g.drawing()
	r := script.Request{Graph: g.ir(), State: &g.state, Node: g.at(node), Copy: true, Backward: true, Full: full, Nodes: nodes, Wide: g.e.wide, PerShape: g.e.perShape,
		Base: g.e.top(), Result: script.NoOffset, GraphID: id, ForwardCount: forward, Apart: g.e.apart}
	if g.preserve(); !full && !nodes {
		g.findCells(&r, 0)
	}
	built, err := g.e.run(&r)
	if err != nil {
		return err
	}
	g.end = r.Base + built.Used
	g.gradient, g.formed = int(node)+1, !built.ByInstances
	g.e.noteInstances(&r, built)
	if nodes {
		return g.e.wait()
	}
	g.e.noteGradients(built)
	g.e.noneFused()
	if err := g.e.wait(); err != nil {
		return err
	}
	return g.e.pullAll()
}

// noneFused notes that a backward has come since fb.
func (e *Engine) noneFused() {
	for i := range e.params {
		e.params[i].fused = false
	}
}

// noteGradients records which gradients are pending after a backward.
func (e *Engine) noteGradients(built *script.Built) {
	for _, id := range built.Formed {
		p := &e.params[id]
		p.Pending, p.Rows, p.host[Gradient].whole = true, nil, true
	}
	for _, t := range built.Touched {
		p := &e.params[t.Param]
		p.host[Gradient].changed(t.Row)
		if at, found := slices.BinarySearch(p.Rows, t.Row); !found && !p.Pending {
			p.Rows = slices.Insert(p.Rows, at, t.Row)
		}
	}
}

// Gradient copies d(loss)/d(node) of the last Backward. Most programs do not ask for it. So a backward by instances leaves
// out what only this needs, and the first question makes up for that.
func (g *Graph) Gradient(node uint32, to []float32) error {
	came := now()
	g.e.enter()
	defer g.e.mu.Unlock()
	if g.e.dead != nil {
		return g.e.dead
	}
	if err := g.check(node); err != nil {
		return err
	}
	if g.gradient == 0 {
		return wrong(ErrState, "gradient of node %d: there was no backward since its graph was last evaluated or changed", node)
	}
	if int(node) >= g.gradient {
		return wrong(ErrState, "gradient of node %d: the last backward was from node %d", node, g.gradient-1)
	}
	if want := g.wire.DimOf(node).Size(); want != len(to) {
		return wrong(ErrArgument, "node %d has %d elements, room for %d", node, want, len(to))
	}
	if loss := uint32(g.gradient - 1); !g.formed {
		if err := g.call("gradient", came, nil, loss, 0, func() error { return g.differentiate(loss, false, true) }); err != nil {
			return err
		}
	}
	at := g.state.Grad[g.at(node)]
	if at == script.NoOffset {
		clear(to)
		return nil
	}
	return g.e.download(isa.SegAct, uint64(at), to)
}

// Truncate drops nodes from node on. A graph that is cleared leaves a batch in flight its nodes.
func (g *Graph) Truncate(node uint32) error {
	e := g.e
	e.mu.Lock()
	defer e.mu.Unlock()
	defer func() { g.since = now() }()
	if e.closed {
		return e.dead
	}
	if node == 0 && g.flights > 0 {
		e.retire(g.beginAnew())
		return nil
	}
	e.drain()
	if e.foresight.keeps(g) {
		if node == 0 {
			g.handOver()
			return nil
		}
		if err := e.catchUp(); err != nil {
			return err
		}
	}
	g.keep = slices.DeleteFunc(g.keep, func(k uint32) bool { return k >= node })
	if int(node) >= g.wire.Len() {
		return nil
	}
	if e.asks(g.recording) { // until an answer is on the host, it may have to be evaluated again
		if err := e.collect(0); err != nil {
			return err
		}
	}
	e.lose(g.recording, node)
	g.cut(int(node))
	if node == 0 {
		g.restart()
	}
	return nil
}

// beginAnew gives the graph another recording, and returns the one that it had.
func (g *Graph) beginAnew() *recording {
	old := g.recording
	g.recording = g.e.newRecording()
	g.wire.Dims = append(g.wire.Dims, old.wire.Dims...) // are not dropped: what is recorded next counts on them
	g.restart()
	return old
}

// handOver leaves what the graph has to a graph that only the foreseen step knows, and begins anew.
func (g *Graph) handOver() {
	old := &Graph{e: g.e, id: g.id, seeding: g.seeding, seeded: g.seeded, recording: g.recording, progress: g.progress}
	g.e.open(old)
	g.e.foresight.step.adopt(old)
	g.beginAnew()
	g.e.note(g.e.change())
}

// cut drops the nodes from n on.
func (g *Graph) cut(n int) {
	g.wire.Truncate(n)
	left := n
	if g.expanded != nil {
		g.expanded.TruncateTo(n)
		left = g.expanded.Len()
	}
	g.state.Truncate(left)
	g.forgetFrom(left)
	g.matched = 0
}

// Invalidate makes nodes from node on count as not evaluated.
func (g *Graph) Invalidate(node uint32) error {
	g.e.enter()
	defer g.e.mu.Unlock()
	if g.e.closed {
		return g.e.dead
	}
	if node == 0 {
		g.restart()
		return nil
	}
	if int(node) < g.wire.Len() {
		g.forgetFrom(int(g.at(node)))
	}
	return nil
}

// forgetFrom forgets the values of lowered nodes from n on and releases their memory, as far as
// no earlier node's values came with them.
func (g *Graph) forgetFrom(n int) {
	g.gradient = 0
	g.state.Done, g.kept = min(g.state.Done, n), min(g.kept, n)
	g.values = slices.DeleteFunc(slices.Clone(g.values), func(v keptValue) bool { return int(v.node) >= n })
	g.params = slices.DeleteFunc(g.params, func(p paramNode) bool { return int(p.node) >= g.state.Done })
	for len(g.marks) > 1 && g.marks[len(g.marks)-2].done >= g.state.Done {
		g.marks = g.marks[:len(g.marks)-1]
	}
	if k := len(g.marks); k > 0 {
		g.marks[k-1].done = min(g.marks[k-1].done, g.state.Done)
	}
	if k := len(g.marks); k > 0 && !g.spent {
		g.valueEnd = g.marks[k-1].valueEnd
		g.end = g.valueEnd
	}
}
