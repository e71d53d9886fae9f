package persist

import (
	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
	"libvpps/persist/script"
)

// Forward, and the values of nodes.

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
