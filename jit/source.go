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
	"libvpps/persist/plan"
)

// Entry is the kernel's name.
const Entry = "vpps_run"

// Threads is a processor's width.
const Threads = 256

// headers in the order the source needs them.
var headers = []string{"device.h", "isa.h", "math.h", "formulas.h", "philox.h", "processor.h", "elementwise.h",
	"rows.h", "random.h", "gemm.h", "update.h", "check.h", "gpu.h", "clocks.h", "matrix_gpu.h", "interpreter.h"}

// Options change the kernel.
type Options struct {
	Check  bool // hold every operand against the script's tensor table
	Clocks bool // note where each processor's time goes, and what is read of the parameters
}

// Source is the CUDA C++ text of a plan's kernel.
func Source(p *plan.Plan, o Options) (string, error) {
	var b strings.Builder
	if o.Clocks {
		b.WriteString("#define VPPS_CLOCKS 1\n")
	}
	fmt.Fprintf(&b, "#define VPPS_CTAS %d\n", max(1, p.CTAs))
	for _, name := range headers {
		text, err := kernel.Sources.ReadFile(name)
		if err != nil {
			return "", err
		}
		b.WriteString(strings.ReplaceAll(string(text), "#pragma once", ""))
	}
	g := generator{p: p, slots: slotsOf(p)}
	g.residency(&b)
	if o.Check {
		b.WriteString("#define VPPS_CHECK 1\n")
		g.shapes(&b)
	}
	g.macro(&b, "VPPS_REGISTERS", g.registers)
	g.macro(&b, "VPPS_LOAD", g.load)
	g.macro(&b, "VPPS_PRODUCT", g.product)
	g.macro(&b, "VPPS_PRODUCT_T", g.transposed)
	g.macro(&b, "VPPS_OUTER", g.outer)
	text, err := kernel.Sources.ReadFile("entry.h")
	if err != nil {
		return "", err
	}
	b.WriteString(strings.ReplaceAll(string(text), "#pragma once", ""))
	return b.String(), nil
}

// slot is one register array: the sizes of the matrices whose partitions processors keep in it.
type slot struct {
	cols   []int    // of the matrices, each once
	shares [][2]int // columns and copies of the matrices, each once
	floats int      // per thread
}

func iterations(cols int) int { return (cols + 31) / 32 }

// slotsOf collects which sizes share which register array.
func slotsOf(p *plan.Plan) []slot {
	var s []slot
	for m := range p.Matrices {
		cols := p.Matrices[m].Cols
		for _, x := range p.Of(m) {
			for len(s) <= x.Slot {
				s = append(s, slot{})
			}
			t := &s[x.Slot]
			if !slices.Contains(t.cols, cols) {
				t.cols = append(t.cols, cols)
			}
			if share := [2]int{cols, max(1, p.Matrices[m].Copies)}; !slices.Contains(t.shares, share) {
				t.shares = append(t.shares, share)
			}
			t.floats = max(t.floats, p.RowsPerWarp*iterations(cols))
		}
	}
	return s
}

// transposedBytes is the shared memory in which the warps' shares of some items of a transposed
// product meet. No more is needed for the vectors that products and outer products share.
func transposedBytes(cols, items int) int { return items * (Threads / 32) * 32 * iterations(cols) * 4 }

// transposedItems is how many items of a transposed product are done at a time.
func transposedItems(p *plan.Plan, cols int) int {
	items := 4
	for items > 1 && (items*iterations(cols) > 32 || items*p.RowsPerWarp > 32 || transposedBytes(cols, items) > p.Shared) { // registers, memory
		items /= 2
	}
	return items
}

// SharedBytes is the dynamic shared memory of a plan's kernel.
func SharedBytes(p *plan.Plan) int {
	bytes := 0
	for _, m := range p.Matrices {
		bytes = max(bytes, transposedBytes(m.Cols, transposedItems(p, m.Cols)))
	}
	return bytes
}

type generator struct {
	p     *plan.Plan
	slots []slot
}

// residency writes the table of Partitions by processor and slot.
func (g *generator) residency(b *strings.Builder) {
	if len(g.slots) == 0 {
		return
	}
	table := make([][8]int, g.p.Processors*len(g.slots))
	for i := range table {
		table[i][0] = -1
	}
	for m, mx := range g.p.Matrices {
		for _, x := range g.p.Of(m) {
			table[x.Processor*len(g.slots)+x.Slot] = [8]int{m, x.Row, x.Row + x.Rows, mx.Rows, mx.Cols, int(mx.Offset), x.Copy, max(1, mx.Copies)}
		}
	}
	fmt.Fprintf(b, "\n__constant__ Partition residency[%d] = {", len(table))
	for i, t := range table {
		if i%8 == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(b, "{%d,%d,%d,%d,%d,%du,%d,%d},", t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7])
	}
	b.WriteString("\n};\n")
}

