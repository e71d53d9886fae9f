package script

// Gradients by a library. Where a batch has many products by a matrix whose gradient is formed in blocks, their operands
// are collected into two dense matrices, and a library multiplies these faster than the kernel would. It does so between
// two launches: the script is cut there. Every processor halts behind what comes before the cut, and goes on with
// instructions of its own in the second launch, which has no matrices: it sums, takes the norm and updates.

import (
	"fmt"
	"math"
)

// LibraryGradient is a product of the library between the two parts of a script: a gradient G (+)= Scale * DY X^T. All three lie
// in columns without gaps, DY and X in segment act.
type LibraryGradient struct {
	Matrix            int // of the plan: as many rows and columns
	Rows, Cols, Items int // DY has Rows x Items, X Cols x Items
	Segment           Segment
	G, DY, X          uint32
	Scale             float32
	Acc               bool // G has something already
}

// String is the product on one line.
func (g *LibraryGradient) String() string {
	to := "="
	if g.Acc {
		to = "+="
	}
	return fmt.Sprintf("gemm matrix=%d scale=%g %s+%d (%d x %d) %s act+%d (%d x %d) * act+%d (%d x %d)^T",
		g.Matrix, g.Scale, g.Segment, g.G, g.Rows, g.Cols, to, g.DY, g.Rows, g.Items, g.X, g.Cols, g.Items)
}

// Part is what a launch runs of a script that is cut.
type Part uint32

const (
	Whole  Part = iota // of a script that is not cut
	First              // up to every processor's first Halt
	Second             // from there on, without matrices
)

// InParts reports whether the script is cut: between its parts are the products Library.
func (s *Script) InParts() bool { return len(s.Library) > 0 }

// noCut is the level of the cut of a script that is not cut.
const noCut = math.MaxInt32

// eachOuter calls f for all outer products, those of a signature and part together.
func (b *Builder) eachOuter(f func(sig uint32, items []matrixItem)) {
	for _, p := range b.division.taken {
		for _, x := range p.stretches {
			if x.level < 0 {
				f(p.division.signature[x.sig], p.matrices[x.from:x.to])
			}
		}
	}
	for rest := b.outers; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].sig == rest[0].sig {
			n++
		}
		f(rest[0].sig, rest[:n])
		rest = rest[n:]
	}
}

// libraryOf is the library's product that outer products with a signature are a part of, nil: they are the kernel's.
func (b *Builder) libraryOf(sig uint32) *LibraryGradient {
	if len(b.out.Script.Library) == 0 {
		return nil
	}
	words := b.sigs.of(sig)
	return b.libraryInto(Segment(words[2]&15), words[5])
}

func (b *Builder) libraryInto(s Segment, at uint32) *LibraryGradient {
	for i := range b.out.Script.Library {
		if g := &b.out.Script.Library[i]; g.G == at && g.Segment == s {
			return g
		}
	}
	return nil
}

// planLibrary finds the gradients that the library forms, and collects their operands in a level, behind which the
// script is cut. There are none where the library cannot be had.
func (b *Builder) planLibrary(level int32) {
	p := b.r.Plan
	if p.Library == nil || !p.InParts() {
		return
	}
	b.eachOuter(b.countLibrary)
	b.dropLibrary(p.Library.Items)
	if len(b.out.Script.Library) == 0 {
		return
	}
	if !p.Library.Ready() {
		b.dropLibrary(math.MaxInt)
		return
	}
	b.cut = level + 1
	b.collectOperands(level)
}

// countLibrary adds outer products to the library's product that they are a part of.
func (b *Builder) countLibrary(sig uint32, items []matrixItem) {
	words := b.sigs.of(sig) // of an Outer: opcode, length, segments, matrix, scale, destination
	seg, m := Segment(words[2]&15), int(words[3])
	if b.r.Plan.Residence(m).Unit == 0 {
		return
	}
	g := b.libraryInto(seg, words[5])
	if g == nil {
		x := &b.r.Plan.Matrices[m]
		acc := words[0]>>16&Acc != 0 || seg == SegGrad && b.r.Params[x.Param].Pending
		b.out.Script.Library = append(b.out.Script.Library, LibraryGradient{Matrix: m, Rows: x.Rows, Cols: x.Cols, Segment: seg, G: words[5], Scale: float(words[4]), Acc: acc})
		g = &b.out.Script.Library[len(b.out.Script.Library)-1]
	}
	g.Items += len(items)
}

