package main

/*
#include "vpps.h"
#include "errors.h"
*/
import "C"

import (
	"libvpps/persist"
)

//export goGraphCreate
func goGraphCreate(h C.uintptr_t, out *C.uintptr_t) C.int {
	return withEngine(h, func(e *persist.Engine) error {
		g := e.NewGraph()
		err := give(graphKind, g, out)
		if err != nil {
			g.Close()
		}
		return err
	})
}

//export goGraphDestroy
func goGraphDestroy(n C.uintptr_t) (status C.int) {
	defer guard(&status)
	s, err := objects.freeze(number(n), graphKind)
	if err == nil {
		g := s.object.(*persist.Graph)
		objects.remove(number(n), s)
		g.Close()
	}
	return failed(err)
}

//export goForward
func goForward(h C.uintptr_t, w *C.vpps_cwords, node C.uint32_t, restart C.int) C.int {
	return withWords(h, w, func(g *persist.Graph, ws recorded) error {
		return g.Forward(ws.words(), uint32(node), restart != 0)
	})
}

// withWords does something with a graph and what was recorded of it.
func withWords(h C.uintptr_t, w *C.vpps_cwords, do func(*persist.Graph, recorded) error) C.int {
	return withGraph(h, func(g *persist.Graph) error {
		ws, err := words((*C.vpps_words)(w))
		if err != nil {
			return err
		}
		return do(g, ws)
	})
}

//export goValue
func goValue(h C.uintptr_t, w *C.vpps_cwords, node C.uint32_t, to *C.float, count C.size_t) C.int {
	return withWords(h, w, func(g *persist.Graph, ws recorded) error {
		v, err := array[float32](to, C.uint64_t(count), "elements")
		if err != nil {
			return err
		}
		return g.Value(ws.words(), uint32(node), v)
	})
}

//export goBackward
func goBackward(h C.uintptr_t, w *C.vpps_cwords, node C.uint32_t, full C.int) C.int {
	return withWords(h, w, func(g *persist.Graph, ws recorded) error {
		return g.Backward(ws.words(), uint32(node), full != 0)
	})
}

//export goNodeGradients
func goNodeGradients(h C.uintptr_t, w *C.vpps_cwords, node C.uint32_t) C.int {
	return withWords(h, w, func(g *persist.Graph, ws recorded) error {
		return g.NodeGradients(ws.words(), uint32(node))
	})
}

//export goGradient
func goGradient(h C.uintptr_t, node C.uint32_t, to *C.float, count C.size_t) C.int {
	return withGraph(h, func(g *persist.Graph) error {
		v, err := array[float32](to, C.uint64_t(count), "elements")
		if err != nil {
			return err
		}
		return g.Gradient(uint32(node), v)
	})
}

//export goInfer
func goInfer(h C.uintptr_t, w *C.vpps_cwords, nodes *C.vpps_cuint, count C.size_t, out *C.uint64_t) C.int {
	return withWords(h, w, func(g *persist.Graph, ws recorded) error {
		list, err := array[uint32](nodes, C.uint64_t(count), "nodes")
		if err != nil {
			return err
		}
		t, err := g.Infer(ws.words(), list)
		if err == nil {
			*out = C.uint64_t(t)
		}
		return err
	})
}

//export goInferResult
func goInferResult(h C.uintptr_t, ticket C.uint64_t, to *C.float, count C.size_t) C.int {
	return withEngine(h, func(e *persist.Engine) error {
		v, err := array[float32](to, C.uint64_t(count), "elements")
		if err != nil {
			return err
		}
		return e.Result(persist.Ticket(ticket), v)
	})
}

//export goInferDrop
func goInferDrop(h C.uintptr_t, ticket C.uint64_t) C.int {
	return withEngine(h, func(e *persist.Engine) error { return e.Drop(persist.Ticket(ticket)) })
}

//export goGraphTruncate
func goGraphTruncate(h C.uintptr_t, node C.uint32_t) C.int {
	return withGraph(h, func(g *persist.Graph) error {
		return g.Truncate(uint32(node))
	})
}

//export goGraphInvalidate
func goGraphInvalidate(h C.uintptr_t, node C.uint32_t) C.int {
	return withGraph(h, func(g *persist.Graph) error {
		return g.Invalidate(uint32(node))
	})
}
