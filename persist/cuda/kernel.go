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
	entered
	plan      *plan.Plan
	shared    int          // bytes of its dynamic shared memory
	better    *compilation // of a kernel to run instead, nil: none
	former    gpu.Module   // that it ran instead of, nil: none
	arguments [argumentBytes]byte
}

// entered is machine code on the device.
type entered struct {
	module   gpu.Module
	function gpu.Function
	code     int // bytes
}

// Plan lays matrices out. If real batches are to measure plans, their kernels are compiled, and launches are timed from then on.
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

// SetPlan compiles and loads the plan's kernel.
func (e *Executor) SetPlan(p *plan.Plan) error {
	k, better, err := e.kernelOf(p)
	if err != nil {
		return err
	}
	begin := time.Now()
	shared := jit.SharedBytes(p)
	next, err := e.enter(k.Image, shared)
	if err != nil {
		return err
	}
	load := time.Since(begin)
	if e.module != nil {
		if err := e.Wait(); err != nil {
			return err
		}
		e.unload()
	}
	e.loaded = loaded{entered: next, plan: p, shared: shared, better: better}
	p.Note = ""
	if better != nil {
		p.Note = "the first kernel, until a better one is compiled: "
	}
	p.Note += fmt.Sprintf("%d registers a thread of the compiled kernel, %d bytes of stack, %d bytes of code", k.Registers, k.Stack, len(k.Image))
	ms := func(d time.Duration) float64 { return 1e3 * d.Seconds() }
	p.Note += fmt.Sprintf("\nmilliseconds: source %.2f, cache %.2f, compiler %.2f, load %.2f", ms(k.Took.Source), ms(k.Took.Cache), ms(k.Took.Compiler), ms(load))
	if r := e.cache.Report(); r != "" {
		p.Note += "\n" + r
	}
	return nil
}

// enter loads machine code, whose launches take shared bytes of dynamic shared memory.
func (e *Executor) enter(image []byte, shared int) (entered, error) {
	m, err := e.dev.Load(image)
	if err != nil {
		return entered{}, err
	}
	f, err := entry(m, shared)
	if err != nil {
		m.Unload()
	}
	return entered{m, f, len(image)}, err
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

// unload takes what was loaded from the device.
func (l *loaded) unload() {
	for _, m := range []gpu.Module{l.module, l.former} {
		if m != nil {
			m.Unload()
		}
	}
}
