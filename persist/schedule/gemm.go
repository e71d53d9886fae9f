package schedule

import (
	"math"

	"libvpps/persist/isa"
)

// Products of two operands: Gemm, and the rectangles of their results that processors share.

// Tile is the rows and columns that a warp of the kernel forms at a time (jit/kernel/gemm_tiles.h).
const Tile = 32

const gemmLeast = 8

// blockTerms is the terms of a stage. Four warps form a block of four tiles together, if it can be copied in whole stages and
// fours of numbers (jit/kernel/gemm_blocks.h: forms_blocks).
const blockTerms = 16

// How long a GPU's processor takes, as measured on an H100, in units of 0.23 ns.
const (
	tileTime    = 64  // for a term of a tile
	blockTime   = 144 // for a term of a block: four tiles apart take 1.8 times as long
	addTime     = 4   // for a number that is added to others
	elementTime = 6   // for an element of other work
	startTerms  = 64  // a product takes as much longer as so many terms do
)

// GemmElements is the work of a product of m by n results that are sums of k terms, in elements of element-wise work. A
// GPU forms results of at least gemmLeast rows and columns in tiles, and others four times as slowly
// (jit/kernel/gemm.h).
func GemmElements(m, n, k int) int {
	if min(m, n) < gemmLeast {
		return m * n * k / 4
	}
	return m * n * k / 16
}

// MatrixView is an operand of Gemm: address, row and column strides, distance of batch elements.
type MatrixView struct {
	Op       Operand
	Row, Col uint32
	Batch    uint32
}

// GemmItems adds one product a batch element, or one for all where batch elements lie like further columns of the result or
// like further terms of its sums. Into an unbatched result they are added in order. It returns the next free order.
func (s *Schedule) GemmItems(c, sub int32, flags, batch uint32, mnk [3]uint32, y, left, right MatrixView) int32 {
	n, k := mnk[1], mnk[2]
	switch {
	case left.Batch == 0 && right.Batch == n*right.Col && y.Batch == n*y.Col:
		mnk[1], batch = n*batch, 1
	case y.Batch == 0 && left.Batch == k*left.Col && right.Batch == k*right.Row:
		mnk[2], batch = k*batch, 1
	}
	if s.IsSums(batch, mnk) {
		s.productSums(c, sub, flags, batch, mnk, y, left, right)
		return sub + 1
	}
	segs := uint32(y.Op.Seg) | uint32(left.Op.Seg)<<4 | uint32(right.Op.Seg)<<8
	for i := range batch {
		s.Sigs.Head(isa.Gemm, 0, flags, segs, mnk[0], mnk[1], mnk[2], y.Row, y.Col, left.Row, left.Col, right.Row, right.Col, isa.Float(1), 0)
		s.Add(c, sub, s.Sigs.Intern(GemmElements(int(mnk[0]), int(mnk[1]), int(mnk[2]))),
			y.Op.At+i*y.Batch, left.Op.At+i*left.Batch, right.Op.At+i*right.Batch)
		if y.Batch == 0 {
			sub++
			flags |= isa.Acc
		}
	}
	if y.Batch != 0 {
		sub++
	}
	return sub
}

// Many small products, and long sums of few results, are no work for Gemm's blocks: each product would be an item, and
// most of a block empty. They are sums of products of elements, along axes like other sums.
const (
	manyProducts = 256  // of which each has at most so many results
	fewResults   = 16   // of a product that are sums
	longSum      = 2048 // of so many terms: from there on all of a processor's threads form a sum (jit/kernel/team.h)
)

// IsSums reports whether products, one a batch element, are formed as sums of products of elements. A CPU's blocks are
// small, and its host has little to do.
func (s *Schedule) IsSums(batch uint32, mnk [3]uint32) bool {
	results := uint64(mnk[0]) * uint64(mnk[1])
	return !s.Plan.CPU && (batch >= manyProducts && results <= manyProducts || batch == 1 && results <= fewResults && mnk[2] >= longSum)
}

