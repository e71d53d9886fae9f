package verify

import (
	"fmt"

	"libvpps/persist/isa"
)

// A processor multiplies by matrices first. From its first outer product, norm, clipping or update on, or when it waits for
// these, its matrices are no longer there: a GPU uses their registers for gradients (jit/kernel/interpreter.h: Half).

// half is the half that a processor's stream is in.
type half struct{ gradients bool }

// check takes the stream's next instruction.
func (h *half) check(in *isa.Instruction) error {
	switch in.Op {
	case isa.Outer, isa.Norm, isa.Clip, isa.Update:
		h.gradients = true
	case isa.Wait:
		h.gradients = h.gradients || in.Phase >= isa.InGradients
	case isa.Product, isa.ProductT:
		if h.gradients {
			return fmt.Errorf("it comes after gradients of parameters or updates, where matrices are no longer there")
		}
	}
	return nil
}
