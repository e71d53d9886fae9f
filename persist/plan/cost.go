package plan

// Which of several plans runs where nobody measures.

import (
	"cmp"
	"slices"
)

// Microseconds on an H200, from bench/journal/2026-11-23.md and, for the barrier, from barriers of 8 and 132
// processors. Only their proportions count.
const (
	perItem    = 0.35  // a product and a transposed product with one partition, but for its rows
	perFMA     = 0.002 // 8 warps multiply one register each
	perPartial = 0.05  // reading one more partial result of a transposed product
	perHolder  = 0.003 // one more processor at a barrier
	perLoad    = 0.002 // a register's share of loading weights and storing gradients, a level's of 50
)

// Cost predicts microseconds of two levels, one forward and one backward, in which each matrix is
// multiplied once:
//   - the work of a processor that holds anything, on average: something for each partition and, for
//     the schedulers are the SM's, the rows of all its partitions;
//   - the partial results that whoever reads a transposed product adds up, one for each holder, of
//     the matrix that has the most; a vector longer than the threads is read in turns;
//   - the barrier, which takes longer the more processors hold that matrix;
//   - weights and gradients, which are moved four rows at a time or, if the rows of a warp are no
//     multiple of four, one by one.
//
// Copies are left out of account: a level may be too narrow to use them.
//
// More rows a warp are fewer partitions, which makes the second and third part less and the
// first more.
func (p *Plan) Cost() float64 {
	held := make([]bool, p.Processors)
	holding, partitions, rows := 0, 0, 0
	for _, x := range p.Partitions {
		if x.Copy > 0 || p.Residence(x.Matrix).Kind != Registers { // others are the same in all plans
			continue
		}
		partitions++
		rows += p.RowsPerWarp * iterations(p.Matrices[x.Matrix].Cols)
		if !held[x.Processor] {
			held[x.Processor] = true
			holding++
		}
	}
	sms := float64(max(1, holding))
	work := perItem*float64(partitions)/sms + 2*perFMA*float64(rows)/sms
	shared := 0.0
	parts := p.parts()
	for m, x := range p.Matrices {
		holders := min(parts[m], p.Processors)
		turns := (x.Cols + 32*p.Warps - 1) / (32 * p.Warps)
		shared = max(shared, float64(holders)*(perPartial*float64(turns)+perHolder))
	}
	moves := 4
	if p.RowsPerWarp%4 == 0 {
		moves = 1
	}
	return work + shared + perLoad*float64(moves*p.Used)
}

// Cheapest orders plans by cost: the first is the one to take, the next what to take if that is not to be
// had. Equally good ones stay in order.
func Cheapest(plans []*Plan) []*Plan {
	sorted := slices.Clone(plans)
	slices.SortStableFunc(sorted, func(a, b *Plan) int {
		if c := cmp.Compare(a.Outside(), b.Outside()); c != 0 {
			return c
		}
		return cmp.Compare(a.Cost(), b.Cost())
	})
	return sorted
}
