package jit

// What the log says of compilations.

import (
	"fmt"
	"sync"
	"time"

	"libvpps/gpu"
	"libvpps/log"
	"libvpps/persist/plan"
)

// tellEvery is how long a compilation goes on until the log says so, each time.
var tellEvery = 2 * time.Second

// kernelFor names a plan's kernel.
func kernelFor(p *plan.Plan, o Options) string {
	kernel := "a kernel"
	if o.Quick {
		kernel = "a quick kernel"
	}
	switch n := len(p.Matrices); n {
	case 0:
		return kernel + " without matrices"
	case 1:
		return kernel + " for 1 matrix"
	default:
		return fmt.Sprintf("%s for %d matrices", kernel, n)
	}
}

// progress has the log say that a compilation goes on, until over is called.
func progress(p *plan.Plan, o Options) (over func()) {
	if !log.On(log.Info) {
		return func() {}
	}
	done := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		begin, tick := time.Now(), time.NewTicker(tellEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				log.Infof("compile", "compiling %s, %.0f s", kernelFor(p, o), time.Since(begin).Seconds())
			}
		}
	})
	return func() {
		close(done)
		telling.Wait() // lines are in order
	}
}

// tell has the log say what became of a kernel.
func tell(c gpu.Compiler, p *plan.Plan, arch int, o Options, k *Kernel, err error) {
	if !log.On(log.Info) {
		return
	}
	major, minor := c.Version()
	switch {
	case err != nil:
		log.Infof("compile", "%s: %v", kernelFor(p, o), err)
	case k.Cached:
		log.Infof("compile", "%s: from the cache, %.3f s, %d registers a thread", kernelFor(p, o), k.Took.Cache.Seconds(), k.Registers)
	default:
		spills := ""
		if k.Stack > 0 {
			spills = fmt.Sprintf(", %d bytes of stack", k.Stack)
		}
		log.Infof("compile", "%s: %.1f s by NVRTC %d.%d for sm_%d, %d registers a thread%s", kernelFor(p, o), k.Took.Compiler.Seconds(), major, minor, arch, k.Registers, spills)
	}
}
