// Package finish adds the end of scripts to schedules. The gradients of parameters are formed after everything else of the
// backward part. Then come norm, clipping and update.
package finish

import (
	"cmp"
	"slices"

	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/schedule"
)

// Sources are the gradients that nodes leave for parameters and rows of tables.
type Sources struct {
	ParamSrc []ParamSource
	RowSrc   []RowSource
	RowPool  []schedule.Source
}

// ParamSource is a gradient of a parameter, as big as it; rowSource one of a table's row.
type ParamSource struct {
	Param uint32
	schedule.Source
}
type RowSource struct {
	Key                 uint64 // param<<32 | row
	First, Count, Shift uint32 // rowPool[first:first+count], each plus shift
}

// Clear forgets them.
func (s *Sources) Clear() {
	s.ParamSrc, s.RowSrc, s.RowPool = s.ParamSrc[:0], s.RowSrc[:0], s.RowPool[:0]
}

// TouchedRow is a table row whose gradient was formed.
type TouchedRow struct{ Param, Row uint32 }

// Ending is what the end of a script depends on.
type Ending struct {
	*schedule.Schedule
	*Sources
	Params []schedule.Param
	Nodes  bool // parameters keep the gradients that they have
	Copies bool // a parameter's outer products go to its node's gradient
}

// Finisher adds the end of scripts to schedules.
type Finisher struct {
	Ending
	Formed  []uint32 // ids of dense parameters (and whole tables) whose gradient the present script forms
	Touched []TouchedRow
	Closing Closing

	script     uint64   // how many there were
	lastFormed []uint64 // by parameter: the latest script that forms its gradient
	placeOf    []int32  // by parameter: its place in Apply.Params, from 1; 0: it has none
	spanList   []span
	paramAlt   []ParamSource
	rowAlt     []RowSource
	linear     []schedule.Source // of one parameter or row
	count      []uint32
}

// Begin begins with a script.
func (f *Finisher) Begin(e Ending) {
	f.Ending, f.Formed, f.Touched, f.Closing.Parts = e, f.Formed[:0], f.Touched[:0], f.Closing.Parts[:0]
	f.script++
	f.lastFormed = memory.Extend(f.lastFormed, len(e.Params), 0)
}

// Form adds the items that form the parameters' gradients, in levels after all others.
func (f *Finisher) Form() {
	level := f.MaxLevel + 1
	f.formOuter(level)
	if f.Nodes {
		return
	}
	dense := level
	if f.Copies && len(f.Outers) > 0 {
		dense++ // outer products are sources, too
	}
	f.formDense(dense)
	f.formRows(level, dense+2)
}

// formOuter schedules dW = sum dy x^T for all matrices.
func (f *Finisher) formOuter(level int32) {
	f.OuterLevel = level
	last := uint32(schedule.RawSig)
	for i := range f.Outers {
		if sig := f.Outers[i].Sig; sig != last {
			last = sig
			f.formsMatrix(sig)
		}
	}
}

// formsMatrix notes that there are outer products with a signature.
func (f *Finisher) formsMatrix(sig uint32) {
	words := f.Sigs.Of(sig)
	id := f.Plan.Matrices[words[3]].Param
	if toMaster := isa.Segment(words[2]&15) == isa.SegGrad; toMaster {
		f.forms(id)
	}
	f.MaxLevel = max(f.MaxLevel, f.OuterLevel)
}

// formDense sums the gradients of parameters that came from nodes.
func (f *Finisher) formDense(level int32) {
	f.sortSources()
	for rest := f.ParamSrc; len(rest) > 0; {
		id := rest[0].Param
		f.linear = f.linear[:0]
		for len(rest) > 0 && rest[0].Param == id {
			f.linear, rest = append(f.linear, rest[0].Source), rest[1:]
		}
		p := &f.Params[id]
		flags, at := uint32(0), level
		if p.Pending {
			flags = isa.Acc
		}
		if !f.forms(id) { // its outer products come first
			flags, at = isa.Acc, f.OuterLevel+1
		}
		seg := isa.SegGrad
		if p.Lookup {
			seg = isa.SegTGrad
			if len(p.Rows) > 0 && !p.Pending {
				f.zeroRest(p, at)
				flags, at = isa.Acc, at+1
			}
		}
		f.SumPieces(at, flags, schedule.At(seg, p.Offset), p.Size, f.linear)
	}
}

