// Package cuda executes scripts on an NVIDIA GPU: one cooperative launch of the plan's kernel a
// script, one copy to the device before it.
package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"libvpps/env"
	"libvpps/gpu"
	"libvpps/jit"
	"libvpps/persist/clocks"
	"libvpps/persist/executor"
	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/pause"
	"libvpps/persist/plan"
)

// Executor runs scripts on one device. It is made of objects that do not know of each other: the memory of the segments,
// the launches on their way, the choice of a plan, the kernel that is loaded and the copying of rows.
// It is used by one goroutine at a time, but for WaitBatch, Space and reading results, which another may do meanwhile.
type Executor struct {
	dev gpu.Device
	storage
	launches
	planner
	loaded
	mover   mover
	control gpu.HostBuffer // the error words, mapped
	status  gpu.Ptr        // the sticky word
	waitNS  uint64         // how long a wait in a kernel may take
}

// New takes a device and a compiler and owns the device from then on. waitSeconds bounds every wait
// inside a kernel.
func New(dev gpu.Device, compiler gpu.Compiler, waitSeconds float64, settings plan.Settings, version string) (*Executor, error) {
	e := assembled(dev, compiler, jit.OpenCache(), settings, version)
	e.waitNS = uint64(waitSeconds * 1e9)
	e.options.Check = env.On("VPPS_CHECK", false)
	if !dev.Info().Cooperative {
		return nil, fmt.Errorf("%s cannot launch cooperative grids", dev.Info().Name)
	}
	e.times = env.On("VPPS_TIMES", false)
	e.timed = e.times
	err := e.allocate()
	if err == nil && env.On("VPPS_PROFILE", false) {
		err = e.Profile()
	}
	if err != nil {
		e.release()
		return nil, err
	}
	return e, nil
}

// assembled is an executor that has asked nothing of its device yet.
func assembled(dev gpu.Device, compiler gpu.Compiler, cache *jit.Cache, settings plan.Settings, version string) *Executor {
	e := &Executor{dev: dev, planner: planner{device: dev.Info(), compiler: compiler, cache: cache, settings: settings, version: version}, mover: mover{dev: dev, compiler: compiler}}
	e.storage.dev, e.launches.dev = dev, dev
	return e
}

// Profile has processors leave records of where their time goes. It is called before there is a plan: the kernel is
// another one.
func (e *Executor) Profile() error {
	if e.clocks != nil {
		return nil
	}
	e.options.Clocks, e.clocks = true, &clocks.Sum{}
	return e.MeasureTimes()
}

// allocate makes what an executor has from the beginning.
func (e *Executor) allocate() (err error) {
	if err := e.storage.open(); err != nil {
		return err
	}
	if e.control, err = e.dev.AllocHost(256); err != nil {
		return err
	}
	clear(e.errorWords())
	if e.status, err = e.dev.Alloc(256); err != nil {
		return err
	}
	if err := e.dev.Memset32(e.status, 0, 64); err != nil {
		return err
	}
	return e.launches.open()
}

func (e *Executor) errorWords() []uint32 { return unsafe.Slice((*uint32)(e.control.Mem), 64) }

// Close gives the device back.
func (e *Executor) Close() {
	e.release()
	e.dev.Close()
}

// release frees what the context, which others may use too, would keep: all but pinned memory.
func (e *Executor) release() {
	e.dev.Synchronize()
	e.unload()
	e.storage.free()
	e.mover.release()
	e.dev.Free(e.status)
	e.launches.free()
}

// Describe says what runs.
func (e *Executor) Describe() string {
	i := e.dev.Info()
	return fmt.Sprintf("cuda:%d: %s, sm_%d%d, %d SMs", i.Ordinal, i.Name, i.Major, i.Minor, i.SMs)
}

// Traits: a plan is a compilation here. A checking build runs batch by batch.
func (e *Executor) Traits() executor.Traits {
	return executor.Traits{Asynchronous: !e.options.Check, Checks: e.options.Check}
}

