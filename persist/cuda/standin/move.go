package standin

/*
#cgo CXXFLAGS: -std=c++14 -fno-exceptions -fno-rtti -Wall
#include <stdlib.h>
#include "move.h"
*/
import "C"

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"libvpps/gpu"
	"libvpps/persist/executor"
)

// moves does a launch of a kernel that moves runs of numbers: args is struct Arguments of cuda/move.cu.
func (g *GPU) moves(name string, args []byte, grid, block int) error {
	n := int64(binary.LittleEndian.Uint32(args[8:]))
	list, err := g.at(gpu.Ptr(binary.LittleEndian.Uint64(args)), n*int64(unsafe.Sizeof(executor.Run{})))
	if err != nil {
		return fmt.Errorf("the list of runs: %w", err)
	}
	from, to := int64(4), int64(4) // bytes of a number
	switch name {
	case "vpps_move_pack":
		to = 2
	case "vpps_move_unpack":
		from = 2
	}
	for _, r := range unsafe.Slice((*executor.Run)(list), n) {
		if _, err := g.at(gpu.Ptr(r.From), from*int64(r.N)); err != nil {
			return err
		}
		if _, err := g.at(gpu.Ptr(r.To), to*int64(r.N)); err != nil {
			return err
		}
	}
	kernel := C.CString(name)
	defer C.free(unsafe.Pointer(kernel))
	if C.vpps_standin_move(kernel, unsafe.Pointer(&args[0]), C.uint(grid), C.uint(block)) == 0 {
		return fmt.Errorf("move.cu has no kernel %s", name)
	}
	return nil
}
