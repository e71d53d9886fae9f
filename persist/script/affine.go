package script

import (
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
)

// Affine and AffineT: the products of several matrices in slices by one instruction, with the function behind them, or
// with the vector that all of them are transposed for. Affine's first fields are Product's.

// termsAlike reports whether one instruction can have all products of a node: matrices in slices of one size, scaled
// alike.
func (b *Builder) termsAlike() bool {
	list := b.terms
	if len(list) > isa.MaxTerms {
		return false
	}
	cols, factor := b.r.Plan.Matrices[list[0].matrix].Cols, b.factorOf(list[0].left)
	for i := range list {
		if m := list[i].matrix; m > 0xff || b.r.Plan.Matrices[m].Cols != cols || b.factorOf(list[i].left) != factor {
			return false
		}
	}
	return true
}

// affineChain adds the products of node v, those that are ready at one level as one instruction. The last has the
// function of the only node that reads v, if it has one: then nobody needs v's value.
func (b *Builder) affineChain(v, bias uint32, y operand, level int32) {
	fn, last := b.behindSums(v, y)
	at := spot{-1, -1, 0}
	for list := b.terms; len(list) > 0; {
		ready, n := max(level, b.ready(list[0].right)), 1
		for n < len(list) && max(level, b.ready(list[n].right)) <= ready && b.s.Segment[list[n].right] == b.s.Segment[list[0].right] {
			n++
		}
		if ready > at.level {
			at = spot{ready, b.newSliced(ready), 0}
		} else {
			at.sub++
		}
		f, flags := isa.Copy, uint32(0)
		if n == len(list) {
			f = fn
		}
		if len(list) < len(b.terms) { // the first has stored, and added the bias
			flags, bias = isa.Acc, NoOffset
		}
		b.affine(at, list[:n], y, f, flags, bias)
		list = list[n:]
	}
	if fn != isa.Copy {
		b.clusters[at.cluster].kind |= elementwise
	}
	b.spots[v], b.spots[last] = at, at
}

// behindSums gives y to the only node that reads v, if it is a function of v's elements: then nobody needs v's value. It
// returns the function and the node whose value y is, or v and Copy.
func (b *Builder) behindSums(v uint32, y operand) (fn isa.Fn, last uint32) {
	h, ok := b.functionOf(v)
	if !ok {
		return isa.Copy, v
	}
	b.s.Value[h], b.s.Segment[h], b.s.Value[v] = y.at, y.seg, NoOffset
	b.reader[h] = lowered
	return unaryRules[b.g.Op[h]].fn, h
}

// affine adds an instruction's item for so many products.
func (b *Builder) affine(at spot, list []term, y operand, fn isa.Fn, flags, bias uint32) {
	segs, biasAt, matrices := uint32(y.seg)|uint32(b.s.Segment[list[0].right])<<4, uint32(0), uint32(0)
	if bias != NoOffset {
		flags, biasAt = flags|isa.Bias, b.s.Value[bias]
		segs |= uint32(b.s.Segment[bias]) << 8
	}
	words := [1 + isa.MaxTerms]uint32{y.at}
	for k := range list {
		matrices |= uint32(list[k].matrix) << (8 * k)
		words[1+k] = b.s.Value[list[k].right]
	}
	cols := b.r.Plan.Matrices[list[0].matrix].Cols
	sig := b.sigs.short(7, len(list)*cols, firstWord(isa.Affine, uint8(len(list)), flags), segs, matrices, bits(b.factorOf(list[0].left)), biasAt, bits(1), uint32(fn), 0)
	b.addItem(at.cluster, at.sub, sig, words[:1+len(list)])
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
	if !b.r.Needed || b.r.Copy || b.keeps(v) || h >= lowered || !b.owns(h) {
		return 0, false
	}
	return h, b.ofItself(h)
}

