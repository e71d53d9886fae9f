// Package jit turns a plan into a kernel: specialised source, NVRTC, a check of the machine code
// and a cache on disk.
//
// The source is the files of jit/kernel with the plan's matrices written in: which rows each
// CTA holds, and calls of the matrix routines with literal sizes, so that the weights' arrays are
// indexed by constants and stay in registers.
package jit

import (
	"fmt"
	"slices"
	"strings"

	"libvpps/jit/kernel"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
)

// Entry is the kernel's name.
const Entry = "vpps_run"

// Threads is a processor's width.
const Threads = 256

// headers in the order the source needs them.
var headers = []string{"device.h", "isa.h", "math.h", "special.h", "formulas.h", "philox.h", "processor.h", "elementwise.h", "team.h", "strided.h", "sum.h",
	"rows.h", "random.h", "update.h", "gpu.h", "bulk_gpu.h", "chain.h", "check.h", "clocks.h", "tile_gpu.h", "parts_gpu.h", "gemm_tiles.h", "gemm_blocks.h", "gemm.h", "outer_blocks.h", "matrix_gpu.h", "matrix_stream.h", "matrix_vector.h", "interpreter.h"}

// Options change the kernel.
type Options struct {
	Check  bool // hold every operand against the script's tensor table
	Clocks bool // note where each processor's time goes, and how much of the parameters it reads
	Quick  bool // compile in half the time to slower code with the same results (HasQuick)
}

// Source is the CUDA C++ text of a plan's kernel.
func Source(p *plan.Plan, o Options) (string, error) {
	var b strings.Builder
	if o.Clocks {
		b.WriteString("#define VPPS_CLOCKS 1\n")
	}
	if len(p.Matrices) == 0 {
		b.WriteString("#define VPPS_BOUNDS\n") // bounds would override interpreterRegisters
	} else {
		b.WriteString("#define VPPS_BOUNDS __launch_bounds__(THREADS, 1)\n")
	}
	fmt.Fprintf(&b, "#define VPPS_CHAINS %d\n", chainWarps(p))
	fmt.Fprintf(&b, "#define VPPS_GEMM_WARPS %d\n", gemmWarps(p))
	fmt.Fprintf(&b, "#define VPPS_CROWDED %t\n", crowded(p))
	fmt.Fprintf(&b, "#define VPPS_OUTER_FLIGHT %d\n", outerFlight(p))
	fmt.Fprintf(&b, "#define VPPS_OUTER_ITEMS %d\n", outerItems(p))
	fmt.Fprintf(&b, "#define VPPS_SUMS %d\n", sumsOf(p))
	if p.Depth > 0 {
		fmt.Fprintf(&b, "#define VPPS_DEPTH %d\n", p.Depth)
	}
	for _, name := range headers {
		if (name == "matrix_stream.h" || name == "matrix_vector.h") && p.Depth == 0 {
			continue
		}
		text, err := kernel.Sources.ReadFile(name)
		if err != nil {
			return "", err
		}
		b.WriteString(strings.ReplaceAll(string(text), "#pragma once", ""))
	}
	g := generator{p: p, slots: slotsOf(p)}
	g.residency(&b)
	g.beyond(&b)
	g.grids(&b)
	if o.Check {
		b.WriteString("#define VPPS_CHECK 1\n")
		g.shapes(&b)
	}
	g.matrices(&b, o)
	text, err := kernel.Sources.ReadFile("entry.h")
	if err != nil {
		return "", err
	}
	b.WriteString(strings.ReplaceAll(string(text), "#pragma once", ""))
	return b.String(), nil
}

// slot is one register array: the sizes of the matrices whose partitions processors keep in it.
type slot struct {
	cols   []int // of the matrices, each once
	held   []int // of those whose transposed products are formed with this array, too
	floats int   // per thread
}

func iterations(cols int) int { return (cols + 31) / 32 }

// slotsOf collects which sizes share which register array.
func slotsOf(p *plan.Plan) []slot {
	var s []slot
	for m := range p.Matrices {
		cols, w := p.Matrices[m].Cols, p.Residence(m)
		if w.Kind != plan.Registers {
			continue
		}
		for _, x := range p.Of(m) {
			for len(s) <= x.Slot {
				s = append(s, slot{})
			}
			t := &s[x.Slot]
			if !slices.Contains(t.cols, cols) {
				t.cols = append(t.cols, cols)
			}
			if w.Columns == 0 && !slices.Contains(t.held, cols) {
				t.held = append(t.held, cols)
			}
			t.floats = max(t.floats, p.RowsPerWarp*iterations(cols))
		}
	}
	return s
}

