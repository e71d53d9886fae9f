package cuda

// Which plan runs: the one that the cost model takes for the fastest of those that fit, or the one that was measured to be.

import (
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

	kernels map[*plan.Plan]*jit.Kernel // of the plans that are measured
	trial   *plan.Trial                // of the last plans until it is over, nil: none
	choice  string                     // the key under which the result of a trial is kept
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

// candidates are the plans that the settings allow.
func (c *planner) candidates(matrices []plan.Matrix) ([]*plan.Plan, error) {
	n := c.settings.RowsPerWarp
	if n == 0 {
		return plan.Candidates(matrices, c.deviceFor(jit.SetAside))
	}
	p, err := plan.RoundRobin(matrices, c.deviceFor(0), n) // the compiler may find room where the sum says there is none
	if err == nil && p.Outside() > 0 {                     // where there is a choice, no more than the sum allows
		p, err = plan.RoundRobin(matrices, c.deviceFor(jit.SetAside), n)
	}
	if err != nil {
		return nil, err
	}
	p.SetAside = jit.SetAside
	return []*plan.Plan{p}, nil
}

// choose lays matrices out over the SMs: of the candidates it takes the one that was measured to be the fastest, if the settings
// ask for that, else the one of which the cost model says so.
func (c *planner) choose(matrices []plan.Matrix) (*plan.Plan, error) {
	c.kernels, c.trial = nil, nil
	all, err := c.candidates(matrices)
	if err != nil {
		return nil, err
	}
	if c.settings.Profile != 0 && len(all) > 1 {
		return c.measured(all)
	}
	p := plan.Cheapest(all)[0]
	p.Why = plan.Predictions(all)
	return p, nil
}

func (c *planner) arch() int { return archOf(c.device) }

// archOf is a device's architecture: 90 is sm_90.
func archOf(i gpu.Info) int { return 10*i.Major + i.Minor }
