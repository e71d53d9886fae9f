package cuda

// Which plan was measured to be the fastest, and for whom that is remembered.

import (
	"fmt"
	"runtime"
	"sync"

	"libvpps/jit"
	"libvpps/persist/plan"
)

// measured is the plan that an earlier process found to be the fastest or, if none did, the first to be
// measured. It is nil if there is nothing to measure.
func (e *Executor) measured(all []*plan.Plan) (*plan.Plan, error) {
	var refused []string
	e.choice = e.choiceKey(all)
	if known := e.cache.Choice(e.choice); known != nil {
		for _, p := range all {
			if p.RowsPerWarp != known.RowsPerWarp || p.CTAs != known.CTAs {
				continue
			}
			if taken, err := e.try(p, &refused); taken || err != nil {
				p.Why = "as an earlier run " + known.Why
				return p, err
			}
		}
	}
	usable, err := e.compileAll(all)
	if err != nil || len(usable) < 2 {
		return nil, err
	}
	if err := e.timeLaunches(true); err != nil {
		return nil, err
	}
	e.trial = plan.NewTrial(usable)
	return usable[0], nil
}

// compileAll compiles plans side by side, and returns those whose kernels do not spill.
func (e *Executor) compileAll(all []*plan.Plan) (usable []*plan.Plan, err error) {
	kernels, errs := make([]*jit.Kernel, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	free := make(chan struct{}, min(8, runtime.NumCPU()))
	for i, p := range all {
		wg.Go(func() {
			free <- struct{}{}
			kernels[i], errs[i] = e.compile(p)
			<-free
		})
	}
	wg.Wait()
	var refused []string
	for i, p := range all {
		if errs[i] != nil {
			return nil, errs[i]
		}
		if why := e.spills(kernels[i], p); why != "" {
			refused = append(refused, p.Name()+": "+why)
			continue
		}
		e.kernels[p] = kernels[i]
		usable = append(usable, p)
	}
	for _, p := range usable {
		p.Refused = refused
	}
	return usable, nil
}

// choiceKey names the choice among plans for this device, compiler and library.
func (e *Executor) choiceKey(all []*plan.Plan) string {
	i := e.dev.Info()
	about := fmt.Sprintf("%s sm_%d %d SMs, libvpps %s", i.Name, e.arch(), i.SMs, e.version)
	for _, m := range all[0].Matrices {
		about += fmt.Sprintf(" %dx%d", m.Rows, m.Cols)
	}
	for _, p := range all {
		about += ", " + p.Name()
	}
	return jit.ChoiceKey(e.compiler, about)
}

// Trial is the plans to be measured, beginning with the one that Plan returned last; nil: none.
func (e *Executor) Trial() *plan.Trial { return e.trial }

// BatchUS is the device's time for a batch, script's copy included, that has been waited for while
// plans are measured.
func (e *Executor) BatchUS(batch uint32) float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range e.staging {
		if t := &e.staging[i]; t.batch == batch {
			return t.us
		}
	}
	return 0
}

// Chosen remembers the result of a trial, whose plan is loaded, and stops measuring.
func (e *Executor) Chosen(t *plan.Trial) error {
	p := t.Present()
	p.Why = t.Report()
	e.cache.Choose(e.choice, jit.Choice{RowsPerWarp: p.RowsPerWarp, CTAs: p.CTAs, Why: p.Why})
	e.kernels, e.trial = map[*plan.Plan]*jit.Kernel{p: e.kernels[p]}, nil
	return e.timeLaunches(e.times)
}

// timeLaunches gives the slots marks with times, or without, which cost the device less.
func (e *Executor) timeLaunches(on bool) error {
	if e.timed == on {
		return nil
	}
	for i := range e.staging {
		t := &e.staging[i]
		if err := e.finish(t); err != nil {
			return err
		}
		fresh := staging{}
		e.timed = on
		err := e.marks(&fresh)
		e.timed = !on
		if err != nil {
			return err
		}
		e.unmark(t)
		t.begin, t.copied, t.done = fresh.begin, fresh.copied, fresh.done
	}
	e.timed = on
	return nil
}
