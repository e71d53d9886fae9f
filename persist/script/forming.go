package script

import (
	"libvpps/persist/isa"
	"libvpps/persist/schedule"
)

// Where several processors share rows, each leaves a part of a product's sums, and what a function of it is could be
// formed by one processor before others read it: two levels. Where a level costs more than its work, the products that
// read it form it themselves in small graphs, each processor the elements that it multiplies, and so does the transposed
// product with the gradient. One of those that form a vector stores it for who reads it later: derivatives, outer
// products and sums of biases.
//
// Such a value h of a function of node a lies between a's gradient and the parts that h, and later that gradient, are
// sums of: an item names but one place.

// formingNodes is the largest number of a graph's nodes with which products form their vectors.
var formingNodes = 1800

// mostRoom is for how many parts there may be room behind a value.
const mostRoom = 128

// noRoom says of a value that others than products read it.
const noRoom = mostRoom + 1

// findRooms finds for which values there has to be room for how many parts of gradients: those that only products by
// matrices whose rows are shared read.
func (b *Builder) findRooms() {
	if !b.formsVectors {
		return
	}
	clear(b.room[b.first:b.end])
	clear(b.taken[b.first:b.end])
	clear(b.taken[b.tail : b.r.Node+1])
	b.roomsFrom(b.first, b.end)
	b.roomsFrom(b.tail, b.r.Node+1)
}

// findForming finds whether the products of the graph form their vectors.
func (b *Builder) findForming() {
	b.formsVectors = b.holders.Forming && b.g != nil && b.g.Len() <= formingNodes
}

func (b *Builder) roomsFrom(first, end uint32) {
	for v := first; v < end; v++ {
		if !b.need[v] {
			continue
		}
		for k, a := range b.g.ArgsOf(v) {
			if b.owns(a) {
				b.room[a] = min(noRoom, b.room[a]+b.roomFor(user{node: v, arg: uint32(k)}, a))
			}
		}
	}
}

// roomFor is how many parts the use u of node a leaves of a's gradient, noRoom if a cannot be in parts.
func (b *Builder) roomFor(u user, a uint32) uint32 {
	left, ok := b.isRight(u)
	if !ok || !b.owns(u.node) {
		return noRoom
	}
	m := b.matrixOf(left)
	if b.across(m) == 1 || b.columns(u.node) != 1 || b.shape(u.node).batch != 1 || b.size(a) != b.r.Plan.Matrices[m].Cols {
		return noRoom
	}
	return b.holdersOf(m)
}

// holdersOf is how many parts of a transposed product by matrix m are added.
func (b *Builder) holdersOf(m int32) uint32 {
	return uint32(len(b.holders.Copies[b.holders.ColumnPart(m)][0])) / b.across(m)
}

// leavesParts reports whether node v's products, which b.terms lists, leave parts that its reader's readers add up, and
// returns its reader.
func (b *Builder) leavesParts(v uint32, acc bool) (h uint32, ok bool) {
	if !b.formsVectors || acc || b.columns(v) != 1 || b.shape(v).batch != 1 {
		return 0, false
	}
	for i := range b.terms {
		if b.across(b.terms[i].matrix) == 1 {
			return 0, false
		}
	}
	h, ok = b.functionOf(v)
	return h, ok && b.room[h] > 0 && b.room[h] <= mostRoom && !b.keeps(h)
}

// leaveParts has each product of node v leave its parts, as soon as its right side is ready, behind the value of h.
func (b *Builder) leaveParts(v, h, bias uint32, level int32) {
	size, count, last := uint32(b.size(v)), uint32(0), int32(0)
	for i := range b.terms {
		count += b.across(b.terms[i].matrix)
	}
	at := b.Alloc(int(size) * int(2+max(count, b.room[h])))
	b.s.Value[h], b.s.Segment[h], b.s.Value[v] = at+size, isa.SegAct, NoOffset
	b.reader[h] = lowered
	at += 2 * size
	for k, p := range b.terms {
		ready, biased := b.ready(p.right), uint32(NoOffset)
		if k == len(b.terms)-1 {
			ready, biased = max(ready, level), bias
		}
		b.product(v, p, schedule.At(isa.SegAct, at), ready, isa.Copy, 0, biased, size)
		at, last = at+size*b.across(p.matrix), max(last, ready)
	}
	b.spots[v] = spot{last, -1, 0}
	b.spots[h] = b.spots[v]
	b.inParts[v], b.inParts[h] = count, count
}

// formed is of how many parts a product forms its right side, with which function, and what that adds to its place: the
// first that forms it stores it.
func (b *Builder) formed(right uint32) (count uint32, fn isa.Fn, place uint32) {
	if count = b.inParts[right]; count == 0 {
		return 0, isa.Copy, 0
	}
	if !b.stored[right] {
		b.stored[right], place = true, isa.PlaceStored
	}
	return count, unaryRules[b.g.Op[right]].fn, place
}

