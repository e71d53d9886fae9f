package persist

import (
	"math"
	"slices"

	"libvpps/persist/script"
)

// Steps of the group: what FB and Update do where several ranks train, and what ranks do that have no batch.

// readyTogether makes the ranks equal before a batch of FB, if this one has set something, or may have.
func (e *Engine) readyTogether() error {
	e.ranks.told = false
	if !e.ranks.changed && !e.unplanned && !e.exposed() {
		return nil
	}
	e.drain()
	_, err := e.synchronise()
	return err
}

// notTrained tells the others of an error of FB, unless they know.
func (e *Engine) notTrained(err error) error {
	if e.ranks == nil || e.ranks.told {
		return err
	}
	e.drain()
	return e.failed(err)
}

// stepTogether trains a batch whose changes are known only when its script is: no worker takes it.
func (h *Handle) stepTogether(g *Graph, node uint32, r *script.Request) error {
	e := h.e
	e.drain()
	if err := e.settle(0); err != nil {
		return err
	}
	f, err := e.depart(h.trainer)
	if err != nil {
		return err
	}
	defer e.land(f)
	result, err := h.formGradients(g, r, f)
	if err != nil {
		return e.undo(f, err)
	}
	if !finite(result[0]) {
		return h.badLoss(g, node, f, result)
	}
	e.ranks.told = true
	clipped, err := e.step(h.trainer)
	if err != nil {
		h.forget()
		e.failures++
		return e.undo(f, err)
	}
	h.landed(f, result[0], clipped)
	return nil
}

// badLoss is the error of a batch whose loss is not finite.
func (h *Handle) badLoss(g *Graph, node uint32, f *flight, result [5]float32) error {
	h.forget()
	h.e.failures++
	if err := h.e.undo(f, nil); err != nil {
		return err
	}
	evidence := g.evidence(node)
	return wrong(ErrNumeric, "batch %d: %s; its update was not applied, parameters are as before it", f.number, h.e.explain(&evidence, result, h.trainer))
}

// formGradients runs forward and backward of a batch. The loss is the first of its results.
func (h *Handle) formGradients(g *Graph, r *script.Request, f *flight) (result [5]float32, err error) {
	e := h.e
	kept := g.state.Done
	g.before.overwritten = kept == 0 && g.before.done > 0
	built, err := e.run(r)
	if err != nil {
		return result, err
	}
	h.number++
	h.count++
	e.stats.Batches++
	f.handle, f.number, f.launch = h, h.number, e.batch
	g.consume(r, kept, built)
	e.noteGradients(built)
	for _, id := range h.trainer.ids {
		e.params[id].fused = true
	}
	return e.result(r.Result, f.launch)
}

// step sums and applies the gradients that are pending.
func (e *Engine) step(t *Trainer) (clipped bool, err error) {
	s := e.newStep(t)
	s.notice.gradients = t.gradientsOf()
	all, err := e.ranks.tell(&s.notice)
	if err != nil {
		return false, err
	}
	return e.applyTogether(s, all, false)
}

// applyTogether is the rest of a step, on the program's thread. A rank that follows has no batch and keeps its own
// gradients. If it fails, parameters and gradients are as before it.
func (e *Engine) applyTogether(s *step, all []notice, follows bool) (clipped bool, err error) {
	e.batch++
	var result [5]float32
	x, err := s.prepare(&e.builder, all, e.batch)
	if err == nil {
		result, err = s.apply(x, e.batch)
		e.exec.Failed(true)
	}
	if err != nil {
		return false, e.broke(err)
	}
	for i := range x.params {
		y := &x.params[i]
		y.setPending(y.all)
	}
	if err := e.committed(s.trainer); err != nil {
		return false, e.lostStep(err)
	}
	if err := x.back(follows); err != nil {
		return false, e.lostStep(e.broke(err))
	}
	for i := range x.params {
		if y := &x.params[i]; follows || !y.Updated {
			y.setPending(y.own)
		}
	}
	return result[4] != 0, nil
}

// sameTrainer reports ranks that update by different trainers, or by different options of one.
func sameTrainer(all []notice) error {
	first := -1
	for rank := range all {
		n := &all[rank]
		switch {
		case n.call == joining:
		case first < 0:
			first = rank
		case n.trainer != all[first].trainer:
			return wrong(ErrRank, "rank %d updates by trainer %d, rank %d by trainer %d, as they were made: all ranks update by the same", first, all[first].trainer, rank, n.trainer)
		case n.options != all[first].options:
			return wrong(ErrRank, "trainer %d has options %+v on rank %d and %+v on rank %d: set the same on all ranks", n.trainer, all[first].options, first, n.options, rank)
		}
	}
	return nil
}

