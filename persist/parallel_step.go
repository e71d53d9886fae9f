package persist

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"

	"libvpps/persist/isa"
	"libvpps/persist/script"
	"libvpps/persist/verify"
)

// A step of the group as one rank makes it. The rank tells the others which gradients it has, all are summed, then norm and
// update follow. A worker makes the step of a batch of fb, and the program goes on meanwhile. Other calls make it themselves.
// A step leaves alone what the engine notes of its parameters: the program's thread changes that.

// step is what a rank brings to it.
type step struct {
	e       *Engine
	trainer *Trainer
	ids     []uint32 // the trainer's parameters
	batch   uint64   // of the handle's, 0: none
	track   int      // of the timeline
	notice  notice
	update  script.Request // norm and update
	built   *script.Built  // its script
	bad     string         // why the batch must not count, "": it may

	launched chan struct{} // closed when forward and backward are
	known    chan struct{} // closed when the loss is
	loss     float32       // NaN: there will be none, or it is that

	next    atomic.Pointer[notice] // of the step behind it, once its script is written
	behind  []notice               // all ranks' of that, which came with this one's sums; nil: they are yet to be exchanged
	notices []notice               // all ranks' of this one, which came with the sums before; nil as there
}

// newStep is a step by a trainer, of gradients that the notice has yet to name. The engine's next launch is its own.
func (e *Engine) newStep(t *Trainer) *step {
	apply := t.apply()
	s := &step{e: e, trainer: t, ids: t.ids, track: programTrack, launched: make(chan struct{}), known: make(chan struct{}),
		notice: notice{call: stepping, number: e.ranks.count, trainer: uint32(slices.Index(e.trainers, t)), options: t.options},
		update: script.Request{Update: &apply, Base: e.top(), Result: e.resultSlot(), Plan: e.plan, Seed: e.seed, Tensors: e.verify || e.check, Work: e.costs},
	}
	s.update.Params = slices.Clone(e.paramViews())
	return s
}

// foretell tells the loss to the program, which may wait for it. The first counts.
func (s *step) foretell(loss float32) {
	if !over(s.known) {
		s.loss = loss
		close(s.known)
	}
	if !over(s.launched) {
		close(s.launched)
	}
}

// foretold waits for the loss, on the program's thread. The device tells it before the launch is over. Later the worker does,
// and the device uses the place for something else.
func (s *step) foretold(slot uint64, launch uint32) float32 {
	await(s.launched, manyProcessors(), stepPatience)
	if d := s.e.exec.Device(); d != nil && !over(s.known) {
		loss, there, err := d.Foretell(slot, launch)
		if there && err == nil && !over(s.known) {
			return loss
		}
	}
	await(s.known, manyProcessors(), stepPatience)
	return s.loss
}

// run makes the step of a batch whose script is written, or could not be. It runs on a worker. The ranks tell each other which
// gradients they will have before the device is busy with them: where the devices are connected it cannot do both. While it
// is busy, the script of the update is written.
func (s *step) run(builder *script.Builder, built *script.Built, r *script.Request, launch uint32, err error) (result [5]float32, _ error) {
	e := s.e
	if err == nil {
		err = e.makeRoom(built, r)
	}
	all := s.notices
	if all == nil {
		if err != nil {
			s.fail(err)
			return result, err
		}
		if all, err = s.exchangeNotices(built, launch); err != nil {
			return result, err
		}
	}
	// From here on the others count on this rank: what is bad makes their sums NaN, too.
	failed := err
	if failed == nil {
		if failed = e.launch(built, launch, s.track); failed == nil {
			close(s.launched)
		}
	}
	if failed != nil && harmless(failed) == nil {
		return result, e.lostStep(failed)
	}
	x, err := s.prepare(builder, all, launch)
	if err != nil {
		return result, err
	}
	if failed == nil {
		t := now()
		if result, err = s.await(launch); err != nil {
			return result, e.lostStep(err)
		}
		e.span(s.track, "wait for gradients", launch, t)
	}
	loss := result[0]
	s.foretell(loss)
	switch {
	case failed != nil:
		s.bad = failed.Error()
	case !finite(loss):
		s.bad = fmt.Sprintf("batch %d: its loss is not finite (%g)", s.batch, loss)
	}
	if result, err = s.apply(x, launch); err == nil {
		if err = x.back(false); err != nil {
			err = e.lostStep(err)
		}
	}
	result[0] = loss
	return result, cmp.Or(failed, err)
}

// exchangeNotices tells the others which gradients this rank will have.
func (s *step) exchangeNotices(built *script.Built, launch uint32) ([]notice, error) {
	t := now()
	defer func() { s.e.span(s.track, "exchange notices", launch, t) }()
	s.notice.gradients = s.formed(built)
	return s.e.ranks.tell(&s.notice)
}

// fail tells the others why this rank cannot make the step. A rank whose device is gone ends the group.
func (s *step) fail(err error) {
	if harmless(err) == nil {
		s.e.ranks.comm.Abort(err)
		return
	}
	s.e.tellFailure(err)
}

