// Package main is the C interface: it checks arguments, translates errors and calls the
// engine, nothing else. The vpps_* functions that a program sees are in api.c; each calls one
// of the exports here.
package main

/*
#cgo CFLAGS: -Wall -O2
#include "vpps.h"
#include "errors.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime/debug"
	"unsafe"

	"libvpps/bridge"
	"libvpps/persist"
	"libvpps/persist/comm"
)

func main() {}

// failed translates an error and keeps its text for vpps_last_error.
func failed(err error) C.int {
	if err == nil {
		return C.VPPS_OK
	}
	text := err.Error()
	C.vpps_set_error((*C.vpps_cchar)(unsafe.Pointer(unsafe.StringData(text))), C.size_t(len(text)))
	var graph *bridge.Error
	switch {
	case errors.As(err, &graph):
		return C.VPPS_ERR_GRAPH
	case errors.Is(err, persist.ErrArgument), errors.Is(err, comm.ErrArgument):
		return C.VPPS_ERR_ARGUMENT
	case errors.Is(err, persist.ErrState):
		return C.VPPS_ERR_STATE
	case errors.Is(err, persist.ErrNumeric):
		return C.VPPS_ERR_NUMERIC
	case errors.Is(err, persist.ErrDevice):
		return C.VPPS_ERR_DEVICE
	case errors.Is(err, persist.ErrMemory):
		return C.VPPS_ERR_MEMORY
	case errors.Is(err, persist.ErrFile):
		return C.VPPS_ERR_IO
	case errors.Is(err, persist.ErrUnsupported), errors.Is(err, comm.ErrUnavailable):
		return C.VPPS_ERR_UNSUPPORTED
	case errors.Is(err, persist.ErrRank), errors.Is(err, comm.ErrAbsent), errors.Is(err, comm.ErrAborted), errors.Is(err, comm.ErrDiffers):
		return C.VPPS_ERR_RANK
	}
	return C.VPPS_ERR_INTERNAL
}

func wrong(kind error, format string, a ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{kind}, a...)...)
}

func argument(format string, a ...any) error { return wrong(persist.ErrArgument, format, a...) }

// guard turns a panic into an error of the call.
func guard(status *C.int) {
	if r := recover(); r != nil {
		*status = failed(persist.Panicked(r, debug.Stack()))
	}
}

// with does something with the object that a number stands for, and is the status of the call.
func with[T any](n C.uintptr_t, k kind, do func(T) error) (status C.int) {
	defer guard(&status)
	return failed(use(number(n), k, do))
}

func withEngine(n C.uintptr_t, do func(*persist.Engine) error) C.int {
	return with(n, engineKind, func(s *shared) error { return do(s.engine) })
}

func withGraph(n C.uintptr_t, do func(*persist.Graph) error) C.int {
	return with(n, graphKind, do)
}

func withHandle(n C.uintptr_t, do func(*persist.Handle) error) C.int {
	return with(n, handleKind, func(h *handle) error { return do(h.Handle) })
}

func withTrainer(n C.uintptr_t, do func(*persist.Trainer) error) C.int {
	return with(n, trainerKind, func(t *trainer) error { return do(t.Trainer) })
}

// give enters an object of a call that made it, and gives the program its number.
func give(k kind, object any, out *C.uintptr_t) error {
	n, err := objects.add(k, object)
	*out = C.uintptr_t(n)
	return err
}

// A number needs all of 64 bits.
var _ [unsafe.Sizeof(C.uintptr_t(0)) - unsafe.Sizeof(number(0))]byte

// The header's constant is the engine's.
var _ = [1]struct{}{}[C.VPPS_FB_LAG-persist.InFlight]

func slice[T, U any](p *U, n C.size_t) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(p)), int(n))
}

// array is a slice of a caller's memory whose length nobody has checked yet.
func array[T, U any](p *U, n C.uint64_t, what string) ([]T, error) {
	switch {
	case n > 1<<32:
		return nil, argument("%d %s: too many", uint64(n), what)
	case n > 0 && p == nil:
		return nil, argument("%d %s, but their address is NULL", uint64(n), what)
	}
	return slice[T](p, C.size_t(n)), nil
}

// words is the Go view of recorded words.
func words(w *C.vpps_words) (r recorded, err error) {
	if w == nil {
		return recorded{nothing: true}, nil
	}
	if w.version != C.VPPS_WIRE_VERSION {
		return r, argument("wire format %d, this library reads %d: rebuild the program", uint32(w.version), C.VPPS_WIRE_VERSION)
	}
	if r.Nodes, err = array[uint32](w.nodes, C.uint64_t(w.node_words), "node words"); err != nil {
		return r, err
	}
	if r.Dims, err = array[bridge.Dim](w.dims, C.uint64_t(w.dim_count), "dims"); err != nil {
		return r, err
	}
	if r.Inputs, err = array[uint32](w.inputs, C.uint64_t(w.input_words), "input words"); err != nil {
		return r, err
	}
	r.NodeCount = int(w.node_count)
	return r, nil
}

// recorded is what a call brings. It is passed by value, so that it stays on the stack.
type recorded struct {
	bridge.Words
	nothing bool // the call has brought none
}

// words is what the engine gets.
func (r *recorded) words() *bridge.Words {
	if r.nothing {
		return nil
	}
	return &r.Words
}

// text copies a string to a C buffer, always terminated.
func text(s string, to *C.char, size C.size_t, needed *C.size_t) {
	if needed != nil {
		*needed = C.size_t(len(s) + 1)
	}
	if to == nil || size == 0 {
		return
	}
	b := slice[byte](to, size)
	b[copy(b[:size-1], s)] = 0
}
