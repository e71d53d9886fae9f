package emit

import "libvpps/persist/memory"

// What every level's products, members and barriers are.

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

// planMembers finds who takes part in which level besides the classes: who has items.
func (e *Emitter) planMembers(levels, processors int) {
	t, loads := e.Holders, e.classes.loads
	e.seen = memory.Resize(e.seen, processors)
	for p := range e.seen {
		e.seen[p] = -1
	}
	from := uint32(0)
	for l, end := range e.ends {
		for _, p := range e.places[from:end] {
			if e.seen[p] < int32(l) {
				e.seen[p] = int32(l)
				if loads[int(t.Class[p])*levels+l] == 0 {
					e.levels[l].join(p, 1)
				}
			}
		}
		from = end
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
	at := uint32(0)
	for l := range int32(levels) {
		if q := e.levels[l].exempt; q >= 0 {
			put(q, l, noCluster)
		}
		for ; at < e.ends[l]; at++ {
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
	e.classes.loads = memory.Resize(e.classes.loads, len(t.First)*levels)
	for c, p := range t.First {
		loads := e.classes.loads[c*levels:][:levels]
		for l := range loads {
			x, load := &e.levels[l], 0
			for i := x.runs[0]; i < x.runs[1]; i++ {
				load += e.loadOf(&e.runs[i], p)
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
