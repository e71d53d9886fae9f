package cuda

// The memory of the segments.

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"libvpps/gpu"
	"libvpps/persist/isa"
)

// storage is the segments and the sums of several ranks' gradients. It counts the bytes copied from and to the host.
type storage struct {
	dev      gpu.Device
	segments [isa.Segments]segment
	sums     [isa.Segments]segment // of several ranks' gradients
	packed   segment               // rows of tables, for these
	result   gpu.HostBuffer        // segment result: mapped, so that reading it needs no copy
	near     neighbours            // of what was read last

	toDevice, fromDevice atomic.Uint64 // bytes copied so far
}

type segment struct {
	at    gpu.Ptr
	words uint64
}

func (m *storage) open() (err error) {
	m.result, err = m.dev.AllocHost(256)
	return err
}

// results is segment result, as the host sees it.
func (m *storage) results() []float32 {
	return unsafe.Slice((*float32)(m.result.Mem), m.result.Bytes/4)
}

// growResult makes room for n floats in segment result. No launch may be in flight.
func (m *storage) growResult(n uint64) error {
	if 4*n <= uint64(m.result.Bytes) {
		return nil
	}
	b, err := m.dev.AllocHost(int(4 * n))
	if err != nil {
		return err
	}
	old, from := m.result, m.results()
	m.result = b
	copy(m.results(), from)
	return m.dev.FreeHost(old)
}

func (m *storage) free() {
	for s := range m.segments {
		m.dev.Free(m.segments[s].at)
		m.dev.Free(m.sums[s].at)
	}
	m.dev.Free(m.packed.at)
}

// sumBytes is what the sums take.
func (m *storage) sumBytes() uint64 {
	words := m.packed.words
	for s := range m.sums {
		words += m.sums[s].words
	}
	return 4 * words
}

// Grow makes room for n floats; the contents are copied.
func (m *storage) Grow(s isa.Segment, n uint64) error {
	switch s {
	case isa.SegInput:
		return nil
	case isa.SegResult:
		return m.growResult(n)
	}
	g := &m.segments[s]
	if n <= g.words {
		return nil
	}
	words := max(n, g.words+g.words/2, 1<<20)
	at, err := m.dev.Alloc(int64(words) * 4)
	if err != nil && words > n {
		words = n
		at, err = m.dev.Alloc(int64(words) * 4)
	}
	if err != nil {
		free, total, _ := m.dev.MemInfo()
		return fmt.Errorf("segment %v: %d bytes needed, %d of %d free: %w", s, 4*n, free, total, err)
	}
	if err := m.move(g, at, words); err != nil {
		m.dev.Free(at)
		return err
	}
	old := g.at
	g.at, g.words = at, words
	return m.dev.Free(old)
}

// move copies a segment to where it has room for words floats, and waits.
func (m *storage) move(g *segment, to gpu.Ptr, words uint64) error {
	if g.words > 0 {
		if err := m.dev.CopyOnDevice(to, g.at, int64(g.words)*4); err != nil {
			return err
		}
	}
	// New memory is 0: gradients are read as a whole, and initcheck finds reads of memory that nobody has written.
	if err := m.dev.Memset32(to+gpu.Ptr(4*g.words), 0, int64(words-g.words)); err != nil {
		return err
	}
	return m.dev.Synchronize()
}

// read copies from a segment after everything launched before.
func (m *storage) read(s isa.Segment, offset uint64, to []float32) error {
	if len(to) == 0 {
		return nil
	}
	if s == isa.SegResult {
		copy(to, m.results()[offset:])
		return nil
	}
	if s != isa.SegAct {
		return m.copyBack(s, offset, to)
	}
	if m.near.read(offset, to) {
		return nil
	}
	block := m.near.around(offset, len(to), m.segments[s].words)
	if block == nil {
		return m.copyBack(s, offset, to)
	}
	if err := m.copyBack(s, m.near.at, block); err != nil {
		m.near.change()
		return err
	}
	m.near.read(offset, to)
	return nil
}

// copyBack copies from a segment on the device.
func (m *storage) copyBack(s isa.Segment, offset uint64, to []float32) error {
	m.fromDevice.Add(4 * uint64(len(to)))
	return m.dev.CopyFromDevice(unsafe.Pointer(&to[0]), m.segments[s].at+gpu.Ptr(4*offset), 4*len(to))
}

// Write copies to a segment.
func (m *storage) Write(s isa.Segment, offset uint64, from []float32) error {
	if len(from) == 0 {
		return nil
	}
	if s == isa.SegResult {
		copy(m.results()[offset:], from)
		return nil
	}
	m.near.change()
	m.toDevice.Add(4 * uint64(len(from)))
	return m.dev.CopyToDevice(m.segments[s].at+gpu.Ptr(4*offset), unsafe.Pointer(&from[0]), 4*len(from))
}

// Copy copies from one segment to another.
func (m *storage) Copy(to isa.Segment, at uint64, from isa.Segment, offset, n uint64) error {
	m.near.change()
	return m.dev.CopyOnDevice(m.segments[to].at+gpu.Ptr(4*at), m.segments[from].at+gpu.Ptr(4*offset), int64(4*n))
}

// Zero sets n floats of a segment to 0.
func (m *storage) Zero(s isa.Segment, offset, n uint64) error {
	if n == 0 {
		return nil
	}
	m.near.change()
	return m.dev.Memset32(m.segments[s].at+gpu.Ptr(4*offset), 0, int64(n))
}
