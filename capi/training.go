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
func goHandleCreate(h C.uintptr_t, ids *C.vpps_cuint, count C.size_t, trainer C.uintptr_t, out *C.uintptr_t) (status C.int) {
	defer guard(&status)
	e, err := engine(h)
	if err != nil {
		return failed(err)
	}
	var t *persist.Trainer
	if trainer != 0 {
		if t, err = object[persist.Trainer](trainer, "trainer"); err != nil {
			return failed(err)
		}
	}
	list, err := array[uint32](ids, C.uint64_t(count), "parameters")
	if err != nil {
		return failed(err)
	}
	x, err := e.NewHandle(list, t)
	if err != nil {
		return failed(err)
	}
	*out = newHandle(x)
	return 0
}

//export goHandleTrainer
func goHandleTrainer(h C.uintptr_t, out *C.uintptr_t) (status C.int) {
	defer guard(&status)
	x, err := object[persist.Handle](h, "handle")
	if err != nil {
		return failed(err)
	}
	*out = trainerOf(x)
	return 0
}

//export goFB
func goFB(h, graph C.uintptr_t, w *C.vpps_cwords, node C.uint32_t, stale *C.float) (status C.int) {
	defer guard(&status)
	x, err := object[persist.Handle](h, "handle")
	if err != nil {
		return failed(err)
	}
	g, ws, err := call(graph, w)
	if err != nil {
		return failed(err)
	}
	loss, err := x.FB(g, ws, uint32(node))
	*stale = C.float(loss)
	return failed(err)
}

//export goHandleKeep
func goHandleKeep(h, graph C.uintptr_t, nodes *C.vpps_cuint, count C.size_t) (status C.int) {
	defer guard(&status)
	x, err := object[persist.Handle](h, "handle")
	if err != nil {
		return failed(err)
	}
	g, err := object[persist.Graph](graph, "graph")
	if err != nil {
		return failed(err)
	}
	list, err := array[uint32](nodes, C.uint64_t(count), "nodes")
	if err != nil {
		return failed(err)
	}
	return failed(x.Keep(g, list))
}

//export goSyncLatestLoss
func goSyncLatestLoss(h C.uintptr_t, out *C.float) (status C.int) {
	defer guard(&status)
	x, err := object[persist.Handle](h, "handle")
	if err != nil {
		return failed(err)
	}
	loss, err := x.SyncLatestLoss()
	*out = C.float(loss)
	return failed(err)
}

//export goHandleClips
func goHandleClips(h C.uintptr_t, out *C.uint64_t) (status C.int) {
	defer guard(&status)
	x, err := object[persist.Handle](h, "handle")
	if err != nil {
		return failed(err)
	}
	n, err := x.Clips()
	*out = C.uint64_t(n)
	return failed(err)
}