// productSums adds the item of products that isSums is true of.
func (s *Schedule) productSums(c, sub int32, flags, batch uint32, mnk [3]uint32, y, left, right MatrixView) {
	axes := s.NewAxes(4)
	axes[0] = Axis{mnk[0], [5]uint32{y.Row, left.Row, 0}}
	axes[1] = Axis{mnk[1], [5]uint32{y.Col, 0, right.Col}}
	axes[2] = Axis{batch, [5]uint32{y.Batch, left.Batch, right.Batch}}
	axes[3] = Axis{mnk[2], [5]uint32{0, left.Col, right.Row}}
	e := Element{Fn: isa.Mul, Flags: flags, P: 1, Kept: axes[:3], Red: axes[3:]}
	if y.Batch == 0 && batch > 1 { // of all batch elements
		axes[2], axes[3] = axes[3], axes[2]
		e.Kept, e.Red = axes[:2], axes[2:]
	}
	e.Ops = [5]Operand{y.Op, left.Op, right.Op}
	s.AddElement(&e, c, sub)
}

// Tiles adds a product of m by n results that are sums of k terms: pieces for as many processors as there are. Partial
// results follow one another, and each is divided among its share of the processors.
func (s *Schedule) Tiles(level int32, flags uint32, scale float32, bias Operand, mnk [3]uint32, sums uint32, y, left, right MatrixView) {
	segs := uint32(y.Op.Seg) | uint32(left.Op.Seg)<<4 | uint32(right.Op.Seg)<<8 | uint32(bias.Seg)<<12
	share, terms := max(1, uint32(s.Plan.Processors)/sums), TermsOfSum(mnk[2], sums)
	for k := range sums {
		n := min(terms, mnk[2]-k*terms)
		s.Sigs.Head(isa.Gemm, 0, flags, segs, mnk[0], mnk[1], n, y.Row, y.Col, left.Row, left.Col, right.Row, right.Col, isa.Float(scale), bias.At)
		it := Item{Sig: s.Sigs.Intern(GemmElements(int(mnk[0]), int(mnk[1]), int(n)))}
		it.Words = [FewWords]uint32{y.Op.At + k*mnk[0]*mnk[1], left.Op.At + k*terms*left.Col, right.Op.At + k*terms*right.Row}
		s.cutProduct(&it, share, s.newClusters(level, s.piecesOfItem(&it, share)))
	}
}

// TermsOfSum is how many of k terms each of so many partial results has, but the last one: whole stages, if there are many.
func TermsOfSum(k, sums uint32) uint32 {
	terms := (k + sums - 1) / sums
	if whole := (terms + blockTerms - 1) / blockTerms * blockTerms; whole*(sums-1) < k {
		return whole
	}
	return terms
}

// SumsOfProduct is how many partial results m by n sums of k terms have, of at least so many terms each, so that they are
// there soonest: formed by so many processors, and added up.
func SumsOfProduct(m, n, k, processors, least uint32, blocks bool) (sums uint32) {
	best := uint64(math.MaxUint64)
	for s, share := uint32(1), processors; s == 1 || share > 0 && k/s >= least; s = processors / max(1, share) {
		rows, columns := PieceOfProduct(m, n, share, blocks)
		form := uint64(timeOfPiece((rows+Tile-1)/Tile, (columns+Tile-1)/Tile, blocks)) * uint64(k/s+startTerms)
		add := uint64(s) * uint64(m) * uint64(n) / uint64(processors) * addTime
		if form+add < best {
			best, sums = form+add, s
		}
		share = processors / (s + 1)
	}
	return sums
}

// newClusters starts so many clusters and returns the first.
func (s *Schedule) newClusters(level int32, n uint32) (first int32) {
	first = int32(len(s.Clusters))
	for range n {
		s.NewCluster(level)
	}
	return first
}

// isProduct reports whether an item is a Gemm's.
func (s *Schedule) isProduct(it *Item) bool { return isa.Opcode(s.SignatureOf(it)[0]) == isa.Gemm }