// formed lists what a script has formed of the gradients of parameters that had none before.
func (s *step) formed(built *script.Built) []pendingRows {
	place := make([]int32, len(s.e.params)) // of a parameter in the list, from 1
	for k, id := range s.ids {
		place[id] = int32(k) + 1
	}
	list := make([]pendingRows, len(s.ids))
	for _, id := range built.Formed {
		if k := place[id]; k > 0 {
			list[k-1].whole = true
		}
	}
	for _, r := range built.Touched {
		if k := place[r.Param]; k > 0 && !list[k-1].whole {
			list[k-1].rows = append(list[k-1].rows, r.Row)
		}
	}
	for k := range list {
		slices.Sort(list[k].rows)
		list[k].rows = slices.Compact(list[k].rows)
	}
	return list
}

// prepare finds out what is summed, and writes the script of the update. Its errors are the same on all ranks, or end the
// group.
func (s *step) prepare(builder *script.Builder, all []notice, launch uint32) (*exchange, error) {
	e := s.e
	if err := sameTrainer(all); err != nil {
		return nil, err
	}
	x, err := s.unite(all)
	if err != nil {
		return nil, err
	}
	if x.share, err = e.ranks.share(all); err != nil {
		return nil, err
	}
	for i := range x.params {
		y := &x.params[i]
		v := &s.update.Params[y.id]
		v.Pending, v.Rows = y.all.whole, y.all.rows
	}
	t := now()
	if s.built, err = build(builder, &s.update); err != nil {
		return nil, e.lostStep(err)
	}
	e.span(s.track, "script", launch, t)
	e.stats.ScheduleNS += now() - t
	if e.verify {
		if err := verify.Verify(&s.built.Script, e.plan); err != nil {
			return nil, e.lostStep(fmt.Errorf("internal: the script is not sound: %w", err))
		}
	}
	if err := x.prepare(); err != nil {
		return nil, e.lostStep(err)
	}
	return x, nil
}

// apply sums the gradients of all ranks and updates. If it fails, values and gradients are as before it. Else the gradients
// are sums until the exchange's back.
func (s *step) apply(x *exchange, launch uint32) (result [5]float32, err error) {
	e := s.e
	t := now()
	if x.total == 0 { // no sum can tell of a loss that is not finite
		err = s.agree()
	} else if s.behind, err = x.sum(s.bad != "", s.next.Load()); err != nil {
		err = e.lostStep(err)
	}
	if err != nil {
		return result, err
	}
	e.span(s.track, "sum gradients", launch, t)
	if result, err = s.launch(launch); err != nil {
		if harmless(err) != nil {
			_ = x.back(true)
		}
		return result, e.lostStep(err)
	}
	if result[3] == 0 {
		if err := x.back(true); err != nil {
			return result, e.lostStep(err)
		}
		return result, s.blame(x, result[1])
	}
	return result, nil
}

// launch runs norm and update.
func (s *step) launch(launch uint32) (result [5]float32, err error) {
	if err := s.e.makeRoom(s.built, &s.update); err != nil {
		return result, err
	}
	if err := s.e.launch(s.built, launch, s.track); err != nil {
		return result, err
	}
	t := now()
	defer func() { s.e.span(s.track, "wait for the update", launch, t) }()
	return s.await(launch)
}

// await reads the result of a launch: loss, norm, scale, committed, clipped.
func (s *step) await(launch uint32) (result [5]float32, err error) {
	if err := s.e.exec.WaitBatch(launch); err != nil {
		return result, err
	}
	return result, s.e.exec.Read(isa.SegResult, uint64(s.update.Result), result[:])
}

// blame is the error of sums whose norm is not finite: all ranks find out whose gradients are not.
func (s *step) blame(x *exchange, norm float32) error {
	mine := s.bad
	for i := range x.params {
		if mine != "" {
			break
		}
		y := &x.params[i]
		if found := s.e.blameParameter(y.parameter, y.own); found != "" {
			mine = found + " is not finite"
		}
	}
	words, err := s.e.ranks.comm.AllGather(appendText(nil, mine))
	if err != nil {
		return wrong(ErrRank, "%v", err)
	}
	why := "each gradient of each rank is finite, but not the norm of their sums"
	for rank, w := range words {
		r := wordReader{rest: w}
		if found := r.text(); found != "" {
			why = fmt.Sprintf("rank %d: %s", rank, found)
			break
		}
	}
	return wrong(ErrNumeric, "the norm of the gradients of all ranks is not finite (%g): %s; no rank has applied the batch, parameters are as before it", norm, why)
}

// agree tells the others whether this rank's batch counts, where there are no gradients at all.
func (s *step) agree() error {
	if s.bad != "" {
		err := wrong(ErrNumeric, "%s", s.bad)
		s.e.tellFailure(err)
		return err
	}
	_, err := s.e.ranks.tell(&s.notice)
	return err
}
