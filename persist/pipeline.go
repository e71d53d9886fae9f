package persist

// The pipeline: while the program records batch i+2, a worker turns batch i+1 into a script and
// the device executes batch i. What a call has to report is found before the batch is handed
// over, so the worker fails only where the machine does.

import (
	"fmt"
	"sync"

	"libvpps/persist/script"
)

// job is a batch on its way to the device.
type job struct {
	request script.Request
	launch  uint32
	done    chan struct{}
	err     error
}

// pipeline is the worker and its queue, which holds one job: with the one in work and the one on
// the device that is as many batches as fb lets run ahead.
type pipeline struct {
	queue chan *job
	last  *job // handed over last
	once  sync.Once
}

// asynchronous reports whether the executor returns from a launch before it has run; elsewhere a
// worker has nothing to overlap with.
func (e *Engine) asynchronous() bool {
	x, ok := e.exec.(interface{ Asynchronous() bool })
	return ok && x.Asynchronous() && !e.verify
}

// drain waits until the worker is idle, so that the caller may use builder and executor.
func (e *Engine) drain() {
	if j := e.pipe.last; j != nil {
		<-j.done
		e.pipe.last = nil
	}
}

// enter begins a call that needs the engine to itself.
func (e *Engine) enter() {
	e.mu.Lock()
	e.drain()
}

// hand gives a request to the worker.
func (e *Engine) hand(r *script.Request) *job {
	e.pipe.once.Do(func() {
		e.pipe.queue = make(chan *job, 1)
		go e.work(e.pipe.queue)
	})
	r.Plan, r.Seed = e.plan, e.seed
	r.Params = append([]script.Param(nil), e.paramViews()...)
	e.batch++
	j := &job{request: *r, launch: e.batch, done: make(chan struct{})}
	e.pipe.last = j
	e.pipe.queue <- j
	return j
}

// work launches jobs in order. Behind one that fails the others of the queue fail, too: they would
// read parameters that it has not updated.
func (e *Engine) work(queue chan *job) {
	var builder script.Builder
	var failed *job
	for j := range queue {
		if failed != nil && failed.launch+1 == j.launch {
			j.err, failed = failed.err, j
		} else if j.err = e.launchJob(&builder, j); j.err != nil {
			failed = j
		}
		close(j.done)
	}
}

func (e *Engine) launchJob(builder *script.Builder, j *job) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("internal error while scheduling: %v", r)
		}
	}()
	t := now()
	built, err := builder.Build(&j.request)
	if err != nil {
		return err
	}
	e.stats.ScheduleNS += now() - t
	e.stats.Script = uint64(len(built.Script.Words))
	if err := e.exec.Grow(script.SegAct, uint64(j.request.Base)+uint64(built.Used)); err != nil {
		return wrong(ErrMemory, "activations: %v", err)
	}
	if err := e.exec.Write(script.SegResult, uint64(j.request.Result), make([]float32, 5)); err != nil {
		return err
	}
	e.last = built.Script
	return e.exec.Launch(&built.Script, j.launch)
}
