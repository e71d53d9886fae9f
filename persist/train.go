package persist

import (
	"math"
	"slices"

	"libvpps/bridge"
	"libvpps/log"
	"libvpps/persist/isa"
	"libvpps/persist/script"
)

// Training: updates, handles and the paper's one call, fb.

// resultSlot is where the next launch reports.
func (e *Engine) resultSlot() uint32 { return (e.batch + 1) % resultSlots * resultSlot }

// committed records an update: gradients are gone, parameters changed, weight decay advances.
func (e *Engine) committed(t *Trainer) error {
	e.updates++
	t.steps++
	for _, id := range t.ids {
		if p := &e.params[id]; p.Updated {
			p.valuesChanged(t.options.Sparse)
			p.gradientChanged()
			e.clearGradient(p)
			p.version++
		}
	}
	c := &e.collections[t.options.Collection]
	if c.Lambda > 0 {
		c.Factor -= c.Factor * c.Lambda
		e.factorChanged(t.options.Collection)
	}
	if c.Factor < 0.25 { // without a decay, too: the program may have set it
		return e.rescale(t, c)
	}
	return nil
}

// rescale multiplies the factor into the updated parameters once it has become small.
func (e *Engine) rescale(t *Trainer, c *Collection) error {
	if err := e.change(); err != nil {
		return err
	}
	if err := e.collect(0); err != nil || e.failure != nil {
		return err // a batch that failed takes the factor back as well
	}
	for _, id := range t.ids {
		if p := &e.params[id]; p.Updated {
			if err := e.scale(p, Values, c.Factor); err != nil {
				return err
			}
		}
	}
	c.Factor = 1
	return nil
}

// Handle is a model planned for the engine's device.
type Handle struct {
	e       *Engine
	trainer *Trainer
	losses  [InFlight + 1]float32 // of the last batches, by number
	number  uint64                // fb calls so far
	count   uint64                // of these, the ones since a batch failed
	clips   uint64
}

// NewHandle plans the parameters and compiles the kernel. A nil trainer is SimpleSGD at its
// defaults over ids.
func (e *Engine) NewHandle(ids []uint32, t *Trainer) (*Handle, error) {
	e.enter()
	defer e.mu.Unlock()
	if e.dead != nil {
		return nil, e.dead
	}
	if t != nil && t.e != e {
		return nil, wrong(ErrArgument, "the trainer is of another engine")
	}
	if err := e.distinct(ids, nil); err != nil {
		return nil, err
	}
	if t == nil {
		t = &Trainer{e: e, options: TrainerOptions{Rule: isa.SGD, LearningRate: 0.1, Clipping: true, Threshold: 5, Sparse: true}}
		if err := t.add(ids); err != nil {
			return nil, err
		}
		e.enlist(t)
		if len(ids) > 0 {
			t.options.Collection = e.params[ids[0]].collection
		}
	}
	start := now()
	if e.unplanned {
		if err := e.collect(0); err != nil {
			return nil, err
		}
		if err := e.replan(); err != nil {
			return nil, err
		}
	}
	e.stats.PlanNS += now() - start
	return &Handle{e: e, trainer: t}, nil
}

// Trainer is the handle's update rule.
func (h *Handle) Trainer() *Trainer { return h.trainer }

// InFlight is how many batches may be without a loss when fb returns: its caller is told that of the batch before
// those. Each of them has a worker that writes its script. It is VPPS_FB_LAG of vpps.h.
const InFlight = 8

// unread is how many batches may be unread when fb returns: one more where losses are known before batches end.
func (e *Engine) unread() int {
	if e.exec.Device() != nil && e.asynchronous() && !e.exposed() {
		return InFlight + 1
	}
	return InFlight
}