// mostShared is the shared memory that the matrix routines use, mostInBulk that of products of many items: the rest is a
// cache.
const (
	mostShared = 72 << 10
	mostInBulk = 100 << 10
)

func room(p *plan.Plan) int { return min(p.Shared, mostShared) }

// rowsOf is how many rows a partition has at most.
func rowsOf(p *plan.Plan) int { return Threads / 32 * p.RowsPerWarp }

// stage is the number of items, of bytes each, that a matrix routine works on between two meetings of a processor's
// threads: at most items.
func stage(p *plan.Plan, bytes, items int) int {
	for items > 1 && items*bytes > room(p) {
		items /= 2
	}
	return items
}

// sumsOf is how many registers of a thread the sums of products may take: manySums, with which many items come by bulk
// copies, where the weights leave enough of them and there is little to compile, one routine or several short ones, as
// measured with the kernels of compile_test.go.
func sumsOf(p *plan.Plan) int {
	const enough, short = 188, 16
	routines, floats := 0, 0
	for _, s := range slotsOf(p) {
		routines, floats = routines+len(s.cols), max(floats, s.floats)
	}
	if p.Registers-p.Used >= enough && (routines == 1 || routines == 2 && floats <= short) {
		return manySums
	}
	return 16
}

const manySums = 32

// productSizes is how many vectors of a product are in shared memory, for how many items the warps' sums
// are, in two buffers, and the bytes of all; of many items, how many vectors and sums one of two buffers has.
func productSizes(p *plan.Plan, cols int) (ring, items, many, bytes int) {
	vector, sums := 4*32*iterations(cols), 4*2*Threads/32*rowsOf(p)
	ring, items = 8, 32
	for ring > 2 && ring*vector > room(p)/2 {
		ring /= 2
	}
	for items > 1 && items*rowsOf(p) > 2*Threads {
		items /= 2
	}
	if many = items; sumsOf(p) < manySums {
		many = 1
	}
	for many > 1 && many*(2*vector+sums) > min(p.Shared, mostInBulk) {
		many /= 2
	}
	for items > 1 && ring*vector+items*sums > room(p) {
		items /= 2
	}
	return ring, items, many, max(ring*vector+items*sums, many*(2*vector+sums))
}

// transposedStage is the items of a stage, and the bytes of each in three buffers.
func transposedStage(p *plan.Plan, arrays int) (items, bytes int) {
	bytes = 4 * 3 * rowsOf(p) * arrays
	return stage(p, bytes, 16), bytes
}

// The bytes that a warp needs for a chain, and the alignment of the first warp's slots (jit/kernel/chain.h).
const (
	chainMemory = (4*32 + 8) * isa.MaxSlots
	chainAlign  = 4 * 32 * isa.MaxSlots
)

// chainWarps is how many warps work on a chain: all, where there is memory.
func chainWarps(p *plan.Plan) int {
	return max(1, min(Threads/32, (p.Shared-chainAlign)/chainMemory))
}

func chainBytes(p *plan.Plan) int { return chainAlign + chainMemory*chainWarps(p) }

// gemmMemory is the bytes that a warp needs for Gemm: its stages of GemmMemory in jit/kernel/gemm_tiles.h.
const gemmMemory = 4 * 2 * 2 * 16 * 32

// gemmWarps is how many warps work on a Gemm: all, where there is memory.
func gemmWarps(p *plan.Plan) int {
	warps := Threads / 32
	for warps > 1 && warps*gemmMemory > room(p) {
		warps /= 2
	}
	return warps
}

// crowded reports whether weights leave too few registers for the compiler to form four sums of a Gemm side by side, as it
// does on its own with 80 registers of weights, and with 96 not (NVRTC 12, sm_90).
func crowded(p *plan.Plan) bool {
	registers := p.Registers
	if len(p.Matrices) == 0 {
		registers = interpreterRegisters
	}
	return registers-p.Used < 168
}

// outerStageBytes is the bytes of a stage of both groups' blocks of a gradient: OuterMemory in jit/kernel/outer_blocks.h.
// outerItemBytes is what each of the few items of a block takes that is formed by multiply-adds, in three buffers.
const outerStageBytes, outerItemBytes = 4 * 2 * 5 * 16 * 32, 4 * 3 * (32 + 128)

