package verify

import (
	"fmt"

	"libvpps/persist/isa"
)

// chain is the footprint: each item's vectors that are loaded or stored. Loads of a vector come before
// the stores of the same one, but there is no order between the vectors of two slots.
func (f *Footprint) chain() error {
	if err := f.in.CheckChain(); err != nil {
		return err
	}
	axis := f.vector()
	for i := range f.in.Items {
		item := f.in.Item(i)
		for s, a := range item {
			w, how := f.in.ChainSlot(s), access(0)
			if w&isa.ChainRead != 0 {
				how |= asRead
			}
			if w&isa.ChainWritten != 0 {
				how |= asWrite | asPaired
				if t := f.in.Overlapping(item, s, axis.Size); t >= 0 {
					return fmt.Errorf("item %d: the vectors of slots %d and %d overlap, and slot %d is written", i, min(s, t), max(s, t), s)
				}
			}
			if how != 0 {
				f.add(s, i, uint64(a), how, axis)
			}
		}
	}
	return nil
}