// FB runs forward, backward and update of node in one launch; it returns the loss of InFlight calls before, 0 for the
// first ones.
func (h *Handle) FB(g *Graph, w *bridge.Words, node uint32) (stale float32, err error) {
	e, came := h.e, now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if g.e != e {
		return 0, e.failed(wrong(ErrArgument, "the graph is of another engine than the handle"))
	}
	if log.On(log.Info) {
		began, before := now(), e.host.wait
		defer func() { e.slow.note(h.number, int(node)+1, now()-began, e.host.wait-before) }()
	}
	if err := e.catchUp(); err != nil {
		return 0, e.notTrained(err)
	}
	if e.ranks != nil {
		if err := e.readyTogether(); err != nil {
			return 0, err
		}
	}
	if !e.asynchronous() || e.exposed() {
		e.drain()
	} else if g.job != nil {
		<-g.job.done
	}
	if err := e.noneShared(); err != nil {
		return 0, e.notTrained(err)
	}
	if e.ranks == nil {
		if err := e.followTrial(); err != nil {
			return 0, err
		}
	}
	unread := e.unread()
	err = g.call("fb", came, w, node, unread, func() error {
		if err := h.launch(g, node); err != nil {
			return err
		}
		if err := e.settle(unread); err != nil {
			return err
		}
		return h.foretell()
	})
	if err != nil {
		return 0, e.notTrained(err)
	}
	if h.count > InFlight {
		stale = h.losses[(h.count-1-InFlight)%uint64(len(h.losses))]
	}
	return stale, e.pullAll()
}

// foretell gets the loss of InFlight calls before, whose batch may still be running: backward and update are to come. What
// is no number, or of a batch that could not be launched, is what its results will tell.
func (h *Handle) foretell() error {
	e := h.e
	if len(e.flights) <= InFlight || !e.allTrain() { // else it is read already
		return nil
	}
	f := e.flights[0]
	if f.job != nil {
		defer e.waited(now(), "wait for a loss")
	}
	if f.job != nil && f.job.step != nil { // what failed is told in the next call: in the same one on all ranks, whose losses differ
		f.handle.losses[f.handle.at(f)] = f.job.step.foretold(uint64(f.slot), f.launch)
		return nil
	}
	if f.job != nil {
		if <-f.job.done; f.job.err != nil {
			return e.settle(InFlight)
		}
	}
	loss, known, err := e.exec.Device().Foretell(uint64(f.slot), f.launch)
	if err != nil {
		return e.fail(err)
	}
	if !known || !finite(loss) {
		return e.settle(InFlight)
	}
	f.handle.losses[f.handle.at(f)] = loss
	return nil
}

// committedAlready reports whether the launch before is over, and nothing of it will have to be found out.
func (e *Engine) committedAlready() bool {
	return e.exec.Traits().Immediate && e.exec.Failed(false) == 0
}

// Keep names nodes of a graph whose values can be read after the next FB, which may bring them.
func (h *Handle) Keep(g *Graph, nodes []uint32) error {
	h.e.enter()
	defer h.e.mu.Unlock()
	if h.e.closed {
		return h.e.dead
	}
	if g.e != h.e {
		return wrong(ErrArgument, "the graph is of another engine than the handle")
	}
	if err := h.e.room.prove(uint64(len(g.keep)+len(nodes))*16, "the nodes to keep"); err != nil {
		return err
	}
	g.keep = append(g.keep, nodes...)
	return nil
}

// lowered are the nodes to keep as the script knows them, ascending.
func (g *Graph) lowered(loss uint32) ([]uint32, error) {
	var nodes []uint32
	for _, k := range g.keep {
		if k > loss {
			return nil, wrong(ErrArgument, "node %d is to be kept, but comes after the loss, node %d: make it before the loss", k, loss)
		}
		nodes = append(nodes, g.at(k))
	}
	slices.Sort(nodes)
	return slices.Compact(nodes), nil
}

// request is forward and backward of a batch.
func (h *Handle) request(g *Graph, node uint32) (r script.Request, err error) {
	e := h.e
	if d := g.wire.DimOf(node); d.Size() != 1 {
		return r, wrong(ErrArgument, "node %d: fb needs a scalar loss, its dim is %v", node, *d)
	}
	if g.spent || g.state.Done > 0 && g.updates != e.updates {
		g.restart()
	}
	keep, err := g.lowered(node)
	if err != nil {
		return r, err
	}
	g.end = g.valueEnd
	id, forward := g.drawing()
	r = script.Request{Graph: g.ir(), State: &g.state, Node: g.at(node), Forward: true, Needed: true, Backward: true, Keep: keep, Apart: e.apart, Wide: e.wide, PerShape: e.perShape,
		Base: e.top(), Result: e.resultSlot(), GraphID: id, ForwardCount: forward}
	g.preserve()
	return r, nil
}

