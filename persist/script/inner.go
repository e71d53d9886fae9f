package script

import (
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
	"libvpps/persist/schedule"
)

// Division over the inner dimension. A gradient of few elements may be a sum of many terms: that of a convolution's
// filter, of a bias of many columns. To divide it by elements leaves most processors without work. So each of several
// processors sums some of the terms and leaves a partial result, as the holders of a matrix do for a transposed product.
// The reader of the gradient adds the partial results in their order. How many there are depends on the graph and the
// plan only, so every run gives the same bits.

// partialResults is how many partial results the use u leaves of v's gradient; 1: it is not divided over its terms.
func (b *Builder) partialResults(v uint32, u user) int {
	batch := b.shape(v).batch
	if !b.Wide.On || u.kind != useOther || !b.byElements(batch, 1, b.size(u.node)) {
		return 1
	}
	size := b.size(v)
	terms, work, pieces := b.size(u.node)/size, b.size(u.node), size/schedule.SumElements
	switch b.g.Op[u.node] {
	case ops.AffineTransform, ops.MatrixMultiply:
		product := b.isLeft(u)
		if batch > 1 {
			return 1
		}
		if product {
			terms = b.size(u.node) / int(b.shape(u.node).rows)
		} else if _, product = b.isRight(u); product {
			terms = b.size(u.node) / int(b.shape(u.node).cols)
			if x := b.shape(u.node); x.batch > 1 {
				return b.partsOfProducts(int(b.shape(v).rows), int(b.shape(v).cols), int(x.rows), int(x.batch))
			}
		}
		if product {
			return b.partsOfProduct(int(b.shape(v).rows), int(b.shape(v).cols), terms)
		}
	case ops.CwiseSum, ops.Sum, ops.Average, ops.AddVectorToAllColumns, ops.CwiseMultiply, ops.CwiseQuotient, ops.Pow, ops.Min, ops.Max:
	default:
		return 1
	}
	return b.partsOf(work, pieces, terms)
}

// partsOf is how many parts sums of so many terms have, which are so much work, and of whose elements there are so many
// pieces.
func (b *Builder) partsOf(work, pieces, terms int) int {
	if work < b.Wide.Single {
		return 1
	}
	return max(1, min(work/(4*b.Wide.Piece), b.r.Plan.Processors/max(1, pieces), terms/max(1, b.Wide.Terms)))
}

// partsOfProduct is partsOf m by n results that are sums of k terms.
func (b *Builder) partsOfProduct(m, n, k int) int {
	if b.IsSums(1, [3]uint32{uint32(m), uint32(n), uint32(k)}) {
		return b.partsOf(2*m*n*k, 1, k)
	}
	return b.partsOf(schedule.GemmElements(m, n, k), int(schedule.UnitsOfProduct(uint32(m), uint32(n))), k)
}

// fullTerms is the number of terms from which a tile takes much longer than the instruction that it is of.
const fullTerms = 256

// partsOfProducts is partsOf m by n results that are sums of several products, each of so many terms. A piece has an
// instruction for each product, and several tiles if the terms are few. There are two parts at least: they are cut by rows
// and columns, and products that are added in order by columns only.
func (b *Builder) partsOfProducts(m, n, terms, products int) int {
	work := schedule.GemmElements(m, n, terms*products)
	if work < b.Wide.Single {
		return 1
	}
	pieces := int(schedule.UnitsOfProduct(uint32(m), uint32(n))) * min(terms, fullTerms) / fullTerms
	return max(2, b.partsOf(work, pieces, terms*products))
}

// leavePartialResults forms what the use u adds to v's gradient as partial results, in a level.
func (b *Builder) leavePartialResults(v uint32, u user, level int32) schedule.Source {
	n, size, from := b.partialResults(v, user{node: u.node, arg: u.arg}), uint32(b.size(v)), len(b.Items)
	s := schedule.Source{At: b.AllocHolders(uint32(n), size), Count: 0, Apart: size}
	c := b.NewCluster(level)
	b.contribute(v, u, schedule.At(isa.SegAct, s.At), 0, c, 0)
	s.Count = b.DealSums(from, size, n, c)
	return s
}

// mostOfPartial bounds the floats of a node's partial results, which its reader adds up.
const mostOfPartial = 1 << 13

// sumInParts forms node v, sums of so many terms in all, in the level behind that of its cluster c, as partial results of
// several processors. It has few elements, or false is returned, and nothing has happened.
func (b *Builder) sumInParts(v uint32, e *schedule.Element, terms int, c int32) bool {
	size := b.size(v)
	if !b.Wide.On || !b.Clusters[c].IsPrivate() || size >= 2*b.r.Plan.Processors {
		return false
	}
	n := min(terms/(4*b.Wide.Piece), b.r.Plan.Processors/max(1, size/schedule.SumElements), terms/size/max(1, b.Wide.Terms), mostOfPartial/size)
	if n <= 1 {
		return false
	}
	from, y, x := len(b.Items), e.Ops[0], b.partsFor(n, size)
	e.Ops[0] = schedule.At(isa.SegAct, x.At)
	b.AddElement(e, c, 0)
	b.addParts(v, x, from, n, c, y, 0)
	return true
}

// partsFor has room for so many partial results of so many elements, of which there are none yet.
func (b *Builder) partsFor(n, size int) schedule.Source {
	return schedule.Source{At: b.AllocHolders(uint32(n), uint32(size)), Count: 0, Apart: uint32(size)}
}

// addParts makes about n partial results of the items from one on, all there are in cluster c, and adds them up to node v's
// value y in the next level.
func (b *Builder) addParts(v uint32, x schedule.Source, from, n int, c int32, y schedule.Operand, flags uint32) {
	x.Count = b.DealSums(from, x.Apart, n, c)
	b.linear = append(b.linear[:0], x)
	level := b.Clusters[c].Level + 1
	to := b.newWide(level, v, int(x.Count*x.Apart))
	b.spots[v] = spot{level, to, b.SumItems(to, 0, flags, y, isa.SegAct, 1, int(x.Apart), b.linear) - 1}
	if b.Clusters[to].IsPrivate() {
		b.spots[v].cluster = -1
	}
}