// outerFlight is how many stages of blocks have room: two at least, as every device with 48 KB has.
func outerFlight(p *plan.Plan) int { return min(3, max(2, room(p)/outerStageBytes)) }

// outerItems is how many items are in a stage of a block that is formed by multiply-adds.
func outerItems(p *plan.Plan) int { return stage(p, outerItemBytes, 16) }

func outerBytes(p *plan.Plan) int {
	return max(outerFlight(p)*outerStageBytes, outerItems(p)*outerItemBytes)
}

// workBytes is the dynamic shared memory in which chains, Gemm and the matrix routines work.
func workBytes(p *plan.Plan) int {
	most, sizes := max(chainBytes(p), gemmMemory*gemmWarps(p)), map[int]int{}
	for _, s := range slotsOf(p) {
		for _, cols := range s.cols {
			_, _, _, bytes := productSizes(p, cols)
			most = max(most, bytes)
		}
		for _, cols := range s.held {
			sizes[cols]++
		}
	}
	for _, arrays := range sizes {
		items, bytes := transposedStage(p, arrays)
		most = max(most, items*bytes)
	}
	if p.Depth > 0 {
		most = max(most, plan.StreamBytes(p.Depth))
	}
	return max(most, outerBytes(p))
}

// SharedBytes is the dynamic shared memory of a plan's kernel: the matrices behind where the routines
// work.
func SharedBytes(p *plan.Plan) int { return workBytes(p) + p.Resident }

type generator struct {
	p     *plan.Plan
	slots []slot
}

// residency writes the table of Partitions by processor and slot.
func (g *generator) residency(b *strings.Builder) {
	if len(g.slots) == 0 {
		return
	}
	table := make([][9]int, g.p.Processors*len(g.slots))
	for i := range table {
		table[i][0] = -1
	}
	for m, mx := range g.p.Matrices {
		if g.p.Residence(m).Kind != plan.Registers {
			continue
		}
		for _, x := range g.p.Of(m) {
			table[x.Processor*len(g.slots)+x.Slot] = [9]int{m, x.Rows, mx.Cols, x.Copy, max(1, mx.Copies), x.Rank, x.Row, mx.Rows, int(mx.Offset)}
		}
	}
	fmt.Fprintf(b, "\n__constant__ Partition residency[%d] = {", len(table))
	for i, t := range table {
		if i%8 == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(b, "{%d,%d,%d,%d,%d,%d,%d,%d,%du},", t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], t[8])
	}
	b.WriteString("\n};\n")
}

// beyond writes the table of matrices of which not everything is in registers, by matrix.
func (g *generator) beyond(b *strings.Builder) {
	if g.p.Depth == 0 {
		return
	}
	fmt.Fprintf(b, "\n__device__ const Residence beyond[%d] = {\n", len(g.p.Matrices))
	for m, x := range g.p.Matrices {
		w := g.p.Residence(m)
		rows, at := 0, "NOT_SHARED"
		if w.Kind != plan.Registers {
			rows = w.Rows
		}
		if w.Kind == plan.Shared {
			at = fmt.Sprint(w.At)
		}
		fmt.Fprintf(b, "{%d,%d,%d,%d,%d,%s,%d},\n", x.Rows, x.Cols, x.Offset, w.First, rows, at, w.Columns)
	}
	b.WriteString("};\n")
}

func (g *generator) outer(line func(string, ...any)) {
	if len(g.p.Grids) > 0 {
		line("outer_of(work, grids[work.w[OUTER_MATRIX]], shared);")
	}
}

// grids writes the table of how gradients are divided, by matrix.
func (g *generator) grids(b *strings.Builder) {
	if len(g.p.Grids) == 0 {
		return
	}
	fmt.Fprintf(b, "\n__device__ const Grid grids[%d] = {\n", len(g.p.Grids))
	for m, x := range g.p.Grids {
		mx, tall := g.p.Matrices[m], 0
		if x.Rows == x.Columns {
			tall = 1
		}
		fmt.Fprintf(b, "{%d,%d,%d,%d,%d,%d},\n", mx.Rows, mx.Cols, tall, x.Down, x.Count, x.First)
	}
	b.WriteString("};\n")
}

// shapes writes the sizes of the matrices, which a checking build compares with.
func (g *generator) shapes(b *strings.Builder) {
	fmt.Fprintf(b, "#define SHAPES %d\n__constant__ Shape shapes[] = {", len(g.p.Matrices))
	for _, m := range g.p.Matrices {
		fmt.Fprintf(b, "{%d,%d,%d},", m.Rows, m.Cols, m.Offset)
	}
	b.WriteString("{0,0,0}};\n")
}

