package script

import (
	"math"

	"libvpps/persist/isa"
	"libvpps/persist/schedule"
)

// Gradients by a library. Where a batch has many products by a matrix whose gradient is formed in blocks, their operands
// are collected into two dense matrices, and a library multiplies these faster than the kernel would. It does so between
// two launches: the script is cut there. Every processor halts behind what comes before the cut, and goes on with
// instructions of its own in the second launch, which has no matrices: it sums, takes the norm and updates.

// eachOuter calls f for all outer products, those of a signature and part together.
func (b *finisher) eachOuter(f func(sig uint32, items []schedule.Product)) {
	for _, p := range b.Parts {
		for _, x := range p.Stretches {
			if x.Level < 0 {
				f(p.InWhole.Signature[x.Sig], p.Products[x.From:x.To])
			}
		}
	}
	for rest := b.Outers; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Sig == rest[0].Sig {
			n++
		}
		f(rest[0].Sig, rest[:n])
		rest = rest[n:]
	}
}

// planLibrary finds the gradients that the library forms, and collects their operands in a level, behind which the
// script is cut. There are none where the library cannot be had.
func (b *finisher) planLibrary(level int32) {
	p := b.Plan
	if p.Library == nil || !p.InParts() || b.pauses {
		return
	}
	b.eachOuter(b.countLibrary)
	b.dropLibrary(p.Library.Items)
	if len(b.Library) == 0 {
		return
	}
	if !p.Library.Ready() {
		b.dropLibrary(math.MaxInt)
		return
	}
	b.Cut = level + 1
	b.collectOperands(level)
}

// countLibrary adds outer products to the library's product that they are a part of.
func (b *finisher) countLibrary(sig uint32, items []schedule.Product) {
	words := b.Sigs.Of(sig) // of an Outer: opcode, length, segments, matrix, scale, destination
	seg, m := isa.Segment(words[2]&15), int(words[3])
	if b.Plan.Residence(m).Unit == 0 {
		return
	}
	g := b.LibraryInto(seg, words[5])
	if g == nil {
		x := &b.Plan.Matrices[m]
		acc := words[0]>>16&isa.Acc != 0 || seg == isa.SegGrad && b.params[x.Param].Pending
		b.Library = append(b.Library, isa.LibraryGradient{Matrix: m, Rows: x.Rows, Cols: x.Cols, Segment: seg, G: words[5], Scale: math.Float32frombits(words[4]), Acc: acc})
		g = &b.Library[len(b.Library)-1]
	}
	g.Items += len(items)
}

// dropLibrary leaves the products of fewer items to the kernel, and those whose operands have no room in segment act.
func (b *finisher) dropLibrary(least int) {
	kept, room := b.Library[:0], uint64(b.Limit)-min(uint64(b.Top), uint64(b.Limit))
	for _, g := range b.Library {
		size := uint64(g.Items)*uint64(g.Rows+g.Cols) + 8 // as alloc rounds up
		if g.Items < least || size > room {
			continue
		}
		room -= size
		kept = append(kept, g)
	}
	b.Library = kept
}

// collectOperands copies the operands of the library's products side by side.
func (b *finisher) collectOperands(level int32) {
	floats := 0
	for i := range b.Library {
		g := &b.Library[i]
		floats += g.Items * (g.Rows + g.Cols)
		g.DY, g.X = b.Alloc(g.Items*g.Rows), b.Alloc(g.Items*g.Cols) // where the next item goes, until all are there
	}
	c := collector{b: b, level: level, share: floats/(collectors*b.Plan.Processors) + 1}
	b.eachOuter(func(sig uint32, items []schedule.Product) {
		g := b.LibraryOf(sig)
		if g == nil {
			return
		}
		segs := b.Sigs.Of(sig)[2]
		for i := range items {
			x := &items[i].Words
			c.copy(schedule.At(isa.SegAct, g.DY), schedule.At(isa.Segment(segs>>4&15), x[0]), g.Rows)
			c.copy(schedule.At(isa.SegAct, g.X), schedule.At(isa.Segment(segs>>8&15), x[1]), g.Cols)
			g.DY, g.X = g.DY+uint32(g.Rows), g.X+uint32(g.Cols)
		}
	})
	for i := range b.Library {
		g := &b.Library[i]
		g.DY, g.X = g.DY-uint32(g.Items*g.Rows), g.X-uint32(g.Items*g.Cols)
	}
}

// collectors is how many clusters of copies there are for each processor, so that these get about as much.
const collectors = 4

// collector shares copies out to clusters of one level.
type collector struct {
	b           *finisher
	level       int32
	cluster     int32
	share, left int // floats: of a cluster, and what the present one still takes
}

func (c *collector) copy(to, from schedule.Operand, n int) {
	if c.left <= 0 {
		c.cluster, c.left = c.b.NewCluster(c.level), c.share
		c.b.Clusters[c.cluster].Kind = schedule.Single
	}
	c.left -= n
	c.b.Map1(c.cluster, 0, isa.Copy, 0, 0, n, to, from)
}
