package persist

import (
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"libvpps/persist/executor"
	"libvpps/persist/isa"
	"libvpps/persist/pause"
	"libvpps/persist/script"
)

// The pipeline: while the program records batch i+2, workers turn batch i+1 (and i+2, once
// recorded) into scripts and the device executes batch i. What a call has to report is found
// before the batch is handed over, so a worker fails only where the machine does.

// job is a batch on its way to the device.
type job struct {
	request script.Request
	step    *step // of the group, nil: the engine trains alone
	launch  uint32
	before  *job          // the one handed over before, which is launched first; nil once it is
	found   chan struct{} // closed when its instances are found, and those of all before
	result  [5]float32    // of a step
	worker  *worker
	taken   atomic.Bool // by who makes its script: the worker, or the program if it waits before the worker has begun
	done    chan struct{}
	err     error
	refused error // an answer's own, after which the device works on: batches behind it go on
}

// builders is how many workers there are, one for each batch that may be on its way: scripts are built side by side, and
// launched in order. In a group the oldest batch may be in its step, when its loss is known and the next but two comes.
const builders = InFlight + 2

// pipeline is the workers.
type pipeline struct {
	mu   sync.Mutex
	free []*worker // workers without a job, the latest to finish one at the end
	all  []*worker
	last *job // handed over last
}

// worker turns one batch after the other into scripts.
type worker struct {
	jobs  chan *job // has room for the one it gets
	track int
}

// start starts the workers.
func (p *pipeline) start(e *Engine) {
	for k := range builders {
		w := &worker{make(chan *job, 1), firstWorker + k}
		p.all = append(p.all, w)
		go e.work(w)
	}
	p.free = slices.Clone(p.all)
}

// stop ends them.
func (p *pipeline) stop() {
	for _, w := range p.all {
		close(w.jobs)
	}
	p.all, p.free = nil, nil
}

// take is the worker for the next job: the latest to finish one, whose core's cache has the data of the last script.
// There is one, for no more than InFlight+1 batches are on their way when another comes.
func (p *pipeline) take() *worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.free) - 1
	w := p.free[n]
	p.free = p.free[:n]
	return w
}

// release makes a worker free.
func (p *pipeline) release(w *worker) {
	p.mu.Lock()
	p.free = append(p.free, w)
	p.mu.Unlock()
}

// asynchronous reports whether a launch leaves the host time: it returns before it has run, or a
// thread is free while it runs. Elsewhere a worker has nothing to overlap with.
func (e *Engine) asynchronous() bool {
	return e.exec.Traits().Asynchronous && !e.verify
}

// drain waits until the workers are idle, so that the caller may use builder and executor.
func (e *Engine) drain() {
	if j := e.pipe.last; j != nil {
		defer e.waited(now(), "wait for scripts")
		e.hurry(j)
		<-j.done
		e.pipe.last = nil
	}
}

// enter begins a call that needs the engine to itself.
func (e *Engine) enter() {
	e.enterReading()
	e.note(e.catchUp())
}

// note keeps an error for the next call that can return one.
func (e *Engine) note(err error) {
	if err != nil && e.failure == nil {
		e.failure = err
	}
}

// enterReading begins a call that does not look at gradients, and changes nothing.
func (e *Engine) enterReading() {
	e.mu.Lock()
	e.drain()
}

// describe gives a request for the workers the plan and the parameters as they are now, and checks its rows.
func (e *Engine) describe(r *script.Request) error {
	r.Plan, r.Seed, r.Work = e.plan, e.seed, e.costs
	r.Params = slices.Clone(e.paramViews())
	return script.CheckIndices(r.Graph, r.Params, 0, r.Node)
}

// hand gives a request that has been described to the workers, and the step that follows it in a group.
func (e *Engine) hand(r *script.Request, s *step) *job {
	if e.pipe.all == nil {
		e.pipe.start(e)
	}
	e.batch++
	if d := e.exec.Device(); d != nil {
		r.Space = d.Space(e.batch)
	}
	j := &job{request: *r, step: s, launch: e.batch, before: e.pipe.last, worker: e.pipe.take(),
		found: make(chan struct{}), done: make(chan struct{})}
	e.pipe.last = j
	j.worker.jobs <- j
	return j
}

// work builds scripts and launches them when those before are. Behind one that fails the others
// on their way fail, too: they would read parameters that it has not updated.
func (e *Engine) work(w *worker) {
	var builder script.Builder
	awake := false
	for j := w.next(awake); j != nil; j = w.next(awake) {
		awake = !j.request.Plan.CPU && manyProcessors() // a CPU's virtual processors need its cores
		e.make(&builder, j, w.track, awake)
	}
}

// make launches a job, unless another goroutine has taken it.
func (e *Engine) make(builder *script.Builder, j *job, track int, awake bool) {
	if !j.taken.CompareAndSwap(false, true) {
		return
	}
	j.err = e.launchJob(builder, j, track, awake)
	if j.step != nil {
		j.step.foretell(noResult[0]) // if it is not known yet, it will not be
	}
	e.pipe.release(j.worker)
	close(j.done)
}

