package script

import (
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
	"libvpps/persist/schedule"
)

// Gradients in a template: of its nodes, and those that it leaves for its slots and parameters.

// gradientsOfShared notes what comes back to slots and parameters: each use's gradient by itself, the latest use first.
func (l *cellLowering) gradientsOfShared() {
	t, c := l.b, l.c
	c.sources = make([][]cellSource, c.template.Slots)
	for v := range l.shared {
		if !t.wants[v] {
			continue
		}
		uses := t.usersOf(v)
		for k := len(uses) - 1; k >= 0; k-- {
			u := uses[k]
			if u.kind == useOuter {
				continue
			}
			t.linear = t.linear[:0]
			from := t.formedIn(u.node)
			ready, in := t.blevel[from]+1, int32(-1)
			switch u.kind {
			case useTransposed:
				left, _ := t.isRight(u)
				t.transposed(v, u, left)
				ready = t.blevel[from] + addedUpAfter
			case useSame:
				t.linear = append(t.linear, t.source(v, u))
				if from != schedule.Elsewhere && !t.Clusters[from].IsPrivate() {
					in = t.home(u.node)
				}
			default:
				ready, in = l.contributes(v, u)
			}
			for _, s := range t.linear {
				x := cellSource{word: l.entryOf(s.At), count: s.Count, apart: s.Apart, ready: ready - t.Ends[isa.InForward] - 1, in: in}
				if v < uint32(len(c.params)) {
					c.sums = append(c.sums, paramSum{c.params[v].id, x})
				} else {
					i := v - uint32(len(c.params))
					c.sources[i] = append(c.sources[i], x)
				}
			}
		}
	}
}

// contributes forms what a use adds to the gradient of v, in memory of its own, and returns when it is there, and the
// cluster that forms it.
func (l *cellLowering) contributes(v uint32, u user) (ready, cluster int32) {
	t := l.b
	k := t.formedIn(u.node)
	level := t.blevel[k] + 1
	switch work := max(t.size(v), t.size(u.node)); {
	case t.partialResults(v, u) > 1:
		t.linear = append(t.linear, t.leavePartialResults(v, u, level))
		return t.blevel[k] + addedUpAfter, -1
	case k == schedule.Elsewhere || t.Clusters[k].IsPrivate() || t.isWide(v, work):
		cluster = t.newWide(level, v, work)
		t.contributeApart(v, u, cluster, 0)
		if t.Clusters[cluster].IsPrivate() { // it is in pieces now
			cluster = -1
		}
		return level + 1, cluster
	}
	cluster = t.home(u.node)
	t.contributeApart(v, u, cluster, t.gsub[u.node]+1)
	return level, cluster
}

// contributeApart appends what a use adds to v's gradient to the linear sources, in memory of its own, and returns the
// next order.
func (b *Builder) contributeApart(v uint32, u user, cluster, sub int32) int32 {
	dst, from := schedule.At(isa.SegAct, b.Alloc(b.size(v))), len(b.Items)
	flags := uint32(0)
	b.ReleaseAxes()
	b.attribute(isa.InBackward, u.node)
	if !b.covers(u) {
		b.Fill(cluster, sub, 0, b.size(v), dst.At)
		sub++
		flags = isa.Acc
	}
	sub = b.contribute(v, u, dst, flags, cluster, sub)
	b.dealOut(v, from, dst.At)
	b.linear = append(b.linear, schedule.One(dst.At))
	return sub
}

// workAhead is the work of summing up what products give to the gradient of a template's node, if that is done by several
// processors ahead of the rest; else 0. It is where other instances give something, too: they may do so much later.
func (b *Builder) workAhead(v uint32) (work int) {
	if !b.symbolic || !b.Wide.On {
		return 0
	}
	others := false
	for _, u := range b.usersOf(v) {
		if others = others || u.node >= b.end; u.kind == useTransposed {
			work += b.transposedWork(v, u)
		}
	}
	if !others || !b.isWide(v, work) {
		return 0
	}
	return work
}

