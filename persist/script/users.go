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

// collectUsers lists, for every node up to last, who uses it, in ascending order.
func (b *Builder) collectUsers(last uint32) {
	n := int(last) + 1
	b.useStart = resize(b.useStart, n+1)
	clear(b.useStart)
	args := b.g.Args[:b.g.ArgStart[n]]
	for _, a := range args {
		b.useStart[a+1]++
	}
	for i := range n {
		b.useStart[i+1] += b.useStart[i]
	}
	b.uses = resize(b.uses, len(args))
	for v := range uint32(n) {
		for k, a := range b.g.ArgsOf(v) {
			b.uses[b.useStart[a]] = user{node: v, arg: uint32(k)}
			b.useStart[a]++
		}
	}
	copy(b.useStart[1:], b.useStart[:n]) // the fill moved every start to its end
	b.useStart[0] = 0
}

// classifyUses leaves the uses that pass a gradient back to a node that wants one, and says how.
func (b *Builder) classifyUses(loss uint32) {
	first, end := uint32(0), uint32(0)
	for v := uint32(0); v <= loss; v++ {
		uses := b.uses[first:b.useStart[v+1]]
		first, b.useStart[v] = b.useStart[v+1], end
		if !b.need[v] {
			continue
		}
		for _, u := range uses {
			if u.node <= loss && b.need[u.node] && b.g.Op[u.node] != ops.NoBackprop {
				b.classify(v, &u)
				b.uses[end] = u
				end++
			}
		}
	}
	b.useStart[loss+1] = end
}

func (b *Builder) classify(v uint32, u *user) {
	switch op := b.g.Op[u.node]; op {
	case ops.Tanh, ops.LogisticSigmoid, ops.CwiseMultiply, ops.PickNegLogSoftmax:
		return // frequent ones that are neither
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
