package main

/*
#include "vpps.h"
#include "errors.h"
*/
import "C"

import (
	"unsafe"

	"libvpps/bridge"
	"libvpps/persist"
)

//export goCollectionCreate
func goCollectionCreate(h C.uintptr_t, lambda C.float, out *C.uint32_t) C.int {
	return withEngine(h, func(e *persist.Engine) error {
		c, err := e.NewCollection(float32(lambda))
		if err == nil {
			*out = C.uint32_t(c)
		}
		return err
	})
}

//export goCollectionSetLambda
func goCollectionSetLambda(h C.uintptr_t, c C.uint32_t, lambda C.float) C.int {
	return withEngine(h, func(e *persist.Engine) error {
		return e.SetLambda(uint32(c), float32(lambda))
	})
}

//export goCollectionFactor
func goCollectionFactor(h C.uintptr_t, c C.uint32_t, out *C.float) C.int {
	return withEngine(h, func(e *persist.Engine) error {
		f, err := e.Factor(uint32(c))
		if err == nil {
			*out = C.float(f)
		}
		return err
	})
}

//export goCollectionSetFactor
func goCollectionSetFactor(h C.uintptr_t, c C.uint32_t, factor C.float) C.int {
	return withEngine(h, func(e *persist.Engine) error {
		return e.SetFactor(uint32(c), float32(factor))
	})
}

//export goParameterCreate
func goParameterCreate(h C.uintptr_t, c C.uint32_t, name *C.vpps_cchar, dim *C.vpps_cdim, flags C.uint32_t, values *C.vpps_cfloat, out *C.uint32_t) C.int {
	return withEngine(h, func(e *persist.Engine) error {
		d := *(*bridge.Dim)(unsafe.Pointer(dim))
		if err := bridge.CheckDim(&d); err != nil {
			return argument("%v", err)
		}
		var v []float32
		if values != nil {
			v = slice[float32](values, C.size_t(d.Size()))
		}
		n, err := textOf(name, "name")
		if err != nil {
			return err
		}
		id, err := e.NewParameter(uint32(c), n, d, flags&C.VPPS_PARAMETER_LOOKUP != 0, v)
		if err == nil {
			*out = C.uint32_t(id)
		}
		return err
	})
}

//export goParameterDestroy
func goParameterDestroy(h C.uintptr_t, id C.uint32_t) C.int {
	return withEngine(h, func(e *persist.Engine) error {
		return e.DestroyParameter(uint32(id))
	})
}

func partOf(part C.int) (persist.Part, error) {
	if part != C.VPPS_VALUES && part != C.VPPS_GRADIENT {
		return 0, argument("part %d: write VPPS_VALUES or VPPS_GRADIENT", int(part))
	}
	return persist.Part(part), nil
}

//export goParameterRead
func goParameterRead(h C.uintptr_t, id C.uint32_t, part C.int, offset, count C.uint64_t, to *C.float) C.int {
	return withEngine(h, func(e *persist.Engine) error {
		p, err := partOf(part)
		if err != nil {
			return err
		}
		v, err := array[float32](to, count, "elements")
		if err != nil {
			return err
		}
		return e.ReadParameter(uint32(id), p, uint64(offset), v)
	})
}

//export goParameterWrite
func goParameterWrite(h C.uintptr_t, id C.uint32_t, part C.int, offset, count C.uint64_t, from *C.vpps_cfloat) C.int {
	return withEngine(h, func(e *persist.Engine) error {
		p, err := partOf(part)
		if err != nil {
			return err
		}
		v, err := array[float32](from, count, "elements")
		if err != nil {
			return err
		}
		return e.WriteParameter(uint32(id), p, uint64(offset), v)
	})
}

//export goParameterScale
func goParameterScale(h C.uintptr_t, id C.uint32_t, part C.int, factor C.float) C.int {
	return withEngine(h, func(e *persist.Engine) error {
		p, err := partOf(part)
		if err != nil {
			return err
		}
		return e.ScaleParameter(uint32(id), p, float32(factor))
	})
}

//export goParameterExpose
func goParameterExpose(h C.uintptr_t, id C.uint32_t, part C.int, out **C.float) C.int {
	return withEngine(h, func(e *persist.Engine) error {
		which, err := partOf(part)
		if err != nil {
			return err
		}
		p, err := e.Expose(uint32(id), which)
		if err == nil {
			*out = (*C.float)(p)
		}
		return err
	})
}

//export goParameterSetUpdated
func goParameterSetUpdated(h C.uintptr_t, id C.uint32_t, updated C.int) C.int {
	return withEngine(h, func(e *persist.Engine) error {
		return e.SetUpdated(uint32(id), updated != 0)
	})
}

//export goParameterTouched
func goParameterTouched(h C.uintptr_t, id C.uint32_t, rows *C.uint32_t, capacity C.uint64_t, count *C.uint64_t, all *C.int) C.int {
	return withEngine(h, func(e *persist.Engine) error {
		if rows == nil {
			capacity = 0
		}
		n, whole, err := e.Touched(uint32(id), slice[uint32](rows, C.size_t(min(capacity, 1<<32))))
		if err != nil {
			return err
		}
		*count, *all = C.uint64_t(n), 0
		if whole {
			*all = 1
		}
		return nil
	})
}

//export goParameterMemory
func goParameterMemory(h C.uintptr_t, id C.uint32_t, out **C.float) C.int {
	return withEngine(h, func(e *persist.Engine) error {
		p, err := e.Memory(uint32(id))
		if err != nil {
			return err
		}
		*out = (*C.float)(p)
		return nil
	})
}

//export goParameterGradientMemory
func goParameterGradientMemory(h C.uintptr_t, id C.uint32_t, share C.int, out **C.float) C.int {
	return withEngine(h, func(e *persist.Engine) error {
		p, err := e.GradientMemory(uint32(id), share != 0)
		if err != nil {
			return err
		}
		*out = (*C.float)(p)
		return nil
	})
}

//export goParameterSetTouched
func goParameterSetTouched(h C.uintptr_t, id C.uint32_t, rows *C.vpps_cuint, count C.uint64_t, all C.int) C.int {
	return withEngine(h, func(e *persist.Engine) error {
		v, err := array[uint32](rows, count, "rows")
		if err != nil {
			return err
		}
		return e.SetTouched(uint32(id), v, all != 0)
	})
}