// sortSources sorts the sources of parameters by these, equal ones as they came.
func (f *Finisher) sortSources() {
	f.count = memory.Resize(f.count, len(f.Params)+1)
	f.paramAlt = memory.Resize(f.paramAlt, len(f.ParamSrc))
	schedule.CountingSort(f.count, f.ParamSrc, f.paramAlt, func(x *ParamSource) uint32 { return x.Param })
	f.ParamSrc, f.paramAlt = f.paramAlt, f.ParamSrc
}

// forms notes that the gradient of a parameter is formed; false: that was known.
func (f *Finisher) forms(id uint32) bool {
	if f.isFormed(id) {
		return false
	}
	f.lastFormed[id] = f.script
	f.Formed = append(f.Formed, id)
	return true
}

// isFormed reports whether the present script forms a parameter's gradient.
func (f *Finisher) isFormed(id uint32) bool { return f.lastFormed[id] == f.script }

// zeroRest clears the rows of a table that has gradients of some rows only, before the table as
// a whole gets one.
func (f *Finisher) zeroRest(p *schedule.Param, level int32) {
	c, next, most := f.NewCluster(level), uint32(0), uint32(f.Wide.Single)
	zero := func(to uint32) {
		for at, end := next*p.Row, to*p.Row; at < end; at += most {
			n := min(most, end-at)
			if n == most { // the others have something to do, too
				c = f.NewCluster(level)
			}
			f.Sigs.Head(isa.Fill, 0, 0, uint32(isa.SegTGrad), n, 0)
			f.Add(c, 0, f.Sigs.Intern(int(n)), p.Offset+at, 0, 0)
		}
	}
	for _, row := range p.Rows {
		zero(row)
		next = row + 1
	}
	zero(p.Size / p.Row)
}

// formRows sums the gradients of each touched row of a table, from its last use to its first. If the table has a gradient
// as a whole, the sums come after it, in the level behind.
func (f *Finisher) formRows(level, behind int32) {
	f.sortRows()
	for i := 0; i < len(f.RowSrc); {
		key := f.RowSrc[i].Key
		f.linear = f.linear[:0]
		for ; i < len(f.RowSrc) && f.RowSrc[i].Key == key; i++ {
			s := &f.RowSrc[i]
			for _, x := range f.RowPool[s.First : s.First+s.Count] {
				x.At += s.Shift
				f.linear = append(f.linear, x)
			}
		}
		id, row := uint32(key>>32), uint32(key)
		p := &f.Params[id]
		flags, at := uint32(0), level
		_, pending := slices.BinarySearch(p.Rows, row)
		if pending || p.Pending {
			flags = isa.Acc
		}
		if f.isFormed(id) { // the whole table has a gradient in this batch
			flags, at = isa.Acc, behind
		} else if !p.Pending {
			f.Touched = append(f.Touched, TouchedRow{id, row})
		}
		dst := schedule.At(isa.SegTGrad, p.Offset+row*p.Row)
		if f.Plan.Processors > 1 && len(f.linear)*int(p.Row) >= 4*f.Wide.Single {
			f.SumPieces(at, flags, dst, p.Row, f.linear)
			continue
		}
		f.SumItems(f.NewCluster(at), 0, flags, dst, isa.SegAct, 1, int(p.Row), f.linear)
	}
}

// sortRows sorts the sources of rows by table and row, equal ones as they came.
func (f *Finisher) sortRows() {
	all := uint64(0)
	for i := range f.RowSrc {
		all |= f.RowSrc[i].Key
	}
	if len(f.RowSrc) < 32 {
		slices.SortStableFunc(f.RowSrc, func(x, y RowSource) int { return cmp.Compare(x.Key, y.Key) })
		return
	}
	const digit = 8
	f.count = memory.Resize(f.count, 1<<digit+1)
	f.rowAlt = memory.Resize(f.rowAlt, len(f.RowSrc))
	for shift := 0; all>>shift != 0; shift += digit {
		if all>>shift&(1<<digit-1) != 0 {
			schedule.CountingSort(f.count, f.RowSrc, f.rowAlt, func(x *RowSource) uint32 { return uint32(x.Key>>shift) & (1<<digit - 1) })
			f.RowSrc, f.rowAlt = f.rowAlt, f.RowSrc
		}
	}
}
