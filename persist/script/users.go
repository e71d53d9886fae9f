package script

import (
	"libvpps/bridge/ops"
	"libvpps/persist/memory"
)

// user is one use of a node: argument number arg of node. Its gradient comes back as kind says.
type user struct {
	node, arg uint32
	at        uint32 // useSame: the first element of the user's gradient that is the node's,
	terms     uint16 // and how many vectors follow one another from there on
	kind      useKind
}

type useKind uint16

const (
	useOther      useKind = iota // by a formula of its own
	useSame                      // as it is, or as the sum of several vectors
	useOuter                     // left of a resident product: dy x^T, at the end of the batch
	useTransposed                // right of a resident product: W^T dy from all holders
	usePartial                   // by a formula of its own, as partial results of some terms each
)

// findUsers does what backward lowering can know before forward lowering has ended.
func (b *Builder) findUsers() {
	b.wants[b.r.Node] = true
	b.markAncestors()
	b.markGradients()
	b.collectUsers()
}

// markGradients finds the nodes whose gradient is wanted, ancestors of the loss that depend on a
// parameter (or all ancestors), and counts the uses that pass it back to them.
func (b *Builder) markGradients() {
	g, loss := b.g, b.r.Node
	b.useStart = memory.Resize(b.useStart, int(b.end)+1)
	clear(b.useStart)
	for v := b.first; v < b.end; v++ {
		args := g.ArgsOf(v)
		depends := b.r.Full || g.Op[v] == ops.Parameter || g.Op[v] == ops.Lookup
		for _, a := range args {
			depends = depends || b.grads[a]
		}
		b.grads[v] = depends
		b.wants[v] = b.wants[v] && (depends || v == loss)
		if !b.wants[v] || g.Op[v] == ops.NoBackprop {
			continue
		}
		for _, a := range args {
			if b.wants[a] {
				b.useStart[a+1]++
			}
		}
	}
	b.eachExit(func(_, _, a uint32) { b.useStart[a+1]++ })
}

// eachExit calls f for the uses of own nodes by those after them, which stand for gradients that come back.
func (b *Builder) eachExit(f func(v, arg, a uint32)) {
	for v := b.end; v <= b.r.Node; v++ {
		if !b.wants[v] || b.g.Op[v] == ops.NoBackprop {
			continue
		}
		for k, a := range b.g.ArgsOf(v) {
			if b.owns(a) && b.wants[a] {
				f(v, uint32(k), a)
			}
		}
	}
}

// markAncestors marks the nodes that the gradients of marked ones can come back to.
func (b *Builder) markAncestors() {
	for v := int(b.end) - 1; v >= int(b.first); v-- {
		if b.wants[v] && b.g.Op[v] != ops.NoBackprop {
			for _, a := range b.g.ArgsOf(uint32(v)) {
				b.wants[a] = b.wants[a] || a >= b.first // of those before it is known
			}
		}
	}
}

// collectUsers lists, for every node that wants a gradient, who passes one back and how, in
// ascending order.
func (b *Builder) collectUsers() {
	start := b.useStart
	last := len(start) - 1
	for i := range last {
		start[i+1] += start[i]
	}
	b.uses = memory.Resize(b.uses, int(start[last]))
	for v := b.first; v < b.end; v++ {
		op := b.g.Op[v]
		if !b.wants[v] || op == ops.NoBackprop {
			continue
		}
		plain := op == ops.Tanh || op == ops.LogisticSigmoid || op == ops.CwiseMultiply || op == ops.PickNegLogSoftmax
		for k, a := range b.g.ArgsOf(v) {
			if !b.wants[a] {
				continue
			}
			u := b.addUse(v, uint32(k), a)
			if !plain { // a frequent one that has a formula
				b.classify(a, u)
			}
		}
	}
	b.eachExit(func(v, arg, a uint32) { b.classify(a, b.addUse(v, arg, a)) })
	copy(start[1:], start[:last]) // the fill moved every start to its end
	start[0] = 0
}

// addUse adds a use of a to the list whose start is where its next one goes.
func (b *Builder) addUse(v, arg, a uint32) *user {
	at := &b.useStart[a]
	u := &b.uses[*at]
	*u = user{node: v, arg: arg}
	*at++
	return u
}

// classify finds out how node v's gradient comes back from a use of it.
func (b *Builder) classify(v uint32, u *user) {
	switch b.g.Op[u.node] {
	case ops.MatrixMultiply, ops.AffineTransform:
		if b.isLeft(*u) && b.matrixOf(v) >= 0 {
			u.kind = useOuter
			return
		}
		if left, ok := b.isRight(*u); ok && b.matrixOf(left) >= 0 {
			u.kind = useTransposed
			return
		}
	}
	if at, ok := b.unchanged(v, *u); ok {
		u.kind, u.at, u.terms = useSame, at, 1
	} else if n := b.broadcast(v, *u); n > 1 {
		u.kind, u.terms = useSame, uint16(n)
	}
}

func (b *Builder) usersOf(v uint32) []user {
	return b.uses[b.useStart[v]:b.useStart[v+1]]
}

// isLeft reports whether a use is the left side of a product.
func (b *Builder) isLeft(u user) bool {
	switch b.g.Op[u.node] {
	case ops.MatrixMultiply:
		return u.arg == 0
	case ops.AffineTransform:
		return u.arg%2 == 1
	}
	return false
}

// isRight reports whether a use is the right side of a product, and of which left node.
func (b *Builder) isRight(u user) (left uint32, ok bool) {
	switch b.g.Op[u.node] {
	case ops.MatrixMultiply:
		return b.g.ArgsOf(u.node)[0], u.arg == 1
	case ops.AffineTransform:
		if u.arg > 0 && u.arg%2 == 0 {
			return b.g.ArgsOf(u.node)[u.arg-1], true
		}
	}
	return 0, false
}
