package script

// Affine and AffineT: the products of several matrices in slices by one instruction, with the function behind them, or
// with the vector that all of them are transposed for. Affine's first fields are Product's.

import (
	"fmt"

	"libvpps/bridge/ops"
	"libvpps/persist/plan"
)

// termsAlike reports whether one instruction can have all products of a node: matrices in slices of one size, scaled
// alike.
func (b *Builder) termsAlike() bool {
	list := b.terms
	if len(list) > MaxTerms {
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
		f, flags := Copy, uint32(0)
		if n == len(list) {
			f = fn
		}
		if len(list) < len(b.terms) { // the first has stored, and added the bias
			flags, bias = Acc, NoOffset
		}
		b.affine(at, list[:n], y, f, flags, bias)
		list = list[n:]
	}
	if fn != Copy {
		b.clusters[at.cluster].kind |= elementwise
	}
	b.spots[v], b.spots[last] = at, at
}

// behindSums gives y to the only node that reads v, if it is a function of v's elements: then nobody needs v's value. It
// returns the function and the node whose value y is, or v and Copy.
func (b *Builder) behindSums(v uint32, y operand) (fn Fn, last uint32) {
	h, ok := b.functionOf(v)
	if !ok {
		return Copy, v
	}
	b.s.Value[h], b.s.Segment[h], b.s.Value[v] = y.at, y.seg, NoOffset
	b.reader[h] = lowered
	return unaryRules[b.g.Op[h]].fn, h
}

// affine adds an instruction's item for so many products.
func (b *Builder) affine(at spot, list []term, y operand, fn Fn, flags, bias uint32) {
	segs, biasAt, matrices := uint32(y.seg)|uint32(b.s.Segment[list[0].right])<<4, uint32(0), uint32(0)
	if bias != NoOffset {
		flags, biasAt = flags|Bias, b.s.Value[bias]
		segs |= uint32(b.s.Segment[bias]) << 8
	}
	words := [1 + MaxTerms]uint32{y.at}
	for k := range list {
		matrices |= uint32(list[k].matrix) << (8 * k)
		words[1+k] = b.s.Value[list[k].right]
	}
	cols := b.r.Plan.Matrices[list[0].matrix].Cols
	sig := b.sigs.short(7, len(list)*cols, firstWord(Affine, uint8(len(list)), flags), segs, matrices, bits(b.factorOf(list[0].left)), biasAt, bits(1), uint32(fn), 0)
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
	return r.fromY && behind[r.fn] && derivatives[r.back]
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
		sig := b.sigs.short(5, int(n)*rows, firstWord(AffineT, uint8(n), 0), uint32(SegAct)|uint32(SegAct)<<4, matrices, bits(b.factorOf(b.terms[0].left)), size, 0, 0, 0)
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
	first := firstWord(Sum, uint8(unaryRules[b.g.Op[h]].back), 0)
	b.sum(b.home(h), sub, first, b.gradient(a), SegAct, 1, b.size(h), b.sumList, runs, b.value(h))
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
	if len(b.linear) > MaxRuns {
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
	sig := b.sigs.short(7, n, firstWord(Collect, uint8(len(b.linear))|Derived, 0), uint32(SegAct)|uint32(SegAct)<<4|uint32(y.seg)<<8, uint32(n), bits(1),
		b.linear[0].count, b.linear[0].apart, uint32(unaryRules[b.g.Op[h]].back), 0)
	b.addItem(b.home(h), sub, sig, b.ranges)
	b.derived(h, a, sub)
	return true
}

// matrices lists the numbers of the matrices that the instruction names.
func (in *Instruction) matrices() (list [MaxTerms]uint32, n int) {
	for k := range min(int(in.Fn), MaxTerms) {
		list[k] = in.Field("matrices") >> (8 * k) & 0xff
	}
	return list, min(int(in.Fn), MaxTerms)
}

// behind is the functions that Product and Affine may have behind their sums, and derivatives those of Collect.
var behind, derivatives = [Fns]bool{Copy: true, Tanh: true, Logistic: true, Relu: true}, [Fns]bool{TanhB: true, LogisticB: true, ReluB: true}

// checkFunction reports whether the field function may be behind the sums.
func (in *Instruction) checkFunction() error {
	fn := in.Field("function")
	switch {
	case fn >= uint32(Fns):
		return fmt.Errorf("function %d: there are %d", fn, Fns)
	case in.Op == Affine && behind[fn], in.Op == Collect && in.Fn&Derived != 0 && derivatives[fn], in.Op == Collect && in.Fn&Derived == 0 && Fn(fn) == Copy:
		return nil
	}
	return fmt.Errorf("function %s cannot be behind it", FnTable[fn].Name)
}

// terms returns the matrices of the instruction, which are as long, and the processor's rows, which are the same of all:
// nil if it has none.
func (f *Footprint) terms() (matrices [MaxTerms]*plan.Matrix, rows *plan.Partition, err error) {
	list, n := f.in.matrices()
	for k, m := range list[:n] {
		if int(m) >= len(f.plan.Matrices) {
			return matrices, nil, fmt.Errorf("matrix %d: the plan has %d", m, len(f.plan.Matrices))
		}
		mine := f.partitions(int(m))
		if len(mine) > 1 || f.plan.Residence(int(m)).Kind != plan.Registers || f.plan.Residence(int(m)).Columns > 0 {
			return matrices, nil, fmt.Errorf("matrix %d is not in slices", m)
		}
		matrices[k] = &f.plan.Matrices[m]
		if k == 0 && len(mine) > 0 {
			rows = &mine[0]
		}
		alike := len(mine) == 0
		if rows != nil {
			alike = len(mine) > 0 && mine[0].Row == rows.Row && mine[0].Rows == rows.Rows
		}
		if !alike || matrices[k].Cols != matrices[0].Cols {
			return matrices, nil, fmt.Errorf("matrices %d and %d do not lie alike", list[0], m)
		}
		f.weights(matrices[k], mine)
	}
	return matrices, rows, nil
}

// affine is the footprint: the rows of the result, whole vectors.
func (f *Footprint) affine() error {
	if err := f.in.checkFunction(); err != nil {
		return err
	}
	matrices, mine, err := f.terms()
	if err != nil || mine == nil {
		return err
	}
	rows := Axis{uint64(mine.Rows), 1}
	for i := range f.in.Items {
		item := f.in.Item(i)
		f.add(0, i, uint64(item[0])+uint64(mine.Row), f.result(), rows)
		if f.in.Flags&Bias != 0 {
			f.add(2, i, uint64(f.in.Field("bias"))+uint64(mine.Row), asRead|asPaired, rows)
		}
		for k, x := range item[1:] {
			f.add(1, i, uint64(x), asRead, Axis{uint64(matrices[k].Cols), 1})
		}
	}
	return nil
}

// affineT is the footprint: the rows of the vector, a result of every matrix.
func (f *Footprint) affineT() error {
	matrices, mine, err := f.terms()
	if err != nil || mine == nil {
		return err
	}
	apart := uint64(f.in.Field("apart"))
	for i := range f.in.Items {
		item := f.in.Item(i)
		for k := range int(f.in.Fn) {
			f.add(0, i, uint64(item[0])+uint64(k*f.place.Group+f.place.Rank)*apart, f.result(), Axis{uint64(matrices[k].Cols), 1})
		}
		f.add(1, i, uint64(item[1])+uint64(mine.Row), asRead, Axis{uint64(mine.Rows), 1})
	}
	return nil
}
