package schedule

import (
	"cmp"
	"slices"

	"libvpps/persist/isa"
	"libvpps/persist/memory"
)

// Element-wise work by axes: one function decides between the linear Map and the
// general Strided, after merging axes that lie behind one another in every operand.

// Axis is one axis of an iteration: its size and each slot's stride (slot 0 is dst).
type Axis struct {
	Size   uint32
	Stride [5]uint32
}

// Operand is a tensor as an instruction sees it.
type Operand struct {
	Seg isa.Segment
	At  uint32
}

// Element is one element-wise instruction in the making.
type Element struct {
	Fn        isa.Fn
	Flags     uint32
	P, Q      float32
	Ops       [5]Operand // dst, inputs
	Kept, Red []Axis
}

// ReleaseAxes takes back all axes that were handed out.
func (s *Schedule) ReleaseAxes() { s.axes = s.axes[:0] }

// NewAxes hands out n axes, all zero, that are good until the next node.
func (s *Schedule) NewAxes(n int) []Axis {
	at := len(s.axes)
	s.axes = memory.Extend(s.axes, at+n, Axis{})
	return s.axes[at : at+n : at+n]
}

// MergeAxes joins neighbouring axes that form one.
func MergeAxes(a []Axis, slots int) []Axis {
	out := a[:0]
	for _, x := range a {
		if x.Size == 1 {
			continue
		}
		if n := len(out); n > 0 {
			last := &out[n-1]
			ok := true
			for s := range slots {
				ok = ok && x.Stride[s] == last.Stride[s]*last.Size
			}
			if ok {
				last.Size *= x.Size
				continue
			}
		}
		out = append(out, x)
	}
	return out
}

// AddElement adds the instruction's item to a cluster.
func (s *Schedule) AddElement(e *Element, cluster, sub int32) {
	in := isa.FnTable[e.Fn].Arity
	e.Kept, e.Red = MergeAxes(e.Kept, in+1), MergeAxes(e.Red, in+1)
	var segs uint32
	for slot := range in + 1 {
		segs |= uint32(e.Ops[slot].Seg) << (4 * slot)
	}
	linear := len(e.Red) == 0 && len(e.Kept) <= 1
	n := uint32(1)
	if len(e.Kept) == 1 {
		n = e.Kept[0].Size
		for slot := range in + 1 {
			linear = linear && e.Kept[0].Stride[slot] == 1
		}
	}
	if linear {
		s.AddMap(cluster, sub, e.Fn, e.Flags, e.P, e.Q, int(n), e.Ops[:in+1]...)
		return
	}
	var words [5]uint32
	for slot := range in + 1 {
		words[slot] = e.Ops[slot].At
	}
	s.Sigs.Head(isa.Strided, uint8(e.Fn), e.Flags, segs, uint32(len(e.Kept)|len(e.Red)<<8), isa.Float(e.P), isa.Float(e.Q))
	work := 1
	for _, l := range [2][]Axis{e.Kept, e.Red} {
		for _, a := range l {
			s.Sigs.buf = append(s.Sigs.buf, a.Size)
			work *= int(a.Size)
		}
	}
	for slot := range in + 1 {
		for _, l := range [2][]Axis{e.Kept, e.Red} {
			for _, a := range l {
				s.Sigs.buf = append(s.Sigs.buf, a.Stride[slot])
			}
		}
	}
	s.AddItem(cluster, sub, s.Sigs.Intern(2*work), words[:in+1])
}

// AddMap adds a Map over n elements.
func (s *Schedule) AddMap(cluster, sub int32, fn isa.Fn, flags uint32, p, q float32, n int, ops ...Operand) {
	var segs uint32
	var words [5]uint32
	for slot, o := range ops {
		segs |= uint32(o.Seg) << (4 * slot)
		words[slot] = o.At
	}
	s.AddItem(cluster, sub, s.Sigs.ofMap(fn, flags, segs, n, p, q), words[:len(ops)])
}

// Map1 and map2 are mapItem for one and two inputs, without a list.
func (s *Schedule) Map1(cluster, sub int32, fn isa.Fn, flags uint32, p float32, n int, dst, x Operand) {
	sig := s.Sigs.ofMap(fn, flags, uint32(dst.Seg)|uint32(x.Seg)<<4, n, p, 0)
	s.Add(cluster, sub, sig, dst.At, x.At, 0)
}

