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
	"runtime/cgo"
	"runtime/debug"
	"strings"
	"unsafe"

	"libvpps/bridge"
	"libvpps/persist"
)

func main() {}

// failed translates an error and keeps its text for vpps_last_error.
func failed(err error) C.int {
	if err == nil {
		return C.VPPS_OK
	}
	text := C.CString(err.Error())
	C.vpps_set_error(text)
	C.free(unsafe.Pointer(text))
	var graph *bridge.Error
	switch {
	case errors.As(err, &graph):
		return C.VPPS_ERR_GRAPH
	case errors.Is(err, persist.ErrArgument):
		return C.VPPS_ERR_ARGUMENT
	case errors.Is(err, persist.ErrState):
		return C.VPPS_ERR_STATE
	case errors.Is(err, persist.ErrNumeric):
		return C.VPPS_ERR_NUMERIC
	case errors.Is(err, persist.ErrDevice):
		return C.VPPS_ERR_DEVICE
	case errors.Is(err, persist.ErrMemory):
		return C.VPPS_ERR_MEMORY
	case errors.Is(err, persist.ErrUnsupported):
		return C.VPPS_ERR_UNSUPPORTED
	}
	return C.VPPS_ERR_INTERNAL
}

// guard turns a panic into an error of the call.
func guard(status *C.int) {
	if r := recover(); r != nil {
		*status = failed(fmt.Errorf("internal error: %v at %s", r, firstFrame(debug.Stack())))
	}
}

// firstFrame is the file and line where a panic began, of a stack taken while recovering.
func firstFrame(stack []byte) string {
	_, after, found := strings.Cut(string(stack), "\npanic(")
	if !found {
		return "an unknown place"
	}
	for line := range strings.SplitSeq(after, "\n") {
		if strings.HasPrefix(line, "\t") && !strings.Contains(line, "runtime/") {
			return strings.TrimSpace(line)
		}
	}
	return "an unknown place"
}

// object returns what a handle stands for; 0 and foreign numbers are errors.
func object[T any](h C.uintptr_t, what string) (*T, error) {
	if h == 0 {
		return nil, fmt.Errorf("%w: the %s is NULL", persist.ErrArgument, what)
	}
	x, ok := cgo.Handle(h).Value().(*T)
	if !ok {
		return nil, fmt.Errorf("%w: this is no %s", persist.ErrArgument, what)
	}
	return x, nil
}

func newHandle(x any) C.uintptr_t { return C.uintptr_t(cgo.NewHandle(x)) }

func slice[T, U any](p *U, n C.size_t) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(p)), int(n))
}

// words is the Go view of recorded words; nil stays nil.
func words(w *C.vpps_words) (*bridge.Words, error) {
	if w == nil {
		return nil, nil
	}
	if w.version != C.VPPS_WIRE_VERSION {
		return nil, fmt.Errorf("%w: wire format %d, this library reads %d: rebuild the program", persist.ErrArgument, uint32(w.version), C.VPPS_WIRE_VERSION)
	}
	if w.node_words > 1<<30 || w.dim_count > 1<<24 || w.input_words > 1<<32 {
		return nil, fmt.Errorf("%w: %d node words, %d dims, %d input words: too many", persist.ErrArgument, uint64(w.node_words), uint64(w.dim_count), uint64(w.input_words))
	}
	return &bridge.Words{
		Nodes:     slice[uint32](w.nodes, w.node_words),
		NodeCount: int(w.node_count),
		Dims:      slice[bridge.Dim](w.dims, w.dim_count),
		Inputs:    slice[uint32](w.inputs, w.input_words),
	}, nil
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