// matrices writes struct Matrices: the register arrays of a processor, and the calls of the matrix routines with them.
func (g *generator) matrices(b *strings.Builder, o Options) {
	function(b, "VP void outer(const Work &work, float *shared)", g.outer)
	b.WriteString("\nstruct Matrices {\n")
	for s, x := range g.slots {
		fmt.Fprintf(b, "float r%d[%d];\n", s, x.floats)
		fmt.Fprintf(b, "const Partition &p%d = residency[blockIdx.x * %d + %d];\n", s, len(g.slots), s)
	}
	member(b, "void load(const Launch &l, float *shared, Clocks &clocks)", g.load)
	member(b, "void product(const Work &work, const BulkCopies &bulk, float *shared, Clocks &clocks)", g.product)
	member(b, "void product_t(const Work &work, float *shared, Clocks &clocks)", g.transposed)
	if o.Check {
		member(b, "u32 place(const u32 *w) const", g.place)
	}
	b.WriteString("};\n")
}

// member writes a member function with the lines of f.
func member(b *strings.Builder, signature string, f func(line func(format string, a ...any))) {
	function(b, "VP_MEMBER "+signature, f)
}

// function writes a function with the lines of f.
func function(b *strings.Builder, signature string, f func(line func(format string, a ...any))) {
	fmt.Fprintf(b, "%s {\n", signature)
	f(func(format string, a ...any) { fmt.Fprintf(b, format+"\n", a...) })
	b.WriteString("}\n")
}

// place writes how far from the places of a transposed product's items a processor's results are.
func (g *generator) place(line func(string, ...any)) {
	for s := range g.slots {
		line("if (p%d.matrix == (int)w[PRODUCT_T_MATRIX]) return p%d.rank * w[PRODUCT_T_APART];", s, s)
	}
	line("return 0;")
}

func (g *generator) load(line func(string, ...any)) {
	for s, x := range g.slots {
		for _, cols := range x.cols {
			line("if (p%d.matrix >= 0 && p%d.cols == %d) load_rows<%d, %d>(r%d, l.segment[SEG_PARAM] + p%d.offset, p%d, clocks);",
				s, s, cols, g.p.RowsPerWarp, cols, s, s, s)
		}
	}
	for m := range g.p.Matrices {
		if w := g.p.Residence(m); w.Kind == plan.Shared {
			line("load_shared<%d>(beyond[%d], l, shared + %d, clocks);", plan.Tile(w.Rows), m, workBytes(g.p)/4)
		}
	}
	if g.p.Resident > 0 {
		line("commit_copies();")
		line("wait_for_all_copies();")
	}
}

// eachTile writes a call for every tile that matrices of(m) need which are not 0, m.field of them.
func (g *generator) eachTile(line func(string, ...any), field string, of func(m int) int, call func(tile int) string) {
	var tiles []int
	for m := range g.p.Matrices {
		if n := of(m); n > 0 && !slices.Contains(tiles, plan.Tile(n)) {
			tiles = append(tiles, plan.Tile(n))
		}
	}
	slices.Sort(tiles)
	for i, tile := range tiles {
		over, under := 0, tile
		if i > 0 {
			over = tiles[i-1]
		}
		if tile == 16 {
			under = 1 << 30
		}
		line("if (m.%s > %d && m.%s <= %d) %s;", field, over, field, under, call(tile))
	}
}

// outsideRows is how many rows of matrix m a processor has outside the registers, at most.
func (g *generator) outsideRows(m int) int {
	if w := g.p.Residence(m); w.Kind != plan.Registers {
		return w.Rows
	}
	return 0
}

// eachArray writes a call for every register array and size of the matrix that the instruction
// names.
func (g *generator) eachArray(line func(string, ...any), field string, sizes func(*slot) []int, call func(slot, cols int) string) {
	for s := range g.slots {
		for _, cols := range sizes(&g.slots[s]) {
			line("if (p%d.matrix == (int)work.w[%s] && p%d.cols == %d) %s;", s, field, s, cols, call(s, cols))
		}
	}
}

