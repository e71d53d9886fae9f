package schedule

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

// SignatureOf is the words of an item's instruction.
func (s *Schedule) SignatureOf(it *Item) []uint32 {
	if it.Sig == RawSig {
		return s.Pool[it.Words[0]:]
	}
	return s.Sigs.Of(it.Sig)
}

// extentOf finds the extent of an item.
func (s *Schedule) extentOf(it *Item) extent {
	w := s.SignatureOf(it)
	e := extent{at: it.Words[0], n: 1, unit: 1, least: 1, inner: 1, dense: true, cost: s.ItemCost(it)}
	if it.Sig == RawSig {
		e.at, e.n = w[5], w[3]
		e.span = e.n - 1
		return e
	}
	if s.Sigs.Width[it.Sig] > FewWords {
		e.at = s.Pool[it.Words[0]]
	}
	switch isa.Opcode(w[0]) {
	case isa.Map, isa.Fill, isa.Random:
		e.n = w[3]
		e.span = e.n - 1
	case isa.Strided:
		s.stridedExtent(w, &e)
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
			k = s.Addresses(it)[f.Words-1] + 1
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
func (s *Schedule) stridedExtent(w []uint32, e *extent) {
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
func (s *Schedule) cutItem(it *Item, e *extent, from, to uint32, c int32) {
	part := s.part(it, e, from, to)
	part.Cluster = c
	s.putBack(&part)
}

// part is parts [from, to) of an item.
func (s *Schedule) part(it *Item, e *extent, from, to uint32) Item {
	part := *it
	if from == 0 && to == e.n {
		return part
	}
	w := s.SignatureOf(it)
	if it.Sig == RawSig {
		part.Words[0] = s.partOfSum(w, from, to)
		return part
	}
	// Each word of an item is an address but for random nodes, which are not divided into several words' parts.
	width := int(s.Sigs.Width[it.Sig])
	var room [8]uint32
	words := append(room[:0], it.Words[:]...)
	if width > FewWords {
		words = append(room[:0], s.Pool[it.Words[0]:][:width]...)
	}
	k := uint32(1)
	if isa.Opcode(w[0]) == isa.Row {
		k += words[width-1] // if it is a label
	}
	for slot, step := range s.stepsOf(w, width, e.axis, k) {
		words[slot] += from * step
	}
	n, cut := to-from, &s.Wide.cut
	if isa.Opcode(w[0]) == isa.Random {
		part.Sig = s.cutSignature(it.Sig, e, from, to)
	} else {
		if cut.sig != it.Sig || cut.axis != e.axis || cut.n != n {
			cut.sig, cut.axis, cut.n, cut.of = it.Sig, e.axis, n, s.cutSignature(it.Sig, e, from, to)
		}
		part.Sig = cut.of
	}
	if width > FewWords {
		part.Words[0] = uint32(len(s.Pool))
		s.Pool = append(s.Pool, words[:width]...)
	} else {
		copy(part.Words[:], words)
	}
	return part
}

// stepsOf is how far each word of an instruction's item is from where the item's next part has it, good until the next
// call. axis is that of a Strided, k how many elements of a line a Row has where it has the first few.
func (s *Schedule) stepsOf(w []uint32, width int, axis, k uint32) []uint32 {
	steps := s.Wide.steps[:0]
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
		for slot := range width {
			steps = append(steps, w[6+all+uint32(slot)*all+axis])
		}
	case isa.Row:
		f, stride, row := &isa.RowTable[isa.RowFn(w[0]>>8)], uint32(1), uint32(1) // of a part
		if w[6] > w[4] {
			stride, row = w[4], w[4]*w[3]
		}
		for slot := range width {
			switch {
			case f.Rows>>slot&1 != 0:
				steps = append(steps, row)
			case f.Label && slot == width-1 && isa.Segment(w[2]>>(4*slot)&15) != isa.SegInput:
				steps = append(steps, 0)
			case f.Label && slot == width-1:
				steps = append(steps, stride)
			case f.Parts>>slot&1 != 0 && w[6] > w[4]:
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
	s.Wide.steps = steps
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
func (s *Schedule) cutSignature(sig uint32, e *extent, from, to uint32) uint32 {
	w := append(s.Sigs.buf[:0], s.Sigs.Of(sig)...)
	s.Sigs.buf = w
	at, each := partsAt(w, e.axis)
	w[at] = (to - from) * each
	if isa.Opcode(w[0]) == isa.Random {
		w[9] += from
	}
	return s.Sigs.Intern(int(int64(e.cost) * 256 * int64(to-from) / int64(e.n)))
}

func fail(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

func shift(words []uint32, by uint32) {
	for i := range words {
		words[i] += by
	}
}

// partOfSum is where in pool a whole Sum of elements [from, to) is.
func (s *Schedule) partOfSum(w []uint32, from, to uint32) uint32 {
	at := uint32(len(s.Pool))
	s.Pool = append(s.Pool, w[:w[1]&0xFFFF]...)
	NarrowSum(s.Pool[at:], from, to-from)
	return at
}

// NarrowSum makes a Sum one of n elements from an element on.
func NarrowSum(w []uint32, from, n uint32) {
	w[3], w[5] = n, w[5]+from
	if isa.FnTable[isa.Fn(w[0]>>8)].Arity == 2 { // a derivative, which reads y
		w[8] += from
	}
	shift(w[SumHead:w[1]&0xFFFF], from)
}

// putBack adds an item again.
func (s *Schedule) putBack(it *Item) {
	s.Items = append(s.Items, *it)
	x := &s.Clusters[s.Find(it.Cluster)]
	x.Items++
	x.Cost += s.ItemCost(it)
}

// ItemCost is what an item costs.
func (s *Schedule) ItemCost(it *Item) int32 {
	if it.Sig != RawSig {
		return s.Sigs.Cost(it.Sig)
	}
	w := s.SignatureOf(it)
	return sumCost(int(w[1]>>16)+int(w[6]&0xFFFF)*int(w[6]>>16), int(w[3]))
}

// ProductCost is what a product's item costs all holders together.
func (s *Schedule) ProductCost(sig uint32) float64 {
	m := &s.Plan.Matrices[s.Sigs.Of(sig)[3]]
	return 1 + float64(m.Rows*m.Cols)/256
}
