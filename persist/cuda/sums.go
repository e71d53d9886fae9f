package cuda

import (
	"libvpps/gpu"
	"libvpps/persist/executor"
	"libvpps/persist/isa"
)

// Sums of several ranks' gradients. They have a segment's size and offsets, so that an update finds them where it looks for
// gradients, once both have changed places.

// Ordinal is the device's number, as CUDA counts.
func (e *Executor) Ordinal() int { return e.dev.Info().Ordinal }

// Sums returns where a segment lies, and memory for as many sums.
func (e *Executor) Sums(s isa.Segment) (own, sums executor.Address, err error) {
	g := &e.segments[s]
	err = e.provide(&e.sums[s], g.words)
	return uint64(g.at), uint64(e.sums[s].at), err
}

// SwapSums has launches find the sums in place of a segment, or the segment again.
func (e *Executor) SwapSums(s isa.Segment) { e.segments[s], e.sums[s] = e.sums[s], e.segments[s] }

// Packed returns memory for n floats.
func (e *Executor) Packed(n uint64) (executor.Address, error) {
	err := e.provide(&e.packed, n)
	return uint64(e.packed.at), err
}

// provide makes memory of at least n floats, which are 0.
func (e *Executor) provide(g *segment, n uint64) error {
	if n <= g.words {
		return nil
	}
	if err := e.dev.Free(g.at); err != nil {
		return err
	}
	*g = segment{}
	at, err := e.dev.Alloc(4 * int64(n))
	if err != nil {
		return err
	}
	*g = segment{at, n}
	return e.Fill(uint64(at), 0, n)
}

// Fill gives n floats these bits.
func (e *Executor) Fill(at executor.Address, bits uint32, n uint64) error {
	return e.dev.Memset32(gpu.Ptr(at), bits, int64(n))
}
