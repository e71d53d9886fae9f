package cuda

// The first kernel is compiled while the compiler measures the interpreter.

import (
	"fmt"
	"time"

	"libvpps/jit"
	"libvpps/persist/plan"
)

// patience is how long measuring the interpreter may take before another compilation begins: a cache answers earlier.
const patience = 50 * time.Millisecond

// kernelAhead is a kernel compiled before it is known whether it is wanted.
type kernelAhead struct {
	planned, done chan struct{} // closed when there is a source, and when there is a kernel
	source        string        // "": there is no plan
	kernel        *jit.Kernel
	err           error
	beside        time.Duration // of measuring the interpreter, which passed meanwhile
}

// compileAhead compiles the kernel of the plan that comes first if the interpreter takes the usual registers.
func (c *planner) compileAhead(a *kernelAhead, matrices []plan.Matrix) {
	defer close(a.done)
	defer func() {
		if x := recover(); x != nil {
			a.err = fmt.Errorf("compiling a kernel ahead: %v", x)
		}
	}()
	if p := c.planAhead(a, matrices); p != nil {
		a.kernel, a.err = jit.Compile(c.compiler, p, c.arch(), c.options, c.cache)
	}
}

// planAhead is the plan that comes first if the interpreter takes the usual registers, nil if there is none.
func (c *planner) planAhead(a *kernelAhead, matrices []plan.Matrix) *plan.Plan {
	defer close(a.planned)
	all, err := c.candidates(matrices, jit.UsualSetAside)
	if err != nil || len(all) == 0 {
		return nil
	}
	p := plan.Cheapest(all)[0]
	if a.source, err = jit.Source(p, c.options); err != nil {
		return nil
	}
	return p
}

// measureInterpreter reads from the machine code of a kernel without matrices how many of a thread's registers it takes.
// If that lasts, the kernel that is likely wanted next is under way already.
func (c *planner) measureInterpreter(matrices []plan.Matrix) (*jit.Kernel, error) {
	p, err := plan.RoundRobin(nil, c.deviceFor(0), 1)
	if err != nil {
		return nil, err
	}
	a := &kernelAhead{planned: make(chan struct{}), done: make(chan struct{})}
	timer := time.AfterFunc(patience, func() { c.compileAhead(a, matrices) })
	k, err := jit.Compile(c.compiler, p, c.arch(), jit.Options{}, c.cache)
	if !timer.Stop() {
		c.ahead = a
	}
	if k != nil {
		a.beside = k.Took.Compiler
	}
	return k, err
}

// fromAhead is a plan's kernel if it was compiled ahead, nil if not.
func (c *planner) fromAhead(p *plan.Plan) (*jit.Kernel, error) {
	a := c.ahead
	if a == nil {
		return nil, nil
	}
	<-a.planned
	if source, err := jit.Source(p, c.options); err != nil || source != a.source {
		return nil, nil
	}
	<-a.done
	c.took.Compiler -= a.beside
	a.beside = 0
	return a.kernel, a.err
}

// forgetAhead waits for what is compiled ahead: a program must not end while the compiler works.
func (c *planner) forgetAhead() {
	if c.ahead != nil {
		<-c.ahead.done
		c.ahead = nil
	}
}
