package script

import (
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
	"libvpps/persist/schedule"
)

// A function behind sums: it is applied where these are stored, and so is its derivative.

// behindSums gives y to the only node that reads v, if it is a function of v's elements: then nobody needs v's value. It
// returns the function and the node whose value y is, or v and Copy.
func (b *Builder) behindSums(v uint32, y schedule.Operand) (fn isa.Fn, last uint32) {
	h, ok := b.functionOf(v)
	if !ok {
		return isa.Copy, v
	}
	b.s.Value[h], b.s.Segment[h], b.s.Value[v] = y.At, y.Seg, NoOffset
	b.reader[h] = lowered
	return unaryRules[b.g.Op[h]].fn, h
}

// What stands for the node that reads another, if it is not one node.
const (
	nobody  = NoOffset
	several = NoOffset - 1
	lowered = NoOffset - 2 // and the instruction of the node's argument forms its value
)

// functionOf is the node that is a function of v's elements and all there is that reads v, now or later.
func (b *Builder) functionOf(v uint32) (h uint32, ok bool) {
	h = b.reader[v]
	if !b.r.Needed || b.r.Copy || b.keeps(v) || h >= lowered {
		return 0, false
	}
	return h, b.ofItself(h)
}

// ofItself reports whether node h is a function that can be behind sums, whose derivative is one of its value.
func (b *Builder) ofItself(h uint32) bool {
	return standsBehind(&unaryRules[b.g.Op[h]])
}

// standsBehind reports whether a function can be applied where a product or a sum is stored, and its derivative, too.
func standsBehind(r *unaryRule) bool {
	return r.fromY && isa.Epilogues[r.fn] && isa.EpilogueDerivatives[r.back]
}

// findReaders finds which nodes are read by one node that is evaluated, once.
func (b *Builder) findReaders() {
	for v := b.first; v < b.end; v++ {
		b.reader[v] = nobody
	}
	for v := b.first; v <= b.r.Node; v++ {
		if !b.need[v] {
			continue
		}
		for _, a := range b.g.ArgsOf(v) {
			if !b.owns(a) {
				continue
			}
			if b.reader[a] == nobody {
				b.reader[a] = v
			} else {
				b.reader[a] = several
			}
		}
	}
}

// derive forms the gradient of node h's argument with that of h, if h is a function of it alone: a sum of partial
// results and the derivative of it. False: they are better formed one by one.
func (b *Builder) derive(h uint32, sub int32) bool {
	if b.r.Copy || h == b.r.Node || !b.ofItself(h) {
		return false
	}
	a, k := b.g.ArgsOf(h)[0], b.gcluster[h]
	op := b.g.Op[a]
	if !b.owns(a) || !b.wants[a] || len(b.usersOf(a)) != 1 || b.gcluster[a] != k || op != ops.AffineTransform && op != ops.MatrixMultiply {
		return false
	}
	runs, ok := b.SumOfRuns(b.linear)
	if !ok {
		return false
	}
	if b.s.Grad[a] == NoOffset {
		b.s.Grad[a] = b.Alloc(b.size(a))
	}
	first := schedule.FirstWord(isa.Sum, uint8(unaryRules[b.g.Op[h]].back), 0)
	b.Sum(b.home(h), sub, first, b.gradient(a), isa.SegAct, 1, b.size(h), b.SumList, runs, b.value(h))
	b.derived(h, a, sub)
	return true
}

// derived notes that the gradient of node a is there, and in place of h's.
func (b *Builder) derived(h, a uint32, sub int32) {
	b.gsub[h], b.gsub[a], b.withUser[a] = sub, sub, true
}
