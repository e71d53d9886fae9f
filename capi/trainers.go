package main

/*
#include "vpps.h"
#include "errors.h"
*/
import "C"

import (
	"libvpps/persist"
	"libvpps/persist/script"
)

func trainerOptions(o *C.vpps_ctrainer_options) (persist.TrainerOptions, error) {
	if o.rule > C.VPPS_RULE_EG {
		return persist.TrainerOptions{}, argument("update rule %d: this version has those up to EG (%d)", uint32(o.rule), C.VPPS_RULE_EG)
	}
	return persist.TrainerOptions{Rule: script.Rule(o.rule), LearningRate: float32(o.learning_rate), Clipping: o.clipping != 0,
		Threshold: float32(o.clip_threshold), Sparse: o.sparse != 0, Collection: uint32(o.collection),
		Momentum: float32(o.momentum), Rho: float32(o.rho), Epsilon: float32(o.epsilon),
		Beta1: float32(o.beta_1), Beta2: float32(o.beta_2)}, nil
}

//export goTrainerCreate
func goTrainerCreate(h C.uintptr_t, o *C.vpps_ctrainer_options, ids *C.vpps_cuint, count C.size_t, out *C.uintptr_t) (status C.int) {
	defer guard(&status)
	e, err := engine(h)
	if err != nil {
		return failed(err)
	}
	opt, err := trainerOptions(o)
	if err != nil {
		return failed(err)
	}
	list, err := array[uint32](ids, C.uint64_t(count), "parameters")
	if err != nil {
		return failed(err)
	}
	t, err := e.NewTrainer(opt, list)
	if err != nil {
		return failed(err)
	}
	*out = newHandle(t)
	return 0
}

//export goTrainerSet
func goTrainerSet(h C.uintptr_t, o *C.vpps_ctrainer_options) (status C.int) {
	defer guard(&status)
	t, err := object[persist.Trainer](h, "trainer")
	if err != nil {
		return failed(err)
	}
	opt, err := trainerOptions(o)
	if err != nil {
		return failed(err)
	}
	return failed(t.Set(opt))
}

//export goTrainerAdd
func goTrainerAdd(h C.uintptr_t, ids *C.vpps_cuint, count C.size_t) (status C.int) {
	defer guard(&status)
	t, err := object[persist.Trainer](h, "trainer")
	if err != nil {
		return failed(err)
	}
	list, err := array[uint32](ids, C.uint64_t(count), "parameters")
	if err != nil {
		return failed(err)
	}
	return failed(t.Add(list))
}

//export goTrainerRestart
func goTrainerRestart(h C.uintptr_t) (status C.int) {
	defer guard(&status)
	t, err := object[persist.Trainer](h, "trainer")
	if err != nil {
		return failed(err)
	}
	return failed(t.Restart())
}

//export goTrainerReadState
func goTrainerReadState(h C.uintptr_t, id C.uint32_t, count C.uint64_t, to *C.float) (status C.int) {
	defer guard(&status)
	t, v, err := trainerAndState(h, count, to)
	if err != nil {
		return failed(err)
	}
	return failed(t.ReadState(uint32(id), v))
}

//export goTrainerWriteState
func goTrainerWriteState(h C.uintptr_t, id C.uint32_t, count C.uint64_t, from *C.vpps_cfloat) (status C.int) {
	defer guard(&status)
	t, v, err := trainerAndState(h, count, from)
	if err != nil {
		return failed(err)
	}
	return failed(t.WriteState(uint32(id), v))
}

func trainerAndState(h C.uintptr_t, count C.uint64_t, floats *C.float) (*persist.Trainer, []float32, error) {
	t, err := object[persist.Trainer](h, "trainer")
	if err != nil {
		return nil, nil, err
	}
	v, err := array[float32](floats, count, "floats")
	return t, v, err
}

//export goTrainerUpdates
func goTrainerUpdates(h C.uintptr_t, updates *C.uint64_t) (status C.int) {
	defer guard(&status)
	t, err := object[persist.Trainer](h, "trainer")
	if err != nil {
		return failed(err)
	}
	n, err := t.Updates()
	*updates = C.uint64_t(n)
	return failed(err)
}

//export goTrainerSetUpdates
func goTrainerSetUpdates(h C.uintptr_t, updates C.uint64_t) (status C.int) {
	defer guard(&status)
	t, err := object[persist.Trainer](h, "trainer")
	if err != nil {
		return failed(err)
	}
	return failed(t.SetUpdates(uint64(updates)))
}

//export goUpdate
func goUpdate(h C.uintptr_t, clipped *C.int) (status C.int) {
	defer guard(&status)
	t, err := object[persist.Trainer](h, "trainer")
	if err != nil {
		return failed(err)
	}
	c, err := t.Update()
	if clipped != nil {
		*clipped = 0
		if c {
			*clipped = 1
		}
	}
	return failed(err)
}
