package script

import (
	"libvpps/persist/isa"
	"libvpps/persist/memory"
)

// Element-wise work by axes: one function decides between the linear Map and the
// general Strided, after merging axes that lie behind one another in every operand.

// axis is one axis of an iteration: its size and each slot's stride (slot 0 is dst).
type axis struct {
	size   uint32
	stride [5]uint32
}

// operand is a tensor as an instruction sees it.
type operand struct {
	seg isa.Segment
	at  uint32
}

// element is one element-wise instruction in the making.
type element struct {
	fn        isa.Fn
	flags     uint32
	p, q      float32
	ops       [5]operand // dst, inputs
	kept, red []axis
}

// releaseAxes takes back all axes that were handed out.
func (b *Schedule) releaseAxes() { b.axes = b.axes[:0] }

// newAxes hands out n axes, all zero, that are good until the next node.
func (b *Schedule) newAxes(n int) []axis {
	at := len(b.axes)
	b.axes = memory.Extend(b.axes, at+n, axis{})
	return b.axes[at : at+n : at+n]
}

// merge joins neighbouring axes that form one.
func merge(a []axis, slots int) []axis {
	out := a[:0]
	for _, x := range a {
		if x.size == 1 {
			continue
		}
		if n := len(out); n > 0 {
			last := &out[n-1]
			ok := true
			for s := range slots {
				ok = ok && x.stride[s] == last.stride[s]*last.size
			}
			if ok {
				last.size *= x.size
				continue
			}
		}
		out = append(out, x)
	}
	return out
}

// emitElement adds the instruction's item to a cluster.
func (b *Schedule) emitElement(e *element, cluster, sub int32) {
	in := isa.FnTable[e.fn].Arity
	e.kept, e.red = merge(e.kept, in+1), merge(e.red, in+1)
	var segs uint32
	for s := range in + 1 {
		segs |= uint32(e.ops[s].seg) << (4 * s)
	}
	linear := len(e.red) == 0 && len(e.kept) <= 1
	n := uint32(1)
	if len(e.kept) == 1 {
		n = e.kept[0].size
		for s := range in + 1 {
			linear = linear && e.kept[0].stride[s] == 1
		}
	}
	if linear {
		b.mapItem(cluster, sub, e.fn, e.flags, e.p, e.q, int(n), e.ops[:in+1]...)
		return
	}
	var words [5]uint32
	for s := range in + 1 {
		words[s] = e.ops[s].at
	}
	b.sigs.head(isa.Strided, uint8(e.fn), e.flags, segs, uint32(len(e.kept)|len(e.red)<<8), isa.Float(e.p), isa.Float(e.q))
	work := 1
	for _, l := range [2][]axis{e.kept, e.red} {
		for _, a := range l {
			b.sigs.buf = append(b.sigs.buf, a.size)
			work *= int(a.size)
		}
	}
	for s := range in + 1 {
		for _, l := range [2][]axis{e.kept, e.red} {
			for _, a := range l {
				b.sigs.buf = append(b.sigs.buf, a.stride[s])
			}
		}
	}
	b.addItem(cluster, sub, b.sigs.intern(2*work), words[:in+1])
}

// mapItem adds a Map over n elements.
func (b *Schedule) mapItem(cluster, sub int32, fn isa.Fn, flags uint32, p, q float32, n int, ops ...operand) {
	var segs uint32
	var words [5]uint32
	for s, o := range ops {
		segs |= uint32(o.seg) << (4 * s)
		words[s] = o.at
	}
	b.addItem(cluster, sub, b.sigs.ofMap(fn, flags, segs, n, p, q), words[:len(ops)])
}

// map1 and map2 are mapItem for one and two inputs, without a list.
func (b *Schedule) map1(cluster, sub int32, fn isa.Fn, flags uint32, p float32, n int, dst, x operand) {
	sig := b.sigs.ofMap(fn, flags, uint32(dst.seg)|uint32(x.seg)<<4, n, p, 0)
	b.local(cluster, sub, sig, dst.at, x.at, 0)
}

func (b *Schedule) map2(cluster, sub int32, fn isa.Fn, flags uint32, p float32, n int, dst, x, y operand) {
	sig := b.sigs.ofMap(fn, flags, uint32(dst.seg)|uint32(x.seg)<<4|uint32(y.seg)<<8, n, p, 0)
	b.local(cluster, sub, sig, dst.at, x.at, y.at)
}

// fill adds a Fill of n elements of act.
func (b *Schedule) fill(cluster, sub int32, value float32, n int, at uint32) {
	sig := b.sigs.short(4, n, firstWord(isa.Fill, 0, 0), uint32(isa.SegAct), uint32(n), isa.Float(value), 0, 0, 0, 0)
	b.local(cluster, sub, sig, at, 0, 0)
}

// source is so many vectors that are added up, each so many floats behind the one before.
type source struct{ at, count, apart uint32 }

func one(at uint32) source { return source{at, 1, 0} }

// sumItems adds dst (+)= scale * sum of sources, all in one segment, as one or more
// instructions in order; it returns the next free order. Runs of the greatest length are an item each
// and come first, what else there is is spelled out.
func (b *Schedule) sumItems(cluster, sub int32, flags uint32, dst operand, from isa.Segment, scale float32, n int, src []source) int32 {
	return b.sumListed(cluster, sub, flags, dst, from, scale, n, b.listSources(src))
}

