package finish

import (
	"slices"

	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/schedule"
)

// The end of a batch: the norm of the parameters' gradients is taken, and the update is committed or not. Each is a level,
// in which every processor has a part of all elements, of equal size, and nothing else to do.

// Apply says how gradients are applied at the end.
type Apply struct {
	Params    []uint32 // ids, in the trainer's order
	State     []uint32 // for each of Params where in segment state the rule's first vector is; the others follow
	Rule      isa.Rule
	Rate      float32  // for SGD, learning rate / weight decay factor
	P, Q, R   float32  // the rule's other constants
	Dense     bool     // tables change as a whole, also rows without a gradient
	Threshold float32  // clipping; +Inf: none
	All       []uint32 // ids of all parameters with gradients that count in the norm
}

// span is a run of a parameter's elements that has a gradient, or changes without one.
type span struct {
	lookup, updated, formed bool
	at, n                   uint32
	state, apart            uint32 // the rule's first vector for these elements, and how far the next is
	column                  uint32 // of EG: how many elements its sum is of
}

// spans lists everything that has a gradient, pending or formed in this build, and what the rule
// changes besides.
func (f *Finisher) spans(u *Apply) []span {
	f.spanList = f.spanList[:0]
	rule := &isa.RuleTable[u.Rule]
	f.placeOf = memory.Resize(f.placeOf, len(f.Params))
	clear(f.placeOf)
	for i, id := range u.Params {
		f.placeOf[id] = int32(i) + 1
	}
	for _, id := range u.All {
		p := &f.Params[id]
		if p.Size == 0 {
			continue
		}
		s := span{lookup: p.Lookup, formed: true, at: p.Offset, n: p.Size, apart: p.Size, column: p.Column}
		if i := f.placeOf[id] - 1; i >= 0 && p.Updated {
			s.updated = true
			if rule.States > 0 {
				s.state = u.State[i]
			}
		}
		whole := p.Pending || f.isFormed(id)
		rest := s.updated && rule.Moves
		switch {
		case p.Lookup && (!whole || s.updated && rule.Normalises):
			f.rowSpans(s, p, id, whole, rest && u.Dense, rule.Normalises)
		case whole:
			f.spanList = append(f.spanList, s)
		case rest:
			s.formed = false
			f.spanList = append(f.spanList, s)
		}
	}
	return f.spanList
}

// rowSpans lists a table's rows with a gradient and, with rest, the runs between them, or, with
// apart, each of their rows.
func (f *Finisher) rowSpans(s span, p *schedule.Param, id uint32, whole, rest, apart bool) {
	run := func(row, n uint32, formed bool) {
		r := s
		r.at, r.state, r.n, r.formed = s.at+row*p.Row, s.state+row*p.Row, n*p.Row, formed
		f.spanList = append(f.spanList, r)
	}
	between := func(from, to uint32, formed bool) {
		step := to - from
		if apart {
			step = 1
		}
		for ; from < to; from += step {
			run(from, step, formed)
		}
	}
	next, all := uint32(0), p.Size/p.Row
	if whole {
		between(0, all, true)
		return
	}
	for _, row := range f.rowsOf(id) {
		if rest {
			between(next, row, false)
		}
		run(row, 1, true)
		next = row + 1
	}
	if rest {
		between(next, all, false)
	}
}

// rowsOf lists a table's rows with a gradient, ascending.
func (f *Finisher) rowsOf(id uint32) []uint32 {
	rows := append([]uint32(nil), f.Params[id].Rows...)
	for _, t := range f.Touched {
		if t.Param == id {
			rows = append(rows, t.Row)
		}
	}
	slices.Sort(rows)
	return slices.Compact(rows)
}

// Closing is the two last levels.
type Closing struct {
	First    int32 // the level of the norm
	Parts    []part
	partials uint32           // where in segment act the parts' norms are, one behind the other
	loss     schedule.Operand // of the batch; valid if judged
	judged   bool             // the loss decides whether the batch is committed
	update   *Apply
	result   uint32 // where in segment result Clip's words go; 0: nowhere
}

// Close adds norm, clipping and update, which the loss decides about if it is judged. Clip's words go to a place in segment
// result, 0: nowhere.
func (f *Finisher) Close(u *Apply, judged bool, loss schedule.Operand, result uint32) {
	x := &f.Closing
	x.update, x.result = u, result
	spans := f.spans(u)
	total := uint64(0) // of up to two segments of 16 GiB
	for _, s := range spans {
		total += uint64(s.n)
	}
	processors := uint64(f.Plan.Processors)
	share := max((total+processors-1)/processors, 256)
	share = (share + 31) &^ 31
	n := max((total+share-1)/share, 1)
	x.First = f.MaxLevel + 1
	x.partials = f.Alloc(int(isa.NormWords * n))
	if x.judged = judged; judged {
		f.judgeLoss(loss)
	}
	x.divide(spans, n, share)
	f.MaxLevel += 2
}

// judgeLoss has Clip read the loss from segment act: the host's memory is far away, and a parameter,
// if that is all of the loss, is updated in the same level.
func (f *Finisher) judgeLoss(loss schedule.Operand) {
	x := &f.Closing
	if x.loss = loss; loss.Seg != isa.SegAct {
		x.loss = schedule.At(isa.SegAct, f.Alloc(1))
		f.Map1(f.NewCluster(f.MaxLevel), 0, isa.Copy, 0, 0, 1, x.loss, loss)
	}
}

// part is what lies in [from, to) of the concatenation of all spans. The first of its spans begins at
// element at of the concatenation.
type part struct {
	spans        []span
	at, from, to uint64
}

