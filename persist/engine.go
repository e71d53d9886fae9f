// Package persist is the engine: it owns parameters and graphs, turns calls into scripts and
// has an executor run them.
package persist

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"

	"libvpps/bridge"
	"libvpps/bridge/cells"
	"libvpps/env"
	"libvpps/log"
	"libvpps/persist/cpu"
	"libvpps/persist/executor"
	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/plan"
	"libvpps/persist/schedule"
	"libvpps/persist/script"
	"libvpps/persist/verify"
)

// Options of an engine; zero values choose.
type Options struct {
	Device     string // "cpu", "cuda", "cuda:1", "auto"
	Threads    int
	Processors int
	Seed       uint32
	Plan       string // of a GPU, as plan.ParseSettings reads it; "": VPPS_PLAN
	Version    string // of the library: what is measured is remembered for it
	Snapshot   int    // updates from one snapshot of the parameters to the next; 0: VPPS_SNAPSHOT_BATCHES, else none
	Trace      string // the file of a timeline; "": VPPS_TRACE, else none
	Times      bool   // measure the device's time; else VPPS_TIMES says
	Profile    bool   // measure each kind of instruction, and tell at the end; else VPPS_PROFILE says
	// DataParallel: of the processes that a launcher has started on this machine, this one has its own GPU and its share of
	// the cores, where nothing names others.
	DataParallel bool
	gpu          int // of a device that has no number
	cores        int // of the machine, that are this rank's share; 0: it is no rank
}

// Engine is one device with its parameters and graphs. Its methods may be called from any
// goroutine, one at a time: a second call waits.
type Engine struct {
	mu          sync.Mutex
	pipe        pipeline
	exec        executor.Executor
	builder     script.Builder
	request     script.Request   // the latest evaluation's
	dictionary  cells.Dictionary // patterns in the graphs
	skip        int              // the number of DyNet's next calls in which no instances are looked for
	skipped     int              // that number when it was last set
	params      []parameter
	views       []schedule.Param // params as lowering sees them, same index
	collections []Collection
	trainers    []*Trainer           // that are not closed, by age
	ranks       *ranks               // the group that trains together, nil: the engine trains alone
	graphs      []*Graph             // open ones, and one that only a foreseen step has
	recordings  []*recording         // of closed graphs
	used        [isa.Segments]uint64 // floats handed out, those in free included
	free        [isa.Segments]spans  // memory of parameters that are gone, by the segment of their values
	destroyed   uint64               // parameters
	room        room
	plan        *plan.Plan
	unplanned   bool        // a matrix was added or destroyed since
	changed     uint64      // updates, when the latest was
	trial       *plan.Trial // plans that are being measured, nil: none
	batch       uint32
	updates     uint64 // updates so far: values of graphs evaluated before are stale
	seed        uint32
	seedings    uint32 // calls of Seed
	graphIDs    uint32 // graphs evaluated since the last of them
	verify      bool
	apart       bool              // equal nodes of a batch are evaluated each by itself
	wide        schedule.Wideness // from when on work is divided; zero: as is usual
	perShape    int               // see script.Request
	check       bool              // the executor holds every operand against the tensor table
	stats       Statistics
	foresight   foresight
	lent        bool // the program has a pointer to a parameter's values themselves
	host        hostTimes
	timeline    timeline
	slow        slow
	costs       *script.Work // that the device's time is divided by; nil: there are no clocks
	last        isa.Script   // the last call's, for Dump
	few         []float32    // memory of a read: by itself, for what a device writes to has no pointers next to it
	lending     []loan       // memory of loans
	dead        error        // the device is gone
	snapshot    snapshot
	closed      bool
	flights     []*flight           // batches of fb and infer whose results are not read yet, the oldest first
	landed      []*flight           // to be reused
	answers     map[Ticket]*answer  // that were not fetched
	tickets     Ticket              // given so far
	answerRoom  uint64              // floats of segment result for the answer of each batch in flight
	failure     error               // of a batch of fb, not reported yet
	failures    uint64              // batches that failed
	freeStates  map[uint64][]uint32 // memory of trainers that are gone, by size
}

