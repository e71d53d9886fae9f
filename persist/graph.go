package persist

import (
	"fmt"
	"slices"

	"libvpps/bridge"
	"libvpps/bridge/ops"
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
