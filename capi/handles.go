package main

/*
#include "vpps.h"
*/
import "C"

import (
	"fmt"
	"runtime/cgo"
	"runtime/debug"
	"sync"

	"libvpps/jit/kernel"
	"libvpps/persist"
)

// trainers gives a handle's own trainer one number, however often it is asked for.
var trainers struct {
	sync.Mutex
	of map[*persist.Trainer]C.uintptr_t
}

func trainerOf(h *persist.Handle) C.uintptr_t {
	trainers.Lock()
	defer trainers.Unlock()
	if trainers.of == nil {
		trainers.of = map[*persist.Trainer]C.uintptr_t{}
	}
	t := h.Trainer()
	if trainers.of[t] == 0 {
		trainers.of[t] = newHandle(t)
	}
	return trainers.of[t]
}

//export goRelease
func goRelease(h C.uintptr_t) (status C.int) {
	defer guard(&status)
	release(h)
	return 0
}

// release forgets an object; 0 is nothing.
func release(h C.uintptr_t) {
	if h == 0 {
		return
	}
	switch x := cgo.Handle(h).Value().(type) {
	case *persist.Trainer:
		x.Close()
	case *persist.Handle:
		trainers.Lock()
		if n := trainers.of[x.Trainer()]; n != 0 {
			delete(trainers.of, x.Trainer())
			cgo.Handle(n).Delete()
		}
		trainers.Unlock()
	}
	cgo.Handle(h).Delete()
}

func argument(format string, a ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{persist.ErrArgument}, a...)...)
}

// buildInfo is one line: the Go version, the tags, the CPU variant.
func buildInfo() string {
	tags := ""
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, s := range info.Settings {
			if s.Key == "-tags" {
				tags = s.Value
			}
		}
		return fmt.Sprintf("libvpps, %s, tags %q, CPU variant %s", info.GoVersion, tags, kernel.Variant())
	}
	return "libvpps, CPU variant " + kernel.Variant()
}
