package script

import (
	"cmp"
	"slices"

	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/schedule"
)

// The gradients of parameters are formed, behind everything else of the backward part.

// sources are the gradients that nodes leave for parameters and rows of tables.
type sources struct {
	paramSrc []paramSource
	rowSrc   []rowSource
	rowPool  []schedule.Source
}

// paramSource is a gradient of a parameter, as big as it; rowSource one of a table's row.
type paramSource struct {
	param uint32
	schedule.Source
}
type rowSource struct {
	key                 uint64 // param<<32 | row
	first, count, shift uint32 // rowPool[first:first+count], each plus shift
}

// clear forgets them.
func (s *sources) clear() {
	s.paramSrc, s.rowSrc, s.rowPool = s.paramSrc[:0], s.rowSrc[:0], s.rowPool[:0]
}

// add adds those of another one.
func (s *sources) add(o *sources) {
	s.paramSrc = append(s.paramSrc, o.paramSrc...)
	rows := uint32(len(s.rowPool))
	s.rowPool = append(s.rowPool, o.rowPool...)
	for _, x := range o.rowSrc {
		x.first += rows
		s.rowSrc = append(s.rowSrc, x)
	}
}

// TouchedRow is a table row whose gradient was formed.
type TouchedRow struct{ Param, Row uint32 }

// ending is what the end of a script depends on.
type ending struct {
	*schedule.Schedule
	*sources
	params []schedule.Param
	nodes  bool // parameters keep the gradients that they have
	copies bool // a parameter's outer products go to its node's gradient
	pauses bool // the script is cut already
}

// finisher adds the end of scripts to schedules.
type finisher struct {
	ending
	formed  []uint32 // ids of dense parameters (and whole tables) whose gradient the present script forms
	touched []TouchedRow
	closing closing

	script     uint64   // how many there were
	lastFormed []uint64 // by parameter: the latest script that forms its gradient
	placeOf    []int32  // by parameter: its place in Apply.Params, from 1; 0: it has none
	spanList   []span
	paramAlt   []paramSource
	rowAlt     []rowSource
	linear     []schedule.Source // of one parameter or row
	count      []uint32
}

// begin begins with a script.
func (b *finisher) begin(e ending) {
	b.ending, b.formed, b.touched, b.closing.parts = e, b.formed[:0], b.touched[:0], b.closing.parts[:0]
	b.script++
	b.lastFormed = memory.Extend(b.lastFormed, len(e.params), 0)
}

// form adds what forms the parameters' gradients, behind everything else.
func (b *finisher) form() {
	level := b.MaxLevel + 1
	b.formOuter(level)
	b.planLibrary(level)
	if b.nodes {
		return
	}
	dense, rows := level, level
	if b.copies && len(b.Outers) > 0 {
		dense++ // outer products are sources, too
	}
	if b.Cut != schedule.NoCut { // until the library is done nothing else is added to what an earlier backward has left
		dense, rows = b.Cut, b.Cut
	}
	b.formDense(dense)
	b.formRows(rows, dense+2)
}

// formOuter schedules dW = sum dy x^T for all matrices.
func (b *finisher) formOuter(level int32) {
	b.OuterLevel = level
	for _, p := range b.Parts {
		for _, x := range p.Stretches {
			if x.Level < 0 {
				b.formsMatrix(p.InWhole.Signature[x.Sig])
			}
		}
	}
	last := uint32(schedule.RawSig)
	for i := range b.Outers {
		if sig := b.Outers[i].Sig; sig != last {
			last = sig
			b.formsMatrix(sig)
		}
	}
}

// formsMatrix notes that there are outer products with a signature.
func (b *finisher) formsMatrix(sig uint32) {
	words := b.Sigs.Of(sig)
	id := b.Plan.Matrices[words[3]].Param
	if toMaster := isa.Segment(words[2]&15) == isa.SegGrad; toMaster {
		b.forms(id)
	}
	b.MaxLevel = max(b.MaxLevel, b.OuterLevel)
}

// formDense sums the gradients of parameters that came from nodes.
func (b *finisher) formDense(level int32) {
	b.sortSources()
	for rest := b.paramSrc; len(rest) > 0; {
		id := rest[0].param
		b.linear = b.linear[:0]
		for len(rest) > 0 && rest[0].param == id {
			b.linear, rest = append(b.linear, rest[0].Source), rest[1:]
		}
		p := &b.params[id]
		flags, at := uint32(0), level
		if p.Pending {
			flags = isa.Acc
		}
		if !b.forms(id) { // its outer products come first
			flags, at = isa.Acc, b.OuterLevel+1
		}
		seg := isa.SegGrad
		if p.Lookup {
			seg = isa.SegTGrad
			if len(p.Rows) > 0 && !p.Pending {
				b.zeroRest(p, at)
				flags, at = isa.Acc, at+1
			}
		}
		b.SumPieces(at, flags, schedule.At(seg, p.Offset), p.Size, b.linear)
	}
}

