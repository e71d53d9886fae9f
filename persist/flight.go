package persist

import (
	"slices"

	"libvpps/jit/kernel"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/script"
)

// Batches in flight, of fb and of infer. An update is recorded when its batch is launched; a batch whose
// gradients turn out not to be finite has changed no parameter, and neither have those behind
// it, so what was recorded for them is taken back.

// flight is a batch whose result was not read yet, and what was known before its update.
type flight struct {
	handle     *Handle
	number     uint64 // of the handle's batches, from 1
	launch     uint32
	job        *job // that the worker launches; nil: it was launched at once
	plan       *plan.Plan
	nodes      int // of its graph
	evidence   evidence
	slot       uint32 // where it reports in segment result
	collection uint32
	factor     float32
	updates    uint64
	steps      uint64 // of the trainer
	params     []paramBefore
	left       script.Built // gradients that the batch added to without an update of them
	answer     *answer      // of infer, which changes nothing; nil: of fb
	request    script.Request
}

// paramBefore is what an update forgets of a parameter.
type paramBefore struct {
	id       uint32
	pending  bool
	fused    bool
	rows     []uint32
	version  uint64
	gradient []float32 // pending elements, in order, in C memory; nil: none, or not to be brought back
}

// newFlight is one that landed before, or a new one.
func (e *Engine) newFlight() *flight {
	n := len(e.landed) - 1
	if n < 0 {
		return &flight{}
	}
	f := e.landed[n]
	e.landed = e.landed[:n]
	return f
}

// depart notes, before a batch of fb is launched, what the batch may change.
func (e *Engine) depart(t *Trainer) (*flight, error) {
	f := e.newFlight()
	f.collection = t.options.Collection
	f.factor, f.updates = e.collections[f.collection].Factor, e.updates
	f.steps = t.steps
	f.params, f.left = f.params[:0], script.Built{}
	for id := range e.params {
		p := &e.params[id]
		b := paramBefore{id: uint32(id), pending: p.Pending, fused: p.fused, rows: p.Rows, version: p.version}
		applied := t.updates(uint32(id))
		if (applied || e.ranks != nil) && p.pends() {
			// Left by a backward: the batch adds to it and applies it. Of a rank's failed batch nothing at all is left.
			var err error
			b.rows = slices.Clone(b.rows)
			if b.gradient, err = e.pendingGradient(p); err != nil {
				e.land(f)
				return nil, err
			}
		}
		f.params = append(f.params, b)
	}
	return f, nil
}

// free forgets what the batch may have changed.
func (f *flight) free() {
	for i := range f.params {
		kernel.FreeFloats(f.params[i].gradient)
	}
	f.params = f.params[:0]
}

// pendingGradient copies what is pending of a parameter's gradient.
func (e *Engine) pendingGradient(p *parameter) ([]float32, error) {
	pending := p.pending()
	size := pending.floats(p)
	all := kernel.Floats(size)
	if all == nil {
		return nil, wrong(ErrMemory, "parameter %q: no memory for a copy of its pending gradient, %d bytes: call update before fb", p.name, 4*size)
	}
	if err := pending.transfer(p, all, e.download); err != nil {
		kernel.FreeFloats(all)
		return nil, err
	}
	return all, nil
}

// settle waits until at most behind batches are unread, and reports a batch that failed, once.
func (e *Engine) settle(behind int) error {
	if err := e.collect(behind); err != nil {
		return err
	}
	err := e.failure
	e.failure = nil
	return err
}

// collect reads results until at most behind batches are unread. That a batch failed is kept
// for settle to tell; errors are the device's.
func (e *Engine) collect(behind int) error {
	if e.dead != nil {
		return e.dead
	}
	if len(e.flights) > behind {
		defer e.waited(now(), "wait for a result")
	}
	for len(e.flights) > behind {
		f := e.flights[0]
		if f.job != nil {
			await(f.job.done, f.job.step != nil && manyProcessors(), f.job.patience())
			if f.job.err != nil {
				return e.grounded(f)
			}
		}
		if f.answer != nil {
			if err := e.readAnswer(f); err != nil {
				return err
			}
		} else {
			r, err := e.resultOf(f)
			if err != nil {
				return err
			}
			if r[3] == 0 { // not committed
				return e.notFinite(f, r)
			}
			f.handle.landed(f, r[0], r[4] != 0)
			e.measured(f)
		}
		e.flights = slices.Delete(e.flights, 0, 1)
		e.land(f)
	}
	return nil
}

