package persist

import (
	"cmp"
	"slices"

	"libvpps/persist/isa"
	"libvpps/persist/script"
)

// Borrowed values. The values of parameter nodes are the parameters themselves. Before these change the nodes get copies,
// if their graph is still there. Where the program has pointers to the values themselves, the engine does not know when they
// change: each evaluation copies them then. What the program changes in a host copy is known before a call does its work.

// loan is a range of parameters and where its copy lies in segment act.
type loan struct{ from, end, at uint32 }

// lends reports whether the program has pointers to parameters' values themselves.
func (e *Engine) lends() bool {
	for i := range e.params {
		if e.params[i].host[Values].direct {
			return true
		}
	}
	return e.lent
}

// giveCopies gives all graphs copies of what they borrow. It is called before any parameter changes.
func (e *Engine) giveCopies() error {
	for _, g := range e.graphs {
		if g.borrows && !e.foresight.dropped(g) {
			if err := g.giveCopies(); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropped reports whether only a foreseen step has the graph.
func (f *foresight) dropped(g *Graph) bool { return f.step != nil && f.step.orphan && f.step.g == g }

func (g *Graph) giveCopies() error {
	e := g.e
	e.drain()
	loans := g.loans()
	at := e.top()
	for i := range loans {
		loans[i].at = at
		at += loans[i].end - loans[i].from
	}
	if err := e.grow(isa.SegAct, uint64(at), "copies of parameters"); err != nil {
		return e.broke(err)
	}
	for _, l := range loans {
		if err := e.exec.Copy(isa.SegAct, uint64(l.at), isa.SegParam, uint64(l.from), uint64(l.end-l.from)); err != nil {
			return e.broke(err)
		}
	}
	s := &g.state
	for v := range s.Done {
		if s.Segment[v] == isa.SegParam && s.Value[v] != script.NoOffset {
			k, _ := slices.BinarySearchFunc(loans, s.Value[v], func(l loan, value uint32) int { return cmp.Compare(l.end, value+1) })
			s.Value[v], s.Segment[v] = s.Value[v]-loans[k].from+loans[k].at, isa.SegAct
		}
	}
	for i := range g.marks {
		g.marks[i].valueEnd = at
	}
	g.valueEnd, g.end, g.borrows = at, at, false
	return nil
}

// loans are the ranges of parameters that the graph's nodes are, ascending.
func (g *Graph) loans() []loan {
	list := g.e.lending[:0]
	for _, p := range g.params {
		if x := &g.e.params[p.id]; !x.Lookup {
			list = append(list, loan{from: x.Offset, end: x.Offset + x.Size})
		}
	}
	slices.SortFunc(list, func(a, b loan) int { return cmp.Compare(a.from, b.from) })
	g.e.lending = list
	joined := list[:0]
	for _, l := range list {
		if n := len(joined) - 1; n >= 0 && l.from < joined[n].end+places {
			joined[n].end = max(joined[n].end, l.end)
			continue
		}
		joined = append(joined, l)
	}
	return joined
}
