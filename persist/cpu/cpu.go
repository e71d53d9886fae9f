// Package cpu executes scripts on the host: any number of virtual processors on any
// number of threads.
package cpu

import (
	"fmt"
	"math"
	"unsafe"

	"libvpps/env"
	"libvpps/jit/kernel"
	"libvpps/persist/clocks"
	"libvpps/persist/executor"
	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/plan"
)

// Executor owns the segments and runs scripts at once, in the caller's thread and
// others. It is used by one goroutine at a time.
type Executor struct {
	machine    *kernel.Machine
	processors int
	planned    int // processors of the plan
	segments   [isa.Segments]segment
	script     unsafe.Pointer
	words      int            // that script has room for
	held       bool           // the latest script has stopped before its updates
	clocks     *clocks.Sum    // nil: none
	records    unsafe.Pointer // of the processors' clocks
	recorded   int            // how many there is room for
}

// New makes an executor with a number of threads and virtual processors (0: up to one for each
// thread, as the model's size demands); waitSeconds bounds every wait.
func New(threads, processors int, waitSeconds float64) (*Executor, error) {
	e := &Executor{processors: processors}
	pointers := make([]unsafe.Pointer, isa.Segments)
	var err error
	for s := range e.segments {
		if err = e.segments[s].open(); err != nil {
			e.unmap()
			return nil, fmt.Errorf("segment %v: %w", isa.Segment(s), err)
		}
		pointers[s] = e.segments[s].at()
	}
	if e.machine, err = kernel.NewMachine(pointers, threads, waitSeconds); err != nil {
		e.unmap()
		return nil, err
	}
	e.machine.Check = env.On("VPPS_CHECK", false)
	if env.On("VPPS_PROFILE", false) {
		e.Profile()
	}
	return e, nil
}

// Profile has processors leave records of where their time goes, from the next launch on.
func (e *Executor) Profile() error {
	if e.clocks == nil {
		e.clocks = &clocks.Sum{}
	}
	return nil
}

// Memory is what takes how much.
func (e *Executor) Memory() (uses []memory.Use) {
	for s := range e.segments {
		uses = append(uses, memory.Use{Place: memory.Host, What: memory.OfSegment(isa.Segment(s)), Bytes: 4 * uint64(len(e.segments[s].floats))})
	}
	return append(uses, memory.Use{Place: memory.Host, What: "the script that runs", Bytes: 4 * uint64(e.words)},
		memory.Use{Place: memory.Host, What: "records of the profile", Bytes: 8 * uint64(e.recorded*isa.ClockWords)})
}

func (e *Executor) unmap() {
	for s := range e.segments {
		e.segments[s].close()
	}
}

// Close frees everything.
func (e *Executor) Close() {
	e.machine.Close()
	kernel.Free(e.script)
	kernel.Free(e.records)
	e.unmap()
}

// Describe says what runs.
func (e *Executor) Describe() string {
	processors := fmt.Sprintf("%d processors", e.processors)
	if e.processors == 0 {
		processors = fmt.Sprintf("up to %d processors", e.machine.Threads)
	}
	return fmt.Sprintf("cpu: %d threads, %s, %s", e.machine.Threads, processors, kernel.Variant())
}

// Smaller slices of a model than this many floats do not pay: processors then wait for each other
// longer than they work, and one core's cache holds several of them.
const slice = 1 << 18

// Plan gives every processor a slice of every matrix.
func (e *Executor) Plan(matrices []plan.Matrix) (*plan.Plan, error) {
	processors := e.processors
	if processors == 0 {
		size := 0
		for _, m := range matrices {
			size += m.Rows * m.Cols
		}
		processors = min(max(size/slice, 1), e.machine.Threads)
	}
	p, err := plan.Sliced(matrices, processors)
	if err == nil {
		p.CPU = true
	}
	return p, err
}

// Traits: a plan is a table here. Where the model is too small to keep all threads at work, one of those left writes the
// next script while the others run this one.
func (e *Executor) Traits() executor.Traits {
	return executor.Traits{Asynchronous: e.planned < e.machine.Threads && !e.machine.Check, Immediate: true, Replans: true, Checks: e.machine.Check}
}

// SetPlan takes a new residency.
func (e *Executor) SetPlan(p *plan.Plan) error {
	if err := e.machine.SetPlan(p); err != nil {
		return err
	}
	e.planned = p.Processors
	return nil
}

