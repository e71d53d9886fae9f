package cuda

// The kernel that is loaded.

import (
	"fmt"
	"time"

	"libvpps/gpu"
	"libvpps/jit"
	"libvpps/persist/plan"
)

// loaded is the kernel that launches run.
type loaded struct {
	plan      *plan.Plan
	module    gpu.Module
	function  gpu.Function
	shared    int // bytes of its dynamic shared memory
	code      int // bytes of its machine code
	arguments [argumentBytes]byte
}

// Plan lays matrices out and compiles the kernel. If real batches are to measure plans, launches are timed from then on.
func (e *Executor) Plan(matrices []plan.Matrix) (*plan.Plan, error) {
	p, err := e.choose(matrices)
	if err != nil || e.trial == nil {
		return p, err
	}
	if err := e.timeLaunches(true); err != nil {
		e.trial = nil
		return nil, err
	}
	return p, nil
}

// Chosen remembers the result of a trial, whose plan is loaded, and stops measuring.
func (e *Executor) Chosen(t *plan.Trial) error {
	e.chosen(t)
	return e.timeLaunches(e.times)
}

// SetPlan loads the plan's kernel. A plan that Plan did not choose is refused if its kernel spills.
func (e *Executor) SetPlan(p *plan.Plan) error {
	k, err := e.kernelOf(p)
	if err != nil {
		return err
	}
	begin := time.Now()
	m, err := e.dev.Load(k.Image)
	if err != nil {
		return err
	}
	shared := jit.SharedBytes(p)
	f, err := entry(m, shared)
	if err != nil {
		m.Unload()
		return err
	}
	load := time.Since(begin)
	if e.module != nil {
		if err := e.Wait(); err != nil {
			return err
		}
		e.module.Unload()
	}
	e.loaded = loaded{plan: p, module: m, function: f, shared: shared, code: len(k.Image)}
	if p.InParts() {
		p.Library = e.library
	}
	p.Note = fmt.Sprintf("%d registers a thread of the compiled kernel, %d bytes of stack, %d bytes of code", k.Registers, k.Stack, len(k.Image))
	ms := func(d time.Duration) float64 { return 1e3 * d.Seconds() }
	p.Note += fmt.Sprintf("\nmilliseconds: source %.2f, cache %.2f, compiler %.2f, load %.2f", ms(e.took.Source), ms(e.took.Cache), ms(e.took.Compiler), ms(load))
	if r := e.cache.Report(); r != "" {
		p.Note += "\n" + r
	}
	return nil
}

// entry is the kernel of loaded code, ready for launches with shared bytes of dynamic shared memory.
func entry(m gpu.Module, shared int) (gpu.Function, error) {
	f, err := m.Function(jit.Entry)
	if err != nil {
		return nil, err
	}
	if err := f.SetMaxShared(shared); err != nil {
		return nil, err
	}
	n, err := f.MaxBlocksPerSM(jit.Threads, shared)
	if err == nil && n < 1 {
		err = fmt.Errorf("no block of the kernel fits on an SM (%d registers, %d bytes of shared memory)", f.Registers(), shared)
	}
	return f, err
}
