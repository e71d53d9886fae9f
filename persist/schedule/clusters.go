package schedule

// Elsewhere is the cluster that stands for all that is not formed in the schedule.
const Elsewhere = 0

// Cluster is items of one level that one processor executes, or, with another parent than itself, has
// become a part of that.
type Cluster struct {
	Parent, Level, Cost, Items int32
	Kind                       ClusterKind
	Pieces                     int32  // of a batched cluster: how many clusters behind it are its pieces; 0: it is none
	piece                      int32  // of a piece: which one it is, from 1 on; its batched cluster is so many before it
	Batch                      uint32 // and how many parts its nodes have, their batch elements or, ByColumns, the columns of these
	GradientPieces             int32  // as many pieces has, at least, the cluster that forms its gradients
}

// ClusterKind is what is special about a cluster.
type ClusterKind uint32

const (
	Single    ClusterKind = 1 << iota // its items are copies that have nothing to do with one another: no chains
	private                           // its items are one node's, and are divided when that is lowered
	divided                           // it has some of a private cluster's items
	Fused                             // its items are chains already
	cutEarly                          // batched, and pieces have items of their own, too
	ByColumns                         // batched, and a piece has some columns, not some batch elements
)

// IsBatched reports whether c is a batched cluster, isPrivate whether it is a private one.
func (x *Cluster) IsBatched() bool { return x.Pieces > 0 }

func (x *Cluster) IsPrivate() bool { return x.Kind&private != 0 }

// IsSpread reports whether c is one of several whose work is one node's: nothing else joins it.
func (x *Cluster) IsSpread() bool {
	return x.Kind&(private|divided) != 0 || x.IsBatched() || x.piece > 0
}

// NewCluster starts a cluster: items of one level that one processor executes.
func (s *Schedule) NewCluster(level int32) int32 {
	c := int32(len(s.Clusters))
	s.Clusters = append(s.Clusters, Cluster{Parent: c, Level: level})
	s.MaxLevel = max(s.MaxLevel, level)
	return c
}

// NewPrivate starts a private cluster.
func (s *Schedule) NewPrivate(level int32) int32 {
	c := s.NewCluster(level)
	s.Clusters[c].Kind = private
	return c
}

// NewBatched starts a batched cluster, 0 or ByColumns; its pieces follow it. There are so many at most.
func (s *Schedule) NewBatched(level int32, pieces int32, batch uint32, kind ClusterKind) int32 {
	c := s.NewCluster(level)
	pieces = min(pieces, int32(batch))
	pieces = int32(chunkOf(batch, int32(chunkOf(batch, pieces)))) // none is empty
	s.Clusters[c].Pieces, s.Clusters[c].Batch, s.Clusters[c].Kind = pieces, batch, kind
	for k := range pieces {
		s.Clusters[s.NewCluster(level)].piece = 1 + k
	}
	return c
}

// NewLike starts a cluster that forms gradients and is divided like another one, or into more pieces if these are much
// more work.
func (s *Schedule) NewLike(like, level int32) int32 {
	switch x := s.Clusters[like]; {
	case x.IsBatched():
		return s.NewBatched(level, max(x.Pieces, x.GradientPieces), x.Batch, x.Kind&ByColumns)
	case x.IsPrivate():
		return s.NewPrivate(level)
	}
	return s.NewCluster(level)
}

// Costly is c, or its first piece: what has the costs for one processor.
func (s *Schedule) Costly(c int32) int32 {
	if c = s.Find(c); s.Clusters[c].IsBatched() {
		return c + 1
	}
	return c
}

// CostOf is what a cluster, or each of its pieces, costs so far.
func (s *Schedule) CostOf(c int32) int32 {
	cost, first := s.Clusters[s.Costly(c)].Cost, s.Find(c)
	if s.Clusters[first].IsBatched() { // what each piece has of items that all share
		cost += s.Clusters[first].Cost
	}
	return cost
}

// unionPieces makes the pieces of two batched clusters one by one the same, which the clusters themselves are already.
func (s *Schedule) unionPieces(x, y int32) {
	for k := range s.Clusters[x].Pieces {
		s.Union(x+1+k, y+1+k)
	}
}

// Find is the cluster that a cluster has become a part of, or itself.
func (s *Schedule) Find(c int32) int32 {
	for s.Clusters[c].Parent != c {
		s.Clusters[c].Parent = s.Clusters[s.Clusters[c].Parent].Parent
		c = s.Clusters[c].Parent
	}
	return c
}

// Union makes two clusters one, and returns it.
func (s *Schedule) Union(x, y int32) int32 {
	x, y = s.Find(x), s.Find(y)
	if x == y {
		return x
	}
	if y < x {
		x, y = y, x
	}
	s.Clusters[y].Parent = x
	s.Clusters[x].Cost += s.Clusters[y].Cost
	s.Clusters[x].Items += s.Clusters[y].Items
	s.Clusters[x].Kind |= s.Clusters[y].Kind
	if s.Clusters[x].IsBatched() {
		s.unionPieces(x, y)
	}
	return x
}

// IsListed reports whether sortClusters lists cluster number c.
func (x *Cluster) IsListed(c int) bool {
	return x.Parent == int32(c) && x.Cost > 0
}