func (s *Schedule) Map2(cluster, sub int32, fn isa.Fn, flags uint32, p float32, n int, dst, x, y Operand) {
	sig := s.Sigs.ofMap(fn, flags, uint32(dst.Seg)|uint32(x.Seg)<<4|uint32(y.Seg)<<8, n, p, 0)
	s.Add(cluster, sub, sig, dst.At, x.At, y.At)
}

// Fill adds a Fill of n elements of act.
func (s *Schedule) Fill(cluster, sub int32, value float32, n int, at uint32) {
	sig := s.Sigs.Short(4, n, FirstWord(isa.Fill, 0, 0), uint32(isa.SegAct), uint32(n), isa.Float(value), 0, 0)
	s.Add(cluster, sub, sig, at, 0, 0)
}

// Source is so many vectors that are added up, each so many floats behind the one before.
type Source struct{ At, Count, Apart uint32 }

// One is a single vector.
func One(at uint32) Source { return Source{at, 1, 0} }

// SumItems adds dst (+)= scale * sum of sources, all in one segment, as one or more
// instructions in order; it returns the next free order. Runs of the greatest length are an item each
// and come first, what else there is is spelled out.
func (s *Schedule) SumItems(cluster, sub int32, flags uint32, dst Operand, from isa.Segment, scale float32, n int, src []Source) int32 {
	for len(src) > 0 {
		var some []Source
		some, src = together(src)
		sub = s.sumListed(cluster, sub, flags, dst, from, scale, n, s.listSources(some))
		flags |= isa.Acc
	}
	return sub
}

// mostSpelledOut is how many vectors of shorter runs a sum has one by one, besides the longest runs.
const mostSpelledOut = 64

// together puts the sources first that one sum is of: all, or the longest runs if the others have too many vectors for that.
func together(src []Source) (some, rest []Source) {
	longest := src[0]
	for i := range src {
		if src[i].Count > longest.Count {
			longest = src[i]
		}
	}
	if longest.Count == 1 {
		return src, nil
	}
	isLongest := func(x Source) bool { return x.Count == longest.Count && x.Apart == longest.Apart }
	others := uint32(0)
	for _, x := range src {
		if x.Count > 1 && !isLongest(x) {
			others += x.Count
		}
	}
	if others <= mostSpelledOut {
		return src, nil
	}
	slices.SortStableFunc(src, func(x, y Source) int { return cmp.Compare(y.Count, x.Count) })
	k := slices.IndexFunc(src, func(x Source) bool { return !isLongest(x) })
	return src[:k], src[k:]
}

// sumListed is sumItems of the sources in b.SumList.
func (s *Schedule) sumListed(cluster, sub int32, flags uint32, dst Operand, from isa.Segment, scale float32, n int, runs SourceRuns) int32 {
	if k := len(s.SumList); runs.Items == 0 && (k == 1 || k <= fewSources && scale == 1 && n <= fewElements) {
		return s.addFew(cluster, sub, flags, dst, from, scale, n)
	}
	for list := s.SumList; len(list) > 0; {
		k := min(len(list), mostItems)
		r := min(runs.Items, k)
		s.Sum(cluster, sub, FirstWord(isa.Sum, uint8(isa.Copy), flags), dst, from, scale, n, list[:k], SourceRuns{r, runs.Count, runs.Apart}, Operand{})
		list, runs.Items = list[k:], runs.Items-r
		flags |= isa.Acc
		sub++
	}
	return sub
}

// mostItems is how many items a Sum has at most.
const (
	SumHead   = 9
	mostItems = isa.MaxWords - SumHead
)

// Sum adds a Sum of the items in list.
func (s *Schedule) Sum(cluster, sub int32, first uint32, dst Operand, from isa.Segment, scale float32, n int, list []uint32, runs SourceRuns, y Operand) {
	at, k := uint32(len(s.Pool)), len(list)
	s.Pool = append(s.Pool, first, uint32(SumHead+k)|uint32(k)<<16,
		uint32(dst.Seg)|uint32(from)<<4|uint32(y.Seg)<<8, uint32(n), isa.Float(scale), dst.At, uint32(runs.Items)|runs.Count<<16, runs.Apart, y.At)
	s.Pool = append(s.Pool, list...)
	s.inCluster(cluster, sub, RawSig, at, 0, 0, sumCost(k+runs.Items*int(runs.Count), n))
}

