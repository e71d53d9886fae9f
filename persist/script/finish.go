package script

// The end of a batch: parameters' gradients are formed, their norm is taken, and the update
// is committed or not. Each stage is a level of its own.

import (
	"cmp"
	"slices"
)

// formParameters adds what forms the parameters' gradients, behind everything else.
func (b *Builder) formParameters() {
	level := b.maxLevel + 1
	b.formOuter(level)
	dense := level
	if b.r.Copy && len(b.outers) > 0 {
		dense++ // outer products are sources, too
	}
	b.formDense(dense)
	b.formRows(level, dense+2)
}

// formOuter schedules dW = sum dy x^T for all matrices.
func (b *Builder) formOuter(level int32) {
	b.outerLevel = level
	for _, p := range b.division.taken {
		for _, x := range p.stretches {
			if x.level < 0 {
				b.formsMatrix(p.division.signature[x.sig])
			}
		}
	}
	last := uint32(rawSig)
	for i := range b.outers {
		if sig := b.outers[i].sig; sig != last {
			last = sig
			b.formsMatrix(sig)
		}
	}
}

// formsMatrix notes that there are outer products with a signature.
func (b *Builder) formsMatrix(sig uint32) {
	words := b.sigs.of(sig)
	id := b.r.Plan.Matrices[words[3]].Param
	if toMaster := Segment(words[2]&15) == SegGrad; toMaster && !slices.Contains(b.out.Formed, id) {
		b.out.Formed = append(b.out.Formed, id)
	}
	b.maxLevel = max(b.maxLevel, b.outerLevel)
}

// pieceOf is how many elements of a parameter one processor sums.
const pieceOf = 64

// formDense sums the gradients of parameters that came from nodes.
func (b *Builder) formDense(level int32) {
	for _, id := range b.sourceParams() {
		b.linear = b.linear[:0]
		for _, s := range b.paramSrc {
			if s.param == id {
				b.linear = append(b.linear, s.source)
			}
		}
		p := &b.r.Params[id]
		flags, at := uint32(0), level
		if p.Pending {
			flags = Acc
		}
		if slices.Contains(b.out.Formed, id) { // its outer products come first
			flags, at = Acc, level+1
		} else {
			b.out.Formed = append(b.out.Formed, id)
		}
		seg := SegGrad
		if p.Lookup {
			seg = SegTGrad
			if len(p.Rows) > 0 && !p.Pending {
				b.zeroRest(p, at)
				flags, at = Acc, at+1
			}
		}
		b.sumPieces(at, flags, operand{seg, p.Offset}, p.Size)
	}
}

// sourceParams lists the parameters that have sources, in order.
func (b *Builder) sourceParams() []uint32 {
	b.ids = b.ids[:0]
	for _, s := range b.paramSrc {
		if n := len(b.ids); (n == 0 || b.ids[n-1] != s.param) && !slices.Contains(b.ids, s.param) {
			b.ids = append(b.ids, s.param)
		}
	}
	slices.Sort(b.ids)
	return b.ids
}

// zeroRest clears the rows of a table that has gradients of some rows only, before the table as
// a whole gets one.
func (b *Builder) zeroRest(p *Param, level int32) {
	c := b.newCluster(level)
	next := uint32(0)
	zero := func(to uint32) {
		if to > next {
			b.sigs.head(Fill, 0, 0, uint32(SegTGrad), (to-next)*p.Row, 0)
			b.local(c, 0, b.sigs.intern(int((to-next)*p.Row)), p.Offset+next*p.Row, 0, 0)
		}
	}
	for _, row := range p.Rows {
		zero(row)
		next = row + 1
	}
	zero(p.Size / p.Row)
}

// sumPieces spreads dst (+)= sum of b.linear over processors by elements.
func (b *Builder) sumPieces(level int32, flags uint32, dst operand, size uint32) {
	runs := b.listSources(b.linear)
	for at := uint32(0); at < size; at += pieceOf {
		b.sumListed(b.newCluster(level), 0, flags, dst.plus(at), SegAct, 1, int(min(pieceOf, size-at)), runs)
		for i := range b.sumList {
			b.sumList[i] += pieceOf
		}
	}
}

