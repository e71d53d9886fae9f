package persist

import "slices"

// Graphs that are shortened, or of which values are forgotten.

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