// divide cuts the spans into n parts of so many elements.
func (x *Closing) divide(spans []span, n, share uint64) {
	list := memory.Resize(x.Parts, int(n))
	x.Parts = list
	at := uint64(0)
	for k := range n {
		for len(spans) > 0 && at+uint64(spans[0].n) <= k*share {
			at += uint64(spans[0].n)
			spans = spans[1:]
		}
		list[k] = part{spans, at, k * share, (k + 1) * share}
	}
}

// each calls f for the pieces of spans that make up a part.
func (p *part) each(f func(s *span, shift, n uint32)) {
	at := p.at
	for i := range p.spans {
		s := &p.spans[i]
		lo, hi := max(p.from, at), min(p.to, at+uint64(s.n))
		if lo < hi {
			f(s, uint32(lo-at), uint32(hi-lo))
		}
		if at += uint64(s.n); at >= p.to {
			return
		}
	}
}

// closingWriter writes the end of a processor's stream, which begins at words[start].
type closingWriter struct {
	*Closing
	words []uint32
	start int
}

// Append appends what processor p does in one of the last levels to its stream, which begins at words[start].
func (x *Closing) Append(words []uint32, start int, p int, level int) []uint32 {
	w := closingWriter{x, words, start}
	if int32(level) == x.First {
		w.norm(&x.Parts[p], x.partials+isa.NormWords*uint32(p))
	} else {
		w.clip(p == len(x.Parts)-1)
		w.apply(&x.Parts[p])
	}
	return w.words
}

// meet is the flag of an instruction that depends on those before.
func (w *closingWriter) meet() uint32 {
	if len(w.words) > w.start {
		return isa.Sync << 16
	}
	return 0
}

// norm writes the partial norm of a part: one Norm for dense gradients, one for rows.
func (w *closingWriter) norm(p *part, dst uint32) {
	acc := uint32(0)
	for _, lookup := range [2]bool{false, true} {
		seg := isa.SegGrad
		if lookup {
			seg = isa.SegTGrad
		}
		at := -1 // where the instruction begins
		p.each(func(s *span, shift, n uint32) {
			if s.lookup != lookup || !s.formed {
				return
			}
			if at < 0 || len(w.words)-at > isa.MaxWords-12 {
				at = len(w.words)
				w.words = append(w.words, uint32(isa.Norm)|acc|w.meet(), 4, uint32(isa.SegAct)|uint32(seg)<<4, dst)
				acc = isa.Acc << 16
			}
			w.words = append(w.words, s.at+shift, n)
			w.words[at+1] += 2 | 1<<16
		})
	}
	if acc == 0 {
		w.words = append(w.words, uint32(isa.Fill)|w.meet(), 6|1<<16, uint32(isa.SegAct), isa.NormWords, isa.Float(0), dst)
	}
}

// clip writes what makes of all partial norms the factor of the update.
func (w *closingWriter) clip(last bool) {
	x, flags, result := w.Closing, uint32(0), uint32(0)
	if x.judged {
		flags = isa.Loss << 16
	}
	if last && x.result > 0 {
		flags, result = flags|isa.Last<<16, x.result
	}
	w.words = append(w.words, uint32(isa.Clip)|flags|w.meet(), 8, uint32(isa.SegResult)|uint32(isa.SegAct)<<4|uint32(isa.SegAct)<<8, x.partials, uint32(len(x.Parts)), isa.Float(x.update.Threshold), result, x.loss.At)
}

// apply writes the updates of a part: one Update for each kind of parameter and with and without gradients.
func (w *closingWriter) apply(p *part) {
	sync, moves := w.meet(), isa.RuleTable[w.update.Rule].Moves
	for _, lookup := range [2]bool{false, true} {
		sync = w.updateSpans(p, lookup, true, sync)
		if moves {
			sync = w.updateSpans(p, lookup, false, sync)
		}
	}
}

// updateSpans writes the updates of the spans of one kind, the first with a flag, and returns that of the next.
func (w *closingWriter) updateSpans(p *part, lookup, formed bool, sync uint32) uint32 {
	u := w.update
	rule := &isa.RuleTable[u.Rule]
	words := rule.Words()
	segs := uint32(isa.SegParam) | uint32(isa.SegGrad)<<4
	if lookup {
		segs = uint32(isa.SegTable) | uint32(isa.SegTGrad)<<4
	}
	flags := uint32(0)
	if !formed {
		flags = isa.NoGrad << 16
	}
	at := -1 // where the instruction begins
	p.each(func(s *span, shift, n uint32) {
		if s.lookup != lookup || s.formed != formed || !s.updated {
			return
		}
		if rule.Normalises { // a tensor is one item, of the processor that has its beginning
			if shift > 0 {
				return
			}
			n = s.n
		}
		if at < 0 || len(w.words)-at > isa.MaxWords-words {
			at = len(w.words)
			w.words = append(w.words, uint32(isa.Update)|uint32(u.Rule)<<8|flags|sync, 7, segs|uint32(isa.SegState)<<8, isa.Float(u.Rate), isa.Float(u.P), isa.Float(u.Q), isa.Float(u.R))
			sync = 0
		}
		w.words = append(w.words, s.at+shift, s.at+shift, n)
		for k := range uint32(rule.States) {
			w.words = append(w.words, s.state+k*s.apart+shift)
		}
		if rule.Normalises {
			w.words = append(w.words, s.column)
		}
		w.words[at+1] += uint32(words) | 1<<16
	})
	return sync
}