func (g *generator) product(line func(string, ...any)) {
	all := func(s *slot) []int { return s.cols }
	g.eachArray(line, "PRODUCT_MATRIX", all, func(s, cols int) string {
		ring, items, many, _ := productSizes(g.p, cols)
		return fmt.Sprintf("product_rows<%d, %d, %d, %d, %d>(r%d, bulk, work, p%d, shared)", g.p.RowsPerWarp, cols, ring, items, many, s, s)
	})
	if g.p.Depth > 0 {
		line("const Residence &m = beyond[work.w[PRODUCT_MATRIX]];")
		line("const u32 few = product_few(work.l, work.w, work.items, work.flags, work.count, m, shared, clocks);")
		g.eachTile(line, "part", g.outsideRows, func(tile int) string {
			return fmt.Sprintf("product_streamed<%d>(work.l, work.w, work.items, work.flags, work.count - few, m, shared, shared + %d, clocks)", tile, workBytes(g.p)/4)
		})
	}
}

func (g *generator) transposed(line func(string, ...any)) {
	if g.p.Depth == 0 {
		g.transposedHeld(line)
		return
	}
	line("const Residence &m = beyond[work.w[PRODUCT_T_MATRIX]];")
	line("const u32 few = product_t_few(work.l, work.w, work.items, work.flags, work.count, m, shared, clocks);")
	columns := func(m int) int { return g.p.Residence(m).Columns }
	g.eachTile(line, "columns", columns, func(tile int) string {
		return fmt.Sprintf("product_t_streamed<%d>(work.l, work.w, work.items, work.flags, work.count - few, m, shared, clocks)", tile)
	})
	line("if (m.columns == 0) {")
	g.transposedHeld(line)
	line("}")
}

// transposedHeld: the partitions of one matrix that a processor holds in several arrays add to the
// same partial result.
func (g *generator) transposedHeld(line func(string, ...any)) {
	sizes := map[int][]int{} // columns: the arrays
	var order []int
	for s, x := range g.slots {
		for _, cols := range x.held {
			if sizes[cols] == nil {
				order = append(order, cols)
			}
			sizes[cols] = append(sizes[cols], s)
		}
	}
	line("const int matrix = (int)work.w[PRODUCT_T_MATRIX];")
	for _, cols := range order {
		var any []string
		for _, s := range sizes[cols] {
			any = append(any, fmt.Sprintf("p%d.matrix == matrix && p%d.cols == %d", s, s, cols))
		}
		arrays := len(sizes[cols])
		items, _ := transposedStage(g.p, arrays)
		rows := rowsOf(g.p)
		rpw := g.p.RowsPerWarp
		line("if (%s) {", strings.Join(any, " || "))
		rank := "0"
		for i, s := range sizes[cols] {
			rank = fmt.Sprintf("%s ? p%d.rank : %s", any[i], s, rank)
		}
		line("const u32 rank = %s;", rank)
		line("constexpr int BATCH = transposed_batch<%d, %d, %d>();", rpw, cols, items)
		line("const u32 *list = work.items;")
		line("const float *from = segment_of(work.l, work.w[PRODUCT_T_SEGMENTS], 1);")
		line("u32 stages = (work.count + %d) / %d;", items-1, items)
		line("__syncthreads();")
		line("#pragma unroll 1")
		line("for (u32 k = 0; k < stages + 2; k++) {")
		line("if (k > 1) { wait_for_copies(); __syncthreads(); }")
		line("if (k < stages) {")
		line("float *to = shared + k %% 3 * %d;", items*rows*arrays)
		line("u32 e = k * %d;", items)
		for i, s := range sizes[cols] {
			line("if (%s) stage<%d, %d, 1>(to + %d, from + p%d.row, list + 2 * e + 1, work.count - e, 0, p%d.height);",
				any[i], rows, items, i*items*rows, s, s)
		}
		line("}")
		line("commit_copies();")
		line("if (k < 2) continue;")
		line("const float *dy = shared + (k - 2) %% 3 * %d;", items*rows*arrays)
		line("u32 e = (k - 2) * %d, end = min(work.count, e + %d);", items, items)
		line("#pragma unroll 1")
		line("for (; e < end; e += BATCH, dy += BATCH * %d) {", rows)
		line("TransposedSums<%d, %d, BATCH> sums;", rpw, cols)
		for i, s := range sizes[cols] {
			line("if (%s) sums.add(r%d, dy + %d);", any[i], s, i*items*rows)
		}
		line("sums.store(address(work.l, work.w[PRODUCT_T_SEGMENTS], 0, rank * work.w[PRODUCT_T_APART]), FLOAT_OF(work.w[PRODUCT_T_SCALE]), list + 2 * e, end - e, work.flags);")
		line("}")
		line("}")
		line("}")
	}
}
