package persist

import (
	"fmt"
	"slices"
	"unsafe"

	"libvpps/bridge"
	"libvpps/persist/isa"
	"libvpps/persist/schedule"
)

// Parameters: the engine holds the master copy in the executor's segments. What a program reads and
// writes through pointers is in exposed.go.

type parameter struct {
	schedule.Param
	name       string
	dim        bridge.Dim
	collection uint32
	version    uint64 // raised when what graphs read changes
	fused      bool   // its gradient was applied by fb, and no backward came since
	shared     bool   // the program has its gradient's memory
	host       [2]hostCopy
}

// Part selects a parameter's values or its gradient.
type Part int

const (
	Values Part = iota
	Gradient
)

func (p *parameter) free() {
	for i := range p.host {
		p.host[i].free()
	}
}

func (p *parameter) segment(part Part) isa.Segment {
	switch {
	case p.Lookup && part == Values:
		return isa.SegTable
	case p.Lookup:
		return isa.SegTGrad
	case part == Values:
		return isa.SegParam
	}
	return isa.SegGrad
}

// NewParameter creates a parameter; values may be nil (zeros).
func (e *Engine) NewParameter(collection uint32, name string, dim bridge.Dim, lookup bool, values []float32) (uint32, error) {
	e.enter()
	defer e.mu.Unlock()
	if e.dead != nil {
		return 0, e.dead
	}
	if int(collection) >= len(e.collections) {
		return 0, wrong(ErrArgument, "there is no collection %d", collection)
	}
	size := dim.Size()
	if size <= 0 || dim.Bd != 1 || dim.Nd == 0 || values != nil && len(values) != size {
		return 0, wrong(ErrArgument, "parameter %q: dim %v with %d values: it needs a size, no batch and as many values as elements", name, dim, len(values))
	}
	p := parameter{name: name, dim: dim, collection: collection, version: 1}
	p.Lookup, p.Size, p.Row, p.Matrix, p.Updated = lookup, uint32(size), uint32(size), -1, true
	if lookup {
		p.Row = uint32(size) / dim.D[dim.Nd-1]
	}
	p.Column = min(dim.D[0], p.Row)
	if err := e.room.prove(uint64(len(e.params))*paramBytes, "the list of parameters"); err != nil {
		return 0, err
	}
	if err := e.place(&p, values); err != nil {
		return 0, err
	}
	e.params = append(e.params, p)
	e.set()
	if !lookup && dim.Nd == 2 {
		e.changedMatrices()
	}
	return uint32(len(e.params) - 1), nil
}

// places is what the offsets of parameters are multiples of: a cache line.
const places = 16

// place gives a parameter memory, that of destroyed ones first, and values; nil: zeros.
func (e *Engine) place(p *parameter, values []float32) (err error) {
	val, grad, size := p.segment(Values), p.segment(Gradient), uint64(p.Size)
	at, again := e.free[val].take((size + places - 1) &^ (places - 1))
	if !again {
		at = (e.used[val] + places - 1) &^ (places - 1)
	}
	if at+size > 1<<32-64 {
		return wrong(ErrMemory, "parameter %q: segment %v would exceed 16 GiB", p.name, val)
	}
	p.Offset = uint32(at)
	defer func() {
		if err != nil && again {
			e.unplace(p)
		}
	}()
	for _, s := range []isa.Segment{val, grad} {
		if err := e.grow(s, at+size, fmt.Sprintf("parameter %q", p.name)); err != nil {
			return e.broke(err)
		}
	}
	if again { // a gradient that was never formed is 0
		if err := e.zero(grad, at, size); err != nil {
			return err
		}
	}
	if values == nil {
		err = e.zero(val, at, size)
	} else {
		err = e.upload(val, at, values)
	}
	if err == nil {
		e.used[val] = max(e.used[val], at+size)
	}
	return err
}

// unplace gives a parameter's memory to others.
func (e *Engine) unplace(p *parameter) {
	e.free[p.segment(Values)].give(uint64(p.Offset), (uint64(p.Size)+places-1)&^(places-1))
}