// Collection carries a weight decay factor.
type Collection struct {
	Lambda float32
	Factor float32
}

// Error kinds; the C interface turns them into status codes.
var (
	ErrState       = errors.New("wrong order of calls")
	ErrArgument    = errors.New("wrong argument")
	ErrNumeric     = errors.New("not finite")
	ErrDevice      = errors.New("device failed")
	ErrMemory      = memory.ErrExhausted
	ErrUnsupported = errors.New("not available")
	ErrFile        = errors.New("file")
)

func wrong(kind error, format string, a ...any) error {
	return &kindError{kind, fmt.Sprintf(format, a...)}
}

type kindError struct {
	kind error
	text string
}

func (e *kindError) Error() string { return e.text }
func (e *kindError) Unwrap() error { return e.kind }

// resultSlot is the distance of two launches' result words; resultSlots of them are in turn.
const (
	resultSlot  = 8
	resultSlots = InFlight + 2
)

// Open makes the engine of a device.
func Open(o Options) (*Engine, error) {
	if o.DataParallel {
		var err error
		if o, err = o.ofRank(); err != nil {
			return nil, err
		}
	}
	exec, err := open(o)
	if err != nil {
		return nil, err
	}
	o.takeShare(exec)
	e := newEngine(exec, o.Seed)
	if err = e.room.start(); err == nil {
		err = e.measure(o)
	}
	if err != nil {
		exec.Close()
		return nil, err
	}
	e.snapshot.every = uint64(max(o.Snapshot, 0))
	if o.Snapshot == 0 {
		e.snapshot.every = uint64(env.Number("VPPS_SNAPSHOT_BATCHES", 0))
	}
	return e, nil
}

func newEngine(exec executor.Executor, seed uint32) *Engine {
	e := &Engine{exec: exec, seed: seed, seedings: 1, few: make([]float32, resultSlot), freeStates: map[uint64][]uint32{}, answers: map[Ticket]*answer{}}
	if e.seed == 0 {
		e.seed = uint32(os.Getpid())*2654435761 + 1
	}
	e.verify, e.apart = env.On("VPPS_VERIFY", false), !env.On("VPPS_MERGE", true)
	e.check = exec.Traits().Checks
	e.plan, _ = plan.Sliced(nil, 1)
	e.unplanned = true
	e.used[isa.SegResult] = resultSlot * resultSlots
	exec.Grow(isa.SegResult, e.used[isa.SegResult])
	return e
}

// waitSeconds is how long a wait may take (VPPS_WAIT_SECONDS).
func waitSeconds() float64 { return env.Number("VPPS_WAIT_SECONDS", 10) }

// mostThreads bounds threads and virtual processors of a CPU: each costs memory, and work in every batch.
const mostThreads = 1024

// usualThreads is the most that the library takes by itself.
const usualThreads = 4

func openCPU(o Options) (executor.Executor, error) {
	threads := o.Threads
	if threads == 0 {
		threads = int(env.Number("VPPS_THREADS", 0))
	}
	if threads <= 0 {
		threads = min(runtime.NumCPU(), usualThreads)
	}
	if threads > mostThreads || o.Processors > mostThreads {
		return nil, wrong(ErrArgument, "%d threads and %d processors: at most %d of each; 0 lets the library choose", threads, o.Processors, mostThreads)
	}
	x, err := cpu.New(threads, max(o.Processors, 0), waitSeconds())
	if err != nil {
		return nil, wrong(ErrMemory, "cpu: %v", err)
	}
	return x, nil
}

// Close frees the device's memory. Graphs and parameters are gone; every later call says so.
func (e *Engine) Close() {
	e.enter()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	e.tellAtEnd()
	e.closed = true
	e.leaveGroup()
	e.exec.Wait()
	e.exec.Close()
	e.timeline.close()
	for i := range e.params {
		e.params[i].free()
	}
	for _, f := range e.flights {
		f.free()
	}
	e.answers = nil
	e.snapshot.free()
	e.pipe.stop()
	e.dead = wrong(ErrState, "the engine is closed")
}