// cutProduct adds the pieces of a Gemm that so many processors share to the clusters from one on.
func (s *Schedule) cutProduct(it *Item, processors uint32, to int32) {
	w := append(s.Wide.words[:0], s.Sigs.Of(it.Sig)...) // where signatures are may change
	s.Wide.words = w
	m, n := w[3], w[4]
	blocks := s.formsBlocks(it, w)
	rows, columns := PieceOfProduct(m, n, processors, blocks)
	var of, last [3]uint32 // rows, columns and bias of a piece, and of the one before
	part := *it
	for j := uint32(0); j < n; j += columns {
		for i := uint32(0); i < m; i += rows {
			of = [3]uint32{min(rows, m-i), min(columns, n-j), w[13]}
			if w[0]>>16&isa.Bias != 0 {
				of[2] += i
			}
			if of != last {
				s.Sigs.buf = append(s.Sigs.buf[:0], w...)
				s.Sigs.buf[3], s.Sigs.buf[4], s.Sigs.buf[13] = of[0], of[1], of[2]
				part.Sig, last = s.Sigs.Intern(s.workOfPiece(of[0], of[1], w[5], blocks)), of
			}
			part.Words = [FewWords]uint32{it.Words[0] + i*w[6] + j*w[7], it.Words[1] + i*w[8], it.Words[2] + j*w[11]}
			part.Cluster = to
			s.putBack(&part)
			to++
		}
	}
}

// workOfPiece is the work of a piece of m by n results that are sums of k terms, in elements. A GPU forms large ones much
// faster than GemmElements says: else other work of their level would be left to the few processors that have none.
func (s *Schedule) workOfPiece(m, n, k uint32, blocks bool) int {
	if s.Plan.CPU || min(m, n) < gemmLeast {
		return GemmElements(int(m), int(n), int(k))
	}
	return int(timeOfPiece((m+Tile-1)/Tile, (n+Tile-1)/Tile, blocks)) * int(k+startTerms) / elementTime
}

// unitOfProduct is the rows and columns of m by n results that a processor forms at a time: a tile, or, of few rows or
// columns, what a warp's threads form.
func unitOfProduct(m, n uint32) (rows, columns uint32) {
	switch {
	case m < gemmLeast:
		return m, Tile
	case n < gemmLeast:
		return Tile, n
	}
	return Tile, Tile
}

// UnitsOfProduct is how many of these there are.
func UnitsOfProduct(m, n uint32) uint32 {
	rows, columns := unitOfProduct(m, n)
	return ((m + rows - 1) / rows) * ((n + columns - 1) / columns)
}

// formsBlocks reports whether a GPU can form blocks of an item with these words of its signature.
func (s *Schedule) formsBlocks(it *Item, w []uint32) bool {
	return !s.Plan.CPU && w[5] >= 2*blockTerms && w[5]%blockTerms == 0 && inFours(w[8], w[9]) && inFours(w[11], w[10]) && (it.Words[1]|it.Words[2])%4 == 0
}

// inFours reports whether four neighbours of an operand can be copied at a time: of rows or columns that are so far apart, as
// are the terms.
func inFours(n, k uint32) bool { return n == 1 && k%4 == 0 || k == 1 && n%4 == 0 }

// HasBlocks reports whether blocks can be formed of products of a matrix, all of it, by columns side by side.
func HasBlocks(rows, cols uint32) bool {
	return rows%4 == 0 && cols >= 2*blockTerms && cols%blockTerms == 0
}

// PieceOfProduct is how many rows and columns of m by n results a piece has, so that there are as many pieces as
// processors at most, and the largest takes least time.
func PieceOfProduct(m, n, processors uint32, blocks bool) (rows, columns uint32) {
	height, width := unitOfProduct(m, n)
	down, across := (m+height-1)/height, (n+width-1)/width
	least := timeOfPiece(down, across, blocks)
	for r := uint32(1); r <= down && r*blockTime/4 < least; r++ {
		if k := processors / ((down + r - 1) / r); k > 0 {
			c := (across + k - 1) / k
			if time := timeOfPiece(r, c, blocks); time < least {
				least, rows, columns = time, r*height, c*width
			}
		}
	}
	if rows == 0 {
		return m, n
	}
	return rows, columns
}

// timeOfPiece is how long a processor takes for a term of so many units of results.
func timeOfPiece(down, across uint32, blocks bool) uint32 {
	if blocks && down > 1 && across > 1 {
		return (down + 1) / 2 * ((across + 1) / 2) * blockTime
	}
	return down * across * tileTime
}

// piecesOfItem is how many such pieces a Gemm's item has.
func (s *Schedule) piecesOfItem(it *Item, processors uint32) uint32 {
	w := s.SignatureOf(it)
	rows, columns := PieceOfProduct(w[3], w[4], processors, s.formsBlocks(it, w))
	return ((w[3] + rows - 1) / rows) * ((w[4] + columns - 1) / columns)
}
