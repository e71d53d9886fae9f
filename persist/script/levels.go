package script

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
	runs     [2]int // its products: b.runs[runs[0]:runs[1]]
	members  int32  // how many processors take part
	lowest   int32  // the first of them
	entry    int32  // the barrier that members wait for, -1: none
	expected int32  // its signals
	exempt   int32  // who need not wait, being the only one to signal; -1: none
	exit     int32  // the barrier that members signal, -1: none
	phase    uint32 // as flags of the level's first instruction
}

// planRuns makes runs of stretches of the same signature and level.
func (b *emitter) planRuns(levels int) {
	b.levels, b.runs = memory.Resize(b.levels, levels), b.runs[:0]
	b.inline, b.listWords = b.inline[:0], 0
	rest := b.stretches
	for l := range int32(levels) {
		first := len(b.runs)
		for len(rest) > 0 && rest[0].Level == l {
			n, items, sig := 0, 0, rest[0].Sig
			for ; n < len(rest) && rest[n].Level == l && rest[n].Sig == sig; n++ {
				items += int(rest[n].To - rest[n].From)
			}
			words := b.Sigs.Of(sig)
			outer := isa.Opcode(words[0]) == isa.Outer
			r := run{l, sig, b.partOf(words), 0, items, outer, outer && b.accumulates(words), 0}
			b.shareItems(&r, rest[:n])
			b.runs = append(b.runs, r)
			rest = rest[n:]
		}
		b.levels[l] = levelPlan{runs: [2]int{first, len(b.runs)}, entry: -1, exempt: -1, exit: -1, phase: uint32(b.PhaseOf(l)) << (16 + isa.PhaseShift)}
	}
}

// inlineItems is how many items an instruction has rather with itself than in a list.
const inlineItems = 4

// shareItems puts a run's items into the lists if each of several processors has more than a few.
func (b *emitter) shareItems(r *run, of []schedule.Stretch) {
	copies := b.holders.Copies[r.part]
	n := r.to
	if !r.whole {
		n /= len(copies)
	}
	if n <= inlineItems || len(copies[0]) == 1 {
		r.from, r.to = len(b.inline), len(b.inline)+r.to
		b.inline = b.takeItems(b.inline, of)
		return
	}
	r.list = uint32(isa.ListsAt(b.Plan.Processors) + b.listWords)
	for i := range of {
		of[i].At = uint32(b.listWords)
		b.listWords += 2 * int(of[i].To-of[i].From)
	}
}

// share is which items of a run copy number c of its matrix does: those of an outer product are
// summed, so each copy does all of them for some columns.
func (b *emitter) share(r *run, c int) (from, to int) {
	if r.whole {
		if c < b.holders.Outers[r.part] {
			return r.from, r.to
		}
		return r.to, r.to
	}
	n, copies := r.to-r.from, len(b.holders.Copies[r.part])
	return r.from + n*c/copies, r.from + n*(c+1)/copies
}

// accumulates reports whether an Outer adds to a gradient that is there: pending from an
// earlier backward, or just stored by the outer products of another segment's operands.
func (b *emitter) accumulates(words []uint32) bool {
	m := words[3]
	if b.params[b.Plan.Matrices[m].Param].Pending && isa.Segment(words[2]&15) == isa.SegGrad {
		return true
	}
	key := uint64(words[2]&15)<<32 | uint64(words[5])
	for i := range b.outerSeen {
		if b.outerSeen[i].key == key {
			return b.outerSeen[i].sig != words[2]
		}
	}
	b.outerSeen = append(b.outerSeen, outerSeen{key, words[2]})
	return false
}

// shareOf is which items of a run processor p does.
func (b *emitter) shareOf(r *run, p int32) (from, to int) {
	at := int(r.part)*len(b.holders.Class) + int(p)
	if b.holders.Copy[at] < 0 {
		return r.to, r.to
	}
	return b.share(r, int(b.holders.Copy[at]))
}

// planMembers finds who takes part in which level besides the classes: who has items.
func (b *emitter) planMembers(levels, processors int) {
	t, loads := b.holders, b.common.loads
	b.seen = memory.Resize(b.seen, processors)
	for p := range b.seen {
		b.seen[p] = -1
	}
	for i, c := range b.byLevel {
		p, l := b.places[i], b.Clusters[c].Level
		if b.seen[p] < l {
			b.seen[p] = l
			if loads[int(t.Class[p])*levels+int(l)] == 0 {
				b.levels[l].join(p, 1)
			}
		}
	}
	if n := int32(len(b.closing.Parts)); n > 0 {
		b.levels[b.closing.First].join(0, n)
		b.levels[b.closing.First+1].join(0, n)
	}
}

// planVisits orders what processors do besides what all of their class do by processor and level.
func (b *emitter) planVisits(levels, processors int) {
	b.starts = memory.Resize(b.starts, processors+1)
	clear(b.starts)
	for _, p := range b.places {
		b.starts[p+1]++
	}
	for l := range levels {
		if q := b.levels[l].exempt; q >= 0 {
			b.starts[q+1]++
		}
	}
	for p := range b.closing.Parts {
		b.starts[p+1] += 2
	}
	for p := range processors {
		b.starts[p+1] += b.starts[p]
	}
	b.visits = memory.Resize(b.visits, int(b.starts[processors]))
	b.count = append(b.count[:0], b.starts...)
	put := func(p, level int32, cluster uint32) {
		b.visits[b.count[p]] = visit{level, cluster}
		b.count[p]++
	}
	at := 0
	for l := range int32(levels) {
		if q := b.levels[l].exempt; q >= 0 {
			put(q, l, noCluster)
		}
		for ; at < len(b.byLevel) && b.Clusters[b.byLevel[at]].Level == l; at++ {
			put(b.places[at], l, b.byLevel[at])
		}
		if len(b.closing.Parts) > 0 && l >= b.closing.First {
			for p := range b.closing.Parts {
				put(int32(p), l, closes)
			}
		}
	}
}

// planClasses finds what the products of each level and its group's clusters cost a class, which takes part if it
// has any.
func (b *emitter) planClasses(levels int) {
	t := b.holders
	b.common.loads = memory.Resize(b.common.loads, len(t.First)*levels)
	for c, p := range t.First {
		loads := b.common.loads[c*levels:][:levels]
		for l := range loads {
			x, load := &b.levels[l], 0
			for i := x.runs[0]; i < x.runs[1]; i++ {
				from, to := b.shareOf(&b.runs[i], p)
				load += 2 * (to - from)
			}
			if g := t.Group[c]; g >= 0 && l == 0 {
				load += int(b.groupLoads[g])
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
func (b *emitter) planBarriers(levels int) int {
	barriers := int32(0)
	var before *levelPlan
	for l := range levels {
		now := &b.levels[l]
		if l == int(b.Cut) { // a launch ends
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
func (b *emitter) partOf(words []uint32) int32 {
	if isa.Opcode(words[0]) == isa.ProductT {
		return b.holders.ColumnPart(int32(words[3]))
	}
	return int32(words[3])
}