// taken is how the transposed products that read a node's gradient form it.
type taken struct {
	known bool
	fn    isa.Fn // the derivative
	first uint32 // which argument's product stores it: the first right side whose gradient is wanted; 0: it is formed elsewhere
	count uint32 // of how many parts
	place uint32 // added to its place
}

// takenBy is how the gradient of node c is formed by those who read it; it is found once.
func (b *Builder) takenBy(c uint32) *taken {
	x := &b.taken[c]
	if x.known {
		return x
	}
	*x = taken{known: true}
	if !b.owns(c) || b.inParts[c] == 0 || !b.formsVectors {
		return x
	}
	if x.first = b.firstWanted(c); x.first == 0 {
		return x
	}
	h := b.usersOf(c)[0].node
	users := b.usersOf(h)
	for _, u := range users {
		left, _ := b.isRight(u)
		x.count += b.holdersOf(b.matrixOf(left))
	}
	if len(users) == 1 { // alike with those of two users, for one instruction
		x.count, x.place = 2*x.count, isa.PlaceHalved
	}
	x.fn = unaryRules[b.g.Op[h]].back
	return x
}

// formedBack is of how many parts the use u's transposed product forms the gradient of its node, with which derivative,
// and what that adds to its place: that with the first right side stores it.
func (b *Builder) formedBack(u user) (count uint32, fn isa.Fn, place uint32) {
	if b.inParts[u.node] == 0 || !b.formsGradient(u.node) {
		return 0, isa.Copy, 0
	}
	x := b.takenBy(u.node)
	if place = x.place; x.first == u.arg {
		place |= isa.PlaceStored
	}
	return x.count, x.fn, place
}

// formsGradient reports whether the gradient of node c is formed by the transposed products that read it.
func (b *Builder) formsGradient(c uint32) bool {
	return b.owns(c) && b.inParts[c] > 0 && b.takenBy(c).first > 0
}

// firstWanted is the first argument of the products' node c that is a right side whose gradient is wanted, 0 if there is
// none or one is formed elsewhere.
func (b *Builder) firstWanted(c uint32) (arg uint32) {
	for k, a := range b.g.ArgsOf(c) {
		if _, ok := b.isRight(user{node: c, arg: uint32(k)}); !ok || !b.wants[a] || !b.records(a) {
			continue
		}
		if !b.owns(a) {
			return 0
		}
		if arg == 0 {
			arg = uint32(k)
		}
	}
	return arg
}

// gradientInParts has the transposed products of h's readers leave their parts behind its value, if it is in parts. The
// gradient of h's argument, which is before it, is formed by who reads it, or here if nobody does.
func (b *Builder) gradientInParts(h uint32) bool {
	if b.inParts[h] == 0 || !unaryRules[b.g.Op[h]].ok {
		return false
	}
	a, size := b.g.ArgsOf(h)[0], uint32(b.size(h))
	first := b.s.Value[h] + size
	at := first
	for _, u := range b.usersOf(h) {
		left, _ := b.isRight(u)
		level := b.blevel[b.formedIn(u.node)] + b.levelsOf(u.node) - 1
		sig, place := b.transposedSignature(u, left, size)
		b.attribute(isa.InBackward, u.node)
		b.AddProduct(level, sig, at, b.s.Grad[u.node]+place)
		at += size * b.holdersOf(b.matrixOf(left))
	}
	b.attribute(isa.InBackward, h)
	b.s.Grad[a] = b.gradientBefore(h)
	if !b.formsGradient(a) {
		b.ids = append(b.ids[:0], first)
		b.Sum(b.home(h), 0, schedule.FirstWord(isa.Sum, uint8(unaryRules[b.g.Op[h]].back), 0), b.gradient(a), isa.SegAct, 1, int(size), b.ids,
			schedule.SourceRuns{Items: 1, Count: (at - first) / size, Apart: size}, b.value(h))
	}
	b.derived(h, a, 0)
	return true
}

// gradientBefore is where the gradient of the argument of a value in parts is, of which v is one.
func (b *Builder) gradientBefore(v uint32) uint32 {
	h := v
	if b.s.Value[v] == NoOffset { // the argument
		h = b.usersOf(v)[0].node
	}
	return b.s.Value[h] - uint32(b.size(h))
}

// levelsOf is how many levels behind the cluster that stands for node c's gradient a transposed product with it is done.
func (b *Builder) levelsOf(c uint32) int32 {
	if b.formsGradient(c) {
		return 1
	}
	return 2
}