// sumListed is sumItems of the sources in b.sumList.
func (b *Schedule) sumListed(cluster, sub int32, flags uint32, dst operand, from isa.Segment, scale float32, n int, runs sourceRuns) int32 {
	if k := len(b.sumList); runs.items == 0 && (k == 1 || k <= fewSources && scale == 1 && n <= fewElements) {
		return b.addFew(cluster, sub, flags, dst, from, scale, n)
	}
	for list := b.sumList; len(list) > 0; {
		k := min(len(list), mostItems)
		r := min(runs.items, k)
		b.sum(cluster, sub, firstWord(isa.Sum, uint8(isa.Copy), flags), dst, from, scale, n, list[:k], sourceRuns{r, runs.count, runs.apart}, operand{})
		list, runs.items = list[k:], runs.items-r
		flags |= isa.Acc
		sub++
	}
	return sub
}

// mostItems is how many items a Sum has at most.
const (
	sumHead   = 9
	mostItems = isa.MaxWords - sumHead
)

// sum adds a Sum of the items in list.
func (b *Schedule) sum(cluster, sub int32, first uint32, dst operand, from isa.Segment, scale float32, n int, list []uint32, runs sourceRuns, y operand) {
	at, k := uint32(len(b.pool)), len(list)
	b.pool = append(b.pool, first, uint32(sumHead+k)|uint32(k)<<16,
		uint32(dst.seg)|uint32(from)<<4|uint32(y.seg)<<8, uint32(n), isa.Float(scale), dst.at, uint32(runs.items)|runs.count<<16, runs.apart, y.at)
	b.pool = append(b.pool, list...)
	b.inCluster(cluster, sub, rawSig, at, 0, 0, sumCost(k+runs.items*int(runs.count), n))
}

// sumCost is what a Sum of so many vectors of n elements costs.
func sumCost(vectors, n int) int32 { return 1 + int32(vectors*n>>11) }

// sumOfRuns lists the sources for a Sum with a function behind it, if there are several of one node together and one
// instruction does for all.
func (b *Schedule) sumOfRuns(src []source) (runs sourceRuns, ok bool) {
	runs = b.listSources(src)
	return runs, runs.items > 0 && len(b.sumList) <= mostItems
}

// So many sources of so many elements are added two by two: that fuses with what comes before and behind.
const fewSources, fewElements = 4, 4096

// addFew adds dst (+)= scale * sum of b.sumList; the scale is 1 if there are several. It returns the
// next free order.
func (b *Schedule) addFew(cluster, sub int32, flags uint32, dst operand, from isa.Segment, scale float32, n int) int32 {
	list := b.sumList
	switch {
	case len(list) > 1:
		b.map2(cluster, sub, isa.Add, flags, 0, n, dst, operand{from, list[0]}, operand{from, list[1]})
		list = list[2:]
	case scale == 1:
		b.map1(cluster, sub, isa.Copy, flags, 0, n, dst, operand{from, list[0]})
		list = nil
	default:
		b.map1(cluster, sub, isa.Scale, flags, scale, n, dst, operand{from, list[0]})
		list = nil
	}
	for _, at := range list {
		sub++
		b.map1(cluster, sub, isa.Copy, isa.Acc, 0, n, dst, operand{from, at})
	}
	return sub + 1
}

// sourceRuns are the first items of b.sumList, which stand for several sources.
type sourceRuns struct {
	items        int
	count, apart uint32
}

// listSources puts the items of a Sum into b.sumList.
func (b *Schedule) listSources(src []source) sourceRuns {
	most := source{count: 1}
	for i := range src {
		if n := src[i].count; n > most.count && n <= isa.MaxRun {
			most = src[i]
		}
	}
	isRun := func(s *source) bool { return most.count > 1 && s.count == most.count && s.apart == most.apart }
	list := b.sumList[:0]
	if most.count > 1 {
		for i := range src {
			if isRun(&src[i]) {
				list = append(list, src[i].at)
			}
		}
	}
	runs := sourceRuns{len(list), most.count, most.apart}
	if runs.items == 0 {
		runs = sourceRuns{}
	}
	for i := range src {
		if s := &src[i]; !isRun(s) {
			for k := range s.count {
				list = append(list, s.at+k*s.apart)
			}
		}
	}
	b.sumList = list
	return runs
}

// pieceOf is how many elements of a small parameter one processor sums.
const pieceOf = 64

// pieceFor is how many of a parameter's elements one processor sums: of a large one, so many that each processor has a
// few such pieces; at most fewElements, as sums of more are formed in another way.
func (b *Schedule) pieceFor(size uint32) uint32 {
	const each = 4
	return min(max(pieceOf, (size/(each*uint32(b.Plan.Processors))+15)&^15), fewElements)
}

// sumPieces spreads dst (+)= sum of sources over processors by elements.
func (b *Schedule) sumPieces(level int32, flags uint32, dst operand, size uint32, src []source) {
	runs, piece := b.listSources(src), b.pieceFor(size)
	for at := uint32(0); at < size; at += piece {
		b.sumListed(b.newCluster(level), 0, flags, dst.plus(at), isa.SegAct, 1, int(min(piece, size-at)), runs)
		for i := range b.sumList {
			b.sumList[i] += piece
		}
	}
}

func (o operand) plus(n uint32) operand { return operand{o.seg, o.at + n} }
