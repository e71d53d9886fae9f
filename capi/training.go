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
func goHandleCreate(n C.uintptr_t, ids *C.vpps_cuint, count C.size_t, of C.uintptr_t, out *C.uintptr_t) C.int {
	return withEngine(n, func(e *persist.Engine) error {
		list, err := array[uint32](ids, C.uint64_t(count), "parameters")
		if err != nil {
			return err
		}
		create := func(t *trainer) error {
			h, err := newHandle(e, list, t)
			*out = C.uintptr_t(h)
			return err
		}
		if of == 0 {
			return create(&trainer{})
		}
		return use(number(of), trainerKind, create)
	})
}

//export goHandleTrainer
func goHandleTrainer(n C.uintptr_t, out *C.uintptr_t) C.int {
	return with(n, handleKind, func(h *handle) error {
		t, err := numberOf(h.trainer)
		*out = C.uintptr_t(t)
		return err
	})
}

//export goFB
func goFB(h, graph C.uintptr_t, w *C.vpps_cwords, node C.uint32_t, stale *C.float) C.int {
	return withHandle(h, func(x *persist.Handle) error {
		ws, err := words((*C.vpps_words)(w))
		if err != nil {
			return err
		}
		return use(number(graph), graphKind, func(g *persist.Graph) error {
			loss, err := x.FB(g, ws.words(), uint32(node))
			*stale = C.float(loss)
			return err
		})
	})
}

//export goHandleKeep
func goHandleKeep(h, graph C.uintptr_t, nodes *C.vpps_cuint, count C.size_t) C.int {
	return withHandle(h, func(x *persist.Handle) error {
		list, err := array[uint32](nodes, C.uint64_t(count), "nodes")
		if err != nil {
			return err
		}
		return use(number(graph), graphKind, func(g *persist.Graph) error { return x.Keep(g, list) })
	})
}

//export goSyncLatestLoss
func goSyncLatestLoss(h C.uintptr_t, out *C.float) C.int {
	return withHandle(h, func(x *persist.Handle) error {
		loss, err := x.SyncLatestLoss()
		if err == nil {
			*out = C.float(loss)
		}
		return err
	})
}

//export goHandleClips
func goHandleClips(h C.uintptr_t, out *C.uint64_t) C.int {
	return withHandle(h, func(x *persist.Handle) error {
		n, err := x.Clips()
		if err == nil {
			*out = C.uint64_t(n)
		}
		return err
	})
}
