// Package plan decides where a model's weight matrices live: which rows of which
// matrix are held by which virtual processor, in which registers (paper §III-A1).
package plan

import "fmt"

// Matrix is one weight matrix that the products use.
type Matrix struct {
	Param  uint32 // the parameter's id
	Name   string
	Rows   int
	Cols   int
	Offset uint32 // of its first element in segment param (column-major)
	Copies int    // how many times it is held: several share the items of a product
}

// Partition is a run of consecutive rows of one matrix held by one processor.
type Partition struct {
	Matrix    int
	Processor int
	Slot      int // the processor's n-th partition in registers: selects them; -1: it is not in registers
	Row, Rows int
	Copy      int // of the matrix
	Rank      int // of its holder among all holders of the copy: results of transposed products are in this order
}

// Plan is the residency of a set of matrices on a set of processors.
type Plan struct {
	Processors int
	Matrices   []Matrix
	Partitions []Partition // by matrix, copy and row; each copy covers the matrix exactly once

	// Of matrix m: Partitions[First[m]:First[m+1]].
	First []int

	// The device is a CPU. Element-wise operations stay instructions of their own instead of becoming chains, which save
	// what an instruction costs once. Equal nodes of a batch are evaluated once. Helpers that write scripts leave the
	// cores to the virtual processors.
	CPU bool

	// Of every matrix; nil: all are in registers.
	Where []Residence

	// GPU: how the gradient of every matrix is divided; nil: a processor forms the rows that it holds.
	Grids []Grid

	RowsPerWarp int    // GPU: rows a warp holds of a partition
	Warps       int    // GPU: warps of a processor
	Registers   int    // GPU: registers a thread may have: those of weights (Used), of a gradient in
	SetAside    int    // the making (Staging), and of the interpreter (SetAside), which are
	Staging     int    // counted as if all were needed at once
	Used        int    // GPU: registers a thread spends on weights
	Shared      int    // GPU: bytes of shared memory in which a processor may work
	Resident    int    // GPU: bytes of shared memory in which a processor keeps matrices
	Depth       int    // GPU: elements of a sum that the routines for matrices beyond the registers take at a time; 0: there are none
	Why         string // how it was chosen
	Note        string // what the compiler said of it
}

// Of returns the partitions of matrix m, copy by copy.
func (p *Plan) Of(m int) []Partition { return p.Partitions[p.First[m]:p.First[m+1]] }

// Outside counts the matrices that are not in registers.
func (p *Plan) Outside() (n int) {
	for _, w := range p.Where {
		if w.Kind != Registers {
			n++
		}
	}
	return n
}

// Sliced gives every processor one slice of consecutive rows of every matrix: row r of
// R belongs to the processor g with Slice(R, g, n). It is the CPU's layout.
func Sliced(matrices []Matrix, processors int) (*Plan, error) {
	if processors < 1 {
		return nil, fmt.Errorf("plan: %d processors: at least one is needed", processors)
	}
	p := &Plan{Processors: processors, Matrices: matrices, First: []int{0}, RowsPerWarp: 1, Warps: 8}
	slots := make([]int, processors)
	for m, x := range matrices {
		if x.Rows < 1 || x.Cols < 1 {
			return nil, fmt.Errorf("plan: matrix %q is %dx%d", x.Name, x.Rows, x.Cols)
		}
		for g := range processors {
			lo, hi := Slice(x.Rows, g, processors)
			if lo < hi {
				p.Partitions = append(p.Partitions, Partition{Matrix: m, Processor: g, Slot: slots[g], Row: lo, Rows: hi - lo})
				slots[g]++
			}
		}
		p.First = append(p.First, len(p.Partitions))
	}
	p.rankHolders()
	return p, nil
}

// rankHolders numbers the holders of each copy of a matrix, but if it is transposed by columns: then a result is one
// holder's.
func (p *Plan) rankHolders() {
	for m := range p.Matrices {
		if p.Residence(m).Columns > 0 {
			continue
		}
		seen, holders := map[[2]int]int{}, map[int]int{} // by copy and processor; by copy
		for i := range p.Of(m) {
			x := &p.Of(m)[i]
			key := [2]int{x.Copy, x.Processor}
			if _, ok := seen[key]; !ok {
				seen[key] = holders[x.Copy]
				holders[x.Copy]++
			}
			x.Rank = seen[key]
		}
	}
}

// Slice is the part of a vector of n elements owned by the processor of a rank in a
// group: [lo, hi). The kernel computes the same (jit/kernel).
func Slice(n, rank, group int) (lo, hi int) { return n * rank / group, n * (rank + 1) / group }
