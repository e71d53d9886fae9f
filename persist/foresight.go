package persist

import (
	"fmt"
	"slices"

	"libvpps/persist/executor"
	"libvpps/persist/finish"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/script"
	"libvpps/persist/verify"
)

// Foresight. A program that trains by DyNet's three calls makes the same ones each step: forward of a loss, backward from
// it, update. So the evaluation of a loss, while the device runs forward, also writes a second script, which has backward
// and update. Backward only notes that it was called, and update launches the second script. Until then everything is as it
// is after forward alone. A call that could tell the difference has backward done first, by a script of its own.

// foresight is what is foreseen of the program's next calls.
type foresight struct {
	step    *foreseen // under way; nil: none
	memory  foreseen  // of step
	trainer *Trainer  // of the latest update, nil: there was none since the start or a checkpoint
	wait    int       // the number of next evaluations at which nothing is foreseen
	waited  int       // that number when it was last set
	usual   usualStep // one that was not foreseen
}

// usualStep is how far the program's latest step is like those that are foreseen, but was not.
type usualStep struct {
	g           *Graph
	node, batch uint32 // the loss, and the latest launch of the step
	backward    bool   // was called
}

// foreseen is a step of which the device has run forward.
type foreseen struct {
	g        *Graph
	node     uint32 // the loss
	batch    uint32 // that has run forward
	slot     uint32 // where it reports in segment result
	plan     *plan.Plan
	trainer  *Trainer
	apply    finish.Apply
	second   script.Built  // of backward and update
	left     script.Built  // gradients that no update applies
	backward bool          // was called
	held     executor.Host // not nil: update was called, too, and is held (hold.go)
	orphan   bool          // nothing but this step needs the graph
}

// foresee makes the evaluation of a graph's loss a whole step, if one is to be expected.
func (e *Engine) foresee(r *script.Request, g *Graph, node uint32) bool {
	f := &e.foresight
	if f.step != nil {
		e.mistaken()
	}
	t := f.trainer
	if t == nil && len(e.trainers) == 1 {
		t = e.trainers[0]
	}
	if t == nil || t.closed || g.state.Done > 0 || g.wire.DimOf(node).Size() != 1 || e.ranks != nil || r.Copy || e.exposed() || !e.nothingPends(t) {
		return false
	}
	if f.wait > 0 {
		f.wait--
		f.usual = usualStep{g, node, e.batch + 1, false}
		return false
	}
	f.step = &f.memory
	*f.step = foreseen{g: g, node: node, batch: e.batch + 1, slot: e.resultSlot(), plan: e.plan, trainer: t, apply: t.apply()}
	r.Backward, r.Split, r.Update, r.Result = true, true, &f.step.apply, f.step.slot
	r.Space = e.space()
	return true
}

// space is the device's memory for the script of the next batch, nil: it has none.
func (e *Engine) space() []uint32 {
	if d := e.exec.Device(); d != nil {
		return d.Space(e.batch + 1)
	}
	return nil
}

// unforesee makes a request that could not be launched that of forward alone.
func (e *Engine) unforesee(r *script.Request) {
	e.mistaken()
	r.Backward, r.Split, r.Update, r.Result, r.Space = false, false, nil, script.NoOffset, nil
}

// prepare writes the second script of a foreseen step, whose first one runs, and makes room for it. Where that is not
// possible, the usual scripts may be.
func (e *Engine) prepare(first isa.Script, r *script.Request) error {
	s, t := e.foresight.step, now()
	built, err := second(&e.builder, e.space())
	e.span(programTrack, "script", e.batch+1, t)
	e.stats.ScheduleNS += now() - t
	if err == nil && e.verify {
		if err := verify.VerifySecond(&first, &built.Script, e.plan); err != nil {
			return fmt.Errorf("internal: the script is not sound: %w", err)
		}
	}
	if err == nil {
		err = e.grow(isa.SegAct, uint64(r.Base)+uint64(built.Used), "activations")
	}
	if d := e.exec.Device(); d != nil && err == nil {
		err = d.Load(&built.Script, e.batch+1)
	}
	if err != nil && harmless(err) == nil {
		return e.broke(err)
	}
	if err != nil {
		e.mistaken()
		return nil
	}
	s.second, s.left = *built, s.trainer.leaves(built)
	s.g.end = r.Base + built.Used
	return nil
}

// noteBackward notes the backward of a step that was not foreseen, noteUpdate its update: what is usual is foreseen again.
func (e *Engine) noteBackward(g *Graph, node uint32) {
	if u := &e.foresight.usual; u.g == g && u.node == node && u.batch == e.batch {
		u.batch, u.backward = e.batch+1, true
	}
}

func (e *Engine) noteUpdate() {
	if u := &e.foresight.usual; u.backward && u.batch == e.batch {
		e.foresight.wait = 0
	}
	e.foresight.usual = usualStep{}
}

