package main

/*
#include "vpps.h"
#include "errors.h"
*/
import "C"

import (
	"libvpps/bridge"
	"libvpps/persist"
)

//export goGraphCreate
func goGraphCreate(h C.uintptr_t, out *C.uintptr_t) (status C.int) {
	defer guard(&status)
	e, err := engine(h)
	if err != nil {
		return failed(err)
	}
	*out = newHandle(e.NewGraph())
	return 0
}

//export goGraphDestroy
func goGraphDestroy(h C.uintptr_t) (status C.int) {
	defer guard(&status)
	g, err := object[persist.Graph](h, "graph")
	if err != nil {
		return failed(err)
	}
	g.Close()
	release(h)
	return 0
}

//export goForward
func goForward(h C.uintptr_t, w *C.vpps_cwords, node C.uint32_t, restart C.int) (status C.int) {
	defer guard(&status)
	g, ws, err := call(h, w)
	if err != nil {
		return failed(err)
	}
	return failed(g.Forward(ws, uint32(node), restart != 0))
}

// call resolves the arguments that all graph calls share.
func call(h C.uintptr_t, w *C.vpps_cwords) (*persist.Graph, *bridge.Words, error) {
	g, err := object[persist.Graph](h, "graph")
	if err != nil {
		return nil, nil, err
	}
	ws, err := words((*C.vpps_words)(w))
	return g, ws, err
}

//export goValue
func goValue(h C.uintptr_t, w *C.vpps_cwords, node C.uint32_t, to *C.float, count C.size_t) (status C.int) {
	defer guard(&status)
	g, ws, err := call(h, w)
	if err != nil {
		return failed(err)
	}
	v, err := array[float32](to, C.uint64_t(count), "elements")
	if err != nil {
		return failed(err)
	}
	return failed(g.Value(ws, uint32(node), v))
}

//export goBackward
func goBackward(h C.uintptr_t, w *C.vpps_cwords, node C.uint32_t, full C.int) (status C.int) {
	defer guard(&status)
	g, ws, err := call(h, w)
	if err != nil {
		return failed(err)
	}
	return failed(g.Backward(ws, uint32(node), full != 0))
}

//export goGradient
func goGradient(h C.uintptr_t, node C.uint32_t, to *C.float, count C.size_t) (status C.int) {
	defer guard(&status)
	g, err := object[persist.Graph](h, "graph")
	if err != nil {
		return failed(err)
	}
	v, err := array[float32](to, C.uint64_t(count), "elements")
	if err != nil {
		return failed(err)
	}
	return failed(g.Gradient(uint32(node), v))
}

//export goGraphTruncate
func goGraphTruncate(h C.uintptr_t, node C.uint32_t) (status C.int) {
	defer guard(&status)
	g, err := object[persist.Graph](h, "graph")
	if err != nil {
		return failed(err)
	}
	return failed(g.Truncate(uint32(node)))
}

//export goGraphInvalidate
func goGraphInvalidate(h C.uintptr_t, node C.uint32_t) (status C.int) {
	defer guard(&status)
	g, err := object[persist.Graph](h, "graph")
	if err != nil {
		return failed(err)
	}
	return failed(g.Invalidate(uint32(node)))
}
