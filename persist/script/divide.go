package script

import (
	"math"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/crew"
	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/schedule"
)

// Lowering a batch by parts. A batch is a super-graph: parameters that all share, then sentences that have
// nothing in common but those, then a sum of their losses, the tail. The sentences are dealt out to
// a few parts of about as many nodes each, which goroutines lower side by side, each with memory of its
// own. What the parts are depends on the graph only, so that the script does not depend on how many
// goroutines there are.

// There is a part for each goroutine, or, in a large batch, two, the tail apart: each costs something to put together,
// but in small ones what a stage leaves is at hand for the next.
const mostParts = 2 * crew.MostGoroutines

// partNodes is how many nodes a part has at least.
var partNodes = 500

// partCount is how many parts so many nodes are dealt out to.
func partCount(nodes int) int {
	if nodes >= 2*mostParts*partNodes {
		return mostParts
	}
	return min(crew.MostGoroutines, nodes/partNodes)
}

// nodeRange is the nodes that a Builder lowers: [first, end). Those before shared and from tail on are
// others' that it reads and that read its own.
type nodeRange struct{ first, end, shared, tail uint32 }

// owns reports whether v is one of them.
func (r *nodeRange) owns(v uint32) bool { return v-r.first < r.end-r.first }

// records reports whether it is noted who uses v: the tail leaves out those whose nodes it sums up.
func (r *nodeRange) records(v uint32) bool { return v < r.shared || v >= r.first }

// useIndex is where a node's users are listed: those of shared nodes first.
func (r *nodeRange) useIndex(v uint32) uint32 {
	if v < r.shared {
		return v
	}
	return v - r.first + r.shared
}

// division is the memory of lowering by parts.
type division struct {
	list  []*Builder // of sentences, in order
	tail  *Builder
	spare []*Builder

	cuts     []uint32 // nodes that no earlier one but the shared has to do with, descending
	useStart []uint32 // the users of shared nodes that are shared themselves
	uses     []user

	err error // as a part
}

// divisible reports whether a request is one to train with a large graph, no value of which is asked for, or to
// evaluate one.
func divisible(r *Request) bool {
	trains := r.Backward && (r.Needed || r.Split) && !r.Copy && !r.Full && len(r.Keep) == 0
	return r.Forward && (trains || !r.Backward) && r.State.Done == 0 && int(r.Node) >= 2*partNodes
}

// divide finds the parts of a batch; false: it is better lowered in one go.
func (b *Builder) divide() bool {
	r := b.r
	if !divisible(r) {
		return false
	}
	shared, tail := b.sharedNodes(), b.tailNodes()
	if tail > r.Node || shared >= tail || int(tail-shared) < 2*partNodes {
		return false
	}
	b.beginCrew(int(tail - shared)) // now: they have the time until there is work to wake up in
	b.findCuts(shared, tail)
	chunk := b.chunkOf(shared, tail)
	if chunk == 0 {
		return false
	}
	x := &b.division
	x.list = x.list[:0]
	most := partCount(int(tail - shared))
	for k, first := 0, shared; k < most; k++ {
		end := tail
		if k < most-1 {
			end = b.cutNear(shared + uint32(uint64(tail-shared)*uint64(k+1)/uint64(most)))
		}
		if end > first {
			x.list = append(x.list, b.newPart(len(x.list), nodeRange{first, end, shared, tail}))
			first = end
		}
	}
	if len(x.list) < 2 && b.r.Plan.CPU {
		return false
	}
	for _, p := range x.list {
		p.InChunks(chunk, len(x.list))
	}
	b.nodeRange, b.knowsOthers = nodeRange{0, shared, shared, r.Node + 1}, true // findCuts has noted it of the shared nodes
	x.tail = b.newPart(mostParts, nodeRange{tail, r.Node + 1, shared, r.Node + 1})
	return true
}

// beginCrew calls those who help with so many nodes. A CPU's virtual processors need its cores.
func (b *Builder) beginCrew(nodes int) {
	b.crew.Begin(!b.r.Plan.CPU, nodes, partCount(nodes))
}

// sharedNodes is how many nodes at the beginning belong to no sentence.
func (b *Builder) sharedNodes() uint32 {
	return leavesOfAll(b.g, b.r.Node)
}

// leavesOfAll is how many of a graph's nodes before last are the parameters and constants that come before all others.
func leavesOfAll(g *bridge.Graph, last uint32) uint32 {
	for v := range last {
		switch g.Op[v] {
		case ops.Parameter, ops.ConstParameter, ops.Constant, ops.Input, ops.ScalarInput:
		default:
			return v
		}
	}
	return last
}

