package main

/*
#include "vpps.h"
#include "errors.h"
*/
import "C"

import (
	"libvpps/persist"
)

//export goHandleCreate
func goHandleCreate(h C.uintptr_t, ids *C.vpps_cuint, count C.size_t, trainer C.uintptr_t, out *C.uintptr_t) C.int {
	return withEngine(h, func(e *persist.Engine) error {
		var t *persist.Trainer
		if trainer != 0 {
			var err error
			if t, err = object[persist.Trainer](trainer, "trainer"); err != nil {
				return err
			}
		}
		list, err := array[uint32](ids, C.uint64_t(count), "parameters")
		if err != nil {
			return err
		}
		x, err := e.NewHandle(list, t)
		if err != nil {
			return err
		}
		*out = newHandle(x)
		return nil
	})
}

//export goHandleTrainer
func goHandleTrainer(h C.uintptr_t, out *C.uintptr_t) C.int {
	return withHandle(h, func(x *persist.Handle) error {
		*out = trainerOf(x)
		return nil
	})
}

//export goFB
func goFB(h, graph C.uintptr_t, w *C.vpps_cwords, node C.uint32_t, stale *C.float) C.int {
	return withHandle(h, func(x *persist.Handle) error {
		g, err := object[persist.Graph](graph, "graph")
		if err != nil {
			return err
		}
		ws, err := words((*C.vpps_words)(w))
		if err != nil {
			return err
		}
		loss, err := x.FB(g, ws, uint32(node))
		*stale = C.float(loss)
		return err
	})
}

//export goHandleKeep
func goHandleKeep(h, graph C.uintptr_t, nodes *C.vpps_cuint, count C.size_t) C.int {
	return withHandle(h, func(x *persist.Handle) error {
		g, err := object[persist.Graph](graph, "graph")
		if err != nil {
			return err
		}
		list, err := array[uint32](nodes, C.uint64_t(count), "nodes")
		if err != nil {
			return err
		}
		return x.Keep(g, list)
	})
}

//export goSyncLatestLoss
func goSyncLatestLoss(h C.uintptr_t, out *C.float) C.int {
	return withHandle(h, func(x *persist.Handle) error {
		loss, err := x.SyncLatestLoss()
		*out = C.float(loss)
		return err
	})
}

//export goHandleClips
func goHandleClips(h C.uintptr_t, out *C.uint64_t) C.int {
	return withHandle(h, func(x *persist.Handle) error {
		n, err := x.Clips()
		*out = C.uint64_t(n)
		return err
	})
}