// shapes writes what a checking build knows of the matrices.
func (g *generator) shapes(b *strings.Builder) {
	fmt.Fprintf(b, "#define SHAPES %d\n__constant__ Shape shapes[] = {", len(g.p.Matrices))
	for _, m := range g.p.Matrices {
		fmt.Fprintf(b, "{%d,%d,%d},", m.Rows, m.Cols, m.Offset)
	}
	b.WriteString("{0,0,0}};\n")
}

// macro writes #define name with the lines of f, each continued.
func (g *generator) macro(b *strings.Builder, name string, f func(line func(format string, a ...any))) {
	fmt.Fprintf(b, "#define %s \\\n", name)
	f(func(format string, a ...any) { fmt.Fprintf(b, format+" \\\n", a...) })
	b.WriteString("\n")
}

func (g *generator) registers(line func(string, ...any)) {
	for s, x := range g.slots {
		line("float r%d[%d];", s, x.floats)
		line("const Partition &p%d = residency[blockIdx.x * %d + %d];", s, len(g.slots), s)
	}
}

func (g *generator) load(line func(string, ...any)) {
	for s, x := range g.slots {
		for _, cols := range x.cols {
			line("if (p%d.matrix >= 0 && p%d.cols == %d) load_rows<%d, %d>(r%d, l.segment[SEG_PARAM] + p%d.offset, p%d, clocks);",
				s, s, cols, g.p.RowsPerWarp, cols, s, s, s)
		}
	}
}

// eachArray writes a call for every register array and size of the matrix that the instruction
// names.
func (g *generator) eachArray(line func(string, ...any), field string, call func(slot, cols int) string) {
	for s, x := range g.slots {
		for _, cols := range x.cols {
			line("if (p%d.matrix == (int)w[%s] && p%d.cols == %d) %s;", s, field, s, cols, call(s, cols))
		}
	}
}

func (g *generator) product(line func(string, ...any)) {
	g.eachArray(line, "PRODUCT_MATRIX", func(s, cols int) string {
		return fmt.Sprintf("product_rows<%d, %d>(r%d, l, w, flags, count, p%d, shared)", g.p.RowsPerWarp, cols, s, s)
	})
}

// transposed: the partitions of one matrix that a processor holds in several arrays add to the same
// partial result.
func (g *generator) transposed(line func(string, ...any)) {
	sizes := map[int][]int{} // columns: the arrays
	var order []int
	for s, x := range g.slots {
		for _, cols := range x.cols {
			if sizes[cols] == nil {
				order = append(order, cols)
			}
			sizes[cols] = append(sizes[cols], s)
		}
	}
	line("const int m = (int)w[PRODUCT_T_MATRIX];")
	for _, cols := range order {
		var any []string
		for _, s := range sizes[cols] {
			any = append(any, fmt.Sprintf("p%d.matrix == m && p%d.cols == %d", s, s, cols))
		}
		items := transposedItems(g.p, cols)
		fetch := func(list, s int) string {
			return fmt.Sprintf("warp_rows<%d, %d>(l, w[PRODUCT_T_SEGMENTS], list + %d, 1, count - e - %d, p%d)", g.p.RowsPerWarp, items, 2*list, list, s)
		}
		line("if (%s) {", strings.Join(any, " || "))
		line("u32 e = 0;")
		line("const u32 *list = w + PRODUCT_T_ITEMS;")
		for i, s := range sizes[cols] {
			line("float dy%d = %s ? %s : 0.0f;", s, any[i], fetch(0, s))
		}
		line("for (; e < count; e += %d, list += %d) {", items, 2*items)
		line("float t[%d] = {};", items*iterations(cols))
		for i, s := range sizes[cols] {
			line("if (%s) {", any[i])
			line("transposed_rows<%d, %d, %d>(r%d, dy%d, t);", g.p.RowsPerWarp, cols, items, s, s)
			line("if (e + %d < count) dy%d = %s;", items, s, fetch(items, s))
			line("}")
		}
		line("transposed_store<%d, %d>(t, l, w, list, count - e, flags, p.rank, shared);", cols, items)
		line("}")
		line("}")
	}
}

func (g *generator) outer(line func(string, ...any)) {
	for s, x := range g.slots {
		for _, t := range x.shares {
			line("if (p%d.matrix == (int)w[OUTER_MATRIX] && p%d.cols == %d && p%d.copies == %d) outer_rows<%d, %d, %d>(l, w, flags, count, p%d, shared);",
				s, s, t[0], s, t[1], g.p.RowsPerWarp, t[0], t[1], s)
		}
	}
}