// ofItself reports whether node h is a function that can be behind sums, whose derivative is one of its value.
func (b *Builder) ofItself(h uint32) bool {
	r := &unaryRules[b.g.Op[h]]
	return r.fromY && isa.Epilogues[r.fn] && isa.EpilogueDerivatives[r.back]
}

// findReaders finds which nodes are read by one node that is evaluated, once.
func (b *Builder) findReaders() {
	for v := b.first; v < b.end; v++ {
		b.reader[v] = nobody
	}
	b.readersFrom(b.first, b.end)
	b.readersFrom(b.tail, b.r.Node+1)
	b.findRooms()
}

// readersFrom looks at what nodes [first, end) read.
func (b *Builder) readersFrom(first, end uint32) {
	for v := first; v < end; v++ {
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

// affineTransposed adds W^T dy for all products of node c, whose gradient is there, and returns where the results are of
// argument number arg. False: they are not alike.
func (b *Builder) affineTransposed(c, arg, holders, size uint32) (at uint32, ok bool) {
	if b.partials[c] >= withUser {
		b.listTerms(c)
		if !b.termsAlike() {
			return 0, false
		}
		matrices := uint32(0)
		for k := range b.terms {
			matrices |= uint32(b.terms[k].matrix) << (8 * k)
		}
		n := uint32(len(b.terms))
		b.partials[c] = b.allocHolders(n*holders, size)
		rows := b.r.Plan.Matrices[b.terms[0].matrix].Rows
		sig := b.sigs.short(5, int(n)*rows, firstWord(isa.AffineT, uint8(n), 0), uint32(isa.SegAct)|uint32(isa.SegAct)<<4, matrices, bits(b.factorOf(b.terms[0].left)), size, 0, 0, 0)
		b.local(b.home(c), b.gsub[c]+1, sig, b.partials[c], b.s.Grad[c], 0)
	}
	return b.partials[c] + (arg-1)/2*holders*size, true
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
	if b.formsSliced(k) {
		return b.deriveSliced(h, a, sub)
	}
	runs, ok := b.sumOfRuns(b.linear)
	if !ok {
		return false
	}
	if b.s.Grad[a] == NoOffset {
		b.s.Grad[a] = b.alloc(b.size(a))
	}
	first := firstWord(isa.Sum, uint8(unaryRules[b.g.Op[h]].back), 0)
	b.sum(b.home(h), sub, first, b.gradient(a), isa.SegAct, 1, b.size(h), b.sumList, runs, b.value(h))
	b.derived(h, a, sub)
	return true
}

// derived notes that the gradient of node a is there, and in place of h's.
func (b *Builder) derived(h, a uint32, sub int32) {
	b.gsub[h], b.gsub[a], b.partials[a] = sub, sub, withUser
}

// withUser stands in place of a node's partial results, if its gradient was formed with its user's.
const withUser = NoOffset - 1

// deriveSliced is derive in slices.
func (b *Builder) deriveSliced(h, a uint32, sub int32) bool {
	if len(b.linear) > isa.MaxRuns {
		return false
	}
	b.ranges = append(b.ranges[:0], 0)
	for _, s := range b.linear {
		if s.count == 1 || s.count != b.linear[0].count || s.apart != b.linear[0].apart {
			return false
		}
		b.ranges = append(b.ranges, s.at)
	}
	n := b.size(h)
	b.s.Grad[a] = b.alloc(n)
	b.ranges[0] = b.s.Grad[a]
	y := b.value(h)
	b.ranges = append(b.ranges, y.at)
	sig := b.sigs.short(7, n, firstWord(isa.Collect, uint8(len(b.linear))|isa.Derived, 0), uint32(isa.SegAct)|uint32(isa.SegAct)<<4|uint32(y.seg)<<8, uint32(n), bits(1),
		b.linear[0].count, b.linear[0].apart, uint32(unaryRules[b.g.Op[h]].back), 0)
	b.addItem(b.home(h), sub, sig, b.ranges)
	b.derived(h, a, sub)
	return true
}
