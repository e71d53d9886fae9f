package persist

import (
	"math"
	"slices"

	"libvpps/persist/finish"
	"libvpps/persist/isa"
	"libvpps/persist/script"
)

// Trainers: update rules, their hyper-parameters and what they remember of parameters.

// Trainer is an update rule for some parameters.
type Trainer struct {
	e       *Engine
	options TrainerOptions
	ids     []uint32
	state   []uint32 // for each of ids its states in segment state, one after the other
	sizes   []uint64 // of these, in all; floats
	has     []bool   // by parameter: it is one of ids
	steps   uint64   // updates so far, at most maxUpdates when they are set
	closed  bool
}

// NewTrainer makes a trainer.
func (e *Engine) NewTrainer(o TrainerOptions, ids []uint32) (*Trainer, error) {
	e.enter()
	defer e.mu.Unlock()
	if e.dead != nil {
		return nil, e.dead
	}
	if o.Rule >= isa.Rules {
		return nil, wrong(ErrArgument, "update rule %d: there are %d", o.Rule, isa.Rules)
	}
	t := &Trainer{e: e, options: TrainerOptions{Rule: o.Rule}}
	if err := t.set(o); err != nil {
		return nil, err
	}
	if err := t.add(ids); err != nil {
		return nil, err
	}
	e.enlist(t)
	return t, nil
}

// enlist gives a new trainer its place among the engine's.
func (e *Engine) enlist(t *Trainer) {
	e.trainers = append(e.trainers, t)
	e.set()
}

func (t *Trainer) set(o TrainerOptions) error {
	if int(o.Collection) >= len(t.e.collections) {
		return wrong(ErrArgument, "there is no collection %d", o.Collection)
	}
	if o.Rule != t.options.Rule {
		return wrong(ErrArgument, "the trainer's update rule is %d, not %d: a trainer keeps its rule; make another trainer", t.options.Rule, o.Rule)
	}
	if err := o.check(); err != nil {
		return err
	}
	t.options = o
	return nil
}

func (t *Trainer) add(ids []uint32) error {
	if err := t.e.distinct(ids, t.ids); err != nil {
		return err
	}
	n := len(t.ids)
	for _, id := range ids {
		size := uint64(t.e.params[id].Size) * uint64(isa.RuleTable[t.options.Rule].States)
		at, err := t.e.newState(size)
		if err != nil {
			t.forget(n)
			return err
		}
		t.ids, t.state, t.sizes = append(t.ids, id), append(t.state, at), append(t.sizes, size)
		t.has = append(t.has, make([]bool, max(int(id)+1-len(t.has), 0))...)
		t.has[id] = true
	}
	return nil
}

// distinct reports whether ids are parameters, none of them twice and none among those of before. An update of one that
// is there twice would be applied twice.
func (e *Engine) distinct(ids, before []uint32) error {
	if len(ids) > len(e.params) {
		return wrong(ErrArgument, "%d parameters: there are %d, and each may be named once", len(ids), len(e.params))
	}
	seen := make([]bool, len(e.params))
	for _, id := range before {
		seen[id] = true
	}
	for _, id := range ids {
		p, err := e.parameter(id)
		if err != nil {
			return err
		}
		if seen[id] {
			return wrong(ErrArgument, "parameter %d, %q, is named twice: name each once", id, p.name)
		}
		seen[id] = true
	}
	return nil
}

// Set changes the options from the next update on; the rule stays.
func (t *Trainer) Set(o TrainerOptions) error {
	t.e.mu.Lock()
	defer t.e.mu.Unlock()
	if t.e.closed {
		return t.e.dead
	}
	return t.set(o)
}

// Add adds parameters.
func (t *Trainer) Add(ids []uint32) error {
	t.e.enter()
	defer t.e.mu.Unlock()
	if t.e.dead != nil {
		return t.e.dead
	}
	t.e.set()
	return t.add(ids)
}

// Close gives the memory of the rule's state back.
func (t *Trainer) Close() {
	t.e.enter()
	defer t.e.mu.Unlock()
	if !t.closed {
		t.closed = true
		t.forget(0)
		if k := slices.Index(t.e.trainers, t); k >= 0 {
			t.e.trainers = slices.Delete(t.e.trainers, k, k+1)
		}
		t.e.set()
	}
}

// updates reports whether the trainer changes a parameter.
func (t *Trainer) updates(id uint32) bool {
	return int(id) < len(t.has) && t.has[id] && t.e.params[id].Updated
}

