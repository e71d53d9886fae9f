package script

import "libvpps/bridge/ops"

// Uses of a range of a node's elements, such as the gates of an LSTM or the scores of one tag. What uses of ranges that have no
// element in common give to the node's gradient may be added in any order.

// axisRange is elements [from, to) along an axis, in all batch elements.
type axisRange struct{ axis, from, to uint32 }

// mostRanges bounds the ranges that are compared with one another.
const mostRanges = 64

// isRangeOf reports whether an operation is of a range of its argument's elements, perhaps.
func isRangeOf(op ops.Code) bool { return op == ops.PickRange || op == ops.PickElement }

// rangeOf is the range that a use is of.
func (b *Builder) rangeOf(u user) (r axisRange, ok bool) {
	switch b.g.Op[u.node] {
	case ops.PickRange:
		a := b.g.AttrsOf(u.node)
		return axisRange{a[2], a[0], a[1]}, true
	case ops.PickElement: // of a template the input words are not known
		if a := b.g.AttrsOf(u.node); a[2] == 1 && !b.symbolic {
			i := b.g.Inputs[a[1]]
			return axisRange{a[0], i, i + 1}, true
		}
	}
	return r, false
}

// besides adds a use to the ranges if it is one as well, along the same axis, and has no element in common with them.
func (b *Builder) besides(u user) bool {
	r, ok := b.rangeOf(u)
	if !ok || len(b.ranges) == mostRanges {
		return false
	}
	for _, x := range b.ranges {
		if r.axis != x.axis || r.from < x.to && x.from < r.to {
			return false
		}
	}
	b.ranges = append(b.ranges, r)
	return true
}

// tiled reports whether the uses of v are ranges that have each of its elements once: then there is nothing to fill in or to
// add to.
func (b *Builder) tiled(v uint32) bool {
	b.ranges = b.ranges[:0]
	for _, u := range b.usersOf(v) {
		if u.kind == useOther && (!isRangeOf(b.g.Op[u.node]) || !b.besides(u)) {
			return false
		}
	}
	if len(b.ranges) == 0 {
		return false
	}
	left := uint32(b.g.DimOf(v).Axis(int(b.ranges[0].axis)))
	for _, r := range b.ranges {
		left -= r.to - r.from
	}
	return left == 0
}
