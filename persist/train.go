package persist

// Training: trainers, handles and the paper's one call, fb.

import (
	"math"
	"slices"

	"libvpps/bridge"
	"libvpps/persist/script"
)

// TrainerOptions are DyNet's SimpleSGDTrainer's.
type TrainerOptions struct {
	LearningRate float32
	Clipping     bool
	Threshold    float32
	Sparse       bool
	Collection   uint32
}

// Trainer is an update rule for some parameters.
type Trainer struct {
	e       *Engine
	options TrainerOptions
	ids     []uint32
	fbSince bool // fb has updated since the last backward
}

// NewTrainer makes a trainer.
func (e *Engine) NewTrainer(o TrainerOptions, ids []uint32) (*Trainer, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := &Trainer{e: e}
	if err := t.set(o); err != nil {
		return nil, err
	}
	return t, t.add(ids)
}

func (t *Trainer) set(o TrainerOptions) error {
	if int(o.Collection) >= len(t.e.collections) {
		return wrong(ErrArgument, "there is no collection %d", o.Collection)
	}
	t.options = o
	return nil
}

func (t *Trainer) add(ids []uint32) error {
	for _, id := range ids {
		if _, err := t.e.parameter(id); err != nil {
			return err
		}
	}
	t.ids = append(t.ids, ids...)
	return nil
}

// Set changes the options from the next update on.
func (t *Trainer) Set(o TrainerOptions) error {
	t.e.mu.Lock()
	defer t.e.mu.Unlock()
	return t.set(o)
}

// Add adds parameters.
func (t *Trainer) Add(ids []uint32) error {
	t.e.mu.Lock()
	defer t.e.mu.Unlock()
	return t.add(ids)
}

// apply is what a script's end does for this trainer.
func (t *Trainer) apply() *script.Apply {
	o := t.options
	factor := t.e.collections[o.Collection].Factor
	a := &script.Apply{Params: t.ids, Rate: o.LearningRate / factor, Threshold: inf, All: t.ids}
	if o.Clipping {
		a.Threshold = o.Threshold
	}
	if !o.Sparse {
		t.densify()
	}
	return a
}

// densify gives tables a gradient as a whole: without sparse updates every row counts. For SGD
// this changes nothing but the time it takes, so it is left out.
func (t *Trainer) densify() {}

// Update applies the pending gradients (DyNet's Trainer::update).
func (t *Trainer) Update() (clipped bool, err error) {
	e := t.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.ready(); err != nil {
		return false, err
	}
	slot := e.resultSlot()
	r := script.Request{Update: t.apply(), Base: e.top(), Result: slot}
	if _, err := e.run(&r); err != nil {
		return false, err
	}
	result, err := e.result(slot)
	if err != nil {
		return false, err
	}
	if e.exec.Failed(true) != 0 || result[3] == 0 {
		return false, wrong(ErrNumeric, "the norm of the gradients is not finite (%g): parameters are unchanged; look for NaN or infinity in the loss", result[1])
	}
	if err := e.committed(t); err != nil {
		return false, err
	}
	return result[4] != 0, e.pullAll()
}

// resultSlot is where the next launch reports.
func (e *Engine) resultSlot() uint32 { return (e.batch + 1) % resultSlots * resultSlot }

// result waits for the launches and reads a slot: loss, norm, scale, finite, clipped.
func (e *Engine) result(slot uint32) (r [5]float32, err error) {
	if err := e.exec.Wait(); err != nil {
		return r, e.fail(err)
	}
	return r, e.exec.Read(script.SegResult, uint64(slot), r[:])
}

// committed records an update: gradients are gone, parameters changed, weight decay advances.
func (e *Engine) committed(t *Trainer) error {
	e.updates++
	for _, id := range t.ids {
		if p := &e.params[id]; p.Updated {
			p.Pending, p.Rows = false, nil
			p.version++
		}
	}
	c := &e.collections[t.options.Collection]
	if c.Lambda > 0 {
		c.Factor -= c.Factor * c.Lambda
		if c.Factor < 0.25 {
			return e.rescale(t, c)
		}
	}
	return nil
}

// rescale multiplies the factor into the updated parameters once it has become small.
func (e *Engine) rescale(t *Trainer, c *Collection) error {
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
	losses  [3]float32 // of the last batches, by number
	slots   [3]uint32
	count   uint64 // fb calls so far
	read    uint64 // of these, the ones whose result was read
	clips   uint64
	batches [3]uint32
}

