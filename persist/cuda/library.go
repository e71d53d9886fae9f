package cuda

import (
	"libvpps/gpu"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
)

// Gradients that cuBLAS forms between the two parts of a script.

// newLibrary is the library of all plans.
func (e *Executor) newLibrary() *plan.Library {
	return plan.NewLibrary(e.settings, func() (name string, err error) {
		if e.blas, err = e.dev.OpenBLAS(); err != nil {
			return "", err
		}
		return e.blas.Name(), nil
	})
}

// start puts a slot's script on the stream: a launch or, if it is cut, two with the library's products between them.
func (e *Executor) start(s *isa.Script, t *staging, batch uint32) error {
	if !s.InParts() {
		return e.launch(t, batch, isa.Whole)
	}
	if err := e.launch(t, batch, isa.First); err != nil {
		return err
	}
	err := e.multiply(s.Library)
	if err == nil {
		err = e.launch(t, batch, isa.Second)
	}
	if err == nil {
		return nil
	}
	if lost := e.dev.Synchronize(); lost != nil { // the first part reads the slot, which is free then
		return lost
	}
	return err
}

// multiply puts the library's products on the stream. When one is refused the kernel forms all gradients of later
// batches.
func (e *Executor) multiply(list []isa.LibraryGradient) error {
	at := func(s isa.Segment, offset uint32) gpu.Ptr { return e.segments[s].at + 4*gpu.Ptr(offset) }
	for i := range list {
		g := &list[i]
		keep := float32(0)
		if g.Acc {
			keep = 1
		}
		err := e.blas.Gemm(g.Rows, g.Cols, g.Items, g.Scale, at(isa.SegAct, g.DY), at(isa.SegAct, g.X), keep, at(g.Segment, g.G))
		if err != nil {
			e.library.Refuse(err)
			return err
		}
	}
	return nil
}