// sumCost is what a Sum of so many vectors of n elements costs.
func sumCost(vectors, n int) int32 { return 1 + int32(vectors*n>>11) }

// SumOfRuns lists the sources for a Sum with a function behind it, if there are several of one node together and one
// instruction does for all.
func (s *Schedule) SumOfRuns(src []Source) (runs SourceRuns, ok bool) {
	runs = s.listSources(src)
	return runs, runs.Items > 0 && len(s.SumList) <= mostItems
}

// So many sources of so many elements are added two by two: that fuses with what comes before and behind.
const fewSources, fewElements = 4, 4096

// addFew adds dst (+)= scale * sum of b.SumList; the scale is 1 if there are several. It returns the
// next free order.
func (s *Schedule) addFew(cluster, sub int32, flags uint32, dst Operand, from isa.Segment, scale float32, n int) int32 {
	list := s.SumList
	switch {
	case len(list) > 1:
		s.Map2(cluster, sub, isa.Add, flags, 0, n, dst, Operand{from, list[0]}, Operand{from, list[1]})
		list = list[2:]
	case scale == 1:
		s.Map1(cluster, sub, isa.Copy, flags, 0, n, dst, Operand{from, list[0]})
		list = nil
	default:
		s.Map1(cluster, sub, isa.Scale, flags, scale, n, dst, Operand{from, list[0]})
		list = nil
	}
	for _, at := range list {
		sub++
		s.Map1(cluster, sub, isa.Copy, isa.Acc, 0, n, dst, Operand{from, at})
	}
	return sub + 1
}

// SourceRuns are the first items of b.SumList, which stand for several sources.
type SourceRuns struct {
	Items        int
	Count, Apart uint32
}

// listSources puts the items of a Sum into b.SumList.
func (s *Schedule) listSources(src []Source) SourceRuns {
	most := Source{Count: 1}
	for i := range src {
		if n := src[i].Count; n > most.Count && n <= isa.MaxRun {
			most = src[i]
		}
	}
	isRun := func(x *Source) bool { return most.Count > 1 && x.Count == most.Count && x.Apart == most.Apart }
	list := s.SumList[:0]
	if most.Count > 1 {
		for i := range src {
			if isRun(&src[i]) {
				list = append(list, src[i].At)
			}
		}
	}
	runs := SourceRuns{len(list), most.Count, most.Apart}
	if runs.Items == 0 {
		runs = SourceRuns{}
	}
	for i := range src {
		if x := &src[i]; !isRun(x) {
			for k := range x.Count {
				list = append(list, x.At+k*x.Apart)
			}
		}
	}
	s.SumList = list
	return runs
}

// PieceOf is how many elements of a small parameter one processor sums.
const PieceOf = 64

// pieceFor is how many of a parameter's elements, sums of sources, one processor forms: of a large one, so many that each
// processor has a few such pieces; fewer of many vectors in long runs, which take few words; and at most fewElements, as sums of
// more are formed in another way.
func (s *Schedule) pieceFor(size uint32, src []Source) uint32 {
	const each, least, most, long = 4, 16, 1 << 15, 16
	vectors, piece := uint32(0), uint32(PieceOf)
	for i := range src {
		vectors += src[i].Count
	}
	if vectors >= long*uint32(len(src)) {
		piece = min(piece, max(least, most/max(1, vectors)&^(least-1)))
	}
	return min(max(piece, (size/(each*uint32(s.Plan.Processors))+15)&^15), fewElements)
}

// SumPieces spreads dst (+)= sum of sources over processors by elements.
func (s *Schedule) SumPieces(level int32, flags uint32, dst Operand, size uint32, src []Source) {
	piece, sub := s.pieceFor(size, src), int32(0)
	first := s.newClusters(level, (size+piece-1)/piece)
	for len(src) > 0 {
		var some []Source
		some, src = together(src)
		runs, next := s.listSources(some), sub
		for c, at := first, uint32(0); at < size; c, at = c+1, at+piece {
			next = s.sumListed(c, sub, flags, dst.Plus(at), isa.SegAct, 1, int(min(piece, size-at)), runs)
			shift(s.SumList, piece)
		}
		sub, flags = next, flags|isa.Acc
	}
}

// At is a tensor at an address of a segment.
func At(seg isa.Segment, at uint32) Operand { return Operand{seg, at} }

// Plus is the tensor so many elements on.
func (o Operand) Plus(n uint32) Operand { return Operand{o.Seg, o.At + n} }