// NewHandle plans the parameters and compiles the kernel. A nil trainer is SimpleSGD at its
// defaults over ids.
func (e *Engine) NewHandle(ids []uint32, t *Trainer) (*Handle, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dead != nil {
		return nil, e.dead
	}
	if t == nil {
		t = &Trainer{e: e, options: TrainerOptions{LearningRate: 0.1, Clipping: true, Threshold: 5, Sparse: true}}
		if err := t.add(ids); err != nil {
			return nil, err
		}
		if len(ids) > 0 {
			t.options.Collection = e.params[ids[0]].collection
		}
	}
	start := now()
	if e.unplanned {
		if err := e.exec.Wait(); err != nil {
			return nil, e.fail(err)
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

// FB runs forward, backward and update of node in one launch; it returns the loss of the call
// before the last, 0 for the first two.
func (h *Handle) FB(g *Graph, w *bridge.Words, node uint32) (stale float32, err error) {
	e := h.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := h.collect(2); err != nil {
		return 0, err
	}
	if err := g.begin(w, node); err != nil {
		return 0, err
	}
	if d := g.wire.DimOf(node); d.Size() != 1 {
		return 0, wrong(ErrArgument, "node %d: fb needs a scalar loss, its dim is %v", node, *d)
	}
	if g.spent || g.state.Done > 0 && g.updates != e.updates {
		g.restart()
	}
	slot := e.resultSlot()
	g.end = g.valueEnd
	kept := g.state.Done
	r := script.Request{Graph: g.ir(), State: &g.state, Node: g.at(node), Forward: true, Needed: true, Backward: true,
		Update: h.trainer.apply(), Base: e.top(), Result: slot, GraphID: g.id, ForwardCount: g.forwards}
	built, err := e.run(&r)
	if err != nil {
		return 0, err
	}
	e.discardUnapplied(built, h.trainer)
	if err := e.committed(h.trainer); err != nil {
		return 0, err
	}
	e.stats.Batches++
	h.slots[h.count%3], h.batches[h.count%3] = slot, e.batch
	h.count++
	g.spent, g.kept, g.gradient = true, kept, 0
	if h.count > 2 {
		stale = h.losses[(h.count-3)%3]
	}
	return stale, e.pullAll()
}

// discardUnapplied keeps gradients that the trainer does not apply as pending.
func (e *Engine) discardUnapplied(built *script.Built, t *Trainer) {
	keep := script.Built{}
	for _, id := range built.Formed {
		if !e.params[id].Updated || !slices.Contains(t.ids, id) {
			keep.Formed = append(keep.Formed, id)
		}
	}
	for _, r := range built.Touched {
		if !e.params[r.Param].Updated || !slices.Contains(t.ids, r.Param) {
			keep.Touched = append(keep.Touched, r)
		}
	}
	e.noteGradients(&keep)
}

// collect reads results until at most behind batches are unread.
func (h *Handle) collect(behind uint64) error {
	for h.read+behind < h.count+1 && h.read < h.count {
		k := h.read % 3
		r, err := h.e.result(h.slots[k])
		if err != nil {
			return err
		}
		batch := h.batches[k]
		h.read++
		if failed := h.e.exec.Failed(true); failed != 0 || r[3] == 0 {
			h.read = h.count
			return wrong(ErrNumeric, "batch %d: the norm of the gradients is not finite (loss %g): its update and those behind it were not applied; look for NaN or infinity in the loss", batch, r[0])
		}
		h.losses[k] = r[0]
		if r[4] != 0 {
			h.clips++
		}
	}
	return nil
}

// SyncLatestLoss waits for all batches and returns the last one's loss.
func (h *Handle) SyncLatestLoss() (float32, error) {
	h.e.mu.Lock()
	defer h.e.mu.Unlock()
	if err := h.collect(0); err != nil {
		return 0, err
	}
	if h.count == 0 {
		return float32(math.NaN()), wrong(ErrState, "there is no latest loss: fb was not called yet")
	}
	return h.losses[(h.count-1)%3], nil
}

// Clips counts the batches whose gradients were scaled down.
func (h *Handle) Clips() (uint64, error) {
	h.e.mu.Lock()
	defer h.e.mu.Unlock()
	return h.clips, h.collect(0)
}

// PlanReport says where the engine's matrices live.
func (h *Handle) PlanReport() string { return h.e.PlanReport() }