// tailNodes is the first of the nodes at the end that sum up the losses.
func (b *Builder) tailNodes() uint32 {
	for v := b.r.Node + 1; v > 0; v-- {
		switch b.g.Op[v-1] {
		case ops.Sum, ops.Average, ops.CwiseSum, ops.SumElements, ops.SumDimension, ops.MomentDimension, ops.ConstScalarMultiply,
			ops.Concatenate, ops.ConcatenateToBatch, ops.Reshape:
		default:
			return v
		}
	}
	return 0
}

// findCuts lists the cuts between shared nodes and tail, and notes which shared nodes are used by others
// than products, needed or not.
func (b *Builder) findCuts(shared, tail uint32) {
	g, cuts := b.g, b.division.cuts[:0]
	clear(b.otherwise[:shared])
	reach := uint32(math.MaxUint32) // the first node that those from v on refer to
	for n := b.r.Node + 1; n > 0; n-- {
		v := n - 1
		for k, a := range g.ArgsOf(v) {
			if a >= shared {
				if v < tail {
					reach = min(reach, a)
				}
			} else if !b.isLeft(user{node: v, arg: uint32(k)}) {
				b.otherwise[a] = true
			}
		}
		if v >= shared && v < tail && reach >= v {
			cuts = append(cuts, v)
		}
	}
	b.division.cuts = cuts
}

// cutNear is the cut that is nearest to node v.
func (b *Builder) cutNear(v uint32) uint32 {
	above := b.division.cuts[0]
	for _, c := range b.division.cuts {
		if c <= v {
			if v-c < above-v {
				return c
			}
			break
		}
		above = c
	}
	return above
}

// chunkOf is how much of segment act a part takes at a time: several times the largest piece, which is a
// node's value or what the holders of a matrix leave of a transposed product. 0: that is too much.
func (b *Builder) chunkOf(shared, tail uint32) uint32 {
	used := memory.Resize(b.usedDims, len(b.dims))
	b.usedDims = used
	clear(used)
	for _, d := range b.g.Dim[shared:tail] {
		used[d] = true
	}
	largest := uint64(0)
	for d := range b.dims {
		if !used[d] {
			continue
		}
		x, holders := &b.dims[d], 1
		for m := range b.r.Plan.Matrices {
			if uint32(b.r.Plan.Matrices[m].Cols) == x.rows {
				holders = max(holders, len(b.holders.Copies[b.holders.ColumnPart(int32(m))][0]))
			}
		}
		largest = max(largest, uint64(x.size)*uint64(holders))
	}
	if b.Wide.On { // partial results of tiles
		largest = max(largest, uint64(b.r.Plan.Processors)*schedule.Tile*schedule.Tile)
	}
	if largest > 1<<20 {
		return 0
	}
	return max(1<<14, uint32(4*largest+3)&^3)
}

// newPart is a Builder of some nodes: what there is one of for each node is shared with b, everything else
// is its own.
func (b *Builder) newPart(k int, nodes nodeRange) *Builder {
	for len(b.division.spare) <= k {
		b.division.spare = append(b.division.spare, &Builder{})
	}
	p := b.division.spare[k]
	p.r, p.g, p.s, p.dims, p.holders, p.lefts = b.r, b.g, b.s, b.dims, b.holders, b.lefts
	p.need, p.otherwise, p.spots, p.grads, p.wants = b.need, b.otherwise, b.spots, b.grads, b.wants
	p.gcluster, p.gsub, p.passFrom, p.passAt = b.gcluster, b.gsub, b.passFrom, b.passAt
	p.reader, p.withUser = b.reader, b.withUser
	p.knowsOthers, p.partial, p.Mixed = false, false, false
	p.Plan, p.Checked, p.Wide.On, p.Wide.Wideness, p.ofAll = b.Plan, b.Checked, b.Wide.On, b.Wide.Wideness, b.ofAll
	p.nodeRange, p.division.err = nodes, nil
	p.tally = b.tally.part(p.tally)
	p.clear()
	return p
}

// evaluateParts is evaluateNodes by parts: those before and behind the sentences, on which all depend, are lowered
// between.
func (b *Builder) evaluateParts() error {
	x, tail := &b.division, b.division.tail
	b.needShared()
	if err := b.forward(); err != nil {
		return err
	}
	tail.markNeeded()
	if b.r.Backward {
		tail.markAncestors()
	}
	b.deal(b.Top)
	b.forwardParts()
	tail.StartAt(b.Top)
	for _, p := range x.list {
		if p.division.err != nil {
			return p.division.err
		}
		tail.Top = max(tail.Top, p.Limit)
	}
	if b.r.Backward {
		tail.findUsers()
	}
	tail.findReaders()
	if err := tail.forward(); err != nil {
		return err
	}
	b.out.Values = tail.Top - b.r.Base
	if b.r.Backward {
		tail.reportLoss()
	}
	b.endForward()
	if !b.r.Backward || b.r.Split {
		b.crew.Share(len(x.list), func(k int) { x.list[k].finishPart() })
		b.putTogether()
	}
	return nil
}

