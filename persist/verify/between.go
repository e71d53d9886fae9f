package verify

import (
	"fmt"

	"libvpps/persist/isa"
)

// between simulates what lies between the launches of a script's parts: all that the first has done comes before what
// the library does, and that before the second part.
func (v *verifier) between() error {
	v.meet()
	p := &v.procs[0]
	for i := range v.library {
		g := &v.library[i]
		if m := v.plan.Matrices; g.Matrix < 0 || g.Matrix >= len(m) || g.Rows != m[g.Matrix].Rows || g.Cols != m[g.Matrix].Cols || g.Items < 1 {
			return fmt.Errorf("the library's product %d, %s: the plan has no such matrix", i, g)
		}
		x := execution{verifier: v, processor: p, first: uint32(len(v.events))}
		v.foot.Ranges = append(v.foot.Ranges[:0],
			Range{Segment: g.Segment, Offset: uint64(g.G), Rank: 1, Write: true, Read: g.Acc},
			Range{Segment: isa.SegAct, Offset: uint64(g.DY), Rank: 1, Read: true},
			Range{Segment: isa.SegAct, Offset: uint64(g.X), Rank: 1, Read: true})
		for k, n := range [...]int{g.Rows * g.Cols, g.Items * g.Rows, g.Items * g.Cols} {
			v.foot.Ranges[k].Axes[0] = Axis{uint64(n), 1}
		}
		x.addUnits(v.foot.Ranges)
		if err := x.access(v.foot.Ranges); err != nil {
			return fmt.Errorf("the library's product %d, %s: %w", i, g, err)
		}
		p.order()
	}
	v.meet()
	for i := range v.procs {
		p := &v.procs[i]
		p.stream, p.own, p.clip = p.own, nil, nil
		p.index++
	}
	v.resumed = true
	return nil
}

// meet lets all processors catch up with each other.
func (v *verifier) meet() {
	all := make([]uint32, len(v.procs))
	for i := range v.procs {
		v.procs[i].order()
		join(all, v.procs[i].clock)
	}
	for i := range v.procs {
		copy(v.procs[i].clock, all)
	}
}