// Grow makes sure that a segment has room for n floats.
func (e *Executor) Grow(s isa.Segment, n uint64) error {
	if err := e.segments[s].grow(n); err != nil {
		return fmt.Errorf("segment %v: %w", s, err)
	}
	e.machine.SetSegment(s, e.segments[s].at())
	return nil
}

// Read copies from a segment.
func (e *Executor) Read(s isa.Segment, offset uint64, to []float32) error {
	copy(to, e.segments[s].floats[offset:])
	return nil
}

// Write copies to a segment.
func (e *Executor) Write(s isa.Segment, offset uint64, from []float32) error {
	copy(e.segments[s].floats[offset:], from)
	return nil
}

// Copy copies from one segment to another.
func (e *Executor) Copy(to isa.Segment, at uint64, from isa.Segment, offset, n uint64) error {
	copy(e.segments[to].floats[at:][:n], e.segments[from].floats[offset:])
	return nil
}

// Zero sets n floats of a segment to 0.
func (e *Executor) Zero(s isa.Segment, offset, n uint64) error {
	zero(e.segments[s].floats[offset:][:n])
	return nil
}

// Shared is the memory of a segment itself, which from then on stays where it is.
func (e *Executor) Shared(s isa.Segment) []float32 {
	e.segments[s].pinned = true
	return e.segments[s].floats
}

// Launch runs a script to its end.
func (e *Executor) Launch(s *isa.Script, batch uint32) error { return e.launch(s, batch, false) }

// LaunchToUpdate runs a script up to its updates.
func (e *Executor) LaunchToUpdate(s *isa.Script, batch uint32) error {
	err := e.launch(s, batch, true)
	e.held = err == nil
	return err
}

// Update runs the updates of the latest launch.
func (e *Executor) Update() error {
	e.held = false
	return e.machine.Update()
}

func (e *Executor) launch(s *isa.Script, batch uint32, hold bool) error {
	if e.held {
		return fmt.Errorf("internal: batch %d is launched before the updates of the one before", batch)
	}
	n := int(s.Words[isa.HeadDevice])
	if e.machine.Check {
		n = int(s.Words[isa.HeadTensorEnd])
		for at, end := range s.Recycled() {
			unwrite(e.segments[isa.SegAct].floats[at:end])
		}
	}
	if n > e.words {
		words := n + n/2
		at := kernel.Alloc(words)
		if at == nil {
			return fmt.Errorf("%w for a script of %d words", memory.ErrExhausted, n)
		}
		kernel.Free(e.script)
		e.script, e.words = at, words
	}
	copy(unsafe.Slice((*uint32)(e.script), e.words), s.Words[:n])
	inputs := unsafe.Add(e.script, 4*uintptr(s.Words[isa.HeadInputs]))
	e.machine.SetInputs(inputs)
	if e.clocks != nil {
		if err := e.watch(s.Processors()); err != nil {
			return err
		}
	}
	if err := e.machine.Run(e.script, s.Processors(), batch, hold); err != nil || e.clocks == nil {
		return err
	}
	e.clocks.Add(unsafe.Slice((*uint64)(e.records), s.Processors()*isa.ClockWords))
	return nil
}

// watch gives each of the processors a record for its clocks.
func (e *Executor) watch(processors int) error {
	if processors > e.recorded {
		records := kernel.Alloc(2 * processors * isa.ClockWords)
		if records == nil {
			return fmt.Errorf("%w for the clocks of %d processors", memory.ErrExhausted, processors)
		}
		kernel.Free(e.records)
		e.records, e.recorded = records, processors
		e.machine.SetClocks(e.records)
	}
	return nil
}

// Clocks is where launches spent their time so far, nil without clocks.
func (e *Executor) Clocks() (*clocks.Sum, error) { return e.clocks, nil }

// unwrite fills memory with the sentinel.
func unwrite(m []float32) {
	for i := range m {
		m[i] = math.Float32frombits(isa.Sentinel)
	}
}

// Wait returns when all launches have finished, with the first error since.
func (e *Executor) Wait() error { return nil }

// WaitBatch: there is nothing to wait for.
func (e *Executor) WaitBatch(uint32) error { return nil }

// Failed is the number of the batch whose gradients were not finite, 0 if none; clear
// forgets it.
func (e *Executor) Failed(clear bool) uint32 {
	f := *e.machine.Status()
	if clear {
		*e.machine.Status() = 0
	}
	return f
}

// Device: the host itself computes.
func (e *Executor) Device() executor.Device { return nil }

// Host is the executor, unless clocks run: they would count what the host does between a launch and its updates.
func (e *Executor) Host() executor.Host {
	if e.clocks != nil {
		return nil
	}
	return e
}