// land ends a flight.
func (e *Engine) land(f *flight) {
	e.unpin(f.evidence.recording)
	f.evidence.recording, f.answer, f.request = nil, nil, script.Request{}
	f.free()
	e.landed = append(e.landed, f)
}

// lose notes that a recording's nodes from one on are gone.
func (e *Engine) lose(r *recording, node uint32) {
	for _, f := range e.flights {
		if f.evidence.recording == r && f.evidence.node >= node {
			e.unpin(r)
			f.evidence.recording = nil
		}
	}
}

// notFinite handles the oldest batch, whose loss or norm is not finite.
func (e *Engine) notFinite(f *flight, r [5]float32) error {
	evidence := f.evidence
	evidence.recording.pin()
	defer e.unpin(evidence.recording)
	if err := e.takeBack(); err != nil {
		return err
	}
	e.failure = wrong(ErrNumeric, "batch %d: %s; its update and those behind it were not applied, parameters are as before it", f.number, e.explain(&evidence, r, f.handle.trainer))
	return nil
}

// grounded handles a batch that the worker could not launch: like one whose gradients are not
// finite if the device works on, else it is lost.
func (e *Engine) grounded(f *flight) error {
	kind := harmless(f.job.err)
	if kind == nil {
		return e.fail(f.job.err)
	}
	e.drain()
	e.batch++ // by the gap the worker knows that what comes next is not behind the failed batch
	if f.job.step != nil && !finite(f.job.result[0]) {
		return e.notFinite(f, f.job.result)
	}
	e.failure = wrong(kind, "batch %d: %v; its update and those behind it were not applied", f.number, f.job.err)
	return e.takeBack()
}

// takeBack makes the bookkeeping that of before the oldest batch in flight, which failed, and
// forgets all batches of fb. A gradient that parameters only collect, because no trainer of these
// batches updates them, is lost where a failed batch has added to it.
func (e *Engine) takeBack() error {
	e.drain()
	if err := e.wait(); err != nil { // those behind it are skipped
		return err
	}
	e.exec.Failed(true)
	e.failures++
	for k := len(e.flights) - 1; k >= 0; k-- {
		f := e.flights[k]
		if f.answer != nil {
			continue
		}
		f.handle.forget()
		e.updates = f.updates
		f.handle.trainer.steps = f.steps
		e.collections[f.collection].Factor = f.factor
	}
	oldest := e.flights[0]
	for i := range oldest.params {
		b := &oldest.params[i]
		if err := e.bringBack(&e.params[b.id], b); err != nil {
			return err
		}
	}
	for _, f := range e.flights {
		if f.answer == nil {
			e.loseGradients(&f.left)
		}
	}
	all := e.flights
	e.flights = nil
	for _, f := range all {
		if f.answer != nil && e.dead == nil {
			e.askAgain(f)
		}
		e.land(f)
	}
	e.flights = all[:0]
	if e.dead != nil {
		return e.dead
	}
	return e.pullAll()
}

// undo brings back the gradients that a batch has added to which could not be launched as a whole.
func (e *Engine) undo(f *flight, why error) error {
	if e.dead != nil {
		return why
	}
	for i := range f.params {
		b := &f.params[i]
		if err := e.bringBack(&e.params[b.id], b); err != nil {
			return err
		}
	}
	return why
}

func (e *Engine) bringBack(p *parameter, b *paramBefore) error {
	p.host[Values].whole, p.host[Gradient].whole = true, true
	p.version, p.fused, p.Pending, p.Rows = b.version, b.fused, b.pending, b.rows
	if b.gradient == nil {
		return nil
	}
	return p.pending().transfer(p, b.gradient, e.upload)
}

// resultOf is what a batch has reported.
func (e *Engine) resultOf(f *flight) ([5]float32, error) {
	if f.job != nil && f.job.step != nil {
		return f.job.result, nil
	}
	return e.result(f.slot, f.launch)
}

// result waits for the launches and reads a slot: loss, norm, scale, finite, clipped.
func (e *Engine) result(slot, batch uint32) (r [5]float32, err error) {
	if err := e.exec.WaitBatch(batch); err != nil {
		return r, e.fail(err)
	}
	few := e.few[:len(r)]
	err = e.download(isa.SegResult, uint64(slot), few)
	copy(r[:], few)
	return r, err
}
