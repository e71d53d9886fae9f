package script

import (
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
)

// Slices: where a plan has matrices whose rows lie alike on a group of processors (plan.Slices), what is element-wise
// behind their products need not wait: each processor of the group has its rows of every operand. So a cluster may
// be in slices: its instructions are those of all processors of one group, each for its rows. In the backward part
// it forms gradients from what all holders have left, and multiplies them by its rows of the matrices.

// inSlices reports whether a cluster is executed by a group.
func (b *Builder) inSlices(c int32) bool { return c >= 0 && b.clusters[c].kind&sliced != 0 }

// formsSliced reports whether the gradients of a cluster's nodes are formed by a group.
func (b *Builder) formsSliced(c int32) bool {
	return b.plan.rows > 0 && b.clusters[c].kind == sliced|elementwise
}

// newSliced starts a cluster in slices.
func (b *Builder) newSliced(level int32) int32 {
	c := b.newCluster(level)
	b.clusters[c].kind = sliced
	return c
}

// sliceable reports whether node v is a vector whose elements are rows of the matrices in slices.
func (b *Builder) sliceable(v uint32) bool {
	x := b.shape(v)
	return x.size == b.plan.rows && x.batch == 1
}

// slicedTerms reports whether all products of node v are by matrices in slices.
func (b *Builder) slicedTerms(v uint32) bool {
	if b.plan.rows == 0 || !b.sliceable(v) {
		return false
	}
	for i := range b.terms {
		if m := b.terms[i].matrix; m < 0 || !b.plan.sliced[m] {
			return false
		}
	}
	return len(b.terms) > 0
}

// slicedChain adds the products of node v, each where its right side is ready; those of one level follow one another
// in one cluster.
func (b *Builder) slicedChain(v, bias uint32, y operand, level int32) {
	if b.termsAlike() {
		b.affineChain(v, bias, y, level)
		return
	}
	at := spot{-1, -1, 0}
	for k, p := range b.terms { // as they get ready
		if ready := max(level, b.ready(p.right)); ready > at.level {
			at = spot{ready, b.newSliced(ready), 0}
		} else {
			at.sub++
		}
		flags := uint32(0)
		if k > 0 {
			flags, bias = isa.Acc, NoOffset
		}
		sig, x := b.productSignature(p, y, isa.Copy, flags, bias, 0)
		b.local(at.cluster, at.sub, sig, y.at, x, 0)
	}
	b.spots[v] = at
}

// placeSliced gives the element-wise node v a place in slices: in the cluster of those of its arguments that come
// last, if these are in slices. False: there is none.
func (b *Builder) placeSliced(v uint32, args []uint32) (cluster, sub int32, ok bool) {
	if b.plan.rows == 0 || !b.sliceable(v) {
		return 0, 0, false
	}
	level := int32(0)
	for _, a := range args {
		if !b.alike(a, v) {
			return 0, 0, false
		}
		at := &b.spots[a]
		switch {
		case at.level < 0:
		case b.owns(a) && b.inSlices(at.cluster):
			level = max(level, at.level)
		default:
			level = max(level, at.level+1)
		}
	}
	if cluster = b.joinSliced(level, args); cluster < 0 {
		return 0, 0, false
	}
	for _, a := range args {
		if at := &b.spots[a]; at.level == level && at.cluster >= 0 {
			sub = max(sub, at.sub+1)
		}
	}
	b.clusters[cluster].kind |= elementwise
	b.spots[v] = spot{level, cluster, sub}
	return cluster, sub, true
}

// placeElementwise gives an element-wise node a place in slices or, if there is none, another one.
func (b *Builder) placeElementwise(v uint32, args []uint32) (cluster, sub int32) {
	if c, s, ok := b.placeSliced(v, args); ok {
		return c, s
	}
	return b.place(v, args...)
}

// sumSliced adds up the arguments of node v one by one: a Sum's items cannot share an instruction with another node's.
func (b *Builder) sumSliced(c, s int32, v uint32, scale float32) {
	y, args := b.output(v), b.g.ArgsOf(v)
	flags := uint32(0)
	if scale == 1 && len(args) > 1 {
		b.map2(c, s, isa.Add, 0, 0, b.size(v), y, b.value(args[0]), b.value(args[1]))
		args, flags = args[2:], isa.Acc
		s++
	}
	for _, a := range args {
		b.map1(c, s, isa.Scale, flags, scale, b.size(v), y, b.value(a))
		flags = isa.Acc
		s++
	}
	b.spots[v].sub = s - 1
}