// Describe says what runs.
func (e *Engine) Describe() string {
	e.enter()
	defer e.mu.Unlock()
	return e.exec.Describe()
}

// Seed sets the seed of random operations, which count graphs and their evaluations anew. Batches that
// were handed over keep theirs.
func (e *Engine) Seed(s uint32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seed = s
	e.seedings++
	e.graphIDs = 0
}

// NewCollection makes a collection of parameters with a weight decay.
func (e *Engine) NewCollection(lambda float32) (uint32, error) {
	e.enter()
	defer e.mu.Unlock()
	if !(lambda >= 0 && lambda < 1) {
		return 0, wrong(ErrArgument, "weight decay %g: it must be in [0, 1)", lambda)
	}
	e.collections = append(e.collections, Collection{lambda, 1})
	e.set()
	return uint32(len(e.collections) - 1), nil
}

// SetLambda changes a collection's weight decay.
func (e *Engine) SetLambda(c uint32, lambda float32) error {
	e.enter()
	defer e.mu.Unlock()
	if int(c) >= len(e.collections) || !(lambda >= 0 && lambda < 1) {
		return wrong(ErrArgument, "collection %d of %d, weight decay %g (it must be in [0, 1))", c, len(e.collections), lambda)
	}
	e.collections[c].Lambda = lambda
	e.set()
	return nil
}

// Factor returns a collection's present factor.
func (e *Engine) Factor(c uint32) (float32, error) {
	e.enter()
	defer e.mu.Unlock()
	err := e.settle(0)
	if s := &e.snapshot; e.lost() && s.taken && int(c) < len(s.factors) {
		return s.factors[c], nil
	}
	if err != nil {
		return 0, err
	}
	if int(c) >= len(e.collections) {
		return 0, wrong(ErrArgument, "there is no collection %d", c)
	}
	return e.collections[c].Factor, nil
}

// SetFactor sets a collection's factor. Stored values stay, so what graphs read of them changes with it.
func (e *Engine) SetFactor(c uint32, factor float32) error {
	e.enter()
	defer e.mu.Unlock()
	if err := e.settle(0); err != nil { // batches in flight have the factor before it
		return err
	}
	if int(c) >= len(e.collections) {
		return wrong(ErrArgument, "there is no collection %d", c)
	}
	if !(factor > 0 && factor <= 1) {
		return wrong(ErrArgument, "collection %d: a weight decay factor of %g: it must be in (0, 1]; scale the values instead", c, factor)
	}
	e.collections[c].Factor = factor
	e.factorChanged(c)
	e.set()
	return nil
}

// factorChanged notes that graphs read all of a collection's parameters by another factor.
func (e *Engine) factorChanged(c uint32) {
	for i := range e.params {
		if p := &e.params[i]; p.collection == c {
			p.version++
		}
	}
}

// ready waits until at most unread batches of fb have no result yet and reports if one failed,
// replans if matrices were added, pushes what the program wrote to host copies and takes a
// snapshot if it is time.
func (e *Engine) ready(unread int) error {
	if err := e.settle(unread); err != nil {
		return err
	}
	if err := e.planOnce(); err != nil {
		return err
	}
	if err := e.pushExposed(); err != nil {
		return err
	}
	if e.snapshot.due(e.updates) {
		return e.takeSnapshot()
	}
	return nil
}

// settledModel is after how many updates a model counts as complete: then a kernel is worth its compilation.
const settledModel = 8

// planOnce plans matrices that were added: at once where that costs nothing or nothing was launched yet, else when the
// model has been trained for a while.
func (e *Engine) planOnce() error {
	if !e.unplanned {
		return nil
	}
	if !e.exec.Traits().Replans && e.batch > 0 {
		if e.updates < e.changed+settledModel || e.foresight.step != nil || e.ranks != nil {
			return nil
		}
		e.drain()
		if err := e.collect(0); err != nil {
			return err
		}
	}
	return e.replan()
}

