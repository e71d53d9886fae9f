package verify

// The verifier's rule of the commit: a gradient is applied only after its norm was taken since it
// was last written, and that norm is among those by which the processor has decided to commit.

import "errors"

// partials is the range that a Clip sums.
func (x *execution) partials(ranges []Range) *Range {
	for i := range ranges {
		if r := ranges[i]; r.Read {
			return &r
		}
	}
	return &Range{Offset: farAway} // of nothing
}

// committed checks the gradients of an Update.
func (x *execution) committed(ranges []Range) error {
	clip := x.processor.clip
	if clip == nil {
		return errors.New("there is no clip before it on this processor: nothing decides whether the batch is committed")
	}
	for i := range ranges {
		r := &ranges[i]
		if r.Write {
			continue // the parameter
		}
		t, err := x.find(r)
		if err != nil {
			return err
		}
		good := uint32(0)
		element, ok := t.walk(r, func(c *cell) bool {
			if c.reads == good && good != 0 {
				return true
			}
			good = c.reads
			return x.hasNorm(c.reads, clip)
		})
		if !ok {
			x.fault = errors.New("is applied, but is in no norm that the clip before it sums")
			return x.at(t, element)
		}
	}
	return nil
}

// hasNorm reports whether a set of reads has a Norm whose partial sum lies in a range.
func (x *execution) hasNorm(set uint32, clip *Range) bool {
	for ; set != 0; set = x.sets.parent[set] {
		e := &x.events[x.sets.event[set]]
		if at := uint64(e.result); e.norm == 1+uint8(clip.Segment) && clip.Offset <= at && at <= clip.Last() {
			return true
		}
	}
	return false
}
