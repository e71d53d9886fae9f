package cudaload

// The Go side of stream.c. Handles travel as unsafe.Pointer because cgo gives
// every package its own C types.

/*
#include "driver.h"

#cgo noescape vpps_launch
#cgo nocallback vpps_launch
#cgo noescape vpps_copy_to_device
#cgo nocallback vpps_copy_to_device
#cgo noescape vpps_copy_ahead
#cgo nocallback vpps_copy_ahead
#cgo noescape vpps_copy_from_device
#cgo nocallback vpps_copy_from_device
#cgo nocallback vpps_copy_on_device
#cgo nocallback vpps_memset32
#cgo nocallback vpps_synchronize
#cgo nocallback vpps_event_record
#cgo nocallback vpps_event_query
#cgo nocallback vpps_event_wait
*/
import "C"

import "unsafe"

// Stream is a stream of a device and the context it belongs to. Its methods may
// be called from any goroutine.
type Stream struct {
	Context unsafe.Pointer // CUcontext
	Handle  unsafe.Pointer // CUstream
}

func (s Stream) ctx() C.CUcontext   { return C.CUcontext(s.Context) }
func (s Stream) handle() C.CUstream { return C.CUstream(s.Handle) }

// Launch starts the CUfunction f as a cooperative grid: all its blocks run at
// once. The value of parameter i begins at args[offsets[i]].
func (s Stream) Launch(f unsafe.Pointer, grid, block, shared int, args []byte, offsets []uint32) error {
	return check(C.vpps_launch(s.ctx(), s.handle(), C.CUfunction(f), C.uint(grid), C.uint(block), C.uint(shared),
		(*C.char)(unsafe.Pointer(unsafe.SliceData(args))),
		(*C.uint)(unsafe.Pointer(unsafe.SliceData(offsets))), C.uint(len(offsets))))
}

// CopyToDevice copies behind what is on the stream. With wait it returns when the
// copy is done, without only pinned memory may be passed.
func (s Stream) CopyToDevice(dst uint64, src unsafe.Pointer, bytes int, wait bool) error {
	w := C.int(0)
	if wait {
		w = 1
	}
	return check(C.vpps_copy_to_device(s.ctx(), s.handle(), C.CUdeviceptr(dst), src, C.size_t(bytes), w))
}

// CopyAhead copies from pinned memory on the stream copies, and lets this stream go on behind it. The
// CUevent at marks the copy's end; it may be used again.
func (s Stream) CopyAhead(copies, at unsafe.Pointer, dst uint64, src unsafe.Pointer, bytes int) error {
	return check(C.vpps_copy_ahead(s.ctx(), C.CUstream(copies), s.handle(), C.CUevent(at), C.CUdeviceptr(dst), src, C.size_t(bytes)))
}

// CopyFromDevice copies behind what is on the stream and waits.
func (s Stream) CopyFromDevice(dst unsafe.Pointer, src uint64, bytes int) error {
	return check(C.vpps_copy_from_device(s.ctx(), s.handle(), dst, C.CUdeviceptr(src), C.size_t(bytes)))
}

// CopyOnDevice copies behind what is on the stream and does not wait.
func (s Stream) CopyOnDevice(dst, src uint64, bytes int64) error {
	return check(C.vpps_copy_on_device(s.ctx(), s.handle(), C.CUdeviceptr(dst), C.CUdeviceptr(src), C.size_t(bytes)))
}

// Memset32 sets count words behind what is on the stream and does not wait.
func (s Stream) Memset32(dst uint64, v uint32, count int64) error {
	return check(C.vpps_memset32(s.ctx(), s.handle(), C.CUdeviceptr(dst), C.uint(v), C.size_t(count)))
}

// Synchronize waits for everything on the stream.
func (s Stream) Synchronize() error { return check(C.vpps_synchronize(s.ctx(), s.handle())) }

// Record puts the CUevent e on the stream.
func (s Stream) Record(e unsafe.Pointer) error {
	return check(C.vpps_event_record(s.ctx(), s.handle(), C.CUevent(e)))
}

// Query is nil when the event has happened, ErrNotReady before.
func (s Stream) Query(e unsafe.Pointer) error {
	return check(C.vpps_event_query(s.ctx(), C.CUevent(e)))
}

// Wait returns when the event has happened.
func (s Stream) Wait(e unsafe.Pointer) error {
	return check(C.vpps_event_wait(s.ctx(), C.CUevent(e)))
}

// AllocHost returns pinned memory that every device of the process can read and
// write, and its address there. gorgonia.org/cu's MemFreeHost frees it.
func (s Stream) AllocHost(bytes int) (mem unsafe.Pointer, dev uint64, err error) {
	var d C.CUdeviceptr
	err = check(C.vpps_alloc_host(s.ctx(), C.size_t(bytes), &mem, &d))
	return mem, uint64(d), err
}

// SetMaxShared lets the CUfunction f use up to so many bytes of dynamic shared
// memory a block; without it the limit is 48 KiB.
func (s Stream) SetMaxShared(f unsafe.Pointer, bytes int) error {
	return check(C.vpps_set_max_shared(s.ctx(), C.CUfunction(f), C.int(bytes)))
}
