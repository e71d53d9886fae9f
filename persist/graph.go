package persist

// Graphs: what was recorded, which nodes are evaluated and where their values are.

import (
	"slices"

	"libvpps/bridge"
	"libvpps/persist/script"
)

// Graph is one computation graph. Its methods are an engine's calls.
type Graph struct {
	e        *Engine
	id       uint32
	wire     bridge.Graph
	expanded *bridge.Expanded // once a composite node was seen
	state    script.State
	inputs   []uint32
	forwards uint32
	valueEnd uint32 // end of the values in segment act
	end      uint32 // end of everything, gradients included
	params   []paramNode
	updates  uint64 // the engine's, when the first value was evaluated
	spent    bool   // fb consumed it; kept nodes have their values still
	kept     int
	gradient int // nodes below have gradients; 0: none
}

// paramNode is an evaluated parameter node and the parameter's version then.
type paramNode struct {
	node, id uint32
	version  uint64
}

// NewGraph makes an empty graph.
func (e *Engine) NewGraph() *Graph {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.graphIDs++
	g := &Graph{e: e, id: e.graphIDs}
	e.graphs[g] = struct{}{}
	return g
}

// Close forgets the graph; batches in flight over it finish.
func (g *Graph) Close() {
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	delete(g.e.graphs, g)
}

// ir is the graph that is lowered, and the map of nodes to it.
func (g *Graph) ir() *bridge.Graph {
	if g.expanded != nil {
		return &g.expanded.Graph
	}
	return &g.wire
}

func (g *Graph) at(node uint32) uint32 {
	if g.expanded != nil {
		return g.expanded.At[node]
	}
	return node
}

// append adds recorded words; nil adds nothing.
func (g *Graph) append(w *bridge.Words) error {
	if w == nil {
		return nil
	}
	t := now()
	defer func() { g.e.stats.DecodeNS += now() - t }()
	first := g.wire.Len()
	g.inputs = append(g.inputs[:0], w.Inputs...)
	mine := *w
	mine.Inputs = g.inputs
	if err := g.wire.Append(&mine, g.e.dimOf); err != nil {
		return err
	}
	g.e.stats.Nodes += uint64(w.NodeCount)
	if g.expanded == nil && slices.ContainsFunc(g.wire.Op[first:], bridge.Composite) {
		g.expanded = &bridge.Expanded{}
	}
	if g.expanded != nil {
		g.expanded.Extend(&g.wire)
	}
	return nil
}

func (g *Graph) check(node uint32) error {
	if int(node) >= g.wire.Len() {
		return wrong(ErrArgument, "node %d of a graph of %d nodes", node, g.wire.Len())
	}
	return nil
}

// restart forgets all values.
func (g *Graph) restart() {
	g.state.Done, g.valueEnd, g.end, g.gradient = 0, 0, 0, 0
	g.params = g.params[:0]
	g.spent, g.kept = false, 0
	g.forwards++
}

// begin prepares a call: words are appended, parameters' versions compared.
func (g *Graph) begin(w *bridge.Words, node uint32) error {
	if err := g.e.ready(); err != nil {
		return err
	}
	if err := g.append(w); err != nil {
		return err
	}
	if err := g.check(node); err != nil {
		return err
	}
	for _, p := range g.params {
		if g.e.params[p.id].version != p.version {
			g.state.Resident[p.node] = false
		}
	}
	return nil
}

// Forward evaluates up to node; restart (DyNet's forward) evaluates everything anew.
func (g *Graph) Forward(w *bridge.Words, node uint32, restart bool) error {
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	if err := g.begin(w, node); err != nil {
		return err
	}
	if restart || g.spent {
		g.restart()
	}
	return g.evaluate(node)
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
	r := script.Request{Graph: g.ir(), State: &g.state, Node: last, Forward: true, Copy: true,
		Base: g.e.top(), Result: script.NoOffset, GraphID: g.id, ForwardCount: g.forwards}
	built, err := g.e.run(&r)
	if err != nil {
		return err
	}
	g.state.Done = int(last) + 1
	g.valueEnd = r.Base + built.Used
	g.end = g.valueEnd
	g.noteParameters(done)
	return g.e.exec.Wait()
}

