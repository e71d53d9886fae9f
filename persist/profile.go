package persist

// Profiling (paper §III-A1): the first batches of fb run under one plan after another, and
// the fastest stays. Which batch runs under which plan does not depend on timing.

// measured takes the time of a batch of fb.
func (e *Engine) measured(f *flight) {
	if e.trial != nil && e.ranks == nil && f.nodes > 0 {
		e.trial.Add(f.plan, int(f.nodes), e.exec.Device().BatchUS(f.launch))
	}
}

// followTrial changes to the plan whose turn it is, between two batches.
func (e *Engine) followTrial() error {
	for e.trial != nil && (e.trial.Present() != e.plan || e.trial.Over()) {
		e.drain()
		if err := e.collect(0); err != nil {
			return err
		}
		next := e.trial.Present()
		if next != e.plan {
			began := now()
			if err := e.exec.SetPlan(next); err != nil {
				if e.trial.Skip(); e.trial.Failed() {
					return e.unplannable(err)
				}
				continue
			}
			e.adopt(next)
			e.tellPlan(next, now()-began)
		}
		if e.trial.Over() {
			t := e.trial
			e.trial = nil
			return e.exec.Device().Chosen(t)
		}
	}
	return nil
}
