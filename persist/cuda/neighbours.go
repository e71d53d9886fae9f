package cuda

// Values that are read together. A program that asks for two values of a graph asks for more, and each copy from the device
// is waited for. So from the second read on, a copy brings the floats around it, too.

import "slices"

// block is how many floats such a copy brings. It is chosen, not measured.
const block = 1 << 13

// neighbours are floats of segment act, as the device has them.
type neighbours struct {
	at     uint64 // where they begin in the segment
	floats []float32
	reads  int // of the segment, since it last changed
}

// change is called when the segment may change: by launches and by what the host writes. Copies of rows leave it alone.
func (n *neighbours) change() { n.floats, n.reads = n.floats[:0], 0 }

// read copies what is there; false: not all of it is.
func (n *neighbours) read(offset uint64, to []float32) bool {
	if offset < n.at || offset+uint64(len(to)) > n.at+uint64(len(n.floats)) {
		return false
	}
	copy(to, n.floats[offset-n.at:])
	return true
}

// around is the floats that a read brings of a segment of so many; nil: only its own.
func (n *neighbours) around(offset uint64, floats int, words uint64) []float32 {
	n.reads++
	if n.reads == 1 || floats > block/2 {
		return nil
	}
	n.at = offset &^ (block - 1)
	count := int(min(max(n.at+block, offset+uint64(floats)), words) - n.at)
	n.floats = slices.Grow(n.floats[:0], count)[:count]
	return n.floats
}