// noteParameters remembers the versions that parameter nodes from first on were read at.
func (g *Graph) noteParameters(first int) {
	ir := g.ir()
	for n := first; n < g.state.Done; n++ {
		if g.state.Resident[n] {
			id := ir.AttrsOf(uint32(n))[0]
			g.params = append(g.params, paramNode{uint32(n), id, g.e.params[id].version})
		}
	}
}

// Value copies node's value, evaluating what is missing.
func (g *Graph) Value(w *bridge.Words, node uint32, to []float32) error {
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	if err := g.begin(w, node); err != nil {
		return err
	}
	n := g.at(node)
	if g.spent && int(n) >= g.kept {
		return wrong(ErrState, "node %d has no value: fb has consumed the graph and updated the parameters since; ask for its value before fb, or call forward again", node)
	}
	if !g.spent {
		if err := g.evaluate(node); err != nil {
			return err
		}
	}
	if want := g.wire.DimOf(node).Size(); want != len(to) {
		return wrong(ErrArgument, "node %d has %d elements, room for %d", node, want, len(to))
	}
	return g.e.exec.Read(g.state.Segment[n], uint64(g.state.Value[n]), to)
}

// Backward adds the gradients of node to the parameters'.
func (g *Graph) Backward(w *bridge.Words, node uint32, full bool) error {
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	if err := g.begin(w, node); err != nil {
		return err
	}
	if g.spent {
		g.restart()
	}
	if d := g.wire.DimOf(node); d.Size() != 1 {
		return wrong(ErrArgument, "node %d: backward starts from a scalar, its dim is %v", node, *d)
	}
	if err := g.evaluate(node); err != nil {
		return err
	}
	g.end, g.gradient = g.valueEnd, 0
	r := script.Request{Graph: g.ir(), State: &g.state, Node: g.at(node), Copy: true, Backward: true, Full: full,
		Base: g.e.top(), Result: script.NoOffset, GraphID: g.id, ForwardCount: g.forwards}
	built, err := g.e.run(&r)
	if err != nil {
		return err
	}
	g.end = r.Base + built.Used
	g.gradient = int(node) + 1
	g.e.noteGradients(built)
	if err := g.e.exec.Wait(); err != nil {
		return err
	}
	return g.e.pullAll()
}

// noteGradients records which gradients are pending after a backward.
func (e *Engine) noteGradients(built *script.Built) {
	for _, id := range built.Formed {
		e.params[id].Pending, e.params[id].Rows = true, nil
	}
	for _, t := range built.Touched {
		p := &e.params[t.Param]
		if at, found := slices.BinarySearch(p.Rows, t.Row); !found && !p.Pending {
			p.Rows = slices.Insert(p.Rows, at, t.Row)
		}
	}
}

// Gradient copies d(loss)/d(node) of the last Backward.
func (g *Graph) Gradient(node uint32, to []float32) error {
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	if err := g.check(node); err != nil {
		return err
	}
	if int(node) >= g.gradient {
		return wrong(ErrState, "gradient of node %d: the last backward was from node %d", node, g.gradient-1)
	}
	if want := g.wire.DimOf(node).Size(); want != len(to) {
		return wrong(ErrArgument, "node %d has %d elements, room for %d", node, want, len(to))
	}
	at := g.state.Grad[g.at(node)]
	if at == script.NoOffset {
		clear(to)
		return nil
	}
	return g.e.exec.Read(script.SegAct, uint64(at), to)
}

// Truncate drops nodes from node on.
func (g *Graph) Truncate(node uint32) error {
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	if int(node) >= g.wire.Len() {
		return nil
	}
	g.wire.Truncate(int(node))
	irLen := int(node)
	if g.expanded != nil {
		g.expanded.TruncateTo(int(node))
		irLen = g.expanded.Len()
	}
	g.state.Truncate(irLen)
	g.gradient = 0
	g.kept = min(g.kept, irLen)
	g.params = slices.DeleteFunc(g.params, func(p paramNode) bool { return int(p.node) >= irLen })
	if node == 0 {
		g.restart()
	}
	return nil
}

// Invalidate makes nodes from node on count as not evaluated.
func (g *Graph) Invalidate(node uint32) error {
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	if node == 0 {
		g.restart()
		return nil
	}
	if int(node) < g.wire.Len() {
		g.state.Done = min(g.state.Done, int(g.at(node)))
	}
	g.gradient = 0
	g.params = slices.DeleteFunc(g.params, func(p paramNode) bool { return int(p.node) >= g.state.Done })
	return nil
}
