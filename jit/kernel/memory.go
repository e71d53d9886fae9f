package kernel

// Memory of the host outside Go's heap: what fails is an error of a call, where Go's own ends the process.

/*
#include <stdlib.h>
#include "memory.h"
*/
import "C"

import "unsafe"

// Alloc returns n words of zeroed C memory that Free releases, nil if there is none.
func Alloc(words int) unsafe.Pointer {
	if words < 0 {
		return nil
	}
	return C.vpps_alloc_lines(C.size_t(words), 4)
}

// Free releases memory of Alloc.
func Free(p unsafe.Pointer) { C.vpps_free_lines(p) }

// Floats is n floats of zeroed C memory that FreeFloats releases, nil if there is none.
func Floats(n int) []float32 {
	p := Alloc(n)
	if p == nil {
		return nil
	}
	return unsafe.Slice((*float32)(p), n)
}

// FreeFloats releases memory of Floats.
func FreeFloats(f []float32) { Free(unsafe.Pointer(unsafe.SliceData(f))) }

// Map returns zeroed memory of whole pages, which Extend may make larger, at an address if nobody is there; nil if
// there is none.
func Map(bytes, near uintptr) unsafe.Pointer {
	return C.vpps_map(C.size_t(bytes), C.uintptr_t(near))
}

// Extend makes a mapping larger. It stays where it is if that can be, and otherwise moves if it may. nil: it is as it was.
func Extend(p unsafe.Pointer, old, bytes uintptr, mayMove bool) unsafe.Pointer {
	move := C.int(0)
	if mayMove {
		move = 1
	}
	return C.vpps_extend(p, C.size_t(old), C.size_t(bytes), move)
}

// Unmap releases a mapping.
func Unmap(p unsafe.Pointer, bytes uintptr) { C.vpps_unmap(p, C.size_t(bytes)) }

// Discard makes whole pages of a mapping 0 without touching them; false: the system refused.
func Discard(p unsafe.Pointer, bytes uintptr) bool { return C.vpps_discard(p, C.size_t(bytes)) == 0 }

// Available reports whether a number of bytes could be mapped now.
func Available(bytes uint64) bool { return C.vpps_available(C.size_t(bytes)) != 0 }
