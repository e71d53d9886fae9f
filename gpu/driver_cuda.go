//go:build cuda

package gpu

// The driver behind the interfaces of gpu.go, by way of gorgonia.org/cu. What
// every batch calls, and what that package lacks, goes through cudaload.Stream.

/*
#include <cuda.h>
#ifndef VPPS_CUDA_H
#error "this is a CUDA toolkit's cuda.h: build with make or cmake, which name ours"
#endif
*/
import "C"

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"gorgonia.org/cu"

	"libvpps/gpu/cudaload"
)

// OpenDriver loads the NVIDIA driver, once in a process.
func OpenDriver() (Driver, error) {
	if err := cudaload.Driver(); err != nil {
		return nil, failed(err, "open the NVIDIA driver")
	}
	return driver{}, nil
}

type driver struct{}

func (driver) File() string { return cudaload.DriverFile() }

func (driver) DeviceCount() (int, error) {
	n, err := cu.NumDevices()
	return n, failed(result(err), "count the GPUs")
}

func (driver) Open(ordinal int) (Device, error) {
	count, err := driver{}.DeviceCount()
	if err != nil {
		return nil, err
	}
	if ordinal < 0 || ordinal >= count {
		return nil, fmt.Errorf("open GPU %d: there are %d (after CUDA_VISIBLE_DEVICES): name one from 0 to %d", ordinal, count, count-1)
	}
	d := &device{}
	if d.dev, err = cu.GetDevice(ordinal); err != nil {
		return nil, failed(result(err), "open GPU %d", ordinal)
	}
	if d.info, err = describe(d.dev, ordinal); err != nil {
		return nil, failed(result(err), "ask for the properties of GPU %d", ordinal)
	}
	if d.ctx, err = d.dev.RetainPrimaryCtx(); err != nil {
		return nil, failed(result(err), "make a context on GPU %d", ordinal)
	}
	err = d.inContext(func() (err error) {
		if d.stream, err = cu.MakeStream(cu.NonBlocking); err != nil {
			return err
		}
		if d.copies, err = cu.MakeStream(cu.NonBlocking); err != nil {
			return err
		}
		d.copied, err = cu.MakeEvent(cu.DisableTiming)
		return err
	})
	if err != nil {
		d.dev.ReleasePrimaryCtx()
		return nil, failed(err, "make a stream on GPU %d", ordinal)
	}
	d.s = cudaload.Stream{Context: handle(&d.ctx), Handle: handle(&d.stream)}
	return d, nil
}

// Device attributes that gorgonia.org/cu has no names for.
const (
	cooperativeLaunch   = cu.DeviceAttribute(95)
	sharedPerBlockOptin = cu.DeviceAttribute(97)
)

func describe(d cu.Device, ordinal int) (Info, error) {
	i := Info{Ordinal: ordinal, DriverVersion: cu.Version()}
	var err error
	if i.Name, err = d.Name(); err != nil {
		return i, err
	}
	if i.TotalMem, err = d.TotalMem(); err != nil {
		return i, err
	}
	var coop int
	for _, a := range []struct {
		what cu.DeviceAttribute
		to   *int
	}{
		{cu.ComputeCapabilityMajor, &i.Major},
		{cu.ComputeCapabilityMinor, &i.Minor},
		{cu.MultiprocessorCount, &i.SMs},
		{cu.MaxRegistersPerMultiprocessor, &i.RegsPerSM},
		{sharedPerBlockOptin, &i.SharedPerBlockOptin},
		{cu.L2CacheSize, &i.L2Bytes},
		{cooperativeLaunch, &coop},
	} {
		if *a.to, err = d.Attribute(a.what); err != nil {
			return i, err
		}
	}
	i.Cooperative = coop != 0
	return i, nil
}

// The handle types of gorgonia.org/cu are structs of one driver handle each.
func handle[T cu.CUContext | cu.Stream | cu.Event | cu.Function](h *T) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(h))
}

const (
	_ = -(unsafe.Sizeof(cu.CUContext{}) - unsafe.Sizeof(uintptr(0)))
	_ = -(unsafe.Sizeof(cu.Stream{}) - unsafe.Sizeof(uintptr(0)))
	_ = -(unsafe.Sizeof(cu.Event{}) - unsafe.Sizeof(uintptr(0)))
	_ = -(unsafe.Sizeof(cu.Function{}) - unsafe.Sizeof(uintptr(0)))
)

