package plan

import (
	"cmp"
	"fmt"
	"slices"
)

// Device is what residency depends on.
type Device struct {
	Name           string
	Processors     int // CTAs
	CTAs           int // of them on an SM, 1 or 2; 0 is 1
	Warps          int // of a CTA
	RegistersPer   int // registers of a thread at most
	SetAside       int // of these, what the interpreter takes without any matrix
	SharedPerBlock int // bytes
	Copies         int // of a matrix, at most; 0: as many as registers are left over for
}

// Staging is the registers a thread needs beside the weights to form the gradient of a partition: as
// many as the weights of a partition of that many columns. Of the longest row and times the threads it is the
// paper's partition size, Psize = TBSize * rpw * ceil(rowmax / 32) (§III-A1, equation 1).
func Staging(rpw, cols int) int { return rpw * iterations(cols) }

// iterations is how many elements of a row a lane has.
func iterations(cols int) int { return (cols + 31) / 32 }

// RoundRobin hands out partitions of Warps*rpw consecutive rows to the processors in turn (paper
// §III-A1), those of the widest matrices first: a processor's n-th partition is in the same register
// array on all of them, which is as large as the largest. A matrix that does not fit into the registers any more is left out; the
// engine then multiplies with it from memory. What is left over in the arrays holds further copies.
func RoundRobin(matrices []Matrix, d Device, rpw int) (*Plan, error) {
	if d.Processors < 1 || rpw < 1 {
		return nil, fmt.Errorf("plan: %d processors, %d rows per warp: at least one of each", d.Processors, rpw)
	}
	p := &Plan{Processors: d.Processors, CTAs: max(1, d.CTAs), First: []int{0}, RowsPerWarp: rpw, Warps: d.Warps,
		Registers: d.RegistersPer, SetAside: d.SetAside, Shared: d.SharedPerBlock}
	slots := make([]int, d.Processors) // partitions so far
	var arrays []int                   // registers of a slot, the same on all processors
	next := 0
	matrices = slices.Clone(matrices)
	slices.SortStableFunc(matrices, func(a, b Matrix) int { return cmp.Compare(iterations(b.Cols), iterations(a.Cols)) })
	for _, m := range matrices {
		rows := rpw * d.Warps
		parts := (m.Rows + rows - 1) / rows
		more := slotted(arrays, slots, next, parts, rpw*iterations(m.Cols))
		staging := max(p.Staging, Staging(rpw, m.Cols))
		used := 0
		for _, floats := range more {
			used += floats
		}
		if d.SetAside+staging+used > d.RegistersPer || 8*d.Warps*((m.Cols+31)&^31) > d.SharedPerBlock {
			p.Left = append(p.Left, m)
			continue
		}
		index := len(p.Matrices)
		p.Matrices = append(p.Matrices, m)
		for k := range parts {
			q := (next + k) % d.Processors
			row := k * rows
			p.Partitions = append(p.Partitions, Partition{Matrix: index, Processor: q, Slot: slots[q], Row: row, Rows: min(rows, m.Rows-row)})
			slots[q]++
		}
		arrays, p.Used, p.Staging = more, used, staging
		next = (next + parts) % d.Processors
		p.First = append(p.First, len(p.Partitions))
	}
	p.addCopies(arrays, slots, next, d.Copies)
	return p, nil
}

// slotted is the register arrays once parts more partitions of so many registers are handed out
// from processor next on.
func slotted(arrays, slots []int, next, parts, floats int) []int {
	arrays = slices.Clone(arrays)
	n := len(slots)
	for k := range min(parts, n) {
		first := slots[(next+k)%n]
		for s := first; s < first+(parts-k+n-1)/n; s++ {
			for len(arrays) <= s {
				arrays = append(arrays, 0)
			}
			arrays[s] = max(arrays[s], floats)
		}
	}
	return arrays
}

// maxRows is the most rows a warp can hold: the matrix routines have a lane for each.
const maxRows = 32

// Candidates are the plans that measuring or the cost model chooses from: every number of rows per
// warp at which all matrices fit into the registers, least first. Of several at which each matrix
// has as many partitions, the first is taken: the others put the same rows on fewer warps.
// If no number lets everything fit, it is the plan of one row alone, with matrices left out.
func Candidates(matrices []Matrix, d Device) ([]*Plan, error) {
	var list []*Plan
	var before []int
	for rpw := 1; rpw <= maxRows; rpw++ {
		p, err := RoundRobin(matrices, d, rpw)
		if err != nil {
			return nil, err
		}
		if len(p.Left) > 0 && rpw == 1 {
			return []*Plan{p}, nil
		}
		if parts := p.parts(); len(p.Left) == 0 && (list == nil || !slices.Equal(parts, before)) {
			list, before = append(list, p), parts
		}
	}
	return list, nil
}

// parts is how many partitions each matrix has, of one copy.
func (p *Plan) parts() []int {
	n := make([]int, len(p.Matrices))
	for m := range n {
		n[m] = len(p.Of(m)) / max(1, p.Matrices[m].Copies)
	}
	return n
}
