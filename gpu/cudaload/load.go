// Package cudaload lets a program that uses the NVIDIA driver and NVRTC be linked
// and started on machines that have neither: it defines the driver's functions as
// forwarders and finds the real libraries at run time.
package cudaload

/*
#cgo CFLAGS: -std=gnu11 -Wall
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "driver.h"
*/
import "C"

import (
	"fmt"
	"sync"
	"unsafe"

	"libvpps/env"
)

// Driver loads the NVIDIA driver and initialises it, once in a process. The
// environment variable VPPS_LIBCUDA names another file than libcuda.so.1. The
// result is an Error where the driver itself refuses.
var Driver = sync.OnceValue(func() error {
	file := env.String("VPPS_LIBCUDA")
	if file == "" {
		file = "libcuda.so.1"
	}
	var msg [512]C.char
	switch r := C.vpps_load_cuda(text(file), &msg[0], C.size_t(len(msg))); r {
	case 0:
		return nil
	case -1:
		return fmt.Errorf("no NVIDIA driver: %s: install the driver, or run on the CPU", C.GoString(&msg[0]))
	default:
		return fmt.Errorf("initialise the NVIDIA driver: %w", Error(r))
	}
})

// DriverFile is the file that the driver was loaded from, "" if none was.
func DriverFile() string { return C.GoString(C.vpps_cuda_file()) }

// text is a string as C wants it, in Go's memory: C has it for one call.
func text(s string) *C.char {
	return (*C.char)(unsafe.Pointer(unsafe.SliceData(append([]byte(s), 0))))
}

// Calls is how often a driver function, named by its symbol (cuMemAlloc_v2), was
// called in this process, by whatever part of it.
func Calls(function string) uint64 {
	return uint64(C.vpps_cuda_calls(text(function)))
}

// Error is a result of a driver function (CUresult) that is not success.
type Error int

// Results that callers tell apart.
const (
	ErrOutOfMemory Error = 2
	ErrNoDevice    Error = 100
	ErrNotReady    Error = 600
)

// Name is the constant's name in cuda.h, such as CUDA_ERROR_OUT_OF_MEMORY.
func (e Error) Name() string {
	var s *C.char
	if C.cuGetErrorName(C.CUresult(e), &s) != C.CUDA_SUCCESS || s == nil {
		return fmt.Sprintf("CUDA error %d", int(e))
	}
	return C.GoString(s)
}

// Error is the name and the driver's own description.
func (e Error) Error() string {
	var s *C.char
	if C.cuGetErrorString(C.CUresult(e), &s) != C.CUDA_SUCCESS || s == nil {
		return e.Name()
	}
	return fmt.Sprintf("%s (%d): %s", e.Name(), int(e), C.GoString(s))
}

func check(r C.CUresult) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	return Error(r)
}