// share is how often this rank's gradients count.
func (r *ranks) share(all []notice) (float32, error) {
	mine := &all[r.comm.Rank()]
	total := 0.0
	for rank := range all { // those that follow have none
		total += float64(all[rank].number)
	}
	switch {
	case r.average && !(total > 0):
		return 0, wrong(ErrArgument, "the ranks' batches have no examples: gradients are averaged over these, so give their count")
	case mine.call == joining:
		return 0, nil
	case !r.average:
		return 1, nil
	}
	return float32(float64(mine.number) / total), nil
}

// updateTogether is Update of a rank.
func (t *Trainer) updateTogether() (clipped bool, err error) {
	e := t.e
	if _, err := e.synchronise(); err != nil {
		return false, err
	}
	if err = e.ready(0); err == nil {
		err = t.notFused()
	}
	if err != nil {
		return false, e.failed(err)
	}
	if clipped, err = e.step(t); err != nil {
		return false, err
	}
	return clipped, e.pullAll()
}

// Join is what a rank calls that has no batch left: it takes part in the steps of the others with nothing, until all
// have joined. Batches that fail on other ranks are theirs to tell. Alone it returns at once.
func (e *Engine) Join() error {
	e.enter()
	defer e.mu.Unlock()
	if e.dead != nil {
		return e.failed(e.dead)
	}
	if e.ranks == nil {
		return nil
	}
	failed := e.settle(0) // a batch that has failed is told at the end: the others wait
	if e.dead != nil {
		return e.failed(failed)
	}
	if _, err := e.synchronise(); err != nil {
		return err
	}
	for {
		all, err := e.ranks.tell(&notice{call: joining})
		if err == nil {
			first := slices.IndexFunc(all, func(n notice) bool { return n.call != joining })
			if first < 0 {
				return failed
			}
			err = e.follow(all, first)
		}
		if err != nil && !e.goesOn(all, err) {
			return err
		}
	}
}

// goesOn reports whether a rank that has joined waits for what comes after an error.
func (e *Engine) goesOn(all []notice, err error) bool {
	if isNumeric(err) {
		return true
	}
	return slices.ContainsFunc(all, func(n notice) bool { return n.failed != noFailure })
}

// follow does what the others do, the first of whom has given a notice.
func (e *Engine) follow(all []notice, first int) error {
	n := &all[first]
	switch n.call {
	case synchronising:
		return e.becomeEqual()
	case summingLoss:
		return nil
	}
	if int(n.trainer) >= len(e.trainers) {
		return e.lostStep(wrong(ErrRank, "rank %d updates by trainer %d, here are %d", first, n.trainer, len(e.trainers)))
	}
	t := e.trainers[n.trainer]
	own := t.options
	defer func() { t.options = own }()
	t.options = n.options
	if err := e.ready(0); err != nil {
		return e.lostStep(err)
	}
	if _, err := e.applyTogether(e.newStep(t), all, true); err != nil {
		return err
	}
	return e.pullAll()
}

// GlobalLoss is the sum of the ranks' latest losses. All ranks call it; those that have joined, or have trained no batch
// yet, add nothing. Alone it is SyncLatestLoss.
func (h *Handle) GlobalLoss() (float32, error) {
	e := h.e
	e.enter()
	defer e.mu.Unlock()
	if e.ranks == nil {
		return h.latestLoss()
	}
	if _, err := e.synchronise(); err != nil {
		return 0, err
	}
	n := notice{call: summingLoss, there: h.count > 0}
	if n.there {
		n.number = h.losses[(h.count-1)%uint64(len(h.losses))]
	}
	all, err := e.ranks.tell(&n)
	if err != nil {
		return 0, err
	}
	sum, there := 0.0, false
	for rank := range all {
		if all[rank].there {
			sum, there = sum+float64(all[rank].number), true
		}
	}
	if !there {
		return float32(math.NaN()), wrong(ErrState, "there is no loss on any rank: fb was not called yet, or not since a batch failed")
	}
	return float32(sum), nil
}
