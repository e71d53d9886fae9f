package emit

import (
	"slices"

	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/schedule"
)

// The products of all levels: which of them each processor does, and the lists of those that several share.

// run is the product items [from, to) of one signature and level.
type run struct {
	level    int32
	sig      uint32
	part     int32 // of a matrix
	from, to int
	acc      bool   // an Outer that adds to what is there
	list     uint32 // where in the script its items are, 0: with each instruction
}

// planRuns makes runs of the products.
func (e *Emitter) planRuns(levels int) {
	e.OrderProducts()
	e.levels, e.runs, e.listWords = memory.Resize(e.levels, levels), e.runs[:0], 0
	from := 0
	for l := range int32(levels) {
		first := len(e.runs)
		for from < len(e.Products) && e.levelOf(&e.Products[from]) == l {
			x, to := &e.Products[from], from+1
			for to < len(e.Products) && e.Products[to].Sig == x.Sig && e.Products[to].Level == x.Level {
				to++
			}
			e.addRun(l, x.Sig, from, to)
			from = to
		}
		e.levels[l] = levelPlan{runs: [2]int{first, len(e.runs)}, entry: -1, exempt: -1, exit: -1, phase: uint32(e.PhaseOf(l)) << (16 + isa.PhaseShift)}
	}
}

// levelOf is the level of a product.
func (e *Emitter) levelOf(x *schedule.Product) int32 {
	if x.Level == schedule.AtTheEnd {
		return e.OuterLevel
	}
	return x.Level
}

// inlineItems is how many items an instruction has rather with itself than in a list.
const inlineItems = 4

// addRun adds a run. Its items are in a list if each of several processors has more than a few.
func (e *Emitter) addRun(level int32, sig uint32, from, to int) {
	words := e.Sigs.Of(sig)
	outer := isa.Opcode(words[0]) == isa.Outer
	r := run{level, sig, e.partOf(words), from, to, outer && e.accumulates(words), 0}
	copies := e.Holders.Copies[r.part]
	if n := (to - from) / len(copies); n > inlineItems && len(copies[0]) > 1 {
		r.list = uint32(isa.ListsAt(e.Plan.Processors) + e.listWords)
		e.listWords += 2 * (to - from)
	}
	e.runs = append(e.runs, r)
}

// partOf is the part that a product works on.
func (e *Emitter) partOf(words []uint32) int32 {
	switch m := int32(words[3]); isa.Opcode(words[0]) {
	case isa.ProductT:
		return e.Holders.ColumnPart(m)
	case isa.Outer:
		return e.Holders.GradientPart(m)
	default:
		return m
	}
}

// accumulates reports whether an Outer adds to a gradient that is there: pending from an
// earlier backward, or just stored by the outer products of another segment's operands.
func (e *Emitter) accumulates(words []uint32) bool {
	m := words[3]
	if e.Params[e.Plan.Matrices[m].Param].Pending && isa.Segment(words[2]&15) == isa.SegGrad {
		return true
	}
	key := uint64(words[2]&15)<<32 | uint64(words[5])
	for i := range e.outerSeen {
		if e.outerSeen[i].key == key {
			return e.outerSeen[i].sig != words[2]
		}
	}
	e.outerSeen = append(e.outerSeen, outerSeen{key, words[2]})
	return false
}

// shareOf is which items of a run processor p does: the copies of its matrix share them.
func (e *Emitter) shareOf(r *run, p int32) (from, to int) {
	c := int(e.Holders.Copy[int(r.part)*len(e.Holders.Class)+int(p)])
	if c < 0 {
		return r.to, r.to
	}
	n, copies := r.to-r.from, len(e.Holders.Copies[r.part])
	return r.from + n*c/copies, r.from + n*(c+1)/copies
}

// loadOf is what the products of a run cost processor p.
func (e *Emitter) loadOf(r *run, p int32) int {
	from, to := e.shareOf(r, p)
	load := 2 * (to - from)
	if words := e.Sigs.Of(r.sig); isa.Opcode(words[0]) == isa.Outer {
		load *= int(e.Holders.Blocks[int(words[3])*len(e.Holders.Class)+int(p)])
	}
	return load
}

// appendLists appends the items of all lists.
func (e *Emitter) appendLists(w []uint32) []uint32 {
	w = slices.Grow(w, e.listWords)
	for i := range e.runs {
		if r := &e.runs[i]; r.list != 0 {
			w = appendPairs(w, e.Products[r.from:r.to])
		}
	}
	return w
}

// appendPairs appends the words of product items.
func appendPairs(s []uint32, list []schedule.Product) []uint32 {
	at := len(s)
	s = slices.Grow(s, 2*len(list))[:at+2*len(list)]
	for i := range list {
		*(*[2]uint32)(s[at+2*i:]) = list[i].Words
	}
	return s
}
