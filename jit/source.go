// Package jit turns a plan into a kernel: specialised source, NVRTC, a check of the machine code
// and a cache on disk.
//
// The source is the files of jit/kernel with the plan's matrices written in: which rows each
// CTA holds, and calls of the matrix routines with literal sizes, so that the weights' arrays are
// indexed by constants and stay in registers.
package jit

import (
	"fmt"
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
	"rows.h", "random.h", "gemm.h", "update.h", "check.h", "gpu.h"}

// Options change the kernel.
type Options struct {
	Count bool // count the weights loaded into registers
	Check bool // hold every operand against the script's tensor table
}

// Source is the CUDA C++ text of a plan's kernel.
func Source(p *plan.Plan, o Options) (string, error) {
	var b strings.Builder
	if o.Count {
		b.WriteString("#define VPPS_COUNT 1\n")
	}
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

// slot is one register array: the matrices whose partitions some processor keeps in it.
type slot struct {
	matrices []int // ascending
	floats   int   // per thread
}

func iterations(cols int) int { return (cols + 31) / 32 }

// slotsOf collects which matrices share which register array.
func slotsOf(p *plan.Plan) []slot {
	var s []slot
	for m := range p.Matrices {
		for _, x := range p.Of(m) {
			for len(s) <= x.Slot {
				s = append(s, slot{})
			}
			t := &s[x.Slot]
			if n := len(t.matrices); n == 0 || t.matrices[n-1] != m {
				t.matrices = append(t.matrices, m)
			}
			t.floats = max(t.floats, p.RowsPerWarp*iterations(p.Matrices[m].Cols))
		}
	}
	return s
}

// SharedBytes is the dynamic shared memory of a plan's kernel: two buffers in which the warps'
// shares of a transposed product meet.
func SharedBytes(p *plan.Plan) int {
	cols := 0
	for _, m := range p.Matrices {
		cols = max(cols, 32*iterations(m.Cols))
	}
	return 2 * (Threads / 32) * cols * 4
}

type generator struct {
	p     *plan.Plan
	slots []slot
}

// residency writes the table {matrix, first row, end} by processor and slot; matrix -1: nothing.
func (g *generator) residency(b *strings.Builder) {
	if len(g.slots) == 0 {
		return
	}
	table := make([][3]int, g.p.Processors*len(g.slots))
	for i := range table {
		table[i] = [3]int{-1, 0, 0}
	}
	for m := range g.p.Matrices {
		for _, x := range g.p.Of(m) {
			table[x.Processor*len(g.slots)+x.Slot] = [3]int{m, x.Row, x.Row + x.Rows}
		}
	}
	fmt.Fprintf(b, "\n__constant__ int residency[%d][3] = {", len(table))
	for i, t := range table {
		if i%16 == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(b, "{%d,%d,%d},", t[0], t[1], t[2])
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
		line("const int m%d = residency[blockIdx.x * %d + %d][0];", s, len(g.slots), s)
		line("const u32 row%d = residency[blockIdx.x * %d + %d][1];", s, len(g.slots), s)
		line("const u32 end%d = residency[blockIdx.x * %d + %d][2];", s, len(g.slots), s)
	}
}

func (g *generator) load(line func(string, ...any)) {
	for s, x := range g.slots {
		for _, m := range x.matrices {
			mx := g.p.Matrices[m]
			line("if (m%d == %d) load_rows<%d, %d>(r%d, l.segment[SEG_PARAM] + %du, %d, %d, row%d, end%d, a.status);",
				s, m, g.p.RowsPerWarp, iterations(mx.Cols), s, mx.Offset, mx.Rows, mx.Cols, s, s)
		}
	}
}

// eachMatrix writes a switch over the matrices.
func (g *generator) eachMatrix(line func(string, ...any), field string, body func(m int, slots []int)) {
	line("switch (w[%s]) {", field)
	for m := range g.p.Matrices {
		var slots []int
		for s, x := range g.slots {
			for _, y := range x.matrices {
				if y == m {
					slots = append(slots, s)
				}
			}
		}
		if len(slots) == 0 {
			continue
		}
		line("case %d: {", m)
		body(m, slots)
		line("break; }")
	}
	line("}")
}

func (g *generator) product(line func(string, ...any)) {
	g.eachMatrix(line, "PRODUCT_MATRIX", func(m int, slots []int) {
		mx := g.p.Matrices[m]
		for _, s := range slots {
			line("if (m%d == %d) product_rows<%d, %d>(r%d, l, w, flags, count, %d, row%d, end%d);",
				s, m, g.p.RowsPerWarp, iterations(mx.Cols), s, mx.Cols, s, s)
		}
	})
}

func (g *generator) transposed(line func(string, ...any)) {
	g.eachMatrix(line, "PRODUCT_T_MATRIX", func(m int, slots []int) {
		mx := g.p.Matrices[m]
		it := iterations(mx.Cols)
		line("__syncthreads();")
		line("for (u32 e = 0; e < count; e++) {")
		line("const u32 *item = w + PRODUCT_T_ITEMS + 2 * e;")
		line("const float *dy = address(l, w[PRODUCT_T_SEGMENTS], 1, item[1]);")
		line("float t[%d];", it)
		line("_Pragma(\"unroll\") for (int k = 0; k < %d; k++) t[k] = 0.0f;", it)
		for _, s := range slots {
			line("if (m%d == %d) transposed_rows<%d, %d>(r%d, dy, row%d, end%d, t);", s, m, g.p.RowsPerWarp, it, s, s, s)
		}
		line("transposed_store<%d>(t, address(l, w[PRODUCT_T_SEGMENTS], 0, item[0]) + p.rank * w[PRODUCT_T_RANK_STRIDE], %d, FLOAT_OF(w[PRODUCT_T_SCALE]), flags, transposed + (e %% 2) * %d);",
			it, mx.Cols, Threads/32*32*it)
		line("}")
	})
}

func (g *generator) outer(line func(string, ...any)) {
	g.eachMatrix(line, "OUTER_MATRIX", func(m int, slots []int) {
		mx := g.p.Matrices[m]
		for _, s := range slots {
			line("if (m%d == %d) outer_rows<%d, %d>(l, w, flags, count, %d, %d, row%d, end%d);",
				s, m, g.p.RowsPerWarp, iterations(mx.Cols), mx.Rows, mx.Cols, s, s)
		}
	})
}
