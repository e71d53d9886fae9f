package script

// elsewhere is the cluster that stands for all of other parts.
const elsewhere = 0

// cluster is items of one level that one processor executes, or, with another parent than itself, has
// become a part of that.
type cluster struct {
	parent, level, cost, items int32
	kind                       clusterKind
	pieces                     int32  // of a batched cluster: how many clusters behind it are its pieces; 0: it is none
	piece                      int32  // of a piece: which one it is, from 1 on; its batched cluster is so many before it
	batch                      uint32 // and how many batch elements its nodes have
	gradientPieces             int32  // as many pieces has, at least, the cluster that forms its gradients
}

type clusterKind uint32

const (
	groupwide clusterKind = 1 << iota // a group executes it, each processor for its elements
	single                            // its items are copies that have nothing to do with one another: no chains
	private                           // its items are one node's, and are divided when that is lowered
	fused                             // its items are chains already
	cutEarly                          // batched, and pieces have items of their own, too
)

// isBatched reports whether c is a batched cluster, isPrivate whether it is a private one.
func (x *cluster) isBatched() bool { return x.pieces > 0 }

func (x *cluster) isPrivate() bool { return x.kind&private != 0 }

// newCluster starts a cluster: items of one level that one processor executes.
func (b *Schedule) newCluster(level int32) int32 {
	c := int32(len(b.clusters))
	b.clusters = append(b.clusters, cluster{parent: c, level: level})
	b.maxLevel = max(b.maxLevel, level)
	return c
}

func (b *Schedule) newPrivate(level int32) int32 {
	c := b.newCluster(level)
	b.clusters[c].kind = private
	return c
}

// newBatched starts a batched cluster; its pieces follow it.
func (b *Schedule) newBatched(level int32, pieces int32, batch uint32) int32 {
	c := b.newCluster(level)
	b.clusters[c].pieces, b.clusters[c].batch = pieces, batch
	for k := range pieces {
		b.clusters[b.newCluster(level)].piece = 1 + k
	}
	return c
}

// newLike starts a cluster that forms gradients and is divided like another one, or into more pieces if these are much
// more work.
func (b *Schedule) newLike(like, level int32) int32 {
	if !b.wide.on { // of a piece of the backward part, like is the whole's
		return b.newCluster(level)
	}
	switch x := b.clusters[like]; {
	case x.isBatched():
		return b.newBatched(level, max(x.pieces, x.gradientPieces), x.batch)
	case x.isPrivate():
		return b.newPrivate(level)
	}
	return b.newCluster(level)
}

// costly is c, or its first piece: what has the costs for one processor.
func (b *Schedule) costly(c int32) int32 {
	if c = b.find(c); b.clusters[c].isBatched() {
		return c + 1
	}
	return c
}

func (b *Schedule) costOf(c int32) int32 {
	cost, first := b.clusters[b.costly(c)].cost, b.find(c)
	if b.clusters[first].isBatched() { // what each piece has of items that all share
		cost += b.clusters[first].cost
	}
	return cost
}

// unionPieces makes the pieces of two batched clusters one by one the same, which the clusters themselves are already.
func (b *Schedule) unionPieces(x, y int32) {
	for k := range b.clusters[x].pieces {
		b.union(x+1+k, y+1+k)
	}
}

func (b *Schedule) find(c int32) int32 {
	for b.clusters[c].parent != c {
		b.clusters[c].parent = b.clusters[b.clusters[c].parent].parent
		c = b.clusters[c].parent
	}
	return c
}

func (b *Schedule) union(x, y int32) int32 {
	x, y = b.find(x), b.find(y)
	if x == y {
		return x
	}
	if y < x {
		x, y = y, x
	}
	b.clusters[y].parent = x
	b.clusters[x].cost += b.clusters[y].cost
	b.clusters[x].items += b.clusters[y].items
	b.clusters[x].kind |= b.clusters[y].kind
	if b.clusters[x].isBatched() {
		b.unionPieces(x, y)
	}
	return x
}
