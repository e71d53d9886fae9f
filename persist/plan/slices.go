package plan

// Matrices in slices: whatever has as many rows lies alike on the processors of a group, so that what is
// element-wise behind the products runs where its operands come about.

import (
	"fmt"
	"slices"
)

// besideMost is how many copies there are of a matrix beside those in slices, at most: on processors that
// have nothing else to do.
const besideMost = 4

// InSlices is the plan in which the matrices of as many rows, of several such sets the one with the most elements,
// lie in slices: each processor of a group has a partition of Warps*rpw rows of every one of them, and there
// are as many groups as fit; if it takes that, without the first of three and more such matrices. The others are
// on the processors that are left over or, if those do not do, in further register arrays of the groups. The error
// says why there is no such plan.
func InSlices(matrices []Matrix, d Device, rpw int) (*Plan, error) {
	if d.Processors < 1 || rpw < 1 {
		return nil, fmt.Errorf("plan: %d processors, %d rows per warp: at least one of each", d.Processors, rpw)
	}
	matrices = widestFirst(matrices)
	s := Slices{}
	s.Rows, s.In = family(matrices)
	s.Group = s.Rows / (d.Warps * rpw)
	if s.Rows != s.Group*d.Warps*rpw || s.Group < 2 || s.Group > d.Processors {
		return nil, fmt.Errorf("%d rows cannot be slices of %d on 2 to %d processors", s.Rows, d.Warps*rpw, d.Processors)
	}
	most := d.Processors / s.Group
	if d.Copies > 0 {
		most = min(most, d.Copies)
	}
	tries := [][]bool{s.In}
	if s.count() > 2 {
		tries = append(tries, withoutFirst(s.In))
	}
	for _, s.In = range tries {
		for s.Copies = most; s.Copies > 0 && s.Copies >= most-1; s.Copies-- { // one less may leave room for the other matrices
			if p := dealSlices(matrices, d, rpw, s); p != nil {
				return p, nil
			}
		}
	}
	return nil, fmt.Errorf("slices of %d rows do not fit into the registers beside the other matrices", d.Warps*rpw)
}

// GradientPieces is in how many pieces a processor of a plan in slices forms its columns of a gradient, one after the
// other: so many that a thread has few elements of a piece.
func GradientPieces(rpw, cols, copies int) int {
	const few = 16
	share, n := (iterations(cols)+copies-1)/copies, 1
	for rpw*share > few*n && share%(2*n) == 0 {
		n *= 2
	}
	return n
}

// withoutFirst leaves out the first matrix: of three and more one is often used once a graph, behind what the others
// are used for again and again, and added before them.
func withoutFirst(in []bool) []bool {
	in = slices.Clone(in)
	in[slices.Index(in, true)] = false
	return in
}

// count is how many matrices lie in slices.
func (s *Slices) count() (n int) {
	for _, in := range s.In {
		if in {
			n++
		}
	}
	return n
}

// family is the matrices that lie in slices, and their rows.
func family(matrices []Matrix) (rows int, in []bool) {
	elements := map[int]int{}
	for _, m := range matrices {
		elements[m.Rows] += m.Rows * m.Cols
		if n := elements[m.Rows]; n > elements[rows] || n == elements[rows] && m.Rows > rows {
			rows = m.Rows
		}
	}
	in = make([]bool, len(matrices))
	for m := range matrices {
		in[m] = matrices[m].Rows == rows
	}
	return rows, in
}

// dealSlices hands out matrices to groups and to whoever is left over, nil if they do not fit.
func dealSlices(matrices []Matrix, d Device, rpw int, s Slices) *Plan {
	x := newDealer(matrices, d, rpw)
	grouped := s.Group * s.Copies
	parts, among := make([][]Partition, len(matrices)), make([][2]int, len(matrices))
	for m, in := range s.In {
		if in {
			parts[m] = x.among(m, 0, grouped, s.Copies)
		}
	}
	copies := besideMost
	if d.Copies > 0 {
		copies = min(copies, d.Copies)
	}
	for m, in := range s.In {
		for c := copies; c > 0 && !in && parts[m] == nil; c-- { // more of them need fewer registers for a gradient
			among[m] = [2]int{grouped, d.Processors}
			parts[m] = x.among(m, grouped, d.Processors, c)
		}
		for c := copies; c > 0 && !in && parts[m] == nil; c-- {
			among[m] = [2]int{0, grouped}
			parts[m] = x.among(m, 0, grouped, c)
		}
		if parts[m] == nil {
			return nil
		}
	}
	x.plan.setPartitions(parts)
	x.plan.addCopies(x.arrays, x.slots, 0, copies, among)
	s.Rank, s.Copy = make([]int, d.Processors), make([]int, d.Processors)
	for q := range d.Processors {
		s.Rank[q], s.Copy[q] = q%s.Group, q/s.Group
		if q >= grouped {
			s.Rank[q], s.Copy[q] = -1, -1
		}
	}
	x.plan.Slices, x.plan.Tensor = &s, false // a cell's products are of several matrices at once
	return x.plan
}

// among hands out copies of matrix m to the processors [lo, hi) in turn, beginning with the first of those that have the fewest partitions: one
// to each at most. It is nil if they are too many or if there are not enough registers.
func (x *dealer) among(m, lo, hi, copies int) []Partition {
	p, matrix := x.plan, x.plan.Matrices[m]
	parts, rows, slots := p.partsOf(matrix), p.RowsPerWarp*p.Warps, x.slots[lo:hi]
	if parts*copies > len(slots) || x.device.Partials > 0 && columnsOf(matrix, parts, x.device) > 0 {
		return nil
	}
	next := slices.Index(slots, slices.Min(slots))
	x.shares = copies * GradientPieces(p.RowsPerWarp, matrix.Cols, copies)
	if !x.take(matrix, Residence{}, slotted(x.arrays, slots, next, parts*copies, p.RowsPerWarp*iterations(matrix.Cols))) {
		return nil
	}
	var list []Partition
	for k := range parts * copies {
		q, row := (next+k)%len(slots), k%parts*rows
		list = append(list, Partition{Matrix: m, Processor: lo + q, Slot: slots[q], Row: row, Rows: min(rows, matrix.Rows-row), Copy: k / parts})
		slots[q]++
	}
	p.Matrices[m].Copies = copies
	return list
}
