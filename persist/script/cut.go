package script

import (
	"fmt"

	"libvpps/persist/isa"
)

// Cutting: what an item of wide work writes, and its parts, which are items as well. Products have their own (tiles.go).

// extent is where an item writes and how it can be cut: it has n neighbouring parts, each some of the unit elements that are
// from one to the next.
type extent struct {
	at, span uint32 // the first element, and how far the last one is from it
	n, unit  uint32
	least    uint32 // parts that are worth an item
	inner    uint32 // of a unit: how far it reaches
	dense    bool   // it leaves nothing out
	axis     uint32 // of a Strided: that of the parts
	cost     int32
}

// covers reports whether the item writes all of a tensor of so many elements.
func (e *extent) covers(size uint32) bool { return e.dense && e.span+1 == size }

// signatureOf is the words of an item's instruction.
func (b *Schedule) signatureOf(it *item) []uint32 {
	if it.sig == rawSig {
		return b.pool[it.words[0]:]
	}
	return b.sigs.of(it.sig)
}

// extentOf finds the extent of an item.
func (b *Schedule) extentOf(it *item) extent {
	w := b.signatureOf(it)
	e := extent{at: it.words[0], n: 1, unit: 1, least: 1, inner: 1, dense: true, cost: b.itemCost(it)}
	if it.sig == rawSig {
		e.at, e.n = w[5], w[3]
		e.span = e.n - 1
		return e
	}
	if b.sigs.width[it.sig] > fewWords {
		e.at = b.pool[it.words[0]]
	}
	switch isa.Opcode(w[0]) {
	case isa.Map, isa.Fill, isa.Random:
		e.n = w[3]
		e.span = e.n - 1
	case isa.Strided:
		b.stridedExtent(w, &e)
	case isa.Gemm: // its result is column-major
		e.n, e.unit, e.inner = w[4], w[7], w[3]
		if w[3] >= gemmLeast {
			e.least = gemmLeast
		}
		if e.n == 1 {
			e.n, e.unit, e.inner = w[3], w[6], 1
		}
		e.span, e.dense = (e.n-1)*e.unit+e.inner-1, e.unit == e.inner
	case isa.Row:
		k := uint32(1) // elements of a line of the result
		switch f := &isa.RowTable[isa.RowFn(w[0]>>8)]; {
		case f.Rows&1 != 0:
			k = w[3]
		case f.Parts&1 != 0: // as many as the label says
			k = b.addresses(it)[f.Words-1] + 1
		}
		if stride, lines := w[4], w[6]; lines > stride {
			e.n, e.unit, e.inner, e.span = lines/stride, stride*k, stride*k, lines*k-1
		} else { // they lie between one another
			e.n, e.span, e.dense = lines, (k-1)*stride+lines-1, k == 1 || lines == stride
			e.inner = (k-1)*stride + 1
			if lines == 1 {
				e.unit = e.inner
			}
		}
	default:
		fail("opcode %d is divided", w[0]&255)
	}
	return e
}

// stridedExtent is that of a Strided, which is cut along its last kept axis of several.
func (b *Schedule) stridedExtent(w []uint32, e *extent) {
	kept, all := w[3]&255, w[3]&255+w[3]>>8&255
	sizes, strides := w[6:6+all], w[6+all:]
	count := uint32(1)
	for a := range kept {
		e.span += (sizes[a] - 1) * strides[a]
		count *= sizes[a]
	}
	e.dense = e.span+1 == count
	if kept > 0 {
		e.axis = kept - 1
		for e.axis > 0 && sizes[e.axis] == 1 { // of a part of an unfolded item
			e.axis--
		}
		e.n, e.unit = sizes[e.axis], strides[e.axis]
		e.inner = e.span - (e.n-1)*e.unit + 1
		if e.n == 1 {
			e.unit = e.inner
		}
	}
}

// cutItem adds parts [from, to) of an item to a cluster.
func (b *Schedule) cutItem(it *item, e *extent, from, to uint32, c int32) {
	part := b.part(it, e, from, to)
	part.cluster = c
	b.putBack(&part)
}

// part is parts [from, to) of an item.
func (b *Schedule) part(it *item, e *extent, from, to uint32) item {
	part := *it
	if from == 0 && to == e.n {
		return part
	}
	w := b.signatureOf(it)
	if it.sig == rawSig {
		part.words[0] = b.partOfSum(w, from, to)
		return part
	}
	// Each word of an item is an address but for random nodes, which are not divided into several words' parts.
	width := int(b.sigs.width[it.sig])
	var room [8]uint32
	words := append(room[:0], it.words[:]...)
	if width > fewWords {
		words = append(room[:0], b.pool[it.words[0]:][:width]...)
	}
	k := uint32(1)
	if isa.Opcode(w[0]) == isa.Row {
		k += words[width-1] // if it is a label
	}
	for s, step := range b.stepsOf(w, width, e.axis, k) {
		words[s] += from * step
	}
	n, cut := to-from, &b.wide.cut
	if isa.Opcode(w[0]) == isa.Random {
		part.sig = b.cutSignature(it.sig, e, from, to)
	} else {
		if cut.sig != it.sig || cut.axis != e.axis || cut.n != n {
			cut.sig, cut.axis, cut.n, cut.of = it.sig, e.axis, n, b.cutSignature(it.sig, e, from, to)
		}
		part.sig = cut.of
	}
	if width > fewWords {
		part.words[0] = uint32(len(b.pool))
		b.pool = append(b.pool, words[:width]...)
	} else {
		copy(part.words[:], words)
	}
	return part
}

