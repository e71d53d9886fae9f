package plan

import (
	"cmp"
	"fmt"
	"slices"
)

// Device is what residency depends on.
type Device struct {
	Name           string
	Processors     int // CTAs, each on an SM of its own
	Warps          int // of a CTA
	RegistersPer   int // registers of a thread at most
	SetAside       int // of these, what the interpreter takes without any matrix
	SharedPerBlock int // bytes
	Copies         int // of a matrix, at most; 0: as many as registers are left over for
	Weights        int // registers a thread may have for weights; 0: as many as there are
	Partials       int // floats that the partial results of a transposed product may take; 0: as many as pay
}

// Staging is the registers a thread needs beside the weights to form the gradient of a partition: as
// many as the weights of a partition of that many columns. Of the longest row and times the threads it is the
// paper's partition size, Psize = TBSize * rpw * ceil(rowmax / 32) (§III-A1, equation 1).
// The results of a block of a gradient take 32 at most, whatever the columns (jit/kernel/outer_blocks.h). Plans that count that were not
// measured.
func Staging(rpw, cols int) int { return rpw * iterations(cols) }

// GemmStaging is the registers of a thread's results of Gemm (jit/kernel/gemm_tiles.h), which are not there while a gradient is
// formed.
const GemmStaging = 32

// iterations is how many elements of a row a lane has.
func iterations(cols int) int { return (cols + 31) / 32 }

// RoundRobin hands out partitions of Warps*rpw consecutive rows to the processors in turn (paper
// §III-A1), those of the widest matrices first: a processor's n-th partition is in the same register
// array on all of them, which is as large as the largest. If all matrices fit, what is left over in the arrays
// holds further copies. If not, those that do not are divided among all processors and kept in their shared memory
// or, where that is full too, in memory.
func RoundRobin(matrices []Matrix, d Device, rpw int) (*Plan, error) {
	if d.Processors < 1 || rpw < 1 {
		return nil, fmt.Errorf("plan: %d processors, %d rows per warp: at least one of each", d.Processors, rpw)
	}
	matrices = widestFirst(matrices)
	x := deal(matrices, d, rpw, d.Partials > 0)
	if !x.byColumns && x.plan.Outside() > 0 {
		x = deal(matrices, d, rpw, true)
	}
	x.plan.dealGradients()
	if x.plan.Depth == 0 {
		x.plan.addCopies(x.arrays, x.slots, x.next, d.Copies)
	}
	return x.plan, nil
}

// rowParts is the number of partitions that a column of the matrix is divided among.
func (m *Matrix) rowParts(rows int) int { return (m.Rows + rows - 1) / rows }

// widestFirst is the order in which matrices are handed out.
func widestFirst(matrices []Matrix) []Matrix {
	return slices.SortedStableFunc(slices.Values(matrices), func(a, b Matrix) int { return cmp.Compare(iterations(b.Cols), iterations(a.Cols)) })
}

// dealer holds the partitions handed out so far.
type dealer struct {
	plan      *Plan
	device    Device
	byColumns bool  // matrices in registers may be transposed by columns from memory
	slots     []int // partitions in registers, by processor
	arrays    []int // registers of a slot, the same on all processors
	next      int   // the processor whose turn it is
	beyond    beyond
}

func deal(matrices []Matrix, d Device, rpw int, byColumns bool) *dealer {
	p := &Plan{Processors: d.Processors, First: []int{0}, RowsPerWarp: rpw, Warps: d.Warps,
		Registers: d.RegistersPer, SetAside: d.SetAside, Shared: d.SharedPerBlock, Matrices: slices.Clone(matrices)}
	x := &dealer{plan: p, device: d, byColumns: byColumns, slots: make([]int, d.Processors), beyond: newBeyond(d)}
	for m := range p.Matrices {
		x.add(m)
	}
	p.rankHolders()
	p.Resident = x.beyond.bytes()
	p.Shared -= p.Resident
	return x
}

// add hands out matrix m.
func (x *dealer) add(m int) {
	p, matrix := x.plan, x.plan.Matrices[m]
	rows := p.RowsPerWarp * p.Warps
	w := Residence{First: x.next}
	if x.byColumns {
		w.Columns = columnsOf(matrix, matrix.rowParts(rows), x.device)
	}
	if !x.fits(matrix, w) {
		w = x.beyond.place(matrix, x.next)
		rows = w.Rows
	}
	if w.Columns > 0 {
		p.Depth = x.beyond.depth
	}
	parts := matrix.rowParts(rows)
	for k := range parts {
		q := (x.next + k) % p.Processors
		row, slot := k*rows, -1
		if w.Kind == Registers {
			slot = x.slots[q]
			x.slots[q]++
		}
		p.Partitions = append(p.Partitions, Partition{Matrix: m, Processor: q, Slot: slot, Row: row, Rows: min(rows, matrix.Rows-row)})
	}
	x.next = (x.next + parts) % p.Processors
	p.First = append(p.First, len(p.Partitions))
	p.Where = append(p.Where, w)
}

// tableSlots bounds the table of what processors have in registers, 24 bytes each (jit/kernel/tile_gpu.h: Partition), which is
// in 64 KB of constant memory.
const tableSlots = 2000

// fits reports whether a matrix fits into the registers, and takes them.
func (x *dealer) fits(m Matrix, w Residence) bool {
	p := x.plan
	parts := m.rowParts(p.RowsPerWarp * p.Warps)
	arrays := slotted(x.arrays, x.slots, x.next, parts, p.RowsPerWarp*iterations(m.Cols))
	staging, used := max(p.Staging, Staging(p.RowsPerWarp, m.Cols), GemmStaging), 0
	if w.Columns > 0 {
		staging = max(p.Staging, streamStaging)
	}
	for _, floats := range arrays {
		used += floats
	}
	if p.SetAside+staging+used > p.Registers || len(arrays)*p.Processors > tableSlots ||
		w.Columns == 0 && 2*transposedBytes(m, x.device) > x.device.SharedPerBlock ||
		x.device.Weights > 0 && used > x.device.Weights {
		return false
	}
	x.arrays, p.Used, p.Staging = arrays, used, staging
	return true
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
// If no number lets everything fit, it is the plan of one row alone, with matrices beyond the registers.
func Candidates(matrices []Matrix, d Device) ([]*Plan, error) {
	var list []*Plan
	var before []int
	for rpw := 1; rpw <= maxRows; rpw++ {
		p, err := RoundRobin(matrices, d, rpw)
		if err != nil {
			return nil, err
		}
		if p.Outside() > 0 && rpw == 1 {
			return []*Plan{p}, nil
		}
		if parts := p.parts(); p.Outside() == 0 && (list == nil || !slices.Equal(parts, before)) {
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