// settled is a parameter after all batches of fb; it reports if one of them failed.
func (e *Engine) settled(id uint32) (*parameter, error) {
	if err := e.settle(0); err != nil {
		return nil, err
	}
	return e.parameter(id)
}

func (e *Engine) parameter(id uint32) (*parameter, error) {
	if e.dead != nil {
		return nil, e.dead
	}
	if int(id) >= len(e.params) || e.params[id].Size == 0 {
		return nil, wrong(ErrArgument, "there is no parameter %d", id)
	}
	return &e.params[id], nil
}

// DestroyParameter frees a parameter; its id is not used again.
func (e *Engine) DestroyParameter(id uint32) error {
	e.enter()
	defer e.mu.Unlock()
	if err := e.collect(0); err != nil {
		return err
	}
	p, err := e.parameter(id)
	if err != nil {
		return err
	}
	if err := e.wait(); err != nil {
		return err
	}
	if err := e.giveCopies(); err != nil {
		return err
	}
	p.free()
	e.unplace(p)
	e.destroyed++
	planned := p.Matrix >= 0
	*p = parameter{}
	p.Matrix = -1
	e.set()
	if planned {
		e.changedMatrices()
	}
	return nil
}

func (p *parameter) checkRange(offset, n uint64) error {
	if offset > uint64(p.Size) || n > uint64(p.Size)-offset {
		return wrong(ErrArgument, "parameter %q: elements %d..%d of %d", p.name, offset, offset+n, p.Size)
	}
	return nil
}

// ReadParameter copies elements from offset on. Values of a lost device come from the last snapshot.
func (e *Engine) ReadParameter(id uint32, part Part, offset uint64, to []float32) error {
	e.enter()
	defer e.mu.Unlock()
	p, err := e.settled(id)
	if e.lost() && part == Values {
		return e.snapshot.read(id, offset, to, e.dead)
	}
	if err != nil {
		return err
	}
	if err := p.checkRange(offset, uint64(len(to))); err != nil {
		return err
	}
	if err := e.push(p, part, offset, uint64(len(to))); err != nil {
		return err
	}
	return e.read(p, part, offset, to)
}

// read copies a part; gradients that were never formed read 0.
func (e *Engine) read(p *parameter, part Part, offset uint64, to []float32) error {
	if part == Values || p.Pending {
		return e.download(p.segment(part), uint64(p.Offset)+offset, to)
	}
	clear(to)
	end := offset + uint64(len(to))
	first, _ := slices.BinarySearch(p.Rows, uint32(offset/uint64(p.Row)))
	for _, row := range p.Rows[first:] {
		at := uint64(row) * uint64(p.Row)
		if at >= end {
			break
		}
		lo, hi := max(at, offset), min(at+uint64(p.Row), end)
		if err := e.download(p.segment(part), uint64(p.Offset)+lo, to[lo-offset:hi-offset]); err != nil {
			return err
		}
	}
	return nil
}

// WriteParameter replaces elements from offset on.
func (e *Engine) WriteParameter(id uint32, part Part, offset uint64, from []float32) error {
	e.enter()
	defer e.mu.Unlock()
	p, err := e.settled(id)
	if err != nil {
		return err
	}
	if err := p.checkRange(offset, uint64(len(from))); err != nil {
		return err
	}
	return e.write(p, part, offset, from)
}

// write replaces elements, those of a host copy too.
func (e *Engine) write(p *parameter, part Part, offset uint64, from []float32) error {
	if part == Values {
		p.version++
		e.set()
	} else if err := e.defineGradient(p, offset, uint64(len(from))); err != nil {
		return err
	} else {
		p.fused = false
		e.gradientsChange()
	}
	if err := e.upload(p.segment(part), uint64(p.Offset)+offset, from); err != nil {
		return err
	}
	p.host[part].put(offset, from)
	return nil
}

