// Package cuda executes scripts on an NVIDIA GPU: one cooperative launch of the plan's kernel a
// script, one copy to the device before it. A script that is cut takes two launches (library.go).
package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"unsafe"

	"libvpps/env"
	"libvpps/gpu"
	"libvpps/jit"
	"libvpps/persist/clocks"
	"libvpps/persist/executor"
	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/plan"
	"libvpps/persist/script"
)

// slots is how many scripts may be on their way, from their writing on; the host writes into the next slot's pinned
// memory while the device still copies from the others.
const slots = 4

// slack is read, not used, behind a script: the device fetches whole pieces ahead.
const slack = 4 * isa.MaxWords

// Executor owns a device's segments. It is used by one goroutine at a time, but for WaitBatch, Space and
// reading results, which another may do meanwhile.
type Executor struct {
	mu       sync.Mutex // of the slots' busy and batch
	dev      gpu.Device
	compiler gpu.Compiler
	cache    *jit.Cache
	options  jit.Options
	waitNS   uint64

	segments [isa.Segments]segment
	sums     [isa.Segments]segment // of several ranks' gradients
	packed   segment               // rows of tables, for these
	mover    mover
	result   gpu.HostBuffer // segment result: mapped, so that reading it needs no copy
	control  gpu.HostBuffer // the error words, mapped
	status   gpu.Ptr        // the sticky word

	staging [slots]staging

	plan      *plan.Plan
	module    gpu.Module
	function  gpu.Function
	shared    int
	kernels   map[*plan.Plan]*jit.Kernel // of the last Plan
	trial     *plan.Trial                // of the last Plan until it is over, nil: none
	took      jit.Times                  // to make the kernels of the last Plan
	ahead     *kernelAhead               // nil: nothing is compiled ahead
	choice    string                     // the key under which the result of a trial is kept
	version   string                     // of the library
	timed     bool                       // the slots have marks with times
	settings  plan.Settings
	registers int         // that the interpreter needs without matrices, 0: not known yet
	lacking   int         // registers of the kernel that was refused last
	times     bool        // measure the device's time (VPPS_TIMES=1: 1.5 us a launch)
	deviceUS  float64     // so far
	copyUS    float64     // of this, until the script was copied
	clocks    *clocks.Sum // nil: none
	timeline  *timeline   // nil: none
	library   *plan.Library
	blas      gpu.BLAS // what library is, nil: nobody has asked for it
	code      int      // bytes of the loaded kernel

	toDevice, fromDevice atomic.Uint64 // bytes copied so far
}

type segment struct {
	at    gpu.Ptr
	words uint64
}

// staging is one slot: pinned words on the host, the same on the device, and the mark behind
// the launch that uses them.
type staging struct {
	host          gpu.HostBuffer
	dev           gpu.Ptr
	words         int
	done          gpu.Event
	begin, copied gpu.Event      // if timed
	us            float64        // what the last batch took, if timed
	clocks        gpu.HostBuffer // the processors' records, mapped, with clocks only
	busy          bool
	put           uint64 // when the host began to launch, with a timeline
	batch         uint32
}

const resultWords = 64

