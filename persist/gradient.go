package persist

import (
	"slices"
	"unsafe"
)

// Gradients in memory that the program has, too: it reads, writes and clears them there, as in
// DyNet. Invariant: of such a parameter, what is not pending is zero in memory. A dense gradient
// always pends, so that what the program writes counts without a call.

// GradientMemory gives the program the gradient itself where the device computes in host memory,
// nil elsewhere. share false: the program has it no longer.
func (e *Engine) GradientMemory(id uint32, share bool) (unsafe.Pointer, error) {
	e.enter()
	defer e.mu.Unlock()
	p, err := e.settled(id)
	if err != nil {
		return nil, err
	}
	memory := e.memory(p, Gradient)
	if memory == nil || p.shared == share {
		return memory, nil
	}
	if !share {
		p.shared = false
		return memory, nil
	}
	if err := e.push(p, Gradient, 0, uint64(p.Size)); err != nil {
		return nil, err
	}
	e.gradientsChange()
	p.shared, p.fused = true, false
	all, end := unsafe.Slice((*float32)(memory), p.Size), uint32(0)
	for offset, n := range p.pending().spans(p) {
		clear(all[end:offset])
		end = offset + n
	}
	clear(all[end:])
	if !p.Lookup {
		p.Pending = true
	}
	return memory, nil
}

// SetTouched says which rows of a shared gradient the program may have left other than zero; all: any.
func (e *Engine) SetTouched(id uint32, rows []uint32, all bool) error {
	e.enter()
	defer e.mu.Unlock()
	p, err := e.settled(id)
	if err != nil {
		return err
	}
	switch {
	case !p.Lookup:
		return wrong(ErrArgument, "parameter %q has no rows: it is no lookup parameter", p.name)
	case !p.shared:
		return wrong(ErrState, "parameter %q: the program does not have its gradient's memory: call vpps_parameter_gradient_memory first", p.name)
	}
	if n := p.Size / p.Row; uint64(len(rows)) > uint64(n) {
		return wrong(ErrArgument, "parameter %q has %d rows, %d were given: give each once", p.name, n, len(rows))
	}
	rows = slices.Clone(rows)
	slices.Sort(rows)
	rows = slices.Compact(rows)
	if n := len(rows); n > 0 && rows[n-1] >= p.Size/p.Row {
		return wrong(ErrArgument, "parameter %q has %d rows, there is no row %d", p.name, p.Size/p.Row, rows[n-1])
	}
	e.gradientsChange()
	if p.Pending, p.Rows = all, rows; all {
		p.Rows = nil
	}
	return nil
}

// memory is a part of a parameter where the device has it, nil if that is no memory of the host.
func (e *Engine) memory(p *parameter, part Part) unsafe.Pointer {
	floats := e.exec.Shared(p.segment(part))
	if floats == nil {
		return nil
	}
	return unsafe.Pointer(&floats[p.Offset])
}

// clearGradient makes a gradient zero.
func (e *Engine) clearGradient(p *parameter) {
	e.gradientsChange()
	if !p.shared {
		p.Pending, p.Rows = false, nil
		return
	}
	e.clearShared(p, p.pending())
	p.Pending, p.Rows = !p.Lookup, nil
}

// clearShared zeroes a part of a gradient in the memory that the program has, too.
func (e *Engine) clearShared(p *parameter, part pendingRows) {
	all := unsafe.Slice((*float32)(e.memory(p, Gradient)), p.Size)
	for offset, n := range part.spans(p) {
		clear(all[offset : offset+n])
	}
}

// noneShared refuses batches in flight while the program may touch gradients.
func (e *Engine) noneShared() error {
	for i := range e.params {
		if p := &e.params[i]; p.shared {
			return wrong(ErrState, "fb: the program has the gradient of parameter %q (vpps_parameter_gradient_memory), which a batch in flight changes: give it back with share = 0, or call backward and update", p.name)
		}
	}
	return nil
}
