package script

import "libvpps/bridge/ops"

// user is one use of a node: argument number arg of node. Its gradient comes back as kind says.
type user struct {
	node, arg uint32
	kind      useKind
	at        uint32 // useSame: the first element of the user's gradient that is the node's
}

type useKind uint32

const (
	useOther      useKind = iota // by a formula of its own
	useSame                      // as it is
	useOuter                     // left of a resident product: dy x^T, at the end of the batch
	useTransposed                // right of a resident product: W^T dy from all holders
)

// findUsers does what backward lowering can know before forward lowering has ended.
func (b *Builder) findUsers(loss uint32) {
	b.markGradients(loss)
	b.collectUsers(loss)
}

// markGradients finds the nodes whose gradient is wanted, ancestors of the loss that depend on a
// parameter (or all ancestors), and counts the uses that pass it back to them.
func (b *Builder) markGradients(loss uint32) {
	g := b.g
	b.markAncestors(loss)
	b.grads = resize(b.grads, g.Len())
	b.useStart = resize(b.useStart, int(loss)+2)
	clear(b.useStart)
	for v := range loss + 1 {
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
}

// markAncestors marks the nodes that a gradient can come back to.
func (b *Builder) markAncestors(loss uint32) {
	b.wants = resize(b.wants, b.g.Len())
	clear(b.wants)
	b.wants[loss] = true
	for v := int(loss); v >= 0; v-- {
		if b.wants[v] && b.g.Op[v] != ops.NoBackprop {
			for _, a := range b.g.ArgsOf(uint32(v)) {
				b.wants[a] = true
			}
		}
	}
}

// collectUsers lists, for every node that wants a gradient, who passes one back and how, in
// ascending order.
func (b *Builder) collectUsers(loss uint32) {
	start := b.useStart
	for i := range loss + 1 {
		start[i+1] += start[i]
	}
	b.uses = resize(b.uses, int(start[loss+1]))
	for v := range loss + 1 {
		op := b.g.Op[v]
		if !b.wants[v] || op == ops.NoBackprop {
			continue
		}
		plain := op == ops.Tanh || op == ops.LogisticSigmoid || op == ops.CwiseMultiply || op == ops.PickNegLogSoftmax
		for k, a := range b.g.ArgsOf(v) {
			if !b.wants[a] {
				continue
			}
			u := &b.uses[start[a]]
			*u = user{node: v, arg: uint32(k)}
			start[a]++
			if !plain { // a frequent one that has a formula
				b.classify(a, u)
			}
		}
	}
	copy(start[1:], start[:loss+1]) // the fill moved every start to its end
	start[0] = 0
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
		u.kind, u.at = useSame, at
	}
}

func (b *Builder) usersOf(v uint32) []user { return b.uses[b.useStart[v]:b.useStart[v+1]] }

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
