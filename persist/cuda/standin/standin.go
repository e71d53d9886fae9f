// Package standin is a GPU for tests on machines without one: device memory is host memory, and a
// launch is interpreted by the CPU's virtual processors. What is put on the stream happens as late
// as it may, when somebody waits for it, so memory that is reused too early shows in the results. Every
// access is checked against what is allocated.
package standin

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unsafe"

	"libvpps/gpu"
	"libvpps/jit/kernel"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
)

// GPU is the device. Its methods may be called from any goroutine.
type GPU struct {
	// Plan is the residency that the loaded kernel was compiled for.
	Plan func() *plan.Plan
	// Took is how many microseconds a launch under a plan takes, for marks with times; nil: 1.
	Took    func(*plan.Plan) float64
	inOrder sync.Mutex // while the stream moves on

	mu              sync.Mutex
	calls           map[string]int
	lost            error
	fail            func(call string) error
	blocks          []block
	modules, events int
	stream          []func() error // not done yet
	passed          int            // how many of the stream are done
	failed          error          // of something on the stream, told by the next wait
}

type block struct {
	mem    unsafe.Pointer
	bytes  int64
	pinned bool
}

// Error is what a driver says: its code and name.
func Error(code int, name string) error {
	return &gpu.Error{Doing: "as the test asked", Code: code, Name: name, Text: name}
}

// Errors of the driver.
var (
	OutOfMemory = Error(2, "CUDA_ERROR_OUT_OF_MEMORY")
	TooLarge    = Error(720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE")
	Lost        = Error(700, "CUDA_ERROR_ILLEGAL_ADDRESS")
)

// Fail has f asked before every call, by the method's name; an error is the call's result. After one
// that is fatal all calls fail with it. A nil f ends it.
func (g *GPU) Fail(f func(call string) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fail = f
}

// begin counts a call and says whether it fails.
func (g *GPU) begin(call string) error {
	g.mu.Lock()
	if g.calls == nil {
		g.calls = map[string]int{}
	}
	g.calls[call]++
	lost, fail := g.lost, g.fail
	g.mu.Unlock()
	if lost != nil || fail == nil {
		return lost
	}
	err := fail(call)
	var e *gpu.Error
	if errors.As(err, &e) && e.Fatal() {
		g.mu.Lock()
		g.lost = err
		g.mu.Unlock()
	}
	return err
}

// Calls is how often each method was called so far.
func (g *GPU) Calls() map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := map[string]int{}
	for name, n := range g.calls {
		all[name] = n
	}
	return all
}

// Held is how much was not given back. Of a lost device nothing can be.
type Held struct{ Memory, Modules, Events int }

// Held is how much was not given back.
func (g *GPU) Held() Held {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Held{len(g.blocks), g.modules, g.events}
}

// Lost tells whether a fatal error has happened.
func (g *GPU) Lost() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lost != nil
}

// hold counts a module or event that was made (1) or given back (-1).
func (g *GPU) hold(count *int, by int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	*count += by
}

// Waiting is how much on the stream is not done.
func (g *GPU) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.stream) - g.passed
}

func (g *GPU) Info() gpu.Info {
	return gpu.Info{Name: "a stand-in", Major: 9, SMs: 8, RegsPerSM: 65536,
		SharedPerBlockOptin: 232448, TotalMem: 1 << 30, DriverVersion: 12090, Cooperative: true}
}

func (g *GPU) allocate(bytes int64, pinned bool) unsafe.Pointer {
	mem := kernel.Alloc(int(bytes+3) / 4)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.blocks = append(g.blocks, block{mem, bytes, pinned})
	return mem
}

func (g *GPU) free(mem uintptr, pinned bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, b := range g.blocks {
		if uintptr(b.mem) == mem && b.pinned == pinned {
			kernel.Free(b.mem)
			g.blocks[i] = g.blocks[len(g.blocks)-1]
			g.blocks = g.blocks[:len(g.blocks)-1]
			return nil
		}
	}
	return fmt.Errorf("%#x was freed before or never allocated", mem)
}