// sumAhead makes what products give to v's gradient one vector, the first of the linear sources, and reports whether it is.
func (b *Builder) sumAhead(v uint32) bool {
	work, level := b.workAhead(v), int32(0)
	if work == 0 {
		return false
	}
	for _, u := range b.usersOf(v) {
		if u.kind == useTransposed {
			left, _ := b.isRight(u)
			b.transposed(v, u, left)
			level = max(level, b.blevel[b.formedIn(u.node)]+addedUpAfter)
		}
	}
	b.attribute(isa.InBackward, v)
	at, from, cluster := b.Alloc(b.size(v)), len(b.Items), b.newWide(level, v, work)
	b.SumItems(cluster, 0, 0, schedule.At(isa.SegAct, at), isa.SegAct, 1, b.size(v), b.linear)
	b.dealOut(v, from, at)
	b.linear = append(b.linear[:0], schedule.One(at))
	return true
}

// addUsesUp forms the gradient of a template's node v: what each use adds, the latest use first. That is the order across
// templates, too: so a sum does not depend on which nodes are one template.
func (b *Builder) addUsesUp(v uint32) {
	k, sub := b.gcluster[v], int32(0)
	uses := b.usersOf(v)
	for _, u := range uses {
		if u.kind != useOuter && b.formedIn(u.node) == k {
			sub = max(sub, b.gsub[u.node]+1)
		}
	}
	b.linear = b.linear[:0]
	b.s.Grad[v] = NoOffset
	linear, ahead := true, b.sumAhead(v)
	for i := len(uses) - 1; i >= 0; i-- {
		switch u := uses[i]; {
		case u.kind == useOuter, u.kind == useTransposed && ahead:
		case u.kind == useTransposed:
			left, _ := b.isRight(u)
			b.transposed(v, u, left)
		case u.kind == useSame:
			b.linear = append(b.linear, b.source(v, u))
		case b.covers(u):
			sub, linear = b.contributeApart(v, u, b.home(v), sub), false
		default: // of some elements, added to what later uses give
			sub = b.addLinear(v, sub)
			b.ReleaseAxes()
			sub, linear = b.contribute(v, u, b.gradient(v), isa.Acc, b.home(v), sub), false
		}
	}
	if linear && len(b.linear) > 0 && !b.r.Plan.CPU && b.derive(v, sub) {
		return
	}
	if rows := b.g.Op[v] == ops.Lookup && !b.r.Plan.CPU && b.s.Grad[v] == NoOffset; rows && len(b.linear) > 0 {
		b.gsub[v] = sub
		b.gradientToRows(v) // each use's by itself
		return
	}
	if b.linear = b.inOrder(b.linear); b.s.Grad[v] == NoOffset && len(b.linear) == 1 && b.linear[0].Count == 1 {
		b.s.Grad[v] = b.linear[0].At
	} else if b.s.Grad[v] == NoOffset || len(b.linear) > 0 {
		sub = b.addLinear(v, sub)
	}
	b.gsub[v] = sub - 1
	if b.g.Op[v] == ops.Lookup {
		b.linear = append(b.linear[:0], schedule.One(b.s.Grad[v]))
		b.gradientToRows(v)
	}
}

// addLinear makes v's gradient the sum of what there is of it and the linear sources, in this order; 0 if there is none of
// both. It returns the next order.
func (b *Builder) addLinear(v uint32, sub int32) int32 {
	b.attribute(isa.InBackward, v)
	list := b.inOrder(b.linear)
	if at := b.s.Grad[v]; at != NoOffset {
		if len(list) == 0 {
			return sub
		}
		list = append([]schedule.Source{schedule.One(at)}, list...)
	} else {
		b.s.Grad[v] = b.Alloc(b.size(v))
	}
	b.linear = b.linear[:0]
	if len(list) == 0 {
		b.Fill(b.home(v), sub, 0, b.size(v), b.s.Grad[v])
		return sub + 1
	}
	return b.SumItems(b.home(v), sub, 0, b.gradient(v), isa.SegAct, 1, b.size(v), list)
}

// inOrder is sources as a Sum adds them up. On a CPU each vector is one of its own: the order is theirs then, and does not
// depend on which nodes are one template.
func (b *Builder) inOrder(list []schedule.Source) []schedule.Source {
	if !b.r.Plan.CPU {
		return list
	}
	n := len(list)
	for _, s := range list[:n] {
		for k := range s.Count {
			list = append(list, schedule.One(s.At+k*s.Apart))
		}
	}
	return list[n:]
}
