package script

import "libvpps/bridge/ops"

// user is one use of a node: argument number arg of node.
type user struct{ node, arg uint32 }

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
			b.uses[b.useStart[a]] = user{v, uint32(k)}
			b.useStart[a]++
		}
	}
	copy(b.useStart[1:], b.useStart[:n]) // the fill moved every start to its end
	b.useStart[0] = 0
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
