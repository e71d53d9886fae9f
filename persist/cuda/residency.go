package cuda

// Which plan runs: the first whose kernel keeps all weights in registers.

import (
	"fmt"
	"strings"
	"time"

	"libvpps/gpu"
	"libvpps/jit"
	"libvpps/persist/plan"
)

// static is the shared memory that a kernel takes beside what the matrix routines ask for: the script's window, scratch
// memory and a few words more.
const static = 33 << 10

// device is what residency depends on, with so many processors on an SM.
func (e *Executor) device(ctas, setAside int) plan.Device {
	i := e.dev.Info()
	d := plan.Device{Name: i.Name, Processors: i.SMs, CTAs: ctas, Warps: jit.Threads / 32, RegistersPer: min(255, i.RegsPerSM/jit.Threads/ctas),
		SetAside: setAside, SharedPerBlock: i.SharedPerBlockOptin - static}
	if ctas > 1 {
		d.SharedPerBlock = min(d.SharedPerBlock, i.SharedPerSM/ctas-i.SharedReservedPerBlk-static)
	}
	if n := e.settings.Processors; n > 0 {
		d.Processors = min(n, i.SMs)
	}
	d.Processors *= ctas
	if kb := e.settings.Shared; kb > 0 {
		d.SharedPerBlock = min(d.SharedPerBlock, kb<<10)
	}
	d.Columns, d.Tensor = e.settings.Columns, e.settings.Tensor == 1 && i.Major >= 8
	d.Copies, d.Weights, d.Partials = e.settings.Copies, e.settings.Registers, e.settings.Partials
	return d
}

// interpreter is what plans set aside of a thread's registers, by the kernel that holds no matrix: read from its machine code,
// which the cache keeps.
func (e *Executor) interpreter(matrices []plan.Matrix) (int, error) {
	if e.registers > 0 {
		return e.registers, nil
	}
	k, err := e.measureInterpreter(matrices)
	if err != nil {
		return 0, err
	}
	e.took.Add(k.Took)
	e.registers = k.SetAside()
	return e.registers, nil
}

// candidates are the plans that the settings allow beside an interpreter of so many registers, and the device of the
// least of them.
func (e *Executor) candidates(matrices []plan.Matrix, setAside int) (all []*plan.Plan, least plan.Device, err error) {
	first, last := 1, 2
	if n := e.settings.CTAs; n > 0 {
		first, last = n, n
	}
	least = e.device(first, setAside)
	if n := e.settings.RowsPerWarp; n > 0 { // the compiler may find room where the sum says there is none
		p, err := plan.RoundRobin(matrices, e.device(first, 0), n)
		if err == nil && p.Outside() > 0 { // where there is a choice, no more than the sum allows
			p, err = plan.RoundRobin(matrices, least, n)
		}
		if err != nil {
			return nil, least, err
		}
		p.SetAside = setAside
		return []*plan.Plan{p}, least, nil
	}
	for ctas := first; ctas <= last; ctas++ {
		list, err := plan.Candidates(matrices, e.device(ctas, setAside))
		if err != nil {
			return nil, least, err
		}
		if ctas == first || list[0].Outside() == 0 {
			all = append(all, list...)
		}
	}
	return all, least, nil
}

