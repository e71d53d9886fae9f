package main

/*
#include "vpps.h"
*/
import "C"

import (
	"fmt"
	"runtime/debug"
	"sync"

	"libvpps/jit/kernel"
	"libvpps/persist"
)

// owners is held while trainers get owners and lose them, and while what has a trainer is destroyed.
var owners sync.Mutex

// trainer is an update rule. It lives as long as the program or a handle has it.
type trainer struct {
	*persist.Trainer
	number  number // 0: there is none, and the program has not asked for one yet
	given   bool   // the program has made it and not destroyed it
	handles int
}

// handle is a planned model with its trainer.
type handle struct {
	*persist.Handle
	trainer *trainer
}

// newHandle makes a handle; a trainer without a rule yet gets the handle's own.
func newHandle(e *persist.Engine, ids []uint32, t *trainer) (number, error) {
	x, err := e.NewHandle(ids, t.Trainer)
	if err != nil {
		return 0, err
	}
	owners.Lock()
	defer owners.Unlock()
	n, err := objects.add(handleKind, &handle{x, t})
	if err == nil {
		t.Trainer = x.Trainer()
		t.handles++
	}
	return n, err
}

//export goTrainerDestroy
func goTrainerDestroy(n C.uintptr_t) (status C.int) {
	defer guard(&status)
	unused, err := removeTrainer(number(n))
	if unused != nil {
		unused.Close()
	}
	return failed(err)
}

// removeTrainer takes a trainer from the program. Unless a handle has it still, it is unused.
func removeTrainer(n number) (unused *trainer, err error) {
	owners.Lock()
	defer owners.Unlock()
	s, err := objects.freeze(n, trainerKind)
	if err != nil {
		return nil, err
	}
	t := s.object.(*trainer)
	if !t.given {
		s.thaw()
		return nil, wrong(persist.ErrState, "the trainer is a handle's and is destroyed with it")
	}
	objects.remove(n, s)
	t.number, t.given = 0, false
	if t.handles > 0 {
		return nil, nil
	}
	return t, nil
}

//export goHandleDestroy
func goHandleDestroy(n C.uintptr_t) (status C.int) {
	defer guard(&status)
	unused, err := removeHandle(number(n))
	if unused != nil {
		unused.Close()
	}
	return failed(err)
}

// removeHandle destroys a handle. Its trainer is unused if the handle was its only owner.
func removeHandle(n number) (unused *trainer, err error) {
	owners.Lock()
	defer owners.Unlock()
	s, err := objects.freeze(n, handleKind)
	if err != nil {
		return nil, err
	}
	t := s.object.(*handle).trainer
	last := t.handles == 1 && !t.given
	if last && t.number != 0 {
		own, err := objects.freeze(t.number, trainerKind)
		if err != nil {
			s.thaw()
			return nil, err
		}
		objects.remove(t.number, own)
	}
	objects.remove(n, s)
	if t.handles--; last {
		return t, nil
	}
	return nil, nil
}

// numberOf is the number of a handle's trainer, which is made when it is first asked for.
func numberOf(t *trainer) (n number, err error) {
	owners.Lock()
	defer owners.Unlock()
	if t.number == 0 {
		t.number, err = objects.add(trainerKind, t)
	}
	return t.number, err
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