// result turns gorgonia.org/cu's unexported error type, an int, into ours.
func result(err error) error {
	if v := reflect.ValueOf(err); v.IsValid() && v.Kind() == reflect.Int {
		return cudaload.Error(v.Int())
	}
	return err
}

type device struct {
	dev    cu.Device
	info   Info
	ctx    cu.CUContext
	stream cu.Stream
	copies cu.Stream       // of CopyAhead
	copied cu.Event        // the end of its last copy
	s      cudaload.Stream // the same context and stream
	closed atomic.Bool

	mu     sync.Mutex
	pinned []HostBuffer
}

// inContext runs calls of gorgonia.org/cu with the context current, and puts the
// thread's own context back. For rare calls: those of a batch go through d.s,
// which does the same in one crossing.
func (d *device) inContext(f func() error) error {
	if d.closed.Load() {
		return errClosed
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cu.PushCurrentCtx(d.ctx); err != nil {
		return result(err)
	}
	err := result(f())
	if _, perr := cu.PopCurrentCtx(); err == nil {
		err = result(perr)
	}
	return err
}

var errClosed = errors.New("the device is closed")

func (d *device) Info() Info { return d.info }

// order is the context and stream, for libraries.
func (d *device) order() cudaload.Stream { return d.s }

func (d *device) Alloc(bytes int64) (p Ptr, err error) {
	if bytes <= 0 {
		return 0, fmt.Errorf("allocate %d bytes on GPU %d: the size must be positive", bytes, d.info.Ordinal)
	}
	err = d.inContext(func() error {
		m, err := cu.MemAlloc(bytes)
		p = Ptr(m)
		return err
	})
	if err == cudaload.ErrOutOfMemory {
		if free, total, e := d.MemInfo(); e == nil {
			return 0, failed(err, "allocate %d bytes on GPU %d (%d of %d are free)", bytes, d.info.Ordinal, free, total)
		}
	}
	return p, failed(err, "allocate %d bytes on GPU %d", bytes, d.info.Ordinal)
}

func (d *device) Free(p Ptr) error {
	if p == 0 {
		return nil
	}
	err := d.inContext(func() error { return cu.MemFree(cu.DevicePtr(p)) })
	return failed(err, "free memory on GPU %d", d.info.Ordinal)
}

func (d *device) AllocHost(bytes int) (HostBuffer, error) {
	if bytes <= 0 {
		return HostBuffer{}, fmt.Errorf("allocate %d bytes of pinned memory: the size must be positive", bytes)
	}
	if d.closed.Load() {
		return HostBuffer{}, errClosed
	}
	mem, dev, err := d.s.AllocHost(bytes)
	if err != nil {
		return HostBuffer{}, failed(err, "allocate %d bytes of pinned memory", bytes)
	}
	b := HostBuffer{Mem: mem, Dev: Ptr(dev), Bytes: bytes}
	d.mu.Lock()
	d.pinned = append(d.pinned, b)
	d.mu.Unlock()
	return b, nil
}

func (d *device) FreeHost(b HostBuffer) error {
	if b.Mem == nil {
		return nil
	}
	d.mu.Lock()
	i := slices.IndexFunc(d.pinned, func(o HostBuffer) bool { return o.Mem == b.Mem })
	if i >= 0 {
		d.pinned = slices.Delete(d.pinned, i, i+1)
	}
	d.mu.Unlock()
	if i < 0 {
		return errors.New("free pinned memory: it is not of this device or was freed before")
	}
	err := d.inContext(func() error { return cu.MemFreeHost(b.Mem) })
	return failed(err, "free pinned memory")
}

func (d *device) isPinned(p unsafe.Pointer, bytes int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, b := range d.pinned {
		if uintptr(p) >= uintptr(b.Mem) && uintptr(p)+uintptr(bytes) <= uintptr(b.Mem)+uintptr(b.Bytes) {
			return true
		}
	}
	return false
}

func (d *device) CopyToDevice(dst Ptr, src unsafe.Pointer, bytes int) error {
	if d.closed.Load() {
		return errClosed
	}
	if bytes == 0 {
		return nil
	}
	return failed(d.s.CopyToDevice(uint64(dst), src, bytes, !d.isPinned(src, bytes)), "copy to GPU %d", d.info.Ordinal)
}

func (d *device) CopyAhead(dst Ptr, src unsafe.Pointer, bytes int) error {
	if d.closed.Load() {
		return errClosed
	}
	if bytes == 0 {
		return nil
	}
	if !d.isPinned(src, bytes) {
		return fmt.Errorf("copy to GPU %d: only pinned memory can be copied beside other work", d.info.Ordinal)
	}
	return failed(d.s.CopyAhead(handle(&d.copies), handle(&d.copied), uint64(dst), src, bytes), "copy to GPU %d", d.info.Ordinal)
}

func (d *device) CopyFromDevice(dst unsafe.Pointer, src Ptr, bytes int) error {
	if d.closed.Load() {
		return errClosed
	}
	if bytes == 0 {
		return d.Synchronize()
	}
	return failed(d.s.CopyFromDevice(dst, uint64(src), bytes), "copy from GPU %d", d.info.Ordinal)
}

func (d *device) CopyOnDevice(dst, src Ptr, bytes int64) error {
	if d.closed.Load() {
		return errClosed
	}
	if bytes == 0 {
		return nil
	}
	return failed(d.s.CopyOnDevice(uint64(dst), uint64(src), bytes), "copy on GPU %d", d.info.Ordinal)
}

func (d *device) Memset32(dst Ptr, v uint32, count int64) error {
	if d.closed.Load() {
		return errClosed
	}
	if count == 0 {
		return nil
	}
	return failed(d.s.Memset32(uint64(dst), v, count), "fill memory on GPU %d", d.info.Ordinal)
}

func (d *device) Launch(f Function, grid, block, shared int, args []byte, offsets []uint32) error {
	if d.closed.Load() {
		return errClosed
	}
	fn, ok := f.(*function)
	if !ok || fn.d != d {
		return fmt.Errorf("launch on GPU %d: the kernel is of another device", d.info.Ordinal)
	}
	if err := d.s.Launch(handle(&fn.fn), grid, block, shared, args, offsets); err != nil {
		return failed(err, "launch %s on GPU %d (%d blocks of %d threads, %d bytes of shared memory)", fn.name, d.info.Ordinal, grid, block, shared)
	}
	return nil
}

func (d *device) Synchronize() error {
	if d.closed.Load() {
		return errClosed
	}
	return failed(d.s.Synchronize(), "wait for GPU %d", d.info.Ordinal)
}

func (d *device) MemInfo() (free, total int64, err error) {
	err = d.inContext(func() (err error) {
		free, total, err = cu.MemInfo()
		return err
	})
	return free, total, failed(err, "ask GPU %d for its free memory", d.info.Ordinal)
}

func (d *device) Close() error {
	if d.closed.Load() {
		return nil
	}
	err := d.s.Synchronize()
	d.mu.Lock()
	pinned := d.pinned
	d.pinned = nil
	d.mu.Unlock()
	err = errors.Join(err, d.inContext(func() error {
		for _, b := range pinned {
			cu.MemFreeHost(b.Mem)
		}
		return errors.Join(result(cu.DestroyEvent(&d.copied)), result(d.copies.Destroy()), result(d.stream.Destroy()))
	}))
	d.closed.Store(true)
	err = errors.Join(err, result(d.dev.ReleasePrimaryCtx()))
	return failed(err, "close GPU %d", d.info.Ordinal)
}

func (d *device) Counts() Counts {
	sum := func(names ...string) (n uint64) {
		for _, name := range names {
			n += cudaload.Calls(name)
		}
		return n
	}
	return Counts{
		Launches:         sum("cuLaunchKernel", "cuLaunchCooperativeKernel", "cuGraphLaunch"),
		CopiesToDevice:   sum("cuMemcpyHtoD_v2", "cuMemcpyHtoDAsync_v2"),
		CopiesFromDevice: sum("cuMemcpyDtoH_v2", "cuMemcpyDtoHAsync_v2"),
		CopiesOnDevice:   sum("cuMemcpyDtoD_v2", "cuMemcpyDtoDAsync_v2"),
		Memsets:          sum("cuMemsetD32_v2", "cuMemsetD32Async", "cuMemsetD8_v2", "cuMemsetD8Async"),
		Allocs:           sum("cuMemAlloc_v2", "cuMemAllocAsync", "cuMemAllocManaged", "cuMemHostAlloc"),
		StreamWaits:      sum("cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize"),
	}
}

func (d *device) NewEvent() (Event, error)      { return d.newEvent(cu.DisableTiming) }
func (d *device) NewTimedEvent() (Event, error) { return d.newEvent(cu.DefaultEvent) }

func (d *device) newEvent(kind cu.EventFlags) (Event, error) {
	e := &event{d: d, timed: kind == cu.DefaultEvent}
	err := d.inContext(func() (err error) {
		e.ev, err = cu.MakeEvent(kind)
		return err
	})
	if err != nil {
		return nil, failed(err, "make an event on GPU %d", d.info.Ordinal)
	}
	return e, nil
}

type event struct {
	d     *device
	ev    cu.Event
	timed bool
}

func (e *event) Record() error {
	return failed(e.d.s.Record(handle(&e.ev)), "record an event on GPU %d", e.d.info.Ordinal)
}

func (e *event) Done() (bool, error) {
	err := e.d.s.Query(handle(&e.ev))
	if err == cudaload.ErrNotReady {
		return false, nil
	}
	return err == nil, failed(err, "ask GPU %d whether work is done", e.d.info.Ordinal)
}

func (e *event) Wait() error {
	return failed(e.d.s.Wait(handle(&e.ev)), "wait for GPU %d", e.d.info.Ordinal)
}

func (e *event) Elapsed(since Event) (microseconds float64, err error) {
	from, ok := since.(*event)
	if !ok || from.d != e.d {
		return 0, errors.New("time between two events: they are of different devices")
	}
	if !e.timed || !from.timed {
		return 0, errors.New("time between two events: they keep no time: make them with NewTimedEvent")
	}
	err = e.d.inContext(func() error {
		ms, err := from.ev.Elapsed(e.ev)
		microseconds = 1000 * ms
		return err
	})
	return microseconds, failed(err, "time between two events on GPU %d", e.d.info.Ordinal)
}

func (e *event) Close() error {
	err := e.d.inContext(func() error { return cu.DestroyEvent(&e.ev) })
	return failed(err, "give an event of GPU %d back", e.d.info.Ordinal)
}

func (d *device) Load(image []byte) (Module, error) {
	m := &module{d: d}
	err := d.inContext(func() (err error) {
		m.mod, err = cu.LoadData(string(image))
		return err
	})
	if err != nil {
		return nil, failed(err, "load %d bytes of machine code on GPU %d", len(image), d.info.Ordinal)
	}
	return m, nil
}

type module struct {
	d   *device
	mod cu.Module
}

func (m *module) Unload() error {
	err := m.d.inContext(func() error { return m.mod.Unload() })
	return failed(err, "unload machine code from GPU %d", m.d.info.Ordinal)
}

func (m *module) Function(name string) (Function, error) {
	f := &function{d: m.d, name: name}
	err := m.d.inContext(func() (err error) {
		if f.fn, err = m.mod.Function(name); err != nil {
			return err
		}
		if f.registers, err = f.fn.Attribute(cu.NumRegs); err != nil {
			return err
		}
		f.local, err = f.fn.Attribute(cu.LocalSizeBytes)
		return err
	})
	if err != nil {
		return nil, failed(err, "find the kernel %s", name)
	}
	return f, nil
}

type function struct {
	d                *device
	name             string
	fn               cu.Function
	registers, local int
}

func (f *function) Registers() int  { return f.registers }
func (f *function) LocalBytes() int { return f.local }

func (f *function) SetMaxShared(bytes int) error {
	return failed(f.d.s.SetMaxShared(handle(&f.fn), bytes), "allow %s %d bytes of shared memory a block", f.name, bytes)
}

func (f *function) MaxBlocksPerSM(block, shared int) (n int, err error) {
	err = f.d.inContext(func() (err error) {
		n, err = f.fn.MaxActiveBlocksPerMultiProcessor(block, int64(shared))
		return err
	})
	return n, failed(err, "ask how many blocks of %s fit on an SM", f.name)
}
