package emit

import (
	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/schedule"
)

// What every level's products, members and barriers are.

// run is the product items [from, to) of one signature and level.
type run struct {
	level    int32
	sig      uint32
	part     int32  // of a matrix
	from, to int    // in products.inline, or counted from the first of its list
	whole    bool   // every copy of the matrix does all items
	acc      bool   // an Outer that adds to what is there
	list     uint32 // where in the script its items are, 0: with each instruction
}

// levelPlan is what the streams have of one level.
type levelPlan struct {
	runs     [2]int // its products: Emitter.runs[runs[0]:runs[1]]
	members  int32  // how many processors take part
	lowest   int32  // the first of them
	entry    int32  // the barrier that members wait for, -1: none
	expected int32  // its signals
	exempt   int32  // who need not wait, being the only one to signal; -1: none
	exit     int32  // the barrier that members signal, -1: none
	phase    uint32 // as flags of the level's first instruction
}

// planRuns makes runs of stretches of the same signature and level.
func (e *Emitter) planRuns(levels int) {
	e.levels, e.runs = memory.Resize(e.levels, levels), e.runs[:0]
	e.inline, e.listWords = e.inline[:0], 0
	rest := e.stretches
	for l := range int32(levels) {
		first := len(e.runs)
		for len(rest) > 0 && rest[0].Level == l {
			n, items, sig := 0, 0, rest[0].Sig
			for ; n < len(rest) && rest[n].Level == l && rest[n].Sig == sig; n++ {
				items += int(rest[n].To - rest[n].From)
			}
			words := e.Sigs.Of(sig)
			outer := isa.Opcode(words[0]) == isa.Outer
			r := run{l, sig, e.partOf(words), 0, items, outer, outer && e.accumulates(words), 0}
			e.shareItems(&r, rest[:n])
			e.runs = append(e.runs, r)
			rest = rest[n:]
		}
		e.levels[l] = levelPlan{runs: [2]int{first, len(e.runs)}, entry: -1, exempt: -1, exit: -1, phase: uint32(e.PhaseOf(l)) << (16 + isa.PhaseShift)}
	}
}

// inlineItems is how many items an instruction has rather with itself than in a list.
const inlineItems = 4

// shareItems puts a run's items into the lists if each of several processors has more than a few.
func (e *Emitter) shareItems(r *run, of []schedule.Stretch) {
	copies := e.Holders.Copies[r.part]
	n := r.to
	if !r.whole {
		n /= len(copies)
	}
	if n <= inlineItems || len(copies[0]) == 1 {
		r.from, r.to = len(e.inline), len(e.inline)+r.to
		e.inline = e.takeItems(e.inline, of)
		return
	}
	r.list = uint32(isa.ListsAt(e.Plan.Processors) + e.listWords)
	for i := range of {
		of[i].At = uint32(e.listWords)
		e.listWords += 2 * int(of[i].To-of[i].From)
	}
}

// share is which items of a run copy number c of its matrix does: those of an outer product are
// summed, so each copy does all of them for some columns.
func (e *Emitter) share(r *run, c int) (from, to int) {
	if r.whole {
		if c < e.Holders.Outers[r.part] {
			return r.from, r.to
		}
		return r.to, r.to
	}
	n, copies := r.to-r.from, len(e.Holders.Copies[r.part])
	return r.from + n*c/copies, r.from + n*(c+1)/copies
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

// shareOf is which items of a run processor p does.
func (e *Emitter) shareOf(r *run, p int32) (from, to int) {
	at := int(r.part)*len(e.Holders.Class) + int(p)
	if e.Holders.Copy[at] < 0 {
		return r.to, r.to
	}
	return e.share(r, int(e.Holders.Copy[at]))
}

// planMembers finds who takes part in which level besides the classes: who has items.
func (e *Emitter) planMembers(levels, processors int) {
	t, loads := e.Holders, e.common.loads
	e.seen = memory.Resize(e.seen, processors)
	for p := range e.seen {
		e.seen[p] = -1
	}
	for i, c := range e.ByLevel {
		p, l := e.places[i], e.Clusters[c].Level
		if e.seen[p] < l {
			e.seen[p] = l
			if loads[int(t.Class[p])*levels+int(l)] == 0 {
				e.levels[l].join(p, 1)
			}
		}
	}
	if n := int32(len(e.Closing.Parts)); n > 0 {
		e.levels[e.Closing.First].join(0, n)
		e.levels[e.Closing.First+1].join(0, n)
	}
}

// planVisits orders what processors do besides what all of their class do by processor and level.
func (e *Emitter) planVisits(levels, processors int) {
	e.starts = memory.Resize(e.starts, processors+1)
	clear(e.starts)
	for _, p := range e.places {
		e.starts[p+1]++
	}
	for l := range levels {
		if q := e.levels[l].exempt; q >= 0 {
			e.starts[q+1]++
		}
	}
	for p := range e.Closing.Parts {
		e.starts[p+1] += 2
	}
	for p := range processors {
		e.starts[p+1] += e.starts[p]
	}
	e.visits = memory.Resize(e.visits, int(e.starts[processors]))
	e.count = append(e.count[:0], e.starts...)
	put := func(p, level int32, cluster uint32) {
		e.visits[e.count[p]] = visit{level, cluster}
		e.count[p]++
	}
	at := 0
	for l := range int32(levels) {
		if q := e.levels[l].exempt; q >= 0 {
			put(q, l, noCluster)
		}
		for ; at < len(e.ByLevel) && e.Clusters[e.ByLevel[at]].Level == l; at++ {
			put(e.places[at], l, e.ByLevel[at])
		}
		if len(e.Closing.Parts) > 0 && l >= e.Closing.First {
			for p := range e.Closing.Parts {
				put(int32(p), l, closes)
			}
		}
	}
}

// planClasses finds what the products of each level cost a class, which takes part if it has any.
func (e *Emitter) planClasses(levels int) {
	t := e.Holders
	e.common.loads = memory.Resize(e.common.loads, len(t.First)*levels)
	for c, p := range t.First {
		loads := e.common.loads[c*levels:][:levels]
		for l := range loads {
			x, load := &e.levels[l], 0
			for i := x.runs[0]; i < x.runs[1]; i++ {
				from, to := e.shareOf(&e.runs[i], p)
				load += 2 * (to - from)
			}
			if loads[l] = int32(load); load > 0 {
				x.join(p, t.Size[c])
			}
		}
	}
}

// join adds n members, the lowest of which is p.
func (x *levelPlan) join(p, n int32) {
	if x.members == 0 || p < x.lowest {
		x.lowest = p
	}
	x.members += n
}

// planBarriers puts a barrier between levels, but where one processor makes up both, and returns how
// many there are. Who takes part in a level waits for the level before it, and so, through those
// who took part there, for all earlier ones.
func (e *Emitter) planBarriers(levels int) int {
	barriers := int32(0)
	var before *levelPlan
	for l := range levels {
		now := &e.levels[l]
		if l == int(e.Cut) { // a launch ends
			before = nil
		}
		if now.members == 0 {
			continue
		}
		if before != nil && (before.members > 1 || now.members > 1 || before.lowest != now.lowest) {
			before.exit, now.entry, now.expected = barriers, barriers, before.members
			if before.members == 1 {
				now.exempt = before.lowest
			}
			barriers++
		}
		before = now
	}
	return int(barriers)
}

// partOf is the part that a product works on.
func (e *Emitter) partOf(words []uint32) int32 {
	if isa.Opcode(words[0]) == isa.ProductT {
		return e.Holders.ColumnPart(int32(words[3]))
	}
	return int32(words[3])
}
