package persist

import (
	"iter"

	"libvpps/persist/isa"
)

// Pending gradients: which elements of a parameter's gradient a backward has formed, and no update has applied.

// pendingRows is a part of a parameter's gradient.
type pendingRows struct {
	whole bool
	rows  []uint32 // ascending; nil if whole
}

// pending is the part that is there.
func (p *parameter) pending() pendingRows { return pendingRows{p.Pending, p.Rows} }

// pends reports whether any of it is there.
func (p *parameter) pends() bool { return p.Pending || len(p.Rows) > 0 }

// spans are the offsets and lengths of a part of a parameter's gradient, ascending.
func (r pendingRows) spans(p *parameter) iter.Seq2[uint32, uint32] {
	return func(yield func(offset, n uint32) bool) {
		if r.whole {
			yield(0, p.Size)
			return
		}
		for _, row := range r.rows {
			if !yield(row*p.Row, p.Row) {
				return
			}
		}
	}
}

// floats is how many elements the part of a parameter has.
func (r pendingRows) floats(p *parameter) int {
	if r.whole {
		return int(p.Size)
	}
	return len(r.rows) * int(p.Row)
}

// transfer calls do for each span in memory and its place in a buffer, which has the spans one after the other.
func (r pendingRows) transfer(p *parameter, buffer []float32, do func(s isa.Segment, at uint64, part []float32) error) error {
	for offset, n := range r.spans(p) {
		if err := do(p.segment(Gradient), uint64(p.Offset+offset), buffer[:n]); err != nil {
			return err
		}
		buffer = buffer[n:]
	}
	return nil
}
