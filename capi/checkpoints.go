package main

/*
#include "vpps.h"
#include "errors.h"
*/
import "C"

import (
	"unsafe"

	"libvpps/persist"
)

// objectsOf finds the objects of a list, which stay until release.
func objectsOf[T any](list unsafe.Pointer, count C.size_t, k kind) (found []T, release func(), err error) {
	var slots []*slot
	release = func() {
		for _, s := range slots {
			s.release()
		}
	}
	numbers, err := array[uintptr]((*C.uintptr_t)(list), C.uint64_t(count), k.String()+"s")
	if err != nil {
		return nil, release, err
	}
	for _, n := range numbers {
		s, err := objects.acquire(number(n), k)
		if err != nil {
			return nil, release, err
		}
		slots, found = append(slots, s), append(found, s.object.(T))
	}
	return found, release, nil
}

// withContents does something with what a program has listed.
func withContents(c *C.vpps_ccheckpoint_contents, do func(*persist.Contents) error) error {
	ids, err := array[uint32](c.ids, C.uint64_t(c.id_count), "parameters")
	if err != nil {
		return err
	}
	trainers, release, err := objectsOf[*trainer](unsafe.Pointer(c.trainers), c.trainer_count, trainerKind)
	defer release()
	if err != nil {
		return err
	}
	handles, release, err := objectsOf[*handle](unsafe.Pointer(c.handles), c.handle_count, handleKind)
	defer release()
	if err != nil {
		return err
	}
	blobs, err := array[C.vpps_blob](c.blobs, C.uint64_t(c.blob_count), "blobs")
	if err != nil {
		return err
	}
	to := persist.Contents{IDs: ids}
	for _, t := range trainers {
		to.Trainers = append(to.Trainers, t.Trainer)
	}
	for _, h := range handles {
		to.Handles = append(to.Handles, h.Handle)
	}
	for k, b := range blobs {
		if b.name == nil || b.data == nil && b.size > 0 {
			return argument("blob %d: its name or its data is NULL", k)
		}
		if b.size >= 1<<40 {
			return argument("blob %d of %d bytes: too many", k, uint64(b.size))
		}
		to.Blobs = append(to.Blobs, persist.Blob{Name: C.GoString(b.name), Data: unsafe.Slice((*byte)(b.data), int(b.size))})
	}
	return do(&to)
}

//export goCheckpointSave
func goCheckpointSave(n C.uintptr_t, path *C.vpps_cchar, c *C.vpps_ccheckpoint_contents) C.int {
	return withEngine(n, func(e *persist.Engine) error {
		return withContents(c, func(from *persist.Contents) error {
			return e.SaveCheckpoint(C.GoString((*C.char)(path)), from)
		})
	})
}

//export goCheckpointOpen
func goCheckpointOpen(path *C.vpps_cchar, out *C.uintptr_t) (status C.int) {
	defer guard(&status)
	c, err := persist.OpenCheckpoint(C.GoString((*C.char)(path)))
	if err == nil {
		if err = give(checkpointKind, c, out); err != nil {
			c.Close()
		}
	}
	return failed(err)
}

//export goCheckpointBlob
func goCheckpointBlob(n C.uintptr_t, name *C.vpps_cchar, data unsafe.Pointer, capacity C.uint64_t, size *C.uint64_t) C.int {
	return with(n, checkpointKind, func(c *persist.Checkpoint) error {
		if data == nil && capacity > 0 || capacity >= 1<<40 {
			return argument("room for %d bytes at %p: pass a buffer, or a capacity of 0", uint64(capacity), data)
		}
		length, found, err := c.Blob(C.GoString((*C.char)(name)), unsafe.Slice((*byte)(data), int(capacity)))
		if err == nil && !found {
			err = argument("the checkpoint has no blob %q", C.GoString((*C.char)(name)))
		}
		*size = C.uint64_t(length)
		return err
	})
}

//export goCheckpointLoad
func goCheckpointLoad(n, engine C.uintptr_t, to *C.vpps_ccheckpoint_contents) C.int {
	return with(n, checkpointKind, func(c *persist.Checkpoint) error {
		return use(number(engine), engineKind, func(s *shared) error {
			return withContents(to, func(to *persist.Contents) error { return c.Load(s.engine, to) })
		})
	})
}

//export goCheckpointClose
func goCheckpointClose(n C.uintptr_t) (status C.int) {
	defer guard(&status)
	s, err := objects.freeze(number(n), checkpointKind)
	if err == nil {
		s.object.(*persist.Checkpoint).Close()
		objects.remove(number(n), s)
	}
	return failed(err)
}