// formRows sums the gradients of each touched row of a table, from its last use to its first; behind
// the gradient of the table as a whole, where there is one.
func (b *Builder) formRows(level, behind int32) {
	b.sortRows()
	for i := 0; i < len(b.rowSrc); {
		key := b.rowSrc[i].key
		b.linear = b.linear[:0]
		for ; i < len(b.rowSrc) && b.rowSrc[i].key == key; i++ {
			s := &b.rowSrc[i]
			for _, x := range b.rowPool[s.first : s.first+s.count] {
				x.at += s.shift
				b.linear = append(b.linear, x)
			}
		}
		id, row := uint32(key>>32), uint32(key)
		p := &b.r.Params[id]
		flags, at := uint32(0), level
		_, pending := slices.BinarySearch(p.Rows, row)
		if pending || p.Pending {
			flags = Acc
		}
		if slices.Contains(b.out.Formed, id) { // the whole table has a gradient in this batch
			flags, at = Acc, behind
		} else if !p.Pending {
			b.out.Touched = append(b.out.Touched, TouchedRow{id, row})
		}
		b.sumItems(b.newCluster(at), 0, flags, operand{SegTGrad, p.Offset + row*p.Row}, SegAct, 1, int(p.Row), b.linear)
	}
}

// sortRows sorts the sources of rows by table and row, equal ones as they came.
func (b *Builder) sortRows() {
	all := uint64(0)
	for i := range b.rowSrc {
		all |= b.rowSrc[i].key
	}
	if len(b.rowSrc) < 256 {
		slices.SortStableFunc(b.rowSrc, func(x, y rowSource) int { return cmp.Compare(x.key, y.key) })
		return
	}
	const digit = 11
	b.count = resize(b.count, 1<<digit+1)
	b.rowAlt = resize(b.rowAlt, len(b.rowSrc))
	for shift := 0; all>>shift != 0; shift += digit {
		if all>>shift&(1<<digit-1) != 0 {
			countingSort(b.count, b.rowSrc, b.rowAlt, func(x *rowSource) uint32 { return uint32(x.key>>shift) & (1<<digit - 1) })
			b.rowSrc, b.rowAlt = b.rowAlt, b.rowSrc
		}
	}
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
func (b *Builder) spans() []span {
	b.spanList = b.spanList[:0]
	rule := &RuleTable[b.r.Update.Rule]
	for _, id := range b.r.Update.All {
		p := &b.r.Params[id]
		if p.Size == 0 {
			continue
		}
		s := span{lookup: p.Lookup, formed: true, at: p.Offset, n: p.Size, apart: p.Size, column: p.Column}
		if i := slices.Index(b.r.Update.Params, id); i >= 0 && p.Updated {
			s.updated = true
			if rule.States > 0 {
				s.state = b.r.Update.State[i]
			}
		}
		whole := p.Pending || slices.Contains(b.out.Formed, id)
		rest := s.updated && rule.Moves
		switch {
		case p.Lookup && (!whole || s.updated && rule.Normalises):
			b.rowSpans(s, p, id, whole, rest && b.r.Update.Dense, rule.Normalises)
		case whole:
			b.spanList = append(b.spanList, s)
		case rest:
			s.formed = false
			b.spanList = append(b.spanList, s)
		}
	}
	return b.spanList
}

// rowSpans lists a table's rows with a gradient and, with rest, the runs between them, or, with
// apart, each of their rows.
func (b *Builder) rowSpans(s span, p *Param, id uint32, whole, rest, apart bool) {
	run := func(row, n uint32, formed bool) {
		r := s
		r.at, r.state, r.n, r.formed = s.at+row*p.Row, s.state+row*p.Row, n*p.Row, formed
		b.spanList = append(b.spanList, r)
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
	for _, row := range b.rowsOf(id) {
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
func (b *Builder) rowsOf(id uint32) []uint32 {
	rows := append([]uint32(nil), b.r.Params[id].Rows...)
	for _, t := range b.out.Touched {
		if t.Param == id {
			rows = append(rows, t.Row)
		}
	}
	slices.Sort(rows)
	return slices.Compact(rows)
}

// finish adds norm, clipping and update. Work is dealt out in pieces of equal size.
func (b *Builder) finish() {
	level := b.maxLevel + 1
	spans := b.spans()
	total := uint32(0)
	for _, s := range spans {
		total += s.n
	}
	processors := uint32(b.r.Plan.Processors)
	share := max((total+processors-1)/processors, 256)
	share = (share + 31) &^ 31
	n := max((total+share-1)/share, 1)
	partials := b.alloc(int(n))
	parts := b.parts(spans, n, share)
	for k := range parts {
		b.dealNorm(b.newCluster(level), &parts[k], partials+uint32(k))
	}
	threshold := b.r.Update.Threshold
	for k := range parts {
		c := b.newCluster(level + 1)
		flags, result := uint32(0), uint32(0)
		if k == len(parts)-1 && b.r.Result != NoOffset {
			flags, result = Last, b.r.Result+1
		}
		b.raw(c, 0, uint32(Clip)|flags<<16, 7, uint32(SegResult)|uint32(SegAct)<<4, partials, n, bits(threshold), result)
		b.dealUpdate(c, &parts[k])
	}
}

// part is what lies in [from, to) of the concatenation of all spans. The first of its spans begins at
// element at of the concatenation.
type part struct {
	spans        []span
	at, from, to uint32
}

// parts cuts the spans into n parts of so many elements.
func (b *Builder) parts(spans []span, n, share uint32) []part {
	b.partList = resize(b.partList, int(n))
	at := uint32(0)
	for k := range n {
		for len(spans) > 0 && at+spans[0].n <= k*share {
			at += spans[0].n
			spans = spans[1:]
		}
		b.partList[k] = part{spans, at, k * share, (k + 1) * share}
	}
	return b.partList
}

// each calls f for the pieces of spans that make up a part.
func (p *part) each(f func(s *span, shift, n uint32)) {
	at := p.at
	for i := range p.spans {
		s := &p.spans[i]
		lo, hi := max(p.from, at), min(p.to, at+s.n)
		if lo < hi {
			f(s, lo-at, hi-lo)
		}
		if at += s.n; at >= p.to {
			return
		}
	}
}

// dealNorm adds the partial norm of a part: one Norm for dense gradients, one for rows.
func (b *Builder) dealNorm(c int32, p *part, dst uint32) {
	sub, flags := int32(0), uint32(0)
	for _, lookup := range [2]bool{false, true} {
		seg := SegGrad
		if lookup {
			seg = SegTGrad
		}
		const head = 4
		b.ranges = append(b.ranges[:0], uint32(Norm), 0, uint32(SegAct)|uint32(seg)<<4, dst)
		flush := func() {
			if n := len(b.ranges); n > head {
				b.ranges[0] = uint32(Norm) | flags<<16
				b.ranges[1] = uint32(n) | uint32((n-head)/2)<<16
				b.raw(c, sub, b.ranges...)
				sub, flags, b.ranges = sub+1, Acc, b.ranges[:head]
			}
		}
		p.each(func(s *span, shift, n uint32) {
			if s.lookup == lookup && s.formed {
				b.ranges = append(b.ranges, s.at+shift, n)
				if len(b.ranges) > MaxWords-12 {
					flush()
				}
			}
		})
		flush()
	}
	if flags == 0 {
		b.fill(c, sub, 0, 1, dst)
	}
}

// dealUpdate adds the updates of a part: one Update for each kind of parameter and with and
// without gradients.
func (b *Builder) dealUpdate(c int32, p *part) {
	moves := RuleTable[b.r.Update.Rule].Moves
	for _, lookup := range [2]bool{false, true} {
		b.updateRanges(c, p, lookup, true)
		if moves {
			b.updateRanges(c, p, lookup, false)
		}
	}
}

func (b *Builder) updateRanges(c int32, p *part, lookup, formed bool) {
	u := b.r.Update
	rule := &RuleTable[u.Rule]
	words := rule.Words()
	segs := uint32(SegParam) | uint32(SegGrad)<<4
	if lookup {
		segs = uint32(SegTable) | uint32(SegTGrad)<<4
	}
	flags := uint32(0)
	if !formed {
		flags = NoGrad
	}
	head := [...]uint32{uint32(Update) | uint32(u.Rule)<<8 | flags<<16, 0, segs | uint32(SegState)<<8, bits(u.Rate), bits(u.P), bits(u.Q), bits(u.R)}
	b.ranges = append(b.ranges[:0], head[:]...)
	flush := func() {
		if n := len(b.ranges); n > len(head) {
			b.ranges[1] = uint32(n) | uint32((n-len(head))/words)<<16
			b.raw(c, 1, b.ranges...)
			b.ranges = b.ranges[:len(head)]
		}
	}
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
		b.ranges = append(b.ranges, s.at+shift, s.at+shift, n)
		for k := range uint32(rule.States) {
			b.ranges = append(b.ranges, s.state+k*s.apart+shift)
		}
		if rule.Normalises {
			b.ranges = append(b.ranges, s.column)
		}
		if len(b.ranges) > MaxWords-words {
			flush()
		}
	})
	flush()
}