// stepsOf is how far each word of an instruction's item is from where the item's next part has it, good until the next
// call. axis is that of a Strided, k how many elements of a line a Row has where it has the first few.
func (b *Schedule) stepsOf(w []uint32, width int, axis, k uint32) []uint32 {
	steps := b.wide.steps[:0]
	switch op := isa.Opcode(w[0]); op {
	case isa.Map, isa.Fill, isa.Chain, isa.Random:
		for range width {
			steps = append(steps, 1)
		}
		if op == isa.Random { // the last word is a node
			steps[width-1] = 0
		}
	case isa.Strided:
		all := w[3]&255 + w[3]>>8&255
		for s := range width {
			steps = append(steps, w[6+all+uint32(s)*all+axis])
		}
	case isa.Row:
		f, stride, row := &isa.RowTable[isa.RowFn(w[0]>>8)], uint32(1), uint32(1) // of a part
		if w[6] > w[4] {
			stride, row = w[4], w[4]*w[3]
		}
		for s := range width {
			switch {
			case f.Rows>>s&1 != 0:
				steps = append(steps, row)
			case f.Label && s == width-1 && isa.Segment(w[2]>>(4*s)&15) != isa.SegInput:
				steps = append(steps, 0)
			case f.Label && s == width-1:
				steps = append(steps, stride)
			case f.Parts>>s&1 != 0 && w[6] > w[4]:
				steps = append(steps, stride*k)
			default: // several lines have one element each
				steps = append(steps, stride)
			}
		}
	case isa.Gemm:
		if w[4] == 1 {
			steps = append(steps, w[6], w[8], 0)
		} else {
			steps = append(steps, w[7], 0, w[11])
		}
	default:
		fail("opcode %d is cut", w[0]&255)
	}
	b.wide.steps = steps
	return steps
}

// partsAt is which word of an instruction says how many parts its items have, those of a Strided along an axis, and how
// many it counts for each.
func partsAt(w []uint32, axis uint32) (at int, each uint32) {
	switch isa.Opcode(w[0]) {
	case isa.Chain:
		return 2, 1
	case isa.Row:
		if w[6] > w[4] {
			return 6, w[4]
		}
		return 6, 1
	case isa.Strided:
		return int(6 + axis), 1
	case isa.Gemm:
		if w[4] != 1 {
			return 4, 1
		}
	}
	return 3, 1
}

// cutSignature is the signature of parts [from, to) of an item.
func (b *Schedule) cutSignature(sig uint32, e *extent, from, to uint32) uint32 {
	w := append(b.sigs.buf[:0], b.sigs.of(sig)...)
	b.sigs.buf = w
	at, each := partsAt(w, e.axis)
	w[at] = (to - from) * each
	if isa.Opcode(w[0]) == isa.Random {
		w[9] += from
	}
	return b.sigs.intern(int(int64(e.cost) * 256 * int64(to-from) / int64(e.n)))
}

func fail(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

func shift(words []uint32, by uint32) {
	for i := range words {
		words[i] += by
	}
}

// partOfSum is where in pool a whole Sum of elements [from, to) is.
func (b *Schedule) partOfSum(w []uint32, from, to uint32) uint32 {
	at := uint32(len(b.pool))
	b.pool = append(b.pool, w[:w[1]&0xFFFF]...)
	narrowSum(b.pool[at:], from, to-from)
	return at
}

// narrowSum makes a Sum one of n elements from an element on.
func narrowSum(w []uint32, from, n uint32) {
	w[3], w[5] = n, w[5]+from
	if isa.FnTable[isa.Fn(w[0]>>8)].Arity == 2 { // a derivative, which reads y
		w[8] += from
	}
	shift(w[sumHead:w[1]&0xFFFF], from)
}

// putBack adds an item again.
func (b *Schedule) putBack(it *item) {
	b.items = append(b.items, *it)
	x := &b.clusters[b.find(it.cluster)]
	x.items++
	x.cost += b.itemCost(it)
}

// itemCost is what an item costs.
func (b *Schedule) itemCost(it *item) int32 {
	if it.sig != rawSig {
		return b.sigs.cost(it.sig)
	}
	w := b.signatureOf(it)
	return sumCost(int(w[1]>>16)+int(w[6]&0xFFFF)*int(w[6]>>16), int(w[3]))
}

// productCost is what a product's item costs all holders together.
func (b *Schedule) productCost(sig uint32) float64 {
	m := &b.Plan.Matrices[b.sigs.of(sig)[3]]
	return 1 + float64(m.Rows*m.Cols)/256
}