// at is the memory at a device address, of which bytes must be allocated.
func (g *GPU) at(p gpu.Ptr, bytes int64) (unsafe.Pointer, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, b := range g.blocks {
		from := int64(p) - int64(uintptr(b.mem))
		if from >= 0 && from+bytes <= b.bytes {
			return unsafe.Add(b.mem, from), nil
		}
	}
	return nil, fmt.Errorf("%d bytes at %#x are not allocated", bytes, uint64(p))
}

func (g *GPU) pinned(p unsafe.Pointer, bytes int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, b := range g.blocks {
		from := int64(uintptr(p)) - int64(uintptr(b.mem))
		if b.pinned && from >= 0 && from+bytes <= b.bytes {
			return true
		}
	}
	return false
}

func (g *GPU) Alloc(bytes int64) (gpu.Ptr, error) {
	if err := g.begin("Alloc"); err != nil {
		return 0, err
	}
	mem := g.allocate(bytes, false)
	fill(unsafe.Slice((*uint32)(mem), bytes/4), 0x7fbadbad) // contents are not specified: NaN
	return gpu.Ptr(uintptr(mem)), nil
}

// fill makes all words v, by copies twice as long each time.
func fill(words []uint32, v uint32) {
	if len(words) > 0 {
		words[0] = v
	}
	for n := 1; n < len(words); n *= 2 {
		copy(words[n:], words[:n])
	}
}

func (g *GPU) Free(p gpu.Ptr) error {
	if err := g.begin("Free"); err != nil || p == 0 {
		return err
	}
	if err := g.pass(g.end()); err != nil { // as the driver does
		return err
	}
	return g.free(uintptr(p), false)
}

func (g *GPU) AllocHost(bytes int) (gpu.HostBuffer, error) {
	if err := g.begin("AllocHost"); err != nil {
		return gpu.HostBuffer{}, err
	}
	mem := g.allocate(int64(bytes), true)
	return gpu.HostBuffer{Mem: mem, Dev: gpu.Ptr(uintptr(mem)), Bytes: bytes}, nil
}

func (g *GPU) FreeHost(b gpu.HostBuffer) error {
	if err := g.begin("FreeHost"); err != nil || b.Mem == nil {
		return err
	}
	return g.free(uintptr(b.Mem), true)
}

// put appends to the stream.
func (g *GPU) put(f func() error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stream = append(g.stream, f)
}

// pass does what is on the stream before mark.
func (g *GPU) pass(mark int) error {
	g.inOrder.Lock()
	defer g.inOrder.Unlock()
	for {
		g.mu.Lock()
		if g.passed >= mark || g.failed != nil {
			err := g.failed
			g.mu.Unlock()
			return err
		}
		f := g.stream[g.passed]
		g.stream[g.passed] = nil
		g.passed++
		g.mu.Unlock()
		if err := f(); err != nil {
			g.mu.Lock()
			g.failed = err
			g.mu.Unlock()
		}
	}
}

func (g *GPU) end() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.stream)
}

func (g *GPU) move(dst, src gpu.Ptr, bytes int64) error {
	to, err := g.at(dst, bytes)
	if err != nil {
		return err
	}
	from, err := g.at(src, bytes)
	if err != nil {
		return err
	}
	copy(unsafe.Slice((*byte)(to), bytes), unsafe.Slice((*byte)(from), bytes))
	return nil
}

func (g *GPU) CopyToDevice(dst gpu.Ptr, src unsafe.Pointer, bytes int) error {
	if err := g.begin("CopyToDevice"); err != nil {
		return err
	}
	if g.pinned(src, int64(bytes)) {
		g.put(func() error { return g.move(dst, gpu.Ptr(uintptr(src)), int64(bytes)) })
		return nil
	}
	if err := g.pass(g.end()); err != nil {
		return err
	}
	to, err := g.at(dst, int64(bytes))
	if err == nil {
		copy(unsafe.Slice((*byte)(to), bytes), unsafe.Slice((*byte)(src), bytes))
	}
	return err
}

