package cuda

// Which plan runs: the first whose kernel keeps all weights in registers.

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"libvpps/gpu"
	"libvpps/jit"
	"libvpps/persist/plan"
)

// setAside is how many registers of a thread are for interpreting and staging.
const setAside = 112

func (e *Executor) device() plan.Device {
	i := e.dev.Info()
	d := plan.Device{Name: i.Name, Processors: i.SMs, Warps: jit.Threads / 32, RegistersPer: min(255, i.RegsPerSM/jit.Threads), SetAside: setAside,
		SharedPerBlock: i.SharedPerBlockOptin - 28<<10}
	if n := setting("processors"); n > 0 {
		d.Processors = min(n, i.SMs)
	}
	return d
}

// setting reads one number of VPPS_PLAN ("rpw=2,processors=64"), 0 if it is not there.
func setting(name string) int {
	for _, part := range strings.Split(os.Getenv("VPPS_PLAN"), ",") {
		if value, ok := strings.CutPrefix(part, name+"="); ok {
			n, _ := strconv.Atoi(value)
			return n
		}
	}
	return 0
}

// Plan lays matrices out over the SMs and compiles the kernel. Rows per warp: four if every matrix
// then fits into the registers, else fewer. More rows share a loaded vector and leave fewer partial
// results of transposed products to add; measured on an H200, four was best at every batch size.
//
// A plan whose kernel spills gives way to the next smaller one: fewer rows per warp, then fewer
// registers for weights, which leaves matrices in memory. The plan that is taken tells of them.
func (e *Executor) Plan(matrices []plan.Matrix) (*plan.Plan, error) {
	d := e.device()
	if rpw := setting("rpw"); rpw > 0 {
		return plan.RoundRobin(matrices, d, rpw)
	}
	rpw := 1
	for _, n := range plan.Candidates(matrices, d) {
		if n <= 4 {
			rpw = n
		}
	}
	var refused []string
	for {
		p, err := plan.RoundRobin(matrices, d, rpw)
		if err != nil {
			return nil, err
		}
		k, err := e.compile(p)
		if err != nil {
			return nil, err
		}
		why := e.spills(k, d)
		if why == "" {
			p.Refused = refused
			e.compiled, e.kernel = p, k
			return p, nil
		}
		refused = append(refused, fmt.Sprintf("%d rows a warp, %d registers a thread for weights: %s", rpw, p.Used, why))
		switch {
		case rpw > 1:
			rpw /= 2
		case p.Used > 0:
			d.SetAside = d.RegistersPer - p.Used/2
		default:
			return nil, fmt.Errorf("the kernel spills without any weights in registers: %s", why)
		}
	}
}

// compile makes the kernel of a plan, or finds it in the cache.
func (e *Executor) compile(p *plan.Plan) (*jit.Kernel, error) {
	info := e.dev.Info()
	return jit.Compile(e.compiler, p, 10*info.Major+info.Minor, e.options, e.cache)
}

// spills says why a kernel is not taken, "" if it is. A checking build may use the stack.
func (e *Executor) spills(k *jit.Kernel, d plan.Device) string {
	if k.Stack != 0 && !e.options.Check {
		return fmt.Sprintf("its kernel needs %d bytes of stack a thread", k.Stack)
	}
	if k.Registers > d.RegistersPer {
		return fmt.Sprintf("its kernel needs %d registers a thread, the device has %d", k.Registers, d.RegistersPer)
	}
	return ""
}

// SetPlan loads the plan's kernel. A plan that Plan did not choose, or was told to by VPPS_PLAN, is
// refused if its kernel spills.
func (e *Executor) SetPlan(p *plan.Plan) error {
	k := e.kernel
	if e.compiled != p {
		var err error
		if k, err = e.compile(p); err != nil {
			return err
		}
		if why := e.spills(k, e.device()); why != "" {
			return fmt.Errorf("a plan of %d rows a warp and %d registers a thread for weights is refused: %s; pin a smaller one with VPPS_PLAN=rpw=N, or none", p.RowsPerWarp, p.Used, why)
		}
	}
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
	if e.module != nil {
		if err := e.Wait(); err != nil {
			return err
		}
		e.module.Unload()
	}
	e.plan, e.module, e.function, e.shared = p, m, f, shared
	e.compiled, e.kernel = p, k
	p.Note = fmt.Sprintf("%d registers a thread of the compiled kernel, %d bytes of stack, %d bytes of code", k.Registers, k.Stack, len(k.Image))
	if r := e.cache.Report(); r != "" {
		p.Note += "\n" + r
	}
	return nil
}

// entry is the kernel of loaded code, ready for launches with so many bytes of shared memory.
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