// Plan lays matrices out over the SMs and compiles the kernel: of the candidates the one that was
// measured to be the fastest, if the settings ask for that, else the one of which the cost model says so,
// and whose kernel does not spill. If all spill, weights get fewer registers, which leaves more matrices to
// shared memory or memory. The plan that is taken tells of the others.
func (e *Executor) Plan(matrices []plan.Matrix) (*plan.Plan, error) {
	e.took, e.kernels, e.trial = jit.Times{}, map[*plan.Plan]*jit.Kernel{}, nil
	defer e.forgetAhead()
	setAside, err := e.interpreter(matrices)
	if err != nil {
		return nil, err
	}
	all, d, err := e.candidates(matrices, setAside)
	if err != nil {
		return nil, err
	}
	if e.settings.Profile != 0 && len(all) > 1 {
		if p, err := e.measured(all); p != nil || err != nil {
			return p, err
		}
	}
	var refused []string
	for _, p := range plan.Cheapest(all) {
		if taken, err := e.try(p, &refused); err != nil {
			return nil, err
		} else if taken {
			p.Why = plan.Predictions(all)
			return p, nil
		}
	}
	if n := e.settings.RowsPerWarp; n > 0 {
		return nil, fmt.Errorf("%d rows a warp, as VPPS_PLAN pins, are refused: %s; pin fewer, or none", n, strings.Join(refused, "; "))
	}
	p := all[0]
	d.SetAside = max(d.SetAside+e.lacking, d.RegistersPer-(p.Used+p.Staging)+1) // first what the kernel lacked, then half of what it has
	for ; p.Used > 0; d.SetAside = d.RegistersPer - (p.Used+p.Staging)/2 {
		if p, err = plan.RoundRobin(matrices, d, 1); err != nil {
			return nil, err
		}
		if taken, err := e.try(p, &refused); err != nil {
			return nil, err
		} else if taken {
			p.Why = "all plans with more weights in registers spill"
			return p, nil
		}
	}
	return nil, fmt.Errorf("the kernel spills without any weights in registers: %s", refused[len(refused)-1])
}

// try compiles a plan, and says whether it can be taken; if not, refused says why.
func (e *Executor) try(p *plan.Plan, refused *[]string) (bool, error) {
	k, err := e.compile(p)
	if err != nil {
		return false, err
	}
	if why := e.spills(k, p); why != "" {
		e.lacking = (k.Stack + 3) / 4
		*refused = append(*refused, p.Name()+": "+why)
		return false, nil
	}
	e.took.Add(k.Took)
	p.Refused = *refused
	e.kernels[p] = k
	return true, nil
}

// compile makes the kernel of a plan, or finds it in the cache.
func (e *Executor) compile(p *plan.Plan) (*jit.Kernel, error) {
	if k, err := e.fromAhead(p); k != nil || err != nil {
		return k, err
	}
	return jit.Compile(e.compiler, p, e.arch(), e.options, e.cache)
}

// arch is the device's architecture: 90 is sm_90.
func (e *Executor) arch() int {
	i := e.dev.Info()
	return 10*i.Major + i.Minor
}

// spills says why a kernel is not taken, "" if it is. A checking build may use the stack.
func (e *Executor) spills(k *jit.Kernel, p *plan.Plan) string {
	if k.Stack != 0 && !e.options.Check {
		return fmt.Sprintf("its kernel needs %d bytes of stack a thread", k.Stack)
	}
	if most := e.device(max(1, p.CTAs), 0).RegistersPer; k.Registers > most {
		return fmt.Sprintf("its kernel needs %d registers a thread, the device has %d", k.Registers, most)
	}
	return ""
}

// SetPlan loads the plan's kernel. A plan that Plan did not choose is refused if its kernel spills.
func (e *Executor) SetPlan(p *plan.Plan) error {
	k := e.kernels[p]
	if k == nil {
		var err error
		if k, err = e.compile(p); err != nil {
			return err
		}
		if why := e.spills(k, p); why != "" {
			return fmt.Errorf("a plan of %s is refused: %s", p.Name(), why)
		}
	}
	begin := time.Now()
	m, err := e.dev.Load(k.Image)
	if err != nil {
		return err
	}
	shared := jit.SharedBytes(p)
	f, err := entry(m, shared, max(1, p.CTAs))
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
	e.plan, e.module, e.function, e.shared, e.code = p, m, f, shared, len(k.Image)
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

// entry is the kernel of loaded code, ready for launches with so many bytes of shared memory and
// blocks on an SM.
func entry(m gpu.Module, shared, ctas int) (gpu.Function, error) {
	f, err := m.Function(jit.Entry)
	if err != nil {
		return nil, err
	}
	if err := f.SetMaxShared(shared); err != nil {
		return nil, err
	}
	n, err := f.MaxBlocksPerSM(jit.Threads, shared)
	if err == nil && n < ctas {
		err = fmt.Errorf("%d blocks of the kernel fit on an SM, %d are to (%d registers, %d bytes of shared memory)", n, ctas, f.Registers(), shared)
	}
	return f, err
}