// changedMatrices notes that the plan is not that of all matrices.
func (e *Engine) changedMatrices() { e.unplanned, e.changed = true, e.updates }

// replan lays out all matrices there are.
func (e *Engine) replan() error {
	var matrices []plan.Matrix
	for i := range e.params {
		p := &e.params[i]
		if p.Size == 0 || p.Lookup || p.dim.Nd != 2 {
			continue
		}
		matrices = append(matrices, plan.Matrix{Param: uint32(i), Name: p.name, Rows: p.dim.Rows(), Cols: p.dim.Cols(), Offset: p.Offset})
	}
	began := now()
	pl, err := e.exec.Plan(matrices)
	if err == nil {
		err = e.exec.SetPlan(pl)
	}
	if err != nil {
		log.Infof("plan", "not possible: %v", err)
		return e.unplannable(err)
	}
	e.adopt(pl)
	e.tellPlan(pl, now()-began)
	e.unplanned = false
	if d := e.exec.Device(); d != nil {
		e.trial = d.Trial()
	}
	return nil
}

// adopt has the scripts to come written for a plan that the executor has taken.
func (e *Engine) adopt(p *plan.Plan) {
	e.plan = p
	for i := range e.params {
		e.params[i].Matrix = -1
	}
	for m, x := range p.Matrices {
		e.params[x.Param].Matrix = int32(m)
	}
}

// top is the first float of segment act that no graph uses.
func (e *Engine) top() uint32 {
	t := uint32(0)
	for _, g := range e.graphs {
		t = max(t, g.end)
	}
	return (t + 63) &^ 63
}

// run builds a request's script and launches it.
func (e *Engine) run(r *script.Request) (*script.Built, error) {
	r.Plan, r.Seed, r.Tensors, r.Work = e.plan, e.seed, e.verify || e.check, e.costs
	r.Params = e.paramViews()
	t := now()
	built, err := build(&e.builder, r)
	if err != nil {
		return nil, err
	}
	e.span(programTrack, "script", e.batch+1, t)
	e.stats.ScheduleNS += now() - t
	if e.verify {
		if err := verify.Verify(&built.Script, e.plan); err != nil {
			return nil, fmt.Errorf("internal: the script is not sound: %w", err)
		}
	}
	if err := e.makeRoom(built, r); err != nil {
		return nil, e.broke(err)
	}
	e.batch++
	if err := e.launch(built, e.batch, programTrack); err != nil {
		return nil, e.broke(err)
	}
	return built, nil
}

// wait waits for all launches, unless they are over as soon as they return.
func (e *Engine) wait() error {
	if e.exec.Traits().Immediate {
		return nil
	}
	defer e.waited(now(), "wait for the device")
	if err := e.exec.Wait(); err != nil {
		return e.fail(err)
	}
	return nil
}

func (e *Engine) paramViews() []schedule.Param {
	e.views = e.views[:0]
	for i := range e.params {
		p := e.params[i].Param
		p.Factor = e.collections[e.params[i].collection].Factor
		e.views = append(e.views, p)
	}
	return e.views
}

// Dump disassembles the last script, "" before the first.
func (e *Engine) Dump() string {
	e.enter()
	defer e.mu.Unlock()
	if len(e.last.Words) == 0 {
		return ""
	}
	return isa.Disassemble(&e.last)
}

// PlanReport says where every matrix lives.
func (e *Engine) PlanReport() string {
	e.enter()
	defer e.mu.Unlock()
	return e.planReport()
}

func (e *Engine) planReport() string {
	report := e.plan.Report()
	if e.trial != nil {
		report += e.trial.Report() + "\n"
	}
	return report
}

var inf = float32(math.Inf(1))

// dimOf is what the decoder asks about parameters.
func (e *Engine) dimOf(id uint32) (*bridge.Dim, bool) {
	if int(id) >= len(e.params) || e.params[id].Size == 0 {
		return nil, false
	}
	return &e.params[id].dim, e.params[id].Lookup
}
