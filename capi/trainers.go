package main

/*
#include "vpps.h"
#include "errors.h"
*/
import "C"

import (
	"libvpps/persist"
	"libvpps/persist/isa"
)

func trainerOptions(o *C.vpps_ctrainer_options) (persist.TrainerOptions, error) {
	if o.rule > C.VPPS_RULE_EG {
		return persist.TrainerOptions{}, argument("update rule %d: this version has those up to EG (%d)", uint32(o.rule), C.VPPS_RULE_EG)
	}
	return persist.TrainerOptions{Rule: isa.Rule(o.rule), LearningRate: float32(o.learning_rate), Clipping: o.clipping != 0,
		Threshold: float32(o.clip_threshold), Sparse: o.sparse != 0, Collection: uint32(o.collection),
		Momentum: float32(o.momentum), Rho: float32(o.rho), Epsilon: float32(o.epsilon),
		Beta1: float32(o.beta_1), Beta2: float32(o.beta_2)}, nil
}

//export goTrainerCreate
func goTrainerCreate(h C.uintptr_t, o *C.vpps_ctrainer_options, ids *C.vpps_cuint, count C.size_t, out *C.uintptr_t) C.int {
	return withEngine(h, func(e *persist.Engine) error {
		opt, err := trainerOptions(o)
		if err != nil {
			return err
		}
		list, err := array[uint32](ids, C.uint64_t(count), "parameters")
		if err != nil {
			return err
		}
		made, err := e.NewTrainer(opt, list)
		if err != nil {
			return err
		}
		t := &trainer{Trainer: made, given: true}
		if t.number, err = objects.add(trainerKind, t); err != nil {
			made.Close()
		}
		*out = C.uintptr_t(t.number)
		return err
	})
}

//export goTrainerSet
func goTrainerSet(h C.uintptr_t, o *C.vpps_ctrainer_options) C.int {
	return withTrainer(h, func(t *persist.Trainer) error {
		opt, err := trainerOptions(o)
		if err != nil {
			return err
		}
		return t.Set(opt)
	})
}

//export goTrainerAdd
func goTrainerAdd(h C.uintptr_t, ids *C.vpps_cuint, count C.size_t) C.int {
	return withTrainer(h, func(t *persist.Trainer) error {
		list, err := array[uint32](ids, C.uint64_t(count), "parameters")
		if err != nil {
			return err
		}
		return t.Add(list)
	})
}

//export goTrainerRestart
func goTrainerRestart(h C.uintptr_t) C.int {
	return withTrainer(h, (*persist.Trainer).Restart)
}

//export goTrainerReadState
func goTrainerReadState(h C.uintptr_t, id C.uint32_t, count C.uint64_t, to *C.float) C.int {
	return withTrainer(h, func(t *persist.Trainer) error {
		v, err := array[float32](to, count, "floats")
		if err != nil {
			return err
		}
		return t.ReadState(uint32(id), v)
	})
}

//export goTrainerWriteState
func goTrainerWriteState(h C.uintptr_t, id C.uint32_t, count C.uint64_t, from *C.vpps_cfloat) C.int {
	return withTrainer(h, func(t *persist.Trainer) error {
		v, err := array[float32](from, count, "floats")
		if err != nil {
			return err
		}
		return t.WriteState(uint32(id), v)
	})
}

//export goTrainerUpdates
func goTrainerUpdates(h C.uintptr_t, updates *C.uint64_t) C.int {
	return withTrainer(h, func(t *persist.Trainer) error {
		n, err := t.Updates()
		if err == nil {
			*updates = C.uint64_t(n)
		}
		return err
	})
}

//export goTrainerSetUpdates
func goTrainerSetUpdates(h C.uintptr_t, updates C.uint64_t) C.int {
	return withTrainer(h, func(t *persist.Trainer) error {
		return t.SetUpdates(uint64(updates))
	})
}

//export goUpdate
func goUpdate(h C.uintptr_t, clipped *C.int) C.int {
	return withTrainer(h, func(t *persist.Trainer) error {
		c, err := t.Update()
		if err == nil && clipped != nil {
			*clipped = 0
			if c {
				*clipped = 1
			}
		}
		return err
	})
}
