package cuda

// Which plan was measured to be the fastest, and for whom that is remembered.

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"libvpps/jit"
	"libvpps/persist/plan"
)

// measured is the plan that an earlier process found to be the fastest or, if none did, the first to be
// measured.
func (c *planner) measured(all []*plan.Plan) (*plan.Plan, error) {
	c.choice = c.choiceKey(all)
	if known := c.cache.Choice(c.choice); known != nil {
		for _, p := range all {
			if p.RowsPerWarp == known.RowsPerWarp {
				p.Why = "as an earlier run " + known.Why
				return p, nil
			}
		}
	}
	if err := c.compileAll(all); err != nil {
		return nil, err
	}
	c.trial = plan.NewTrial(all)
	return all[0], nil
}

// compileAll compiles plans side by side.
func (c *planner) compileAll(all []*plan.Plan) error {
	c.kernels = map[*plan.Plan]*jit.Kernel{}
	errs := make([]error, len(all))
	kernels := make([]*jit.Kernel, len(all))
	var wg sync.WaitGroup
	free := make(chan struct{}, min(8, runtime.NumCPU()))
	for i, p := range all {
		wg.Go(func() {
			free <- struct{}{}
			kernels[i], errs[i] = jit.Compile(c.compiler, p, c.arch(), c.options, c.cache)
			<-free
		})
	}
	wg.Wait()
	for i, p := range all {
		c.kernels[p] = kernels[i]
	}
	return errors.Join(errs...)
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