// defineGradient prepares for size elements of a gradient to be written at offset. Whole rows of a
// table are its touched rows, as after a lookup: rules that move a parameter whatever its gradient
// leave the other rows alone.
func (e *Engine) defineGradient(p *parameter, offset, size uint64) error {
	row := uint64(p.Row)
	if err := e.room.prove(16*(uint64(len(p.Rows))+size/row), "the rows that are written"); err != nil {
		return err
	}
	if p.Pending || size == uint64(p.Size) || offset%row != 0 || size%row != 0 {
		return e.wholeGradient(p)
	}
	for r := offset / row; r < (offset+size)/row; r++ {
		if at, found := slices.BinarySearch(p.Rows, uint32(r)); !found {
			p.Rows = slices.Insert(p.Rows, at, uint32(r))
		}
	}
	return nil
}

// wholeGradient makes every element of a gradient defined.
func (e *Engine) wholeGradient(p *parameter) error {
	if p.Pending {
		return nil
	}
	next := uint64(0)
	for _, row := range append(p.Rows[:len(p.Rows):len(p.Rows)], p.Size/p.Row) {
		at := uint64(row) * uint64(p.Row)
		if err := e.zero(p.segment(Gradient), uint64(p.Offset)+next, at-next); err != nil {
			return err
		}
		next = at + uint64(p.Row)
	}
	p.Pending, p.Rows = true, nil
	return nil
}

// ScaleParameter multiplies a part by factor.
func (e *Engine) ScaleParameter(id uint32, part Part, factor float32) error {
	e.enter()
	defer e.mu.Unlock()
	p, err := e.settled(id)
	if err != nil {
		return err
	}
	if err := e.push(p, part, 0, uint64(p.Size)); err != nil {
		return err
	}
	if part == Gradient && factor == 0 {
		p.gradientChanged()
		e.clearGradient(p)
		return e.pull(p, part)
	}
	if part == Values {
		e.set()
	}
	if err := e.scale(p, part, factor); err != nil {
		return err
	}
	return e.pull(p, part)
}

func (e *Engine) scale(p *parameter, part Part, factor float32) error {
	if part == Gradient {
		e.gradientsChange()
		p.fused = p.fused && !p.Pending
		p.gradientChanged()
		for offset, n := range p.pending().spans(p) {
			if err := e.scaleSpan(p, part, offset, n, factor); err != nil {
				return err
			}
		}
		return nil
	}
	p.version++
	p.host[Values].whole = true
	return e.scaleSpan(p, part, 0, p.Size, factor)
}

// scaleSpan multiplies elements from offset on, some at a time: a parameter may be larger than what is left of memory.
func (e *Engine) scaleSpan(p *parameter, part Part, offset, n uint32, factor float32) error {
	some := make([]float32, min(n, 1<<20))
	for at, end := uint64(p.Offset+offset), uint64(p.Offset+offset)+uint64(n); at < end; at += uint64(len(some)) {
		some = some[:min(uint64(len(some)), end-at)]
		if err := e.download(p.segment(part), at, some); err != nil {
			return err
		}
		for i := range some {
			some[i] *= factor
		}
		if err := e.upload(p.segment(part), at, some); err != nil {
			return err
		}
	}
	return nil
}

// SetUpdated says whether trainers change a parameter.
func (e *Engine) SetUpdated(id uint32, updated bool) error {
	e.enter()
	defer e.mu.Unlock()
	p, err := e.parameter(id)
	if err == nil {
		e.gradientsChange()
		p.Updated = updated
		e.set()
	}
	return err
}

// Touched copies the rows with a pending gradient, as many as to has room for, and counts them; all: the table as a
// whole has one.
func (e *Engine) Touched(id uint32, to []uint32) (count int, all bool, err error) {
	e.enter()
	defer e.mu.Unlock()
	p, err := e.settled(id)
	if err != nil {
		return 0, false, err
	}
	if err := e.push(p, Gradient, 0, uint64(p.Size)); err != nil {
		return 0, false, err
	}
	copy(to, p.Rows)
	return len(p.Rows), p.Pending, nil
}

// Memory is a parameter's values themselves where the device computes in host memory, nil elsewhere.
func (e *Engine) Memory(id uint32) (unsafe.Pointer, error) {
	e.enter()
	defer e.mu.Unlock()
	p, err := e.settled(id)
	if err != nil {
		return nil, err
	}
	if err := e.giveCopies(); err != nil {
		return nil, err
	}
	m := e.memory(p, Values)
	e.lent = e.lent || m != nil
	return m, nil
}
