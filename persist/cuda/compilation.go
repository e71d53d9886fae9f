package cuda

// How kernels are compiled. The compiler needs 10 to 30 s for a plan's kernel. In half that time it makes a quick one, which it
// optimizes less. So launches run the quick one until the other is there. Both have the same source and results.

import (
	"fmt"
	"time"

	"libvpps/gpu/cudaload"
	"libvpps/jit"
	"libvpps/log"
	"libvpps/persist/plan"
)

// Patience is how long a kernel may take before a quick one is compiled, too: a cache answers earlier. Tests of one kernel a
// plan are more patient, because a busy machine is slow.
var Patience = 50 * time.Millisecond

// compilation is a kernel that is being compiled.
type compilation struct {
	done   chan struct{} // closed when there is a kernel or an error
	kernel *jit.Kernel
	err    error
}

// compile begins to compile a plan's kernel. The process does not end before the kernel is in the cache.
func (c *planner) compile(p *plan.Plan) *compilation {
	x, o := &compilation{done: make(chan struct{})}, c.options
	release := cudaload.Hold()
	go func() {
		defer release()
		defer close(x.done)
		defer func() {
			if e := recover(); e != nil {
				x.err = fmt.Errorf("compiling a kernel: %v", e)
			}
		}()
		x.kernel, x.err = jit.Compile(c.compiler, p, c.arch(), o, c.cache)
	}()
	return x
}

// kernelOf is a plan's kernel, or a quick one and, as better, the compilation of the other. A profile is of one kernel: it waits.
func (c *planner) kernelOf(p *plan.Plan) (k *jit.Kernel, better *compilation, err error) {
	if k := c.kernels[p]; k != nil {
		return k, nil, nil
	}
	x := c.compile(p)
	select {
	case <-x.done:
		return x.kernel, nil, x.err
	case <-time.After(Patience):
	}
	if jit.HasQuick(c.compiler) && !c.options.Clocks {
		o := c.options
		o.Quick = true
		if k, err = jit.Compile(c.compiler, p, c.arch(), o, c.cache); err == nil {
			cudaload.WaitAtExit()
			return k, x, nil
		}
	}
	<-x.done
	return x.kernel, nil, x.err
}

// improve has launches run the better kernel from now on, if it is there.
func (e *Executor) improve() {
	if e.better == nil {
		return
	}
	select {
	case <-e.better.done:
	default:
		return
	}
	k, err := e.better.kernel, e.better.err
	e.better = nil
	if err == nil {
		var next entered
		if next, err = e.enter(k.Image, e.shared); err == nil {
			e.former, e.entered = e.module, next // launches of the former may be on their way
		}
	}
	if err != nil {
		log.Infof("fallback", "the quick kernel stays: %v", err)
		return
	}
	log.Infof("compile", "the next batch is the first of a better kernel: %d registers a thread, %d bytes of stack", k.Registers, k.Stack)
}
