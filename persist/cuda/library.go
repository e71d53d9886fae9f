package cuda

import (
	"libvpps/gpu"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
)

// Gradients that cuBLAS forms between the two parts of a script.

// products is the library of all plans.
type products struct {
	library *plan.Library
	blas    gpu.BLAS // the library's own, nil: nobody has asked for it
}

func (g *products) open(dev gpu.Device, settings plan.Settings) {
	g.library = plan.NewLibrary(settings, func() (name string, err error) {
		if g.blas, err = dev.OpenBLAS(); err != nil {
			return "", err
		}
		return g.blas.Name(), nil
	})
}

func (g *products) close() {
	if g.blas != nil {
		g.blas.Close()
	}
}

// start puts a slot's script on the stream: a launch or, if it is cut, two with the library's products between them.
func (e *Executor) start(s *isa.Script, t *staging, batch uint32) error {
	if !s.InParts() {
		return e.launch(t, batch, isa.Whole)
	}
	if err := e.launch(t, batch, isa.First); err != nil {
		return err
	}
	err := e.multiply(s.Library, &e.segments)
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
func (g *products) multiply(list []isa.LibraryGradient, segments *[isa.Segments]segment) error {
	at := func(s isa.Segment, offset uint32) gpu.Ptr { return segments[s].at + 4*gpu.Ptr(offset) }
	for i := range list {
		x := &list[i]
		keep := float32(0)
		if x.Acc {
			keep = 1
		}
		err := g.blas.Gemm(x.Rows, x.Cols, x.Items, x.Scale, at(isa.SegAct, x.DY), at(isa.SegAct, x.X), keep, at(x.Segment, x.G))
		if err != nil {
			g.library.Refuse(err)
			return err
		}
	}
	return nil
}
