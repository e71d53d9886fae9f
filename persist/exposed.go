package persist

// Exposed parameters: what a program reads and writes through pointers. Values of a device that
// computes in host memory are exposed as they are. Anything else has a host copy: before a call the
// engine takes over what the program changed there, after it the copy gets what the call changed.

import (
	"bytes"
	"slices"
	"unsafe"

	"libvpps/jit/kernel"
	"libvpps/persist/script"
)

// hostCopy is an exposed part of a parameter, of C memory. The zero hostCopy is of a part that is not.
type hostCopy struct {
	mem    unsafe.Pointer // the memory that the program sees
	direct bool           // mem is the engine's memory itself
	host   []float32      // mem, if it is a copy
	equal  []float32      // host, when it was last equal to the engine's
	rows   []uint32       // the engine has changed these since
	whole  bool           // the engine has changed all of it
}

func (h *hostCopy) free() {
	if len(h.host) > 0 {
		kernel.Free(h.mem)
		kernel.Free(unsafe.Pointer(unsafe.SliceData(h.equal)))
	}
	*h = hostCopy{}
}

// put brings elements from offset on into the copy.
func (h *hostCopy) put(offset uint64, from []float32) {
	if h.host != nil {
		copy(h.host[offset:], from)
		copy(h.equal[offset:], from)
	}
}

// changed notes that the engine has changed a row.
func (h *hostCopy) changed(rows ...uint32) {
	if h.host != nil {
		h.rows = append(h.rows, rows...)
	}
}

// gradientChanged notes, before a gradient is dropped, or when a copy is made, what the copy has to get.
func (p *parameter) gradientChanged() {
	h := &p.host[Gradient]
	h.whole = h.whole || p.Pending
	h.changed(p.Rows...)
}

// loseGradient drops what is pending.
func (p *parameter) loseGradient() {
	p.gradientChanged()
	p.Pending, p.Rows = false, nil
}

// valuesChanged notes what an update of the pending gradients changes. A sparse one leaves rows of a
// table alone that have no gradient.
func (p *parameter) valuesChanged(sparse bool) {
	h := &p.host[Values]
	h.whole = h.whole || p.Pending || !p.Lookup || !sparse
	h.changed(p.Rows...)
}

// valuesChanged notes what an update of the gradients formed in the same script changes.
func (e *Engine) valuesChanged(built *script.Built) {
	for _, id := range built.Formed {
		e.params[id].host[Values].whole = true
	}
	for _, t := range built.Touched {
		e.params[t.Param].host[Values].changed(t.Row)
	}
}

// Expose returns the memory where the program sees a part.
func (e *Engine) Expose(id uint32, part Part) (unsafe.Pointer, error) {
	e.enter()
	defer e.mu.Unlock()
	p, err := e.settled(id)
	if err != nil {
		return nil, err
	}
	h := &p.host[part]
	if h.mem != nil {
		return h.mem, nil
	}
	if mem := e.memory(p, Values); mem != nil && part == Values {
		if err := e.giveCopies(); err != nil {
			return nil, err
		}
		h.mem, h.direct = mem, true
		return mem, nil
	}
	mem, equal := kernel.Alloc(int(p.Size)), kernel.Alloc(int(p.Size))
	if mem == nil || equal == nil {
		kernel.Free(mem)
		kernel.Free(equal)
		return nil, wrong(ErrMemory, "parameter %q: no memory for two host copies of %d bytes", p.name, 4*uint64(p.Size))
	}
	h.mem, h.host, h.equal = mem, unsafe.Slice((*float32)(mem), p.Size), unsafe.Slice((*float32)(equal), p.Size)
	if part == Gradient { // rows without a gradient are 0 already, and take no memory yet
		h.whole = false
		p.gradientChanged()
	} else {
		h.whole = true
	}
	if err := e.pull(p, part); err != nil {
		h.free()
		return nil, err
	}
	return mem, nil
}

// exposed reports whether the program sees anything through pointers.
func (e *Engine) exposed() bool {
	for i := range e.params {
		if e.params[i].host[0].mem != nil || e.params[i].host[1].mem != nil {
			return true
		}
	}
	return false
}

// pushExposed takes over what the program changed in host copies.
func (e *Engine) pushExposed() error {
	for i := range e.params {
		p := &e.params[i]
		for part := range p.host {
			if err := e.push(p, Part(part), 0, uint64(p.Size)); err != nil {
				return err
			}
		}
	}
	return nil
}

// push takes over what the program changed in the rows that n elements from offset on belong to.
func (e *Engine) push(p *parameter, part Part, offset, n uint64) error {
	h, row := &p.host[part], uint64(p.Row)
	if h.host == nil || n == 0 {
		return nil
	}
	at, end := offset/row*row, (offset+n+row-1)/row*row
	if equalBits(h.host[at:end], h.equal[at:end]) {
		return nil
	}
	differs := func(at uint64) bool { return !equalBits(h.host[at:at+row], h.equal[at:at+row]) }
	for at < end {
		first := at
		for at < end && differs(at) {
			at += row
		}
		if first < at {
			if err := e.write(p, part, first, h.host[first:at]); err != nil {
				return err
			}
		} else {
			at += row
		}
	}
	return nil
}

// pullAll brings into all host copies what a call has changed.
func (e *Engine) pullAll() error {
	for i := range e.params {
		for part := range e.params[i].host {
			if err := e.pull(&e.params[i], Part(part)); err != nil {
				return err
			}
		}
	}
	return nil
}

// pull brings into a host copy what a call has changed. Many rows are not worth a transfer each.
func (e *Engine) pull(p *parameter, part Part) error {
	h, row := &p.host[part], uint64(p.Row)
	if h.host == nil {
		h.whole = false
		return nil
	}
	slices.Sort(h.rows)
	h.rows = slices.Compact(h.rows)
	if h.whole || uint64(len(h.rows))*row > uint64(p.Size)/4 {
		if err := e.read(p, part, 0, h.equal); err != nil {
			return err
		}
		copy(h.host, h.equal)
	} else {
		for _, r := range h.rows {
			at := uint64(r) * row
			if err := e.read(p, part, at, h.equal[at:at+row]); err != nil {
				return err
			}
			copy(h.host[at:at+row], h.equal[at:at+row])
		}
	}
	h.rows, h.whole = h.rows[:0], false
	return nil
}

// equalBits compares memory, so that NaN equals itself.
func equalBits(a, b []float32) bool {
	return bytes.Equal(bytesOf(a), bytesOf(b))
}

func bytesOf(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}
