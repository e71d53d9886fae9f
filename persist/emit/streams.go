package emit

import (
	"slices"

	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/schedule"
)

// Writing every processor's stream.

// appendStreams appends the streams of all processors.
func (e *Emitter) appendStreams(w []uint32, levels, processors int) []uint32 {
	for p := range processors {
		w = isa.Align(w)
		w[isa.HeadWords+p*isa.ProcWords+isa.ProcStart] = uint32(len(w))
		w = e.appendStream(w, p, levels)
	}
	return w
}

// appendStream appends the stream of processor p: what its class does, but where it does something else.
func (e *Emitter) appendStream(words []uint32, p, levels int) []uint32 {
	w := streamWriter{e: e, p: int32(p), words: words, start: len(words)}
	from := 0
	for visits := e.visits[e.starts[p]:e.starts[p+1]]; len(visits) > 0; {
		l, n := visits[0].level, 1
		for n < len(visits) && visits[n].level == l {
			n++
		}
		w.copyClass(from, int(l))
		w.level(int(l), visits[:n])
		visits, from = visits[n:], int(l)+1
	}
	w.copyClass(from, levels)
	return append(w.words, uint32(isa.Halt))
}

// streamWriter writes the stream of processor p, which begins at words[start].
type streamWriter struct {
	e     *Emitter
	p     int32
	words []uint32
	start int
}

// level writes what p does in a level: what its class does, then the items of its clusters. Without any of both it
// takes no part.
func (w *streamWriter) level(l int, visits []visit) {
	e, first := w.e, len(w.words)
	x := &e.levels[l]
	e.items = e.items[:0]
	last := visits[len(visits)-1].cluster == closes
	for i := range visits {
		if c := visits[i].cluster; c < closes {
			e.items = e.AppendItemsOf(e.items, c)
		}
	}
	if x.exempt != w.p {
		w.enter(x)
	}
	w.copyInner(l)
	if last {
		w.words = e.Closing.Append(w.words, w.start, int(w.p), l)
	}
	if w.write(e.items); len(w.words) > first {
		w.leave(x, first)
	}
}

// enter writes what comes before a level's work.
func (w *streamWriter) enter(x *levelPlan) {
	if x.entry >= 0 {
		w.words = append(w.words, uint32(isa.Wait), 4, uint32(x.entry), uint32(x.expected))
	}
}

// leave writes what comes behind the work of a level, which began at words[first].
func (w *streamWriter) leave(x *levelPlan, first int) {
	if x.exit >= 0 {
		w.words = append(w.words, uint32(isa.Signal), 3, uint32(x.exit))
	}
	w.words[first] |= x.phase
}

// products writes p's products of a level.
func (w *streamWriter) products(x *levelPlan) {
	for i := x.runs[0]; i < x.runs[1]; i++ {
		r := &w.e.runs[i]
		if from, to := w.e.shareOf(r, w.p); from < to {
			w.product(r, from, to)
		}
	}
}

// product writes a holder's instructions for its items [from, to) of one run.
func (w *streamWriter) product(r *run, from, to int) {
	e, s := w.e, w.words
	words := e.Sigs.Of(r.sig)
	room := (isa.MaxWords - len(words)) / 2
	for first := from; from < to; {
		k := min(room, to-from)
		at := len(s)
		s = schedule.AppendFew(s, words)
		if isa.Opcode(words[0]) == isa.Outer && (from > first || r.acc) {
			s[at] |= isa.Acc << 16
		}
		if r.list != 0 {
			s[at] |= isa.Listed << 16
			s = append(s, r.list+2*uint32(from-r.from))
		} else {
			s = appendPairs(s, e.Products[from:from+k])
		}
		s[at] |= isa.Sync << 16
		s[at+1] = uint32(len(s)-at) | uint32(k)<<16
		from += k
	}
	w.words = s
}

// write writes a level's items, sorted: runs of the same order and signature become instructions. The
// first instruction of an order meets the threads before it.
func (w *streamWriter) write(list []schedule.Item) {
	e := w.e
	list = e.sorter.sort(list, e.Sigs.Count())
	last := int32(-1)
	for len(list) > 0 {
		it := &list[0]
		sync := uint32(0)
		if len(w.words) > w.start && it.Sub != last {
			sync = isa.Sync
		}
		last = it.Sub
		n := 1
		if it.Sig == schedule.RawSig {
			at := len(w.words)
			long := e.Pool[it.Words[0]:]
			w.words = append(w.words, long[:long[1]&0xFFFF]...)
			w.words[at] |= sync << 16
			if n := it.Words[2]; n > 0 { // of a piece
				schedule.NarrowSum(w.words[at:], it.Words[1], n)
			}
		} else {
			for n < len(list) && list[n].Sig == it.Sig && list[n].Sub == it.Sub {
				n++
			}
			w.run(sync, list[:n])
		}
		list = list[n:]
	}
}

// run writes items of one signature as instructions, which have these flags, too.
func (w *streamWriter) run(flags uint32, list []schedule.Item) {
	e, s := w.e, w.words
	words := e.Sigs.Of(list[0].Sig)
	n := int(e.Sigs.Width[list[0].Sig])
	room := isa.MaxWords - len(words)
	for len(list) > 0 {
		k := len(list)
		if k*n > room {
			k = room / n
		}
		at := len(s)
		s = schedule.AppendFew(s, words)
		s[at] |= flags << 16
		s[at+1] = uint32(len(words)+n*k) | uint32(k)<<16
		s = e.appendItems(s, list[:k], n)
		flags &^= isa.Sync
		list = list[k:]
	}
	w.words = s
}

// itemSorter sorts items by order in the cluster and signature, equal ones as they came.
type itemSorter struct {
	count []uint32
	spare []schedule.Item
}

// sort returns the sorted items: the list itself, or in memory of the sorter.
func (s *itemSorter) sort(list []schedule.Item, signatures int) []schedule.Item {
	if len(list) <= 24 {
		insertionSort(list)
		return list
	}
	subs := int32(0)
	for i := range list {
		subs = max(subs, list[i].Sub+1)
	}
	s.spare = memory.Resize(s.spare, len(list))
	sorted, _ := schedule.SortByTwo(&s.count, list, s.spare, int(subs), signatures,
		func(it *schedule.Item) uint32 { return uint32(it.Sub) }, func(it *schedule.Item) uint32 { return it.Sig })
	return sorted
}

func insertionSort(list []schedule.Item) {
	for i := 1; i < len(list); i++ {
		k := list[i].Key()
		if list[i-1].Key() <= k {
			continue
		}
		x, j := list[i], i
		for ; j > 0 && list[j-1].Key() > k; j-- {
			list[j] = list[j-1]
		}
		list[j] = x
	}
}

// appendItems appends the words of items of n words each.
func (e *Emitter) appendItems(s []uint32, list []schedule.Item, n int) []uint32 {
	if n > schedule.FewWords {
		for i := range list {
			it := &list[i]
			s = schedule.AppendFew(s, e.Pool[it.Words[0]:][:n])
			if it.Words[2] > 0 { // of a piece
				words, steps := s[len(s)-n:], e.Pool[it.Words[2]-1:][:n]
				for k := range words {
					words[k] += it.Words[1] * steps[k]
				}
			}
		}
		return s
	}
	at := len(s)
	s = slices.Grow(s, n*len(list)+schedule.FewWords)[:at+n*len(list)+schedule.FewWords]
	for i := range list {
		*(*[schedule.FewWords]uint32)(s[at:]) = list[i].Words // the next item overwrites what is too much
		at += n
	}
	return s[:at]
}