// dropLibrary leaves the products of fewer items to the kernel, and those whose operands have no room in segment act.
func (b *Builder) dropLibrary(least int) {
	kept, room := b.out.Script.Library[:0], uint64(b.limit)-min(uint64(b.top), uint64(b.limit))
	for _, g := range b.out.Script.Library {
		size := uint64(g.Items)*uint64(g.Rows+g.Cols) + 8 // as alloc rounds up
		if g.Items < least || size > room {
			continue
		}
		room -= size
		kept = append(kept, g)
	}
	b.out.Script.Library = kept
}

// collectOperands copies the operands of the library's products side by side.
func (b *Builder) collectOperands(level int32) {
	floats := 0
	for i := range b.out.Script.Library {
		g := &b.out.Script.Library[i]
		floats += g.Items * (g.Rows + g.Cols)
		g.DY, g.X = b.alloc(g.Items*g.Rows), b.alloc(g.Items*g.Cols) // where the next item goes, until all are there
	}
	c := collector{b: b, level: level, share: floats/(collectors*b.r.Plan.Processors) + 1}
	b.eachOuter(func(sig uint32, items []matrixItem) {
		g := b.libraryOf(sig)
		if g == nil {
			return
		}
		segs := b.sigs.of(sig)[2]
		for i := range items {
			x := &items[i].words
			c.copy(operand{SegAct, g.DY}, operand{Segment(segs >> 4 & 15), x[0]}, g.Rows)
			c.copy(operand{SegAct, g.X}, operand{Segment(segs >> 8 & 15), x[1]}, g.Cols)
			g.DY, g.X = g.DY+uint32(g.Rows), g.X+uint32(g.Cols)
		}
	})
	for i := range b.out.Script.Library {
		g := &b.out.Script.Library[i]
		g.DY, g.X = g.DY-uint32(g.Items*g.Rows), g.X-uint32(g.Items*g.Cols)
	}
}

// collectors is how many clusters of copies there are for each processor, so that these get about as much.
const collectors = 4

// collector shares copies out to clusters of one level.
type collector struct {
	b           *Builder
	level       int32
	cluster     int32
	share, left int // floats: of a cluster, and what the present one still takes
}

func (c *collector) copy(to, from operand, n int) {
	if c.left <= 0 {
		c.cluster, c.left = c.b.newCluster(c.level), c.share
		c.b.clusters[c.cluster].kind = single
	}
	c.left -= n
	c.b.map1(c.cluster, 0, Copy, 0, 0, n, to, from)
}

// between simulates what lies between the launches of a script's parts: all that the first has done comes before what
// the library does, and that before the second part.
func (v *verifier) between() error {
	v.meet()
	p := &v.procs[0]
	for i := range v.library {
		g := &v.library[i]
		if m := v.plan.Matrices; g.Matrix < 0 || g.Matrix >= len(m) || g.Rows != m[g.Matrix].Rows || g.Cols != m[g.Matrix].Cols || g.Items < 1 {
			return fmt.Errorf("the library's product %d, %s: the plan has no such matrix", i, g)
		}
		x := execution{verifier: v, processor: p, first: uint32(len(v.events))}
		v.foot.Ranges = append(v.foot.Ranges[:0],
			Range{Segment: g.Segment, Offset: uint64(g.G), Rank: 1, Write: true, Read: g.Acc},
			Range{Segment: SegAct, Offset: uint64(g.DY), Rank: 1, Read: true},
			Range{Segment: SegAct, Offset: uint64(g.X), Rank: 1, Read: true})
		for k, n := range [...]int{g.Rows * g.Cols, g.Items * g.Rows, g.Items * g.Cols} {
			v.foot.Ranges[k].Axes[0] = Axis{uint64(n), 1}
		}
		x.addUnits(v.foot.Ranges)
		if err := x.access(v.foot.Ranges); err != nil {
			return fmt.Errorf("the library's product %d, %s: %w", i, g, err)
		}
		p.order()
	}
	v.meet()
	for i := range v.procs {
		p := &v.procs[i]
		p.stream, p.own, p.clip = p.own, nil, nil
		p.index++
	}
	v.resumed = true
	return nil
}

// meet lets all processors catch up with each other.
func (v *verifier) meet() {
	all := make([]uint32, len(v.procs))
	for i := range v.procs {
		v.procs[i].order()
		join(all, v.procs[i].clock)
	}
	for i := range v.procs {
		copy(v.procs[i].clock, all)
	}
}