// mistaken notes that what was foreseen has not come. Then less is foreseen for a while.
func (e *Engine) mistaken() {
	f := &e.foresight
	f.step = nil
	f.waited = min(2*f.waited+1, 127)
	f.wait = f.waited
}

// nothingPends reports whether no gradient is pending that the trainer's next update applies.
func (e *Engine) nothingPends(t *Trainer) bool {
	for id := range e.params {
		p := &e.params[id]
		if p.shared || p.pends() && t.updates(uint32(id)) {
			return false
		}
	}
	return true
}

// gradientsChange gives up a step whose script counts on other gradients than there will be.
func (e *Engine) gradientsChange() {
	if f := &e.foresight; f.step != nil && !f.step.backward {
		e.mistaken()
	}
}

// awaits reports whether a backward is the one that was foreseen.
func (e *Engine) awaits(g *Graph, node uint32) bool {
	s := e.foresight.step
	return s != nil && !s.backward && s.g == g && s.node == node && s.batch == e.batch && s.plan == e.plan && !g.stale
}

// awaitForward waits for a forward: of a foreseen step until the loss is known, for other values may take longer.
func (e *Engine) awaitForward() error {
	s, d := e.foresight.step, e.exec.Device()
	if s == nil || d == nil {
		return e.wait()
	}
	began := now()
	_, known, err := d.Foretell(uint64(s.slot), s.batch)
	e.waited(began, "wait for a loss")
	if err != nil {
		return e.fail(err)
	}
	if !known {
		return e.wait()
	}
	return nil
}

// lossOf is where in segment result a node's value lies that is the loss of the step under way.
func (f *foresight) lossOf(g *Graph, node uint32) (slot uint32, known bool) {
	s := f.step
	if s == nil || s.g != g || s.node != node || s.batch != g.e.batch {
		return 0, false
	}
	return s.slot, true
}

// expects reports whether an update is the one that was foreseen.
func (e *Engine) expects(t *Trainer) bool {
	s := e.foresight.step
	if s == nil || !s.backward || s.trainer != t || s.batch != e.batch {
		return false
	}
	a := t.apply()
	return slices.Equal(a.Params, s.apply.Params) && slices.Equal(a.State, s.apply.State) && a.Rule == s.apply.Rule &&
		a.Rate == s.apply.Rate && a.P == s.apply.P && a.Q == s.apply.Q && a.R == s.apply.R &&
		a.Dense == s.apply.Dense && a.Threshold == s.apply.Threshold
}

// resume runs the second script of the foreseen step. If its gradients are not finite they are formed once more, to be
// pending as they are after backward.
func (e *Engine) resume() (result [5]float32, finite bool, err error) {
	s := e.foresight.step
	hold := e.holds(s)
	if hold == nil {
		err = e.giveCopies()
	}
	if err != nil {
		return result, false, err
	}
	e.batch++
	if err := e.launchTo(hold, &s.second, e.batch, programTrack); err != nil {
		e.mistaken()
		return result, false, e.broke(err)
	}
	if result, err = e.result(s.slot, e.batch); err != nil {
		return result, false, err
	}
	if result[3] == 0 {
		if hold != nil {
			err = hold.Update() // of nothing
		}
		if err != nil {
			return result, false, e.broke(err)
		}
		e.exec.Failed(true)
		e.loseGradients(&s.left)
		return result, false, e.catchUp()
	}
	e.noteGradients(&s.left)
	e.foresight.waited = 0
	s.g.gradient, s.g.formed = int(s.node)+1, false
	if s.held = hold; hold == nil {
		e.foresight.step = nil
		s.leave()
	}
	return result, true, nil
}

// loseGradients forgets gradients that a failed batch has added to: no update applies them.
func (e *Engine) loseGradients(left *script.Built) {
	for _, id := range left.Formed {
		e.params[id].loseGradient()
	}
	for _, r := range left.Touched {
		e.params[r.Param].loseGradient()
	}
}

// catchUp has done what was only noted so far: a backward, or the end of an update.
func (e *Engine) catchUp() error {
	s := e.foresight.step
	if s == nil || !s.backward {
		return nil
	}
	if s.held != nil {
		return e.change()
	}
	e.mistaken()
	defer s.leave()
	return s.g.differentiate(s.node, false, false)
}

// adopt has the step keep its graph, which the program drops, until backward is done.
func (s *foreseen) adopt(g *Graph) {
	s.g, s.orphan = g, true
}

// leave drops a graph that only the step has kept.
func (s *foreseen) leave() {
	if e := s.g.e; s.orphan {
		e.forget(s.g)
		e.retire(s.g.recording)
	}
}

// keeps reports whether backward of a graph, or an update by it, is still to be done.
func (f *foresight) keeps(g *Graph) bool { return f.step != nil && f.step.backward && f.step.g == g }