// New takes a device and a compiler and owns the device from then on. waitSeconds bounds every wait
// inside a kernel.
func New(dev gpu.Device, compiler gpu.Compiler, waitSeconds float64, settings plan.Settings, version string) (*Executor, error) {
	e := &Executor{dev: dev, compiler: compiler, settings: settings, version: version, cache: jit.OpenCache(), waitNS: uint64(waitSeconds * 1e9)}
	e.options.Check = env.On("VPPS_CHECK", false)
	if !dev.Info().Cooperative {
		return nil, fmt.Errorf("%s cannot launch cooperative grids", dev.Info().Name)
	}
	e.library = e.newLibrary()
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

// Profile has processors leave records of where their time goes. It is called before there is a plan: the kernel is
// another one. Clocks are of one launch a batch, so the kernel then forms all gradients.
func (e *Executor) Profile() error {
	if e.clocks != nil {
		return nil
	}
	e.options.Clocks, e.clocks = true, &clocks.Sum{}
	e.library.Refuse(errors.New("clocks are of one launch"))
	return e.MeasureTimes()
}

// allocate makes what an executor has from the beginning.
func (e *Executor) allocate() (err error) {
	if e.result, err = e.dev.AllocHost(4 * resultWords); err != nil {
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
	for i := range e.staging {
		if err := e.marks(&e.staging[i]); err != nil {
			return err
		}
	}
	return nil
}

// marks makes a slot's events; those with times cost the device 1.5 us a launch.
func (e *Executor) marks(t *staging) (err error) {
	if !e.timed {
		t.done, err = e.dev.NewEvent()
		return err
	}
	for _, mark := range []*gpu.Event{&t.begin, &t.copied, &t.done} {
		if *mark, err = e.dev.NewTimedEvent(); err != nil {
			return err
		}
	}
	return nil
}

func (e *Executor) unmark(t *staging) {
	for _, mark := range []gpu.Event{t.begin, t.copied, t.done} {
		if mark != nil {
			mark.Close()
		}
	}
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
	if e.blas != nil {
		e.blas.Close()
	}
	if e.module != nil {
		e.module.Unload()
	}
	for s := range e.segments {
		e.dev.Free(e.segments[s].at)
		e.dev.Free(e.sums[s].at)
	}
	e.dev.Free(e.packed.at)
	e.mover.release()
	e.dev.Free(e.status)
	e.timeline.close()
	for _, t := range e.staging {
		e.dev.Free(t.dev)
		e.unmark(&t)
	}
}

// Describe says what runs.
func (e *Executor) Describe() string {
	i := e.dev.Info()
	return fmt.Sprintf("cuda:%d: %s, sm_%d%d, %d SMs", i.Ordinal, i.Name, i.Major, i.Minor, i.SMs)
}

// Traits: a plan is a compilation here. A checking build runs batch by batch.
func (e *Executor) Traits() executor.Traits {
	return executor.Traits{Asynchronous: !e.options.Check, Foretells: true, Checks: e.options.Check, OwnClock: true}
}

// Grow makes room for n floats; what is there is copied.
func (e *Executor) Grow(s isa.Segment, n uint64) error {
	if s == isa.SegResult || s == isa.SegInput {
		return nil
	}
	g := &e.segments[s]
	if n <= g.words {
		return nil
	}
	words := max(n, g.words+g.words/2, 1<<20)
	at, err := e.dev.Alloc(int64(words) * 4)
	if err != nil && words > n {
		words = n
		at, err = e.dev.Alloc(int64(words) * 4)
	}
	if err != nil {
		free, total, _ := e.dev.MemInfo()
		return fmt.Errorf("segment %v: %d bytes needed, %d of %d free: %w", s, 4*n, free, total, err)
	}
	if err := e.move(g, at, words); err != nil {
		e.dev.Free(at)
		return err
	}
	old := g.at
	g.at, g.words = at, words
	return e.dev.Free(old)
}

// move copies a segment to where it has room for words floats, and waits.
func (e *Executor) move(g *segment, to gpu.Ptr, words uint64) error {
	if g.words > 0 {
		if err := e.dev.CopyOnDevice(to, g.at, int64(g.words)*4); err != nil {
			return err
		}
	}
	// What nobody has written is 0 for gradients that are read as a whole, and for initcheck.
	if err := e.dev.Memset32(to+gpu.Ptr(4*g.words), 0, int64(words-g.words)); err != nil {
		return err
	}
	return e.dev.Synchronize()
}

// Read copies from a segment after everything launched before.
func (e *Executor) Read(s isa.Segment, offset uint64, to []float32) error {
	if len(to) == 0 {
		return nil
	}
	if s == isa.SegResult {
		copy(to, unsafe.Slice((*float32)(e.result.Mem), resultWords)[offset:])
		return nil
	}
	e.fromDevice.Add(4 * uint64(len(to)))
	if err := e.dev.CopyFromDevice(unsafe.Pointer(&to[0]), e.segments[s].at+gpu.Ptr(4*offset), 4*len(to)); err != nil {
		return err
	}
	return e.check()
}

// Write copies to a segment.
func (e *Executor) Write(s isa.Segment, offset uint64, from []float32) error {
	if len(from) == 0 {
		return nil
	}
	if s == isa.SegResult {
		copy(unsafe.Slice((*float32)(e.result.Mem), resultWords)[offset:], from)
		return nil
	}
	e.toDevice.Add(4 * uint64(len(from)))
	return e.dev.CopyToDevice(e.segments[s].at+gpu.Ptr(4*offset), unsafe.Pointer(&from[0]), 4*len(from))
}

// Zero sets n floats of a segment to 0.
func (e *Executor) Zero(s isa.Segment, offset, n uint64) error {
	if n == 0 {
		return nil
	}
	return e.dev.Memset32(e.segments[s].at+gpu.Ptr(4*offset), 0, int64(n))
}

// Space is pinned words for the script of a batch, if they are enough: Launch then copies it to the device from there. The
// batch is fewer than slots ahead of the first that was not launched yet. It may be called while another goroutine launches.
func (e *Executor) Space(batch uint32) []uint32 {
	t := e.slotOf(batch)
	if e.finish(t) != nil { // the launch will tell
		return nil
	}
	return unsafe.Slice((*uint32)(t.host.Mem), t.words)[:0]
}

// slotOf is a batch's slot; the first batch is number 1.
func (e *Executor) slotOf(batch uint32) *staging { return &e.staging[(batch-1)%slots] }

// stage brings a batch's script to the pinned memory of its slot, if it was written elsewhere.
func (e *Executor) stage(batch uint32, words []uint32) (*staging, error) {
	t := e.slotOf(batch)
	if unsafe.Pointer(&words[0]) == t.host.Mem {
		return t, nil
	}
	if err := e.room(t, len(words)); err != nil {
		return nil, err
	}
	copy(unsafe.Slice((*uint32)(t.host.Mem), t.words), words)
	return t, nil
}

// Launch copies the script and starts the kernel.
func (e *Executor) Launch(s *isa.Script, batch uint32) error {
	if e.function == nil {
		return errors.New("no plan was compiled")
	}
	n := int(s.Words[isa.HeadDevice])
	if e.options.Check {
		n = int(s.Words[isa.HeadTensorEnd])
		if err := e.unwrite(s); err != nil {
			return err
		}
	}
	t, err := e.stage(batch, s.Words[:n])
	if err != nil {
		return err
	}
	e.timeline.before(t)
	if e.timed {
		if err := t.begin.Record(); err != nil {
			return err
		}
	}
	e.toDevice.Add(4 * uint64(n))
	if err := e.dev.CopyAhead(t.dev, t.host.Mem, 4*n); err != nil { // nobody uses the slot, see room
		return err
	}
	if e.times {
		if err := t.copied.Record(); err != nil {
			return err
		}
	}
	if err := e.watch(t); err != nil {
		return err
	}
	if err := e.start(s, t, batch); err != nil {
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

// launch starts the kernel for a part of a slot's script.
func (e *Executor) launch(t *staging, batch uint32, part isa.Part) error {
	return e.dev.Launch(e.function, e.plan.Processors, jit.Threads, e.shared, e.arguments(t, batch, part), []uint32{0})
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
		script.Pause()
	}
}

// WaitBatch waits for a launch that may still be on its way.
func (e *Executor) WaitBatch(batch uint32) error {
	for i := range e.staging {
		t := &e.staging[i]
		e.mu.Lock()
		mine := t.batch == batch
		e.mu.Unlock()
		if mine {
			if err := e.finish(t); err != nil {
				return err
			}
		}
	}
	return e.check()
}

// finish waits until a slot's launch is over. Who reads a result and who launches may wait for the
// same slot at the same time.
func (e *Executor) finish(t *staging) error {
	e.mu.Lock()
	busy, batch := t.busy, t.batch
	e.mu.Unlock()
	if !busy {
		return nil
	}
	if err := t.done.Wait(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !t.busy || t.batch != batch {
		return nil
	}
	t.busy = false
	if e.clocks != nil {
		e.clocks.Add(t.records())
	}
	if !e.timed {
		return nil
	}
	var err error
	if t.us, err = t.done.Elapsed(t.begin); err != nil || !e.times {
		return err
	}
	e.deviceUS += t.us
	us, err := t.copied.Elapsed(t.begin)
	if err != nil {
		return err
	}
	e.copyUS += us
	return e.timeline.passed(t)
}

// room waits until a slot is free and makes it large enough; if that fails it stays as it was.
func (e *Executor) room(t *staging, n int) error {
	if err := e.finish(t); err != nil {
		return err
	}
	if n <= t.words {
		return nil
	}
	words := n + n/2 + 4096
	host, err := e.dev.AllocHost(4 * words)
	if err != nil {
		return err
	}
	dev, err := e.dev.Alloc(4 * int64(words+slack))
	if err == nil {
		err = e.dev.Memset32(dev, 0, int64(words+slack))
	}
	if err == nil {
		err = e.dev.Synchronize() // scripts are copied beside what is on the stream
	}
	if err != nil {
		e.dev.FreeHost(host)
		e.dev.Free(dev)
		return err
	}
	old := *t
	t.host, t.dev, t.words = host, dev, words
	if err := e.dev.FreeHost(old.host); err != nil {
		return err
	}
	return e.dev.Free(old.dev)
}

// arguments is the kernel's parameter block: struct Arguments of jit/kernel/gpu.h.
func (e *Executor) arguments(t *staging, batch uint32, part isa.Part) []byte {
	b := make([]byte, 0, 112)
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
	b = binary.LittleEndian.AppendUint32(b, batch)
	b = binary.LittleEndian.AppendUint32(b, uint32(part))
	return binary.LittleEndian.AppendUint64(b, uint64(t.clocks.Dev))
}

// Wait returns when all launches have finished.
func (e *Executor) Wait() error {
	if err := e.dev.Synchronize(); err != nil {
		return err
	}
	if e.timed { // what they took
		if err := e.finishAll(); err != nil {
			return err
		}
	}
	return e.check()
}

func (e *Executor) finishAll() error {
	for i := range e.staging {
		if err := e.finish(&e.staging[i]); err != nil {
			return err
		}
	}
	return nil
}

// check reads what a processor left that gave up.
func (e *Executor) check() error {
	stop := (*isa.Stop)(e.control.Mem)
	if stop[isa.StopCode] == isa.Running {
		return nil
	}
	var words []uint32
	for i := range e.staging {
		t := &e.staging[i]
		e.mu.Lock()
		if t.words > 0 && t.batch == stop[isa.StopBatch] {
			words = unsafe.Slice((*uint32)(t.host.Mem), t.words)
		}
		e.mu.Unlock()
	}
	return stop.Error(words, float64(e.waitNS)/1e9)
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
	var scripts, copies, records uint64
	sums := 4 * e.packed.words
	for s := range e.sums {
		sums += 4 * e.sums[s].words
	}
	add(memory.Device, "sums of several ranks", sums)
	for i := range e.staging {
		t := &e.staging[i]
		if t.words > 0 {
			scripts += 4 * uint64(t.words)
			copies += 4 * uint64(t.words+slack)
		}
		records += uint64(t.clocks.Bytes)
	}
	add(memory.Device, "scripts", copies)
	add(memory.Device, "the kernel's code", uint64(e.code))
	add(memory.Pinned, "scripts", scripts)
	add(memory.Pinned, "results and errors", uint64(e.result.Bytes+e.control.Bytes))
	add(memory.Pinned, "records of the profile", records)
	add(memory.Pinned, "lists of copies", uint64(e.mover.list.Bytes))
	return uses
}

// Free is what is free of the device's memory, and how much it has; 0 if the driver does not tell.
func (e *Executor) Free() (free, total uint64) {
	f, t, err := e.dev.MemInfo()
	if err != nil {
		return 0, 0
	}
	return uint64(f), uint64(t)
}