// slicedCost bounds a cluster in slices, as clusterCost does others: a group has the work of many.
const slicedCost = 16 * clusterCost

// joinSliced makes one cluster of those in slices of a level that the arguments are in; -1: there is none, or
// together they would be too much.
func (b *Builder) joinSliced(level int32, args []uint32) int32 {
	cluster := int32(-1)
	for _, a := range args {
		at := &b.spots[a]
		if at.level != level || at.cluster < 0 {
			continue
		}
		c := b.find(at.cluster)
		if cluster >= 0 && cluster != c && b.clusters[cluster].cost+b.clusters[c].cost > slicedCost {
			return -1
		}
		if cluster >= 0 {
			c = b.union(cluster, c)
		}
		cluster = c
	}
	return cluster
}

// sliceGradients finds out which clusters in slices cannot also form their nodes' gradients in slices: those
// are formed by one processor, and so are those of clusters that have nothing but products.
func (b *Builder) sliceGradients() {
	if b.plan.rows == 0 {
		return
	}
	for v := b.first; v < b.end; v++ {
		if !b.wants[v] || b.spots[v].cluster < 0 {
			continue
		}
		if c := b.find(b.spots[v].cluster); !b.gradientSliced(v) {
			b.clusters[c].kind |= formedWhole
		}
	}
}

// gradientSliced reports whether each element of v's gradient is made of the same element of its users' gradients
// and values, and of partial results.
func (b *Builder) gradientSliced(v uint32) bool {
	if v == b.r.Node || !b.sliceable(v) {
		return false
	}
	for _, u := range b.usersOf(v) {
		switch u.kind {
		case useOuter:
			return false
		case useOther:
			if !b.isElementwise(u.node) || !b.alike(u.node, v) {
				return false
			}
		}
	}
	return true
}

// isElementwise reports whether element i of node v, and what it passes back, depends on elements i of its arguments
// alone.
func (b *Builder) isElementwise(v uint32) bool {
	op := b.g.Op[v]
	if binary := op == ops.CwiseMultiply || binaryFns[op] != 0; !binary && !unaryRules[op].ok && op != ops.Average {
		return false
	}
	for _, a := range b.g.ArgsOf(v) {
		if !b.alike(a, v) {
			return false
		}
	}
	return true
}

// transposedSliced reports whether a use is the right side of a product that is transposed where its gradient is
// formed.
func (b *Builder) transposedSliced(u user) bool {
	if b.plan.rows == 0 || !b.owns(u.node) || !b.formsSliced(b.gcluster[u.node]) || !b.sliceable(u.node) {
		return false
	}
	left, _ := b.isRight(u)
	return b.plan.sliced[b.matrixOf(left)]
}

// sumGradients makes dst the sum of b.linear.
func (b *Builder) sumGradients(cluster, sub int32, dst operand, n int) int32 {
	if !b.inSlices(cluster) {
		return b.sumItems(cluster, sub, 0, dst, isa.SegAct, 1, n, b.linear)
	}
	return b.collect(cluster, sub, dst, n)
}

// collect adds up the sources: those of the same number and distance by one Collect for up to MaxRuns, then the
// single vectors one by one.
func (b *Builder) collect(cluster, sub int32, dst operand, n int) int32 {
	flags := uint32(0)
	for i, first := range b.linear {
		if first.count <= 1 || b.collected(i) {
			continue
		}
		b.sumList = b.sumList[:0]
		for _, s := range b.linear[i:] {
			if s.count == first.count && s.apart == first.apart {
				b.sumList = append(b.sumList, s.at)
			}
		}
		for list := b.sumList; len(list) > 0; {
			k := min(len(list), isa.MaxRuns)
			sig := b.sigs.short(7, n, firstWord(isa.Collect, uint8(k), flags), uint32(dst.seg)|uint32(isa.SegAct)<<4, uint32(n), bits(1), first.count, first.apart, uint32(isa.Copy), 0)
			b.ranges = append(append(b.ranges[:0], dst.at), list[:k]...)
			b.addItem(cluster, sub, sig, b.ranges)
			list, flags = list[k:], isa.Acc
			sub++
		}
	}
	for _, s := range b.linear {
		if s.count == 1 {
			b.map1(cluster, sub, isa.Copy, flags, 0, n, dst, operand{isa.SegAct, s.at})
			flags = isa.Acc
			sub++
		}
	}
	return sub
}

// collected reports whether a source before the i-th is of its number and distance.
func (b *Builder) collected(i int) bool {
	for _, s := range b.linear[:i] {
		if s.count == b.linear[i].count && s.apart == b.linear[i].apart {
			return true
		}
	}
	return false
}
