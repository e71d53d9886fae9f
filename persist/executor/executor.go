// Package executor says what an engine asks of a device. Two packages answer: cpu and cuda.
//
// Unless a method says otherwise, one goroutine at a time calls an executor: the program's thread while no worker has a
// batch, else the worker whose batch is the next to be launched.
package executor

import (
	"libvpps/persist/clocks"
	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/plan"
)

// Executor owns the segments of one device and runs scripts on them.
type Executor interface {
	// Describe names the device and what runs on it. Any goroutine may call it.
	Describe() string
	// Device is what else a device of its own can do. It is nil where the host itself computes: the engine's clock is the
	// device's there, plans need no trial, and a script no memory of its own.
	Device() Device
	// Host is what else the host's own processors can do; nil: nothing at present.
	Host() Host
	// Traits tells how the device works under the present plan. The program's thread may call it at any time.
	Traits() Traits

	// Plan lays matrices out for the device.
	Plan(matrices []plan.Matrix) (*plan.Plan, error)
	// SetPlan takes a new plan. On a GPU it compiles the kernel. No launch may be in flight.
	SetPlan(p *plan.Plan) error

	// Grow makes room for n floats in a segment and keeps its contents. The error may be one of memory.
	Grow(s isa.Segment, n uint64) error
	// Read copies from a segment, after all launches before it. Segment result is read at once.
	Read(s isa.Segment, offset uint64, to []float32) error
	// Write copies to a segment, after all launches before it.
	Write(s isa.Segment, offset uint64, from []float32) error
	// Copy copies n floats from one segment to another, after all launches before it.
	Copy(to isa.Segment, at uint64, from isa.Segment, offset, n uint64) error
	// Zero sets n floats to 0, as Write does.
	Zero(s isa.Segment, offset, n uint64) error
	// Shared returns the memory of a segment, which stays where it is from then on; nil: the host cannot address it.
	Shared(s isa.Segment) []float32

	// Launch runs a script. On a GPU it returns before the script has run. The words may be reused at once, unless they are
	// in Device.Space.
	Launch(s *isa.Script, batch uint32) error
	// WaitBatch waits for the launch of a batch and those before it, and returns the first error since.
	WaitBatch(batch uint32) error
	// Wait waits for all launches and returns the first error since.
	Wait() error
	// Failed is the batch whose gradients were not finite, 0: none. With clear it is forgotten.
	Failed(clear bool) uint32

	// Profile has processors record where their time goes, from the next launch on.
	Profile() error
	// Clocks sums these records, after all launches; nil: there are none.
	Clocks() (*clocks.Sum, error)
	// Memory lists what takes how much memory.
	Memory() []memory.Use

	// Close waits and frees everything.
	Close()
}

// Host is an executor's processors if they are the host's.
type Host interface {
	// LaunchToUpdate runs a script up to its updates of parameters. Update runs these, before anything else is launched.
	LaunchToUpdate(s *isa.Script, batch uint32) error
	Update() error
}

// Device is an executor's GPU.
type Device interface {
	// Trial returns the plans that real batches are to measure, beginning with the one that Plan returned last; nil: none.
	Trial() *plan.Trial
	// BatchUS is the device's time for a batch of a trial, in microseconds. The batch has been waited for.
	BatchUS(batch uint32) float64
	// Chosen ends a trial and remembers its result.
	Chosen(t *plan.Trial) error

	// Space returns memory for the words of a batch's script, empty; nil: the builder uses its own. It is called by the
	// program's thread while workers are at work.
	Space(batch uint32) []uint32
	// Load copies a batch's script to the device, ahead of its launch. Scripts of other batches may be launched before.
	Load(s *isa.Script, batch uint32) error
	// Foretell waits for the word of segment result at offset, which the launch of a batch writes; false: the launch is
	// over without it. The program's thread calls it while workers are at work.
	Foretell(offset uint64, batch uint32) (word float32, ok bool, err error)

	// MeasureTimes has the device measure its own time from the next launch on.
	MeasureTimes() error
	// Trace has launches told by the host's clock now: when they began to wait for their script, had it and were done.
	Trace(now func() uint64, launch func(batch uint32, begin, copied, done uint64)) error
	// Counters counts since the executor was made. Any goroutine may call it.
	Counters() Counters
	// Free is the device's memory, in bytes; 0, 0 if the driver does not tell.
	Free() (free, total uint64)
}

// Summing is an executor with room for the sums of several ranks' gradients, in the memory of its device.
type Summing interface {
	// Ordinal is the device's number, as CUDA counts.
	Ordinal() int
	// Sums returns where a segment of gradients lies, and memory for as many sums. Both are 0 if there are no gradients.
	Sums(s isa.Segment) (own, sums Address, err error)
	// SwapSums has launches find the sums in place of a segment of gradients, or these again. Nothing may be in flight.
	SwapSums(s isa.Segment)
	// Packed returns memory for n words more, until it is called again.
	Packed(n uint64) (Address, error)
	// Fill gives n floats these bits, after all launches before it.
	Fill(at Address, bits uint32, n uint64) error
	// Move copies runs of floats, after all launches before it. They do not overlap.
	Move(list []Run) error
	// Pack rounds runs of floats, times scale, to bfloat16, after all launches before it: to nearest, ties to even. NaN stays
	// NaN, and what is too large becomes infinite.
	Pack(list []Run, scale float32) error
	// Unpack has runs of bfloat16 become floats, after all launches before it.
	Unpack(list []Run) error
}

// Address is of a byte in a device's memory.
type Address = uint64

// Run is n numbers and where they go.
type Run struct {
	From, To Address
	N        uint64
}

// Traits are facts about a device under its present plan.
type Traits struct {
	Asynchronous bool // a launch leaves the host time: it returns early, or a thread is free while it runs
	Immediate    bool // a launch is over when Launch returns
	Replans      bool // a new plan costs next to nothing
	Checks       bool // operands are held against the script's tensor table, which is then needed
}

// Counters counts what a device did.
type Counters struct {
	DeviceNS, CopyNS uint64 // of launches, and of their scripts' copies among it

	Launches, CopiesToDevice       uint64
	BytesToDevice, BytesFromDevice uint64

	KernelsCompiled, KernelsCached, CompileNS uint64
}