// launch starts the batch and records its update.
func (h *Handle) launch(g *Graph, node uint32) error {
	e := h.e
	if err := e.giveCopies(); err != nil {
		return err
	}
	r, err := h.request(g, node)
	if err != nil {
		return err
	}
	kept := g.state.Done
	ahead := e.asynchronous() && !e.exposed() && len(r.Keep) == 0 && kept == 0 && h.appliesAll() && e.aloneInGroup()
	if ahead {
		if err := e.describe(&r); err != nil {
			return err
		}
		g.leaveCells(&r)
	} else {
		e.drain()
		g.findCells(&r, uint32(kept))
		if e.ranks != nil {
			return h.stepTogether(g, node, &r)
		}
	}
	f, err := e.depart(h.trainer)
	if err != nil {
		return err
	}
	var built *script.Built
	if ahead {
		f.job = h.handOver(&r)
		g.job = f.job
	} else {
		f.job = nil
		apply := h.trainer.apply()
		r.Update = &apply
		if built, err = e.run(&r); err != nil {
			defer e.land(f)
			return e.undo(f, err)
		}
	}
	h.number++
	h.count++
	e.stats.Batches++
	f.handle, f.number, f.launch, f.slot = h, h.number, e.batch, r.Result
	f.plan, f.nodes = e.plan, int(node)+1
	f.evidence = g.evidence(node)
	if built != nil && e.committedAlready() {
		f.evidence.recording = nil
	}
	f.evidence.recording.pin()
	e.flights = append(e.flights, f)
	g.consume(&r, kept, built)
	if built != nil {
		e.valuesChanged(built)
		f.left = h.trainer.leaves(built)
		e.noteGradients(&f.left)
	}
	for _, id := range h.trainer.ids {
		e.params[id].fused = true
	}
	return e.committed(h.trainer)
}

// handOver gives a batch to the workers: its update is a part of its script, or of a step of the group.
func (h *Handle) handOver(r *script.Request) *job {
	e := h.e
	if e.ranks == nil {
		apply := h.trainer.apply()
		r.Update = &apply
		return e.hand(r, nil)
	}
	e.ranks.told = true
	s := e.newStep(h.trainer)
	s.batch = h.number + 1
	return e.hand(r, s)
}

// consume notes that a batch has used the graph up, but for the values of nodes evaluated before it and of those to keep.
func (g *Graph) consume(r *script.Request, kept int, built *script.Built) {
	g.spent, g.kept, g.gradient = true, kept, 0
	g.values, g.failures, g.keep = nil, g.e.failures, g.keep[:0]
	if len(r.Keep) > 0 {
		for _, n := range r.Keep {
			g.values = append(g.values, keptValue{n, g.state.Value[n]})
		}
		g.end = r.Base + built.Values
	}
}

// appliesAll reports whether the batch leaves no gradient pending and finds none: then what it
// changes is known before its script is.
func (h *Handle) appliesAll() bool {
	for id := range h.e.params {
		p := &h.e.params[id]
		if p.Size == 0 {
			continue
		}
		if p.pends() || !h.trainer.updates(uint32(id)) {
			return false
		}
	}
	return true
}

// at is where in losses that of a batch is.
func (h *Handle) at(f *flight) uint64 {
	return (h.count - (h.number - f.number) - 1) % uint64(len(h.losses))
}

// landed takes the result of a batch.
func (h *Handle) landed(f *flight, loss float32, clipped bool) {
	h.losses[h.at(f)] = loss
	if clipped {
		h.clips++
	}
}

// forget: no batch counts any more, for one has failed. A checkpoint holds no loss of these, either.
func (h *Handle) forget() {
	h.count = 0
	clear(h.losses[:])
}

// SyncLatestLoss waits for all batches and returns the last one's loss.
func (h *Handle) SyncLatestLoss() (float32, error) {
	h.e.enter()
	defer h.e.mu.Unlock()
	return h.latestLoss()
}

func (h *Handle) latestLoss() (float32, error) {
	if err := h.e.settle(0); err != nil {
		return 0, err
	}
	if h.count == 0 {
		return float32(math.NaN()), wrong(ErrState, "there is no latest loss: fb was not called yet, or not since a batch failed")
	}
	return h.losses[(h.count-1)%uint64(len(h.losses))], nil
}

// Clips counts the batches whose gradients were scaled down.
func (h *Handle) Clips() (uint64, error) {
	h.e.enter()
	defer h.e.mu.Unlock()
	err := h.e.settle(0)
	return h.clips, err
}

// PlanReport says where the engine's matrices live.
func (h *Handle) PlanReport() (string, error) {
	h.e.enter()
	defer h.e.mu.Unlock()
	if h.e.closed {
		return "", h.e.dead
	}
	return h.e.planReport(), nil
}