// differentiateParts lowers the backward part of all parts, and at the end of what they share.
func (b *Builder) differentiateParts() error {
	x, tail := &b.division, b.division.tail
	if err := tail.backward(); err != nil {
		return err
	}
	b.deal(tail.Top)
	level := tail.deepest()
	b.crew.Share(len(x.list), func(k int) {
		if b.crew.Size <= 1 { // what was lowered last is at hand
			k = len(x.list) - 1 - k
		}
		p := x.list[k]
		p.backwardFrom(level)
		p.finishPart()
	})
	b.putTogether()
	b.sharedUsers()
	last := tail.deepest()
	for _, p := range x.list {
		last = max(last, p.deepest())
	}
	b.backwardFrom(last)
	return nil
}

// forwardParts lowers the forward part of all parts. Where they are few, others look meanwhile for who uses what.
func (b *Builder) forwardParts() {
	list := b.division.list
	n := len(list)
	lower := func(p *Builder) {
		p.markNeeded()
		p.findReaders()
		p.division.err = p.forward()
	}
	switch {
	case !b.r.Backward:
		b.crew.Share(n, func(k int) { lower(list[k]) })
	case 2*n <= crew.MostGoroutines:
		b.crew.Share(2*n, func(k int) {
			if k < n {
				lower(list[k])
			} else {
				list[k-n].findUsers()
			}
		})
	default:
		b.crew.Share(n, func(k int) {
			list[k].findUsers()
			lower(list[k])
		})
	}
}

// finishPart makes a part ready to be taken over.
func (b *Builder) finishPart() {
	b.SettleBatched()
	b.GroupItems()
	b.Fuse()
	b.CutBatched()
	b.OrderProducts()
}

// needShared takes the shared nodes for needed: whether they are is known when all is lowered. Those of a merged graph are.
func (b *Builder) needShared() {
	for v := range b.shared {
		b.need[v], b.wants[v], b.reader[v] = true, b.r.Backward, several // perhaps
	}
	if b.r.Backward {
		b.markGradients()
		b.collectUsers()
	}
}

// deal gives the parts chunks from an address on.
func (b *Builder) deal(at uint32) {
	for k, p := range b.division.list {
		p.ChunksFrom(at, k)
	}
}

// endForward tells all how many levels the forward part has, and whether vectors may overlap.
func (b *Builder) endForward() {
	tail := b.division.tail
	last, mixed := max(b.MaxLevel, tail.MaxLevel), b.Mixed || tail.Mixed
	for _, p := range b.division.list {
		last, mixed = max(last, p.MaxLevel), mixed || p.Mixed
	}
	for _, p := range append(b.division.list, tail, b) {
		p.MaxLevel, p.Ends[isa.InForward], p.Mixed = last, last, mixed
	}
}

// deepest is the last level that gradients are formed in.
func (b *Builder) deepest() int32 {
	last := int32(-1)
	for _, l := range b.blevel {
		last = max(last, l)
	}
	return last
}

// putTogether takes over what the parts have lowered. They come from the last to the first, as nodes do in a backward.
func (b *Builder) putTogether() {
	x := &b.division
	x.tail.finishPart()
	b.takeOver(x.tail)
	for k := len(x.list) - 1; k >= 0; k-- {
		b.takeOver(x.list[k])
	}
}

// takeOver adds what a part has lowered, but for its items and products, which stay where they are until they are written.
func (b *Builder) takeOver(p *Builder) {
	b.Schedule.TakeOver(&p.Schedule)
	b.Sources.AddAll(&p.Sources)
}

// sharedUsers adds to the users of shared nodes the parts', one by one, but for those whose outer products the parts have noted.
func (b *Builder) sharedUsers() {
	x := &b.division
	x.useStart, b.useStart = b.useStart, memory.Resize(x.useStart, int(b.shared)+1)
	x.uses, b.uses = b.uses, x.uses[:0]
	for v := range b.shared {
		b.useStart[v] = uint32(len(b.uses))
		b.uses = append(b.uses, x.uses[x.useStart[v]:x.useStart[v+1]]...)
		for _, p := range b.division.list {
			b.addUses(p.usersOf(v))
		}
		b.addUses(b.division.tail.usersOf(v))
	}
	b.useStart[b.shared] = uint32(len(b.uses))
}

func (b *Builder) addUses(list []user) {
	for _, u := range list {
		if u.kind != useOuter {
			b.uses = append(b.uses, u)
		}
	}
}
