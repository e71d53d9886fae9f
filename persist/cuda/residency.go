package cuda

// Which plan runs: the first whose kernel keeps all weights in registers.

import (
	"fmt"
	"strings"

	"libvpps/gpu"
	"libvpps/jit"
	"libvpps/persist/plan"
)

// planner chooses among plans for a device, and compiles their kernels.
type planner struct {
	device   gpu.Info
	compiler gpu.Compiler
	cache    *jit.Cache
	options  jit.Options
	settings plan.Settings
	version  string // of the library

	registers int                        // that the interpreter needs without matrices, 0: not known yet
	lacking   int                        // registers of the kernel that was refused last
	kernels   map[*plan.Plan]*jit.Kernel // of the last plans
	took      jit.Times                  // to make these
	ahead     *kernelAhead               // nil: nothing is compiled ahead
	trial     *plan.Trial                // of the last plans until it is over, nil: none
	choice    string                     // the key under which the result of a trial is kept
}

// static is the shared memory that a kernel takes beside what the matrix routines ask for: the script's window, scratch
// memory and a few words more.
const static = 33 << 10

// deviceFor describes the device to a plan whose interpreter takes setAside registers.
func (c *planner) deviceFor(setAside int) plan.Device {
	i := c.device
	d := plan.Device{Name: i.Name, Processors: i.SMs, Warps: jit.Threads / 32, RegistersPer: min(255, i.RegsPerSM/jit.Threads),
		SetAside: setAside, SharedPerBlock: i.SharedPerBlockOptin - static}
	if n := c.settings.Processors; n > 0 {
		d.Processors = min(n, i.SMs)
	}
	if kb := c.settings.Shared; kb > 0 {
		d.SharedPerBlock = min(d.SharedPerBlock, kb<<10)
	}
	d.Copies, d.Weights, d.Partials = c.settings.Copies, c.settings.Registers, c.settings.Partials
	return d
}

// interpreter is what plans set aside of a thread's registers, by the kernel that holds no matrix: read from its machine code,
// which the cache keeps.
func (c *planner) interpreter(matrices []plan.Matrix) (int, error) {
	if c.registers > 0 {
		return c.registers, nil
	}
	k, err := c.measureInterpreter(matrices)
	if err != nil {
		return 0, err
	}
	c.took.Add(k.Took)
	c.registers = k.SetAside()
	return c.registers, nil
}

// candidates are the plans that the settings allow next to an interpreter of setAside registers.
func (c *planner) candidates(matrices []plan.Matrix, setAside int) ([]*plan.Plan, error) {
	n := c.settings.RowsPerWarp
	if n == 0 {
		return plan.Candidates(matrices, c.deviceFor(setAside))
	}
	p, err := plan.RoundRobin(matrices, c.deviceFor(0), n) // the compiler may find room where the sum says there is none
	if err == nil && p.Outside() > 0 {                     // where there is a choice, no more than the sum allows
		p, err = plan.RoundRobin(matrices, c.deviceFor(setAside), n)
	}
	if err != nil {
		return nil, err
	}
	p.SetAside = setAside
	return []*plan.Plan{p}, nil
}

// choose lays matrices out over the SMs and compiles the kernel: of the candidates the one that was
// measured to be the fastest, if the settings ask for that, else the one of which the cost model says so,
// and whose kernel does not spill. If all spill, weights get fewer registers, which leaves more matrices to
// shared memory or memory. The chosen plan lists the refused ones.
func (c *planner) choose(matrices []plan.Matrix) (*plan.Plan, error) {
	c.took, c.kernels, c.trial = jit.Times{}, map[*plan.Plan]*jit.Kernel{}, nil
	defer c.forgetAhead()
	setAside, err := c.interpreter(matrices)
	if err != nil {
		return nil, err
	}
	all, err := c.candidates(matrices, setAside)
	if err != nil {
		return nil, err
	}
	if c.settings.Profile != 0 && len(all) > 1 {
		if p, err := c.measured(all); p != nil || err != nil {
			return p, err
		}
	}
	var refused []string
	for _, p := range plan.Cheapest(all) {
		if taken, err := c.try(p, &refused); err != nil {
			return nil, err
		} else if taken {
			p.Why = plan.Predictions(all)
			return p, nil
		}
	}
	if n := c.settings.RowsPerWarp; n > 0 {
		return nil, fmt.Errorf("%d rows a warp, as VPPS_PLAN pins, are refused: %s; pin fewer, or none", n, strings.Join(refused, "; "))
	}
	p, d := all[0], c.deviceFor(setAside)
	d.SetAside = max(d.SetAside+c.lacking, d.RegistersPer-(p.Used+p.Staging)+1) // first what the kernel lacked, then half of its weights
	for ; p.Used > 0; d.SetAside = d.RegistersPer - p.Staging - p.Used/2 {
		if p, err = plan.RoundRobin(matrices, d, 1); err != nil {
			return nil, err
		}
		if taken, err := c.try(p, &refused); err != nil {
			return nil, err
		} else if taken {
			p.Why = "all plans with more weights in registers spill"
			return p, nil
		}
	}
	return nil, fmt.Errorf("the kernel spills without any weights in registers: %s", refused[len(refused)-1])
}

// try compiles a plan and reports whether its kernel fits. If not, it appends the reason to refused.
func (c *planner) try(p *plan.Plan, refused *[]string) (bool, error) {
	k, err := c.compile(p)
	if err != nil {
		return false, err
	}
	if why := c.spills(k, p); why != "" {
		c.lacking = (k.Stack + 3) / 4
		*refused = append(*refused, p.Name()+": "+why)
		return false, nil
	}
	c.took.Add(k.Took)
	p.Refused = *refused
	c.kernels[p] = k
	return true, nil
}

// compile makes the kernel of a plan, or finds it in the cache.
func (c *planner) compile(p *plan.Plan) (*jit.Kernel, error) {
	if k, err := c.fromAhead(p); k != nil || err != nil {
		return k, err
	}
	return jit.Compile(c.compiler, p, c.arch(), c.options, c.cache)
}

func (c *planner) arch() int { return archOf(c.device) }

// archOf is a device's architecture: 90 is sm_90.
func archOf(i gpu.Info) int { return 10*i.Major + i.Minor }

// spills is the reason to refuse a kernel, "" if it fits. A checking build may use the stack, and so may a kernel without
// matrices, which has few registers: there are no weights to take away.
func (c *planner) spills(k *jit.Kernel, p *plan.Plan) string {
	if k.Stack != 0 && !c.options.Check && len(p.Matrices) > 0 {
		return fmt.Sprintf("its kernel needs %d bytes of stack a thread", k.Stack)
	}
	if most := c.deviceFor(0).RegistersPer; k.Registers > most {
		return fmt.Sprintf("its kernel needs %d registers a thread, the device has %d", k.Registers, most)
	}
	return ""
}

// kernelOf is the kernel of a plan. If the plan is not one of those that choose took, it is refused if its kernel spills.
func (c *planner) kernelOf(p *plan.Plan) (*jit.Kernel, error) {
	if k := c.kernels[p]; k != nil {
		return k, nil
	}
	k, err := c.compile(p)
	if err != nil {
		return nil, err
	}
	if why := c.spills(k, p); why != "" {
		return nil, fmt.Errorf("a plan of %s is refused: %s", p.Name(), why)
	}
	return k, nil
}
