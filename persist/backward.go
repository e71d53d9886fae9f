package persist

import (
	"slices"

	"libvpps/bridge"
	"libvpps/persist/isa"
	"libvpps/persist/script"
)

// Backward, and the gradients of nodes.

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