// CopyAhead copies at once, before anything that is on the stream: what still needs the old contents
// does not find them.
func (g *GPU) CopyAhead(dst gpu.Ptr, src unsafe.Pointer, bytes int) error {
	if err := g.begin("CopyAhead"); err != nil {
		return err
	}
	if !g.pinned(src, int64(bytes)) {
		return errors.New("a copy ahead is from pinned memory")
	}
	return g.move(dst, gpu.Ptr(uintptr(src)), int64(bytes))
}

func (g *GPU) CopyFromDevice(dst unsafe.Pointer, src gpu.Ptr, bytes int) error {
	if err := g.begin("CopyFromDevice"); err != nil {
		return err
	}
	if err := g.pass(g.end()); err != nil {
		return err
	}
	from, err := g.at(src, int64(bytes))
	if err == nil {
		copy(unsafe.Slice((*byte)(dst), bytes), unsafe.Slice((*byte)(from), bytes))
	}
	return err
}

func (g *GPU) CopyOnDevice(dst, src gpu.Ptr, bytes int64) error {
	if err := g.begin("CopyOnDevice"); err != nil {
		return err
	}
	g.put(func() error { return g.move(dst, src, bytes) })
	return nil
}

func (g *GPU) Memset32(dst gpu.Ptr, v uint32, count int64) error {
	if err := g.begin("Memset32"); err != nil {
		return err
	}
	g.put(func() error {
		to, err := g.at(dst, 4*count)
		if err == nil {
			fill(unsafe.Slice((*uint32)(to), count), v)
		}
		return err
	})
	return nil
}

func (g *GPU) Launch(f gpu.Function, grid, block, shared int, args []byte, offsets []uint32) error {
	if err := g.begin("Launch"); err != nil {
		return err
	}
	if grid > blocksPerSM*g.Info().SMs {
		return TooLarge
	}
	if len(offsets) != 1 || offsets[0] != 0 {
		return fmt.Errorf("the kernel has one parameter, not at %v", offsets)
	}
	a := append([]byte(nil), args...)
	if name := f.(function).name; strings.HasPrefix(name, "vpps_move") {
		g.put(func() error { return g.moves(name, a, grid, block) })
		return nil
	}
	p := g.Plan()
	g.put(func() error { return g.run(p, a) })
	return nil
}

// run interprets a launch: args is struct Arguments of jit/kernel/gpu.h.
func (g *GPU) run(p *plan.Plan, args []byte) error {
	next := func() uint64 {
		v := binary.LittleEndian.Uint64(args)
		args = args[8:]
		return v
	}
	var segments []unsafe.Pointer
	for range int(isa.Segments) {
		at, _ := g.at(gpu.Ptr(next()), 0)
		segments = append(segments, at)
	}
	words, err := g.at(gpu.Ptr(next()), 4*int64(isa.HeadWords))
	if err != nil {
		return fmt.Errorf("the script: %w", err)
	}
	status, err := g.at(gpu.Ptr(next()), 256)
	if err != nil {
		return fmt.Errorf("the status: %w", err)
	}
	control, err := g.at(gpu.Ptr(next()), 24)
	if err != nil {
		return fmt.Errorf("the error words: %w", err)
	}
	wait := float64(next()) / 1e9
	batch := uint32(next())
	records := next()
	m, err := kernel.NewMachine(segments, 1, wait)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := m.SetPlan(p); err != nil {
		return err
	}
	*m.Status() = *(*uint32)(status)
	head := unsafe.Slice((*uint32)(words), isa.HeadWords)
	m.SetInputs(unsafe.Add(words, 4*uintptr(head[isa.HeadInputs])))
	if records != 0 {
		at, err := g.at(gpu.Ptr(records), int64(8*isa.ClockWords)*int64(head[isa.HeadProcessors]))
		if err != nil {
			return fmt.Errorf("the clocks: %w", err)
		}
		m.SetClocks(at)
	}
	if err := m.Run(words, int(head[isa.HeadProcessors]), batch, false); err != nil {
		*(*uint32)(control) = 1 // a wait that lasted too long
	}
	*(*uint32)(status) = *m.Status()
	return nil
}