// hurry has the program's thread, which waits for a job, make it if its worker sleeps still: to be waked up takes long.
// A worker that is free again finds a job that was taken when it wakes up, and goes on to the next.
func (e *Engine) hurry(j *job) {
	if j.step == nil {
		e.make(&e.builder, j, programTrack, false)
	}
}

// manyProcessors reports whether goroutines that wait may keep their cores: several scripts are written at a time, and the
// program wants a core of its own.
func manyProcessors() bool { return runtime.GOMAXPROCS(0) >= 8 }

// patience is how long an awake worker looks for the next job before it sleeps: to be waked up takes as long as
// it takes to write a tenth of a script of one sentence. In a group all ranks wait for the one that is waked up last, so
// who waits for a step sleeps late.
const (
	patience     = 500 * time.Microsecond
	stepPatience = 5 * time.Millisecond
)

// next is the next job, nil: there are no more. Who looks for it does not leave the core.
func (w *worker) next(awake bool) *job {
	if awake {
		attentive(patience, func() bool { return len(w.jobs) > 0 })
	}
	return <-w.jobs
}

// noResult is what a launch that is skipped leaves.
var noResult = [5]float32{math.Float32frombits(isa.Sentinel)}

func (e *Engine) launchJob(builder *script.Builder, j *job, track int, awake bool) (err error) {
	defer func() {
		if x := recover(); x != nil {
			err = Panicked(x, debug.Stack())
			if j.step != nil {
				j.step.fail(err)
			}
		}
	}()
	e.findCellsOf(j, awake)
	t := now()
	built, err := build(builder, &j.request)
	e.span(track, "script", j.launch, t)
	t = now() - t
	if b := j.before; b != nil {
		if s := j.step; s != nil && b.step != nil && err == nil {
			s.notice.gradients = s.formed(built)
			b.step.next.Store(&s.notice)
		}
		await(b.done, awake, b.patience())
		j.before = nil
		if b.step != nil && j.step != nil {
			j.step.notices = b.step.behind
		}
		if b.err != nil && b.launch+1 == j.launch {
			return j.skipped(b)
		}
	}
	e.stats.ScheduleNS += t
	if s := j.step; s != nil {
		s.track = track
		j.result, err = s.run(builder, built, &j.request, j.launch, err)
		return err
	}
	if err == nil {
		err = e.makeRoom(built, &j.request)
	}
	if err == nil {
		err = e.launch(built, j.launch, track)
	}
	if err != nil && len(j.request.Answers) > 0 && harmless(err) != nil {
		j.refused, err = err, nil
	}
	return err
}

// patience is how long a goroutine that waits for the batch, until it is launched or trained by the group, keeps its core.
func (j *job) patience() time.Duration {
	if j.step != nil {
		return stepPatience
	}
	return patience
}

// await waits until a channel is closed. Who is awake does not leave the core at first.
func await(done <-chan struct{}, awake bool, patience time.Duration) {
	if awake {
		attentive(patience, func() bool { return over(done) })
	}
	<-done
}

// over reports whether a channel is closed.
func over(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// attentive looks for something until it is there or the patience is over.
func attentive(patience time.Duration, there func() bool) {
	for since, looks := time.Now(), 1; !there() && (looks&0xff != 0 || time.Since(since) < patience); looks++ {
		pause.Briefly()
	}
}

// skipped is the error of a batch behind one that failed. The others of a group are told, unless they all leave it out.
func (j *job) skipped(failed *job) error {
	if j.step != nil && j.step.notices == nil {
		j.step.e.tellFailure(wrong(ErrRank, "it has left out a batch, the next after one that failed"))
	}
	return failed.err
}

// makeRoom sees to the memory that a script needs, and to that of its result.
func (e *Engine) makeRoom(built *script.Built, r *script.Request) error {
	if err := e.grow(isa.SegAct, uint64(r.Base)+uint64(built.Used), "activations"); err != nil {
		return err
	}
	if r.Result == script.NoOffset || len(r.Answers) > 0 {
		return nil
	}
	return e.exec.Write(isa.SegResult, uint64(r.Result), noResult[:])
}

// launch starts a script.
func (e *Engine) launch(built *script.Built, batch uint32, track int) error {
	return e.launchTo(nil, built, batch, track)
}

// launchTo launches a script that a host is to hold before its updates; nil: it runs to its end.
func (e *Engine) launchTo(hold executor.Host, built *script.Built, batch uint32, track int) (err error) {
	e.stats.Script = uint64(len(built.Script.Words))
	e.last = built.Script
	t := now()
	if hold != nil {
		err = hold.LaunchToUpdate(&built.Script, batch)
	} else {
		err = e.exec.Launch(&built.Script, batch)
	}
	e.span(track, "launch", batch, t)
	e.traceExecution(batch, t)
	e.stats.ExecuteNS += now() - t
	e.stats.Launches++
	return err
}
