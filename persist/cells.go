package persist

import "libvpps/persist/script"

// Finding the cells that requests are lowered by (bridge/cells): by the call itself or, of a batch that a worker makes, by the
// worker.

// findCells lists the nodes from first to the request's last as instances, if they are to be lowered by them.
func (g *Graph) findCells(r *script.Request, first uint32) {
	if !g.wantsCells(r, first) {
		return
	}
	r.Cells = &g.cells
	if first > 0 || g.matched != int(r.Node)+1 {
		g.e.dictionary.Find(r.Graph, first, r.Node+1, r.Cells)
		g.matched = 0
		if first == 0 {
			g.matched = int(r.Node) + 1
		}
	}
	g.e.countCells(r)
}

// leaveCells leaves it to the worker that gets the request to list all its nodes as instances.
func (g *Graph) leaveCells(r *script.Request) {
	if g.wantsCells(r, 0) {
		r.Cells, g.matched = &g.cells, 0
	}
}

// wantsCells reports whether the nodes from first on are to be lowered by instances.
func (g *Graph) wantsCells(r *script.Request, first uint32) bool {
	e := g.e
	if g.stale || first > r.Node {
		return false
	}
	if !e.plan.CPU && e.costs == nil {
		if r.Params == nil { // of a request that run makes
			r.Plan, r.Params = e.plan, e.paramViews()
		}
		if !script.InCells(r) {
			return false
		}
	}
	if calls := !r.Forward || !r.Backward; calls && e.skip > 0 {
		e.skip--
		return false
	}
	return true
}

// countCells counts the instances of a request.
func (e *Engine) countCells(r *script.Request) {
	if r.Forward {
		e.stats.Instances += uint64(len(r.Cells.Instances))
		e.stats.Loose += uint64(r.Cells.Loose)
	}
}

// noteInstances notes whether a request that had instances was lowered by them. Looking for what is of no use becomes rare.
func (e *Engine) noteInstances(r *script.Request, built *script.Built) {
	switch {
	case r.Cells == nil:
	case built.ByInstances:
		e.skip, e.skipped = 0, 0
	default:
		e.skipped = min(2*e.skipped+1, 127)
		e.skip = e.skipped
	}
}

// findCellsOf lists a job's nodes as instances, if it is lowered by them. Batches teach the dictionary in order, so that
// what is found does not depend on which worker is faster.
func (e *Engine) findCellsOf(j *job, awake bool) {
	defer close(j.found)
	if b := j.before; b != nil {
		await(b.found, awake, patience)
	}
	if r := &j.request; r.Cells != nil {
		e.dictionary.Find(r.Graph, 0, r.Node+1, r.Cells)
		e.countCells(r)
	}
}