// leaves lists the gradients of a script that the trainer does not apply: they are pending after it.
func (t *Trainer) leaves(built *script.Built) (left script.Built) {
	for _, id := range built.Formed {
		if !t.updates(id) {
			left.Formed = append(left.Formed, id)
		}
	}
	for _, r := range built.Touched {
		if !t.updates(r.Param) {
			left.Touched = append(left.Touched, r)
		}
	}
	return left
}

// apply is what a script's end does for this trainer.
func (t *Trainer) apply() finish.Apply {
	o := t.options
	factor := t.e.collections[o.Collection].Factor
	a := finish.Apply{Params: t.ids, State: t.state, Rule: o.Rule, Dense: !o.Sparse, Threshold: inf, All: t.ids}
	if o.Clipping {
		a.Threshold = o.Threshold
	}
	switch o.Rule {
	case isa.Momentum, isa.EG:
		a.Rate, a.P, a.Q = o.LearningRate, o.Momentum, 1/factor
	case isa.Adadelta:
		a.P, a.Q, a.R = o.Rho, o.Epsilon, 1/factor
	case isa.Adam, isa.AMSGrad:
		a.Rate, a.P, a.Q, a.R = o.LearningRate*t.correction()/factor, o.Beta1, o.Beta2, o.Epsilon
	default:
		a.Rate, a.P, a.Q = o.LearningRate/factor, o.Epsilon, 0
		if o.Rule == isa.RMSProp {
			a.P, a.Q = o.Rho, o.Epsilon
		}
	}
	return a
}

// correction is Adam's, of its averages that began at 0; in single precision, as DyNet's.
func (t *Trainer) correction() float32 {
	power := func(beta float32) float32 { return float32(math.Pow(float64(beta), float64(t.steps+1))) }
	return float32(math.Sqrt(float64(1-power(t.options.Beta2)))) / (1 - power(t.options.Beta1))
}

// Update applies the pending gradients (DyNet's Trainer::update).
func (t *Trainer) Update() (clipped bool, err error) {
	e := t.e
	e.enterReading()
	defer e.mu.Unlock()
	if e.ranks != nil {
		return t.updateTogether()
	}
	if err := e.ready(0); err != nil {
		return false, err
	}
	result, finite, err := t.applyLatest()
	if err != nil {
		return false, err
	}
	e.foresight.trainer = t
	if !finite {
		return false, e.badGradients(t, result[1])
	}
	if err := e.committed(t); err != nil {
		return false, err
	}
	return result[4] != 0, e.pullAll()
}

// applyLatest applies the gradients of the backward that was foreseen, or else the pending ones.
func (t *Trainer) applyLatest() (result [5]float32, finite bool, err error) {
	if t.e.expects(t) {
		if result, finite, err = t.e.resume(); err != nil || finite {
			return result, finite, err
		}
	}
	if err := t.e.catchUp(); err != nil {
		return result, false, err
	}
	if err := t.notFused(); err != nil {
		return result, false, err
	}
	t.e.noteUpdate()
	return t.applyPending()
}

// applyPending runs norm, clipping and update of the pending gradients. finite: their norm is, and they were applied.
func (t *Trainer) applyPending() (result [5]float32, finite bool, err error) {
	e := t.e
	if err := e.giveCopies(); err != nil {
		return result, false, err
	}
	slot := e.resultSlot()
	apply := t.apply()
	r := script.Request{Update: &apply, Base: e.top(), Result: slot}
	if _, err := e.run(&r); err != nil {
		return result, false, err
	}
	result, err = e.result(slot, e.batch)
	if err != nil {
		return result, false, err
	}
	return result, e.exec.Failed(true) == 0 && result[3] != 0, nil
}

// badGradients is the error of an update by gradients whose norm is not finite.
func (e *Engine) badGradients(t *Trainer, norm float32) error {
	why := e.blamePending(t)
	if why == "" {
		why = "each gradient is finite, but not their norm"
	}
	return wrong(ErrNumeric, "the norm of the gradients is not finite (%g): %s; parameters and gradients are unchanged: before the next backward, %s", norm, why, resetAdvice)
}

// notFused refuses an update of what fb has applied.
func (t *Trainer) notFused() error {
	if t.fused() {
		return wrong(ErrState, "update right after fb: fb has applied its gradients already, and no backward has come since; leave the update out, or call backward in place of fb")
	}
	return nil
}

// fused reports whether fb has applied what there was to apply.
func (t *Trainer) fused() bool {
	yes := false
	for _, id := range t.ids {
		p := &t.e.params[id]
		if p.Updated && p.pends() {
			return false
		}
		yes = yes || p.fused
	}
	return yes
}