// Device is the executor itself.
func (e *Executor) Device() executor.Device { return e }

// Host is nil: the host's processors have other work.
func (e *Executor) Host() executor.Host { return nil }

// Read copies from a segment after everything launched before.
func (e *Executor) Read(s isa.Segment, offset uint64, to []float32) error {
	if err := e.read(s, offset, to); err != nil || s == isa.SegResult || len(to) == 0 {
		return err
	}
	return e.check()
}

// Load copies a script to the device.
func (e *Executor) Load(s *isa.Script, batch uint32) error {
	t, err := e.stage(batch, s.Words[:e.sent(s)])
	if err != nil {
		return err
	}
	return e.load(s, t)
}

func (e *Executor) load(s *isa.Script, t *staging) error {
	n := e.sent(s)
	e.toDevice.Add(4 * uint64(n))
	err := e.dev.CopyAhead(t.dev, t.host.Mem, 4*n) // nobody uses the slot, see room
	t.loaded = err == nil
	return err
}

// sent is how many words of a script the device gets.
func (e *Executor) sent(s *isa.Script) int {
	if e.options.Check {
		return int(s.Words[isa.HeadTensorEnd])
	}
	return int(s.Words[isa.HeadDevice])
}

// Launch copies the script, unless it is loaded, and starts the kernel.
func (e *Executor) Launch(s *isa.Script, batch uint32) error {
	if e.function == nil {
		return errors.New("no plan was compiled")
	}
	e.improve()
	e.near.change()
	if e.options.Check {
		if err := e.unwrite(s); err != nil {
			return err
		}
	}
	t, err := e.stage(batch, s.Words[:e.sent(s)])
	if err != nil {
		return err
	}
	e.timeline.before(t)
	if e.timed {
		if err := t.begin.Record(); err != nil {
			return err
		}
	}
	if !t.loaded {
		if err := e.load(s, t); err != nil {
			return err
		}
	}
	t.loaded = false
	if e.times {
		if err := t.copied.Record(); err != nil {
			return err
		}
	}
	if err := e.watch(t, e.plan.Processors); err != nil {
		return err
	}
	if err := e.dev.Launch(e.function, e.plan.Processors, jit.Threads, e.shared, e.argumentsOf(t, batch), []uint32{0}); err != nil {
		return err
	}
	if err = t.done.Record(); err != nil { // the launch is on its way: if its end cannot be noted, it is waited for
		err = e.dev.Synchronize()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	t.busy, t.batch = true, batch
	if err != nil {
		return err
	}
	return e.timeline.after(t)
}

// unwrite fills the activations that a launch must write before it reads with the sentinel.
func (e *Executor) unwrite(s *isa.Script) error {
	for at, end := range s.Recycled() {
		if err := e.dev.Memset32(e.segments[isa.SegAct].at+gpu.Ptr(4*uint64(at)), isa.Sentinel, int64(end-at)); err != nil {
			return err
		}
	}
	return nil
}

// Foretell waits for the first word of a launch's results, which is there before the launch is over; false: it is over, and
// the word is not there.
func (e *Executor) Foretell(offset uint64, batch uint32) (float32, bool, error) {
	word := (*uint32)(unsafe.Add(e.result.Mem, 4*offset))
	t := e.slotOf(batch)
	for looks := 1; ; looks++ {
		over, err := false, error(nil)
		if looks%1024 == 0 {
			over, err = t.done.Done()
		}
		if w := atomic.LoadUint32(word); w != isa.Sentinel || over || err != nil {
			return math.Float32frombits(w), w != isa.Sentinel, err
		}
		pause.Briefly()
	}
}

// WaitBatch waits for a launch that may still be on its way.
func (e *Executor) WaitBatch(batch uint32) error {
	if err := e.passed(batch); err != nil {
		return err
	}
	return e.check()
}

const argumentBytes = 112

// argumentsOf is the kernel's parameter block, struct Arguments of jit/kernel/gpu.h, until it is called again.
func (e *Executor) argumentsOf(t *staging, batch uint32) []byte {
	b := e.arguments[:0]
	put := func(p gpu.Ptr) { b = binary.LittleEndian.AppendUint64(b, uint64(p)) }
	for s := range e.segments {
		if isa.Segment(s) == isa.SegResult {
			put(e.result.Dev)
		} else {
			put(e.segments[s].at)
		}
	}
	put(t.dev)
	put(e.status)
	put(e.control.Dev)
	b = binary.LittleEndian.AppendUint64(b, e.waitNS)
	b = binary.LittleEndian.AppendUint64(b, uint64(batch)) // 4 bytes of it are the gap before an address
	return binary.LittleEndian.AppendUint64(b, uint64(t.clocks.Dev))
}

// Wait returns when all launches have finished.
func (e *Executor) Wait() error {
	if err := e.dev.Synchronize(); err != nil {
		return err
	}
	if e.timed { // the slots' events have the launches' times
		if err := e.finishAll(); err != nil {
			return err
		}
	}
	return e.check()
}

// check reports a processor that gave up, from the error words.
func (e *Executor) check() error {
	stop := (*isa.Stop)(e.control.Mem)
	if stop[isa.StopCode] == isa.Running {
		return nil
	}
	return stop.Error(e.wordsOf(stop[isa.StopBatch]), float64(e.waitNS)/1e9)
}

// Failed is the batch whose gradients were not finite, 0: none; clear forgets it.
func (e *Executor) Failed(clear bool) uint32 {
	var w uint32
	if e.dev.CopyFromDevice(unsafe.Pointer(&w), e.status, 4) != nil {
		return 0
	}
	if clear && w != 0 {
		e.dev.Memset32(e.status, 0, 1)
	}
	return w
}

// Counters counts times as far as MeasureTimes asked for them. The copy of a script takes place while the launch before
// runs. Results of launches lie in mapped memory and are not among the bytes.
func (e *Executor) Counters() executor.Counters {
	driver, kernels := e.dev.Counts(), e.cache.Counts()
	return executor.Counters{
		DeviceNS: uint64(e.deviceUS * 1e3), CopyNS: uint64(e.copyUS * 1e3),
		Launches: driver.Launches, CopiesToDevice: driver.CopiesToDevice,
		BytesToDevice: e.toDevice.Load(), BytesFromDevice: e.fromDevice.Load(),
		KernelsCompiled: kernels.Compiled, KernelsCached: kernels.Found, CompileNS: uint64(kernels.Compiling),
	}
}

// Shared: the host does not address a GPU's segments.
func (e *Executor) Shared(isa.Segment) []float32 { return nil }

// Memory is what takes how much.
func (e *Executor) Memory() (uses []memory.Use) {
	add := func(p memory.Place, what string, bytes uint64) {
		uses = append(uses, memory.Use{Place: p, What: what, Bytes: bytes})
	}
	for s := range e.segments {
		add(memory.Device, memory.OfSegment(isa.Segment(s)), 4*e.segments[s].words)
	}
	scripts, copies, records := e.launches.bytes()
	add(memory.Device, "sums of several ranks", e.sumBytes())
	add(memory.Device, "scripts", copies)
	add(memory.Device, "the kernel's code", uint64(e.code))
	add(memory.Pinned, "scripts", scripts)
	add(memory.Pinned, "results and errors", uint64(e.result.Bytes+e.control.Bytes))
	add(memory.Pinned, "records of the profile", records)
	add(memory.Pinned, "lists of copies", uint64(e.mover.list.Bytes))
	return uses
}

// Free returns the device's free memory and all of it, in bytes; 0, 0 if the driver does not tell.
func (e *Executor) Free() (free, total uint64) {
	f, t, err := e.dev.MemInfo()
	if err != nil {
		return 0, 0
	}
	return uint64(f), uint64(t)
}
