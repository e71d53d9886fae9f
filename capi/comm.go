package main

/*
#include "vpps.h"
#include "errors.h"
*/
import "C"

import (
	"errors"
	"unsafe"

	"libvpps/persist"
	"libvpps/persist/comm"
)

// Groups of engines that train one model together.

//export goCommCreateLocal
func goCommCreateLocal(size C.uint32_t, seconds C.double, out *C.uintptr_t) (status C.int) {
	defer guard(&status)
	group, err := persist.LocalGroup(int(size), float64(seconds))
	if err != nil {
		return failed(err)
	}
	numbers := unsafe.Slice(out, len(group))
	for rank, c := range group {
		n, err := objects.add(commKind, c)
		if err != nil {
			for _, made := range numbers[:rank] {
				_ = destroyComm(number(made))
			}
			return failed(err)
		}
		numbers[rank] = C.uintptr_t(n)
	}
	return C.VPPS_OK
}

//export goCommCreateMPI
func goCommCreateMPI(seconds C.double, out *C.uintptr_t) (status C.int) {
	defer guard(&status)
	c, err := persist.MPIGroup(float64(seconds))
	if err != nil {
		return failed(err)
	}
	n, err := objects.add(commKind, c)
	*out = C.uintptr_t(n)
	return failed(err)
}

//export goCommNCCLID
func goCommNCCLID(out unsafe.Pointer) (status C.int) {
	defer guard(&status)
	id, err := persist.NCCLID()
	copy(unsafe.Slice((*byte)(out), C.VPPS_NCCL_ID_BYTES), id)
	return failed(err)
}

//export goCommCreateNCCL
func goCommCreateNCCL(device *C.vpps_cchar, rank, size C.uint32_t, id unsafe.Pointer, seconds C.double, out *C.uintptr_t) (status C.int) {
	defer guard(&status)
	name, err := textOf(device, "device")
	if err != nil {
		return failed(err)
	}
	c, err := persist.NCCLGroup(name, int(rank), int(size), C.GoBytes(id, C.VPPS_NCCL_ID_BYTES), float64(seconds))
	if err != nil {
		return failed(err)
	}
	n, err := objects.add(commKind, c)
	*out = C.uintptr_t(n)
	return failed(err)
}

//export goCommCreateLaunched
func goCommCreateLaunched(engine C.uintptr_t, seconds C.double, out *C.uintptr_t) C.int {
	return withEngine(engine, func(e *persist.Engine) error {
		c, err := e.LaunchedGroup(float64(seconds))
		if err != nil {
			return err
		}
		n, err := objects.add(commKind, c)
		*out = C.uintptr_t(n)
		return err
	})
}

//export goCommRank
func goCommRank(n C.uintptr_t, rank, size *C.uint32_t) C.int {
	return with(n, commKind, func(c comm.Communicator) error {
		if rank != nil {
			*rank = C.uint32_t(c.Rank())
		}
		if size != nil {
			*size = C.uint32_t(c.Size())
		}
		return nil
	})
}

//export goCommBarrier
func goCommBarrier(n C.uintptr_t) C.int { return with(n, commKind, persist.Barrier) }

//export goCommBroadcast
func goCommBroadcast(n C.uintptr_t, data unsafe.Pointer, size C.size_t, from C.uint32_t) C.int {
	return with(n, commKind, func(c comm.Communicator) error {
		if size > mostBroadcast {
			return argument("a broadcast of %d bytes: at most %d", uint64(size), mostBroadcast)
		}
		floats := make([]float32, (size+3)/4)
		bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(floats))), 4*len(floats))
		mine := unsafe.Slice((*byte)(data), size)
		copy(bytes, mine)
		err := persist.Broadcast(c, floats, int(from))
		if err == nil {
			copy(mine, bytes)
		}
		return err
	})
}

// mostBroadcast bounds what a broadcast copies.
const mostBroadcast = 1 << 30

//export goCommAbort
func goCommAbort(n C.uintptr_t, why *C.vpps_cchar) C.int {
	return with(n, commKind, func(c comm.Communicator) error {
		reason, err := textOf(why, "reason")
		if err == nil {
			c.Abort(errors.New(reason))
		}
		return err
	})
}

//export goCommAttach
func goCommAttach(n, engine C.uintptr_t, reduction C.int) C.int {
	o := persist.ParallelOptions{
		Average: reduction == C.VPPS_AVERAGE || reduction == C.VPPS_AVERAGE_BF16,
		BF16:    reduction == C.VPPS_SUM_BF16 || reduction == C.VPPS_AVERAGE_BF16,
	}
	if reduction != C.VPPS_SUM && !o.Average && !o.BF16 {
		return failed(argument("reduction %d: this version has VPPS_SUM, VPPS_AVERAGE, VPPS_SUM_BF16 and VPPS_AVERAGE_BF16", int(reduction)))
	}
	return with(n, commKind, func(c comm.Communicator) error {
		return use(number(engine), engineKind, func(s *shared) error {
			return s.engine.Attach(c, o)
		})
	})
}

//export goCommDetach
func goCommDetach(engine C.uintptr_t) C.int { return withEngine(engine, (*persist.Engine).Detach) }

//export goCommCount
func goCommCount(engine C.uintptr_t, examples C.float) C.int {
	return withEngine(engine, func(e *persist.Engine) error { return e.SetCount(float32(examples)) })
}

//export goCommJoin
func goCommJoin(engine C.uintptr_t) C.int { return withEngine(engine, (*persist.Engine).Join) }

//export goGlobalLoss
func goGlobalLoss(h C.uintptr_t, out *C.float) C.int {
	return withHandle(h, func(x *persist.Handle) error {
		loss, err := x.GlobalLoss()
		if err == nil {
			*out = C.float(loss)
		}
		return err
	})
}

//export goCommDestroy
func goCommDestroy(n C.uintptr_t) (status C.int) {
	defer guard(&status)
	return failed(destroyComm(number(n)))
}

// destroyComm takes a rank's communicator from the program. An engine that is attached keeps it.
func destroyComm(n number) error {
	s, err := objects.freeze(n, commKind)
	if err != nil {
		return err
	}
	c := s.object
	objects.remove(n, s)
	if h, ok := c.(comm.Held); ok {
		h.Close()
	}
	return nil
}
