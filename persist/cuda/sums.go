package cuda

import (
	"libvpps/gpu"
	"libvpps/persist/executor"
	"libvpps/persist/isa"
)

// Sums of several ranks' gradients. They have a segment's size and offsets, so that an update finds them where it looks for
// gradients, once both have changed places.

// Ordinal is the device's number, as CUDA counts.
func (m *storage) Ordinal() int { return m.dev.Info().Ordinal }

// Sums returns where a segment lies, and memory for as many sums.
func (m *storage) Sums(s isa.Segment) (own, sums executor.Address, err error) {
	g := &m.segments[s]
	err = m.provide(&m.sums[s], g.words)
	return uint64(g.at), uint64(m.sums[s].at), err
}

// SwapSums has launches find the sums in place of a segment, or the segment again.
func (m *storage) SwapSums(s isa.Segment) { m.segments[s], m.sums[s] = m.sums[s], m.segments[s] }

// Packed returns memory for n words. It grows by half at least, if there is room: batches touch ever more rows of a table.
func (m *storage) Packed(n uint64) (executor.Address, error) {
	if n <= m.packed.words {
		return uint64(m.packed.at), nil
	}
	err := m.provide(&m.packed, max(n, m.packed.words+m.packed.words/2))
	if err != nil {
		err = m.provide(&m.packed, n)
	}
	return uint64(m.packed.at), err
}

// provide makes memory of at least n words, which are 0.
func (m *storage) provide(g *segment, n uint64) error {
	if n <= g.words {
		return nil
	}
	if err := m.dev.Free(g.at); err != nil {
		return err
	}
	*g = segment{}
	at, err := m.dev.Alloc(4 * int64(n))
	if err != nil {
		return err
	}
	*g = segment{at, n}
	return m.Fill(uint64(at), 0, n)
}

// Fill gives n words these bits.
func (m *storage) Fill(at executor.Address, bits uint32, n uint64) error {
	return m.dev.Memset32(gpu.Ptr(at), bits, int64(n))
}
