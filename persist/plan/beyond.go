package plan

import "slices"

// What does not fit into the registers: matrices in shared memory, and matrices that are read
// from memory for several items at a time.

// Kind says where a matrix's rows are while a launch runs.
type Kind uint8

const (
	Registers Kind = iota // of their processors' threads; read from memory once a launch
	Shared                // the shared memory of their processors; read from memory once a launch
	Streamed              // memory; read once for a few dozen items of a product
)

func (k Kind) String() string {
	return [...]string{"registers", "shared memory", "memory, streamed"}[k]
}

// Residence says where a matrix is, and which processor works on which part of it.
type Residence struct {
	Kind  Kind
	First int // the processor of the first partition
	Rows  int // of a partition; the last may have fewer (Shared, Streamed)
	At    int // Shared: where a partition begins, in floats from the beginning of the processor's resident matrices

	// Columns of a transposed product that a processor forms, from memory: all rows of them, so that
	// there is nothing to add. 0: every holder of rows leaves a partial result.
	Columns int
}

// Residence of matrix m.
func (p *Plan) Residence(m int) Residence {
	if p.Where == nil {
		return Residence{}
	}
	return p.Where[m]
}

// ColumnsOf is what a processor forms of a transposed product of matrix m, [lo, hi): nothing where
// holders of rows leave partial results.
func (p *Plan) ColumnsOf(m, processor int) (lo, hi int) {
	w, cols := p.Residence(m), p.Matrices[m].Cols
	lo = (processor - w.First + p.Processors) % p.Processors * w.Columns
	return min(lo, cols), min(lo+w.Columns, cols)
}

// Depth is how many elements of a sum the routines for matrices beyond the registers have in shared
// memory at a time, of bytes that a processor may use; and what that takes.
func depthOf(shared int) (depth, bytes int) {
	switch {
	case shared >= 160<<10:
		depth = 128
	case shared >= 56<<10:
		depth = 64
	default:
		depth = 32
	}
	return depth, StreamBytes(depth)
}

// StreamBytes is the shared memory in which the routines for matrices beyond the registers work: a
// ring of three stages (jit/kernel/matrix_stream.h).
func StreamBytes(depth int) int { return 3 * 4 * depth * (16 + 32) }

// streamItems is how many items of a product are served by one reading of a matrix (jit/kernel/matrix_stream.h).
const streamItems = 32

func (m *Matrix) bytes() int { return 4 * m.Rows * m.Cols }

// share is how many of n rows or columns one of the processors gets, so that all have some: a multiple of
// 4 or, where the routines take several tiles, of 16.
func share(n, processors int) int {
	each := (n + processors - 1) / processors
	if each <= 16 {
		return (each + 3) &^ 3
	}
	return (each + 15) &^ 15
}

// Tile is how many of n rows or columns of a processor are worked on at a time.
func Tile(n int) int {
	switch {
	case n <= 4:
		return 4
	case n <= 8:
		return 8
	}
	return 16
}

// Partial results of a transposed product of this many floats cost more than to read the matrix
// by columns: one processor adds them up, at some 64 bytes a cycle, while reading a
// matrix is shared by all. An estimate for an H200, not measured.
const partialsPay = 1 << 16

// columnsOf is Residence.Columns of a matrix in registers.
func columnsOf(m Matrix, parts int, d Device) int {
	held, most := min(parts, d.Processors), d.Partials
	if most == 0 {
		most = partialsPay
	}
	if held > 1 && held*m.Cols >= most || transposedBytes(m, d) > min(transposedMost, d.SharedPerBlock) {
		return share(m.Cols, d.Processors)
	}
	return 0
}

// The shared memory in which the warps' partial results of one item meet.
func transposedBytes(m Matrix, d Device) int { return 4 * d.Warps * ((m.Cols + 31) &^ 31) }

// A plan with matrices in shared memory leaves this for the others.
const transposedMost = 64 << 10

// streamStaging is the registers that the routines for matrices beyond the registers need beside the
// weights and the interpreter's.
const streamStaging = 64

// beyond places matrices outside the registers.
type beyond struct {
	processors int
	depth      int
	most       int   // floats of shared memory that a processor has for matrices
	used       []int // floats, by processor
}

func newBeyond(d Device) beyond {
	depth, work := depthOf(d.SharedPerBlock)
	return beyond{d.Processors, depth, (d.SharedPerBlock - max(work, transposedMost)) / 4, make([]int, d.Processors)}
}

// bytes is the shared memory that matrices take.
func (b *beyond) bytes() int { return 4 * slices.Max(b.used) }

// place says where a matrix goes whose first partition is the processor next's.
func (b *beyond) place(m Matrix, next int) Residence {
	w := Residence{Kind: Streamed, First: next, Rows: share(m.Rows, b.processors), Columns: share(m.Cols, b.processors)}
	parts := (m.Rows + w.Rows - 1) / w.Rows
	for k := range parts {
		w.At = max(w.At, b.used[(next+k)%b.processors])
	}
	tile := Tile(w.Rows)
	size := (w.Rows + tile - 1) / tile * tile * m.Cols
	if w.At+size > b.most {
		w.At = 0
		return w
	}
	w.Kind = Shared
	for k := range parts {
		b.used[(next+k)%b.processors] = w.At + size
	}
	return w
}
