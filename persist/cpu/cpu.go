// Package cpu executes scripts on the host: any number of virtual processors on any
// number of threads.
package cpu

import (
	"fmt"
	"math"
	"os"
	"syscall"
	"unsafe"

	"libvpps/jit/kernel"
	"libvpps/persist/clocks"
	"libvpps/persist/plan"
	"libvpps/persist/script"
)

// Executor owns the segments and runs scripts at once, in the caller's thread and
// others. It is used by one goroutine at a time.
type Executor struct {
	Atomics    bool // of the plans that it makes
	machine    *kernel.Machine
	processors int
	planned    int                        // processors of the plan
	segments   [script.Segments][]float32 // reserved address space; pages come when touched
	script     unsafe.Pointer
	words      int            // that script has room for
	clocks     *clocks.Sum    // nil: none
	records    unsafe.Pointer // of the processors' clocks
	recorded   int            // how many there is room for
}

// A segment is reserved at its largest, so that growing moves nothing. Less is taken
// where the system grants less.
const (
	reserve = 16 << 30
	least   = 64 << 20
)

// New makes an executor with a number of threads and virtual processors (0: up to one for each
// thread, as the model's size demands); waitSeconds bounds every wait.
func New(threads, processors int, waitSeconds float64) (*Executor, error) {
	e := &Executor{processors: processors}
	pointers := make([]unsafe.Pointer, script.Segments)
	for s := range e.segments {
		mem, err := reserveSegment()
		if err != nil {
			e.unmap()
			return nil, fmt.Errorf("reserving segment %v: %w", script.Segment(s), err)
		}
		e.segments[s] = mem
		pointers[s] = unsafe.Pointer(&mem[0])
	}
	e.machine = kernel.NewMachine(pointers, threads, waitSeconds)
	e.machine.Check = os.Getenv("VPPS_CHECK") == "1"
	if os.Getenv("VPPS_CLOCKS") == "1" {
		e.clocks = &clocks.Sum{}
	}
	return e, nil
}

func reserveSegment() ([]float32, error) {
	for size := reserve; ; size /= 2 {
		mem, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE,
			syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
		if err == nil {
			return unsafe.Slice((*float32)(unsafe.Pointer(&mem[0])), size/4), nil
		}
		if size <= least {
			return nil, err
		}
	}
}

func (e *Executor) unmap() {
	for _, s := range e.segments {
		if s != nil {
			syscall.Munmap(unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*4))
		}
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
		p.Atomics, p.Single = e.Atomics, true // a chain is worth what an instruction costs once
	}
	return p, err
}

// Checks reports whether every operand is held against the script's tensor table, which is
// then needed.
func (e *Executor) Checks() bool { return e.machine.Check }

// Replans: a plan is a table here.
func (e *Executor) Replans() bool { return true }

// SetPlan takes a new residency.
func (e *Executor) SetPlan(p *plan.Plan) error {
	e.machine.SetPlan(p)
	e.planned = p.Processors
	return nil
}

// Asynchronous: where the model is too small to keep all threads at work, one of those left writes
// the next script while the others run this one.
func (e *Executor) Asynchronous() bool { return e.planned < e.machine.Threads && !e.machine.Check }

// Grow makes sure that a segment has room for n floats.
func (e *Executor) Grow(s script.Segment, n uint64) error {
	if have := uint64(len(e.segments[s])); n > have {
		return fmt.Errorf("segment %v: %d bytes needed, %d reserved: use smaller batches", s, 4*n, 4*have)
	}
	return nil
}

// Read copies from a segment.
func (e *Executor) Read(s script.Segment, offset uint64, to []float32) error {
	copy(to, e.segments[s][offset:])
	return nil
}

// Write copies to a segment.
func (e *Executor) Write(s script.Segment, offset uint64, from []float32) error {
	copy(e.segments[s][offset:], from)
	return nil
}

// Segment is the memory of a segment itself.
func (e *Executor) Segment(s script.Segment) []float32 { return e.segments[s] }

// Launch runs a script to its end.
func (e *Executor) Launch(s *script.Script, batch uint32) error {
	n := int(s.Words[script.HeadDevice])
	if e.machine.Check {
		n = int(s.Words[script.HeadTensorEnd])
		for at, end := range s.Recycled() {
			unwrite(e.segments[script.SegAct][at:end])
		}
	}
	if n > e.words {
		kernel.Free(e.script)
		e.words = n + n/2
		e.script = kernel.Alloc(e.words)
		if e.script == nil {
			e.words = 0
			return fmt.Errorf("out of memory for a script of %d words", n)
		}
	}
	copy(unsafe.Slice((*uint32)(e.script), e.words), s.Words[:n])
	inputs := unsafe.Add(e.script, 4*uintptr(s.Words[script.HeadInputs]))
	e.machine.SetInputs(inputs)
	if e.clocks != nil {
		if err := e.watch(s.Processors()); err != nil {
			return err
		}
	}
	if err := e.machine.Run(e.script, s.Processors(), batch); err != nil || e.clocks == nil {
		return err
	}
	e.clocks.Add(unsafe.Slice((*uint64)(e.records), s.Processors()*script.ClockWords))
	return nil
}

// watch has so many processors leave records.
func (e *Executor) watch(processors int) error {
	if processors > e.recorded {
		kernel.Free(e.records)
		e.recorded = 0
		if e.records = kernel.Alloc(2 * processors * script.ClockWords); e.records == nil {
			return fmt.Errorf("out of memory for the clocks of %d processors", processors)
		}
		e.recorded = processors
		e.machine.SetClocks(e.records)
	}
	return nil
}

// Clocks is where launches spent their time so far, nil without clocks.
func (e *Executor) Clocks() (*clocks.Sum, error) { return e.clocks, nil }

// unwrite fills memory with the sentinel.
func unwrite(m []float32) {
	for i := range m {
		m[i] = math.Float32frombits(script.Sentinel)
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