func (g *GPU) Synchronize() error {
	if err := g.begin("Synchronize"); err != nil {
		return err
	}
	return g.pass(g.end())
}

func (g *GPU) MemInfo() (free, total int64, err error) { return 1000, 1 << 30, g.begin("MemInfo") }

func (g *GPU) Counts() gpu.Counts {
	c := g.Calls()
	return gpu.Counts{Launches: uint64(c["Launch"]), CopiesToDevice: uint64(c["CopyToDevice"] + c["CopyAhead"]), CopiesFromDevice: uint64(c["CopyFromDevice"])}
}

// Close frees pinned memory, as the driver's device does; other memory must be free by then.
func (g *GPU) Close() error {
	err := g.begin("Close")
	if err == nil {
		err = g.pass(g.end())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	kept := g.blocks[:0]
	for _, b := range g.blocks {
		if b.pinned {
			kernel.Free(b.mem)
		} else {
			kept = append(kept, b)
		}
	}
	g.blocks = kept
	return err
}

func (g *GPU) NewEvent() (gpu.Event, error)      { return g.event("NewEvent", false) }
func (g *GPU) NewTimedEvent() (gpu.Event, error) { return g.event("NewTimedEvent", true) }

func (g *GPU) event(call string, timed bool) (gpu.Event, error) {
	if err := g.begin(call); err != nil {
		return nil, err
	}
	g.hold(&g.events, 1)
	return &event{g: g, timed: timed}, nil
}

type event struct {
	g     *GPU
	timed bool
	mu    sync.Mutex
	mark  int
	at    time.Time // when the stream passed it
}

func (e *event) Record() error {
	if err := e.g.begin("Record"); err != nil {
		return err
	}
	if e.timed {
		e.g.put(func() error {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.at = time.Now()
			return nil
		})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mark = e.g.end()
	return nil
}

// Done has the device do one thing: who asks again and again lets time pass.
func (e *event) Done() (bool, error) {
	if err := e.g.begin("EventDone"); err != nil {
		return false, err
	}
	e.mu.Lock()
	mark := e.mark
	e.mu.Unlock()
	e.g.mu.Lock()
	next := min(mark, e.g.passed+1)
	e.g.mu.Unlock()
	return next == mark, e.g.pass(next)
}

func (e *event) Wait() error {
	if err := e.g.begin("EventWait"); err != nil {
		return err
	}
	e.mu.Lock()
	mark := e.mark
	e.mu.Unlock()
	return e.g.pass(mark)
}

func (e *event) Elapsed(since gpu.Event) (float64, error) {
	if err := e.g.begin("Elapsed"); err != nil {
		return 0, err
	}
	if e.g.Took != nil {
		return e.g.Took(e.g.Plan()), nil
	}
	return float64(e.passed().Sub(since.(*event).passed())) / 1e3, nil
}

func (e *event) passed() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.at
}

func (e *event) Close() error {
	err := e.g.begin("EventClose")
	if err == nil {
		e.g.hold(&e.g.events, -1)
	}
	return err
}

func (g *GPU) Load(image []byte) (gpu.Module, error) {
	if err := g.begin("Load"); err != nil {
		return nil, err
	}
	g.hold(&g.modules, 1)
	return &module{g}, nil
}

type module struct{ g *GPU }

func (m *module) Function(name string) (gpu.Function, error) {
	if err := m.g.begin("Function"); err != nil {
		return nil, err
	}
	return function{m.g, name}, nil
}

func (m *module) Unload() error {
	err := m.g.begin("Unload")
	if err == nil {
		m.g.hold(&m.g.modules, -1)
	}
	return err
}

type function struct {
	g    *GPU
	name string
}

const blocksPerSM = 2

func (function) Registers() int                 { return 64 }
func (function) LocalBytes() int                { return 0 }
func (f function) SetMaxShared(bytes int) error { return f.g.begin("SetMaxShared") }
func (f function) MaxBlocksPerSM(block, shared int) (int, error) {
	return blocksPerSM, f.g.begin("MaxBlocksPerSM")
}
