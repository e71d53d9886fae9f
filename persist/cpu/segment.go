package cpu

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"libvpps/jit/kernel"
	"libvpps/persist/memory"
)

// segment is memory that grows where it is, for each has an address of its own with nobody near: so it takes no more
// address space than it needs, and nothing is copied. Where somebody is in its way after all it moves, unless its
// addresses are known outside.
type segment struct {
	floats []float32 // zeroed; pages come when they are touched
	pinned bool
	lane   *atomic.Bool // its address's, nil: it has none of these
}

const (
	step   = 4 << 20    // bytes that a segment grows by at least, if there are as many
	most   = 1 << 32    // floats of a segment: offsets have 32 bits
	apart  = 8 * most   // bytes between the addresses of two segments
	lowest = 0x48 << 40 // of these addresses, far from where programs and libraries are
	lanes  = 128        // how many of them there are
)

// taken is which of these addresses have a segment.
var taken [lanes]atomic.Bool

// open maps a segment of one step.
func (s *segment) open() error {
	for k := range taken {
		if !taken[k].CompareAndSwap(false, true) {
			continue
		}
		near := uintptr(lowest) + uintptr(k)*apart
		p := kernel.Map(step, near)
		if uintptr(p) == near {
			s.lane = &taken[k]
			s.set(p, step)
			return nil
		}
		taken[k].Store(false)
		if p == nil {
			break
		}
		kernel.Unmap(p, step) // the address is somebody else's
	}
	p := kernel.Map(step, 0)
	if p == nil {
		return fmt.Errorf("%w: %d bytes of address space", memory.ErrExhausted, step)
	}
	s.set(p, step)
	return nil
}

func (s *segment) set(p unsafe.Pointer, bytes uint64) {
	s.floats = unsafe.Slice((*float32)(p), bytes/4)
}

func (s *segment) at() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s.floats)) }

func (s *segment) close() {
	if s.floats != nil {
		kernel.Unmap(s.at(), uintptr(4*len(s.floats)))
	}
	if s.lane != nil {
		s.lane.Store(false)
	}
	s.floats, s.lane = nil, nil
}

// grow makes room for n floats.
func (s *segment) grow(n uint64) error {
	have := uint64(len(s.floats))
	if n <= have {
		return nil
	}
	if n > most {
		return fmt.Errorf("%w: it has at most 16 GiB: use smaller batches or a smaller model", memory.ErrExhausted)
	}
	for _, unit := range []uint64{step, uint64(os.Getpagesize())} {
		bytes := (4*n + unit - 1) / unit * unit
		if p := kernel.Extend(s.at(), uintptr(4*have), uintptr(bytes), !s.pinned); p != nil {
			s.set(p, bytes)
			return nil
		}
	}
	return fmt.Errorf("%w: %d bytes of address space needed, %d there (ulimit -v bounds it): use smaller batches or a smaller model", memory.ErrExhausted, 4*n, 4*have)
}

// zero clears memory; of large ones whole pages are given back to the system instead of being written.
func zero(m []float32) {
	page := uintptr(os.Getpagesize())
	if len(m) < step/4 {
		clear(m)
		return
	}
	begin := uintptr(unsafe.Pointer(&m[0]))
	head := int((begin+page-1)/page*page-begin) / 4
	pages := (len(m) - head) * 4 / int(page) * int(page)
	if !kernel.Discard(unsafe.Pointer(&m[head]), uintptr(pages)) {
		clear(m)
		return
	}
	clear(m[:head])
	clear(m[head+pages/4:])
}