// sortSources sorts the sources of parameters by these, equal ones as they came.
func (b *finisher) sortSources() {
	b.count = memory.Resize(b.count, len(b.params)+1)
	b.paramAlt = memory.Resize(b.paramAlt, len(b.paramSrc))
	schedule.CountingSort(b.count, b.paramSrc, b.paramAlt, func(x *paramSource) uint32 { return x.param })
	b.paramSrc, b.paramAlt = b.paramAlt, b.paramSrc
}

// forms notes that the gradient of a parameter is formed; false: that was known.
func (b *finisher) forms(id uint32) bool {
	if b.isFormed(id) {
		return false
	}
	b.lastFormed[id] = b.script
	b.formed = append(b.formed, id)
	return true
}

// isFormed reports whether the present script forms a parameter's gradient.
func (b *finisher) isFormed(id uint32) bool { return b.lastFormed[id] == b.script }

// zeroRest clears the rows of a table that has gradients of some rows only, before the table as
// a whole gets one.
func (b *finisher) zeroRest(p *schedule.Param, level int32) {
	c, next, most := b.NewCluster(level), uint32(0), uint32(b.Wide.Single)
	zero := func(to uint32) {
		for at, end := next*p.Row, to*p.Row; at < end; at += most {
			n := min(most, end-at)
			if n == most { // the others have something to do, too
				c = b.NewCluster(level)
			}
			b.Sigs.Head(isa.Fill, 0, 0, uint32(isa.SegTGrad), n, 0)
			b.Add(c, 0, b.Sigs.Intern(int(n)), p.Offset+at, 0, 0)
		}
	}
	for _, row := range p.Rows {
		zero(row)
		next = row + 1
	}
	zero(p.Size / p.Row)
}

// formRows sums the gradients of each touched row of a table, from its last use to its first; behind
// the gradient of the table as a whole, where there is one.
func (b *finisher) formRows(level, behind int32) {
	b.sortRows()
	for i := 0; i < len(b.rowSrc); {
		key := b.rowSrc[i].key
		b.linear = b.linear[:0]
		for ; i < len(b.rowSrc) && b.rowSrc[i].key == key; i++ {
			s := &b.rowSrc[i]
			for _, x := range b.rowPool[s.first : s.first+s.count] {
				x.At += s.shift
				b.linear = append(b.linear, x)
			}
		}
		id, row := uint32(key>>32), uint32(key)
		p := &b.params[id]
		flags, at := uint32(0), level
		_, pending := slices.BinarySearch(p.Rows, row)
		if pending || p.Pending {
			flags = isa.Acc
		}
		if b.isFormed(id) { // the whole table has a gradient in this batch
			flags, at = isa.Acc, behind
		} else if !p.Pending {
			b.touched = append(b.touched, TouchedRow{id, row})
		}
		dst := schedule.At(isa.SegTGrad, p.Offset+row*p.Row)
		if b.Plan.Processors > 1 && len(b.linear)*int(p.Row) >= 4*b.Wide.Single {
			b.SumPieces(at, flags, dst, p.Row, b.linear)
			continue
		}
		b.SumItems(b.NewCluster(at), 0, flags, dst, isa.SegAct, 1, int(p.Row), b.linear)
	}
}

// sortRows sorts the sources of rows by table and row, equal ones as they came.
func (b *finisher) sortRows() {
	all := uint64(0)
	for i := range b.rowSrc {
		all |= b.rowSrc[i].key
	}
	if len(b.rowSrc) < 256 {
		slices.SortStableFunc(b.rowSrc, func(x, y rowSource) int { return cmp.Compare(x.key, y.key) })
		return
	}
	const digit = 11
	b.count = memory.Resize(b.count, 1<<digit+1)
	b.rowAlt = memory.Resize(b.rowAlt, len(b.rowSrc))
	for shift := 0; all>>shift != 0; shift += digit {
		if all>>shift&(1<<digit-1) != 0 {
			schedule.CountingSort(b.count, b.rowSrc, b.rowAlt, func(x *rowSource) uint32 { return uint32(x.key>>shift) & (1<<digit - 1) })
			b.rowSrc, b.rowAlt = b.rowAlt, b.rowSrc
		}
	}
}
