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
func (c *planner) measured(all []*plan.Plan) (*plan.Plan, error) {
	var refused []string
	c.choice = c.choiceKey(all)
	if known := c.cache.Choice(c.choice); known != nil {
		for _, p := range all {
			if p.RowsPerWarp != known.RowsPerWarp {
				continue
			}
			if taken, err := c.try(p, &refused); taken || err != nil {
				p.Why = "as an earlier run " + known.Why
				return p, err
			}
		}
	}
	usable, err := c.compileAll(all)
	if err != nil || len(usable) < 2 {
		return nil, err
	}
	c.trial = plan.NewTrial(usable)
	return usable[0], nil
}

// compileAll compiles plans side by side, and returns those whose kernels do not spill.
func (c *planner) compileAll(all []*plan.Plan) (usable []*plan.Plan, err error) {
	kernels, errs := make([]*jit.Kernel, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	free := make(chan struct{}, min(8, runtime.NumCPU()))
	for i, p := range all {
		wg.Go(func() {
			free <- struct{}{}
			kernels[i], errs[i] = c.compile(p)
			<-free
		})
	}
	wg.Wait()
	var refused []string
	for i, p := range all {
		if errs[i] != nil {
			return nil, errs[i]
		}
		if why := c.spills(kernels[i], p); why != "" {
			refused = append(refused, p.Name()+": "+why)
			continue
		}
		c.kernels[p] = kernels[i]
		usable = append(usable, p)
	}
	for _, p := range usable {
		p.Refused = refused
	}
	return usable, nil
}

// choiceKey names the choice among plans for this device, compiler and library.
func (c *planner) choiceKey(all []*plan.Plan) string {
	i := c.device
	about := fmt.Sprintf("%s sm_%d %d SMs, libvpps %s", i.Name, c.arch(), i.SMs, c.version)
	for _, m := range all[0].Matrices {
		about += fmt.Sprintf(" %dx%d", m.Rows, m.Cols)
	}
	for _, p := range all {
		about += ", " + p.Name()
	}
	return jit.ChoiceKey(c.compiler, about)
}

// Trial is the plans to be measured, beginning with the one that Plan returned last; nil: none.
func (c *planner) Trial() *plan.Trial { return c.trial }

// chosen remembers the result of a trial, whose plan is loaded.
func (c *planner) chosen(t *plan.Trial) {
	p := t.Present()
	p.Why = t.Report()
	c.cache.Choose(c.choice, jit.Choice{RowsPerWarp: p.RowsPerWarp, Why: p.Why})
	c.kernels, c.trial = map[*plan.Plan]*jit.Kernel{p: c.kernels[p]}, nil
}
