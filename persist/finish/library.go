package finish

import (
	"math"

	"libvpps/persist/isa"
	"libvpps/persist/schedule"
)

// Gradients by a library. Where a batch has many products by a matrix whose gradient is formed in blocks, their operands
// are collected into two dense matrices, and a library multiplies these faster than the kernel would. It does so between
// two launches: the script is cut there. Every processor halts behind what comes before the cut, and goes on with
// instructions of its own in the second launch, which has no matrices: it sums, takes the norm and updates.

// eachOuter calls f for all outer products, those of a signature together.
func (f *Finisher) eachOuter(visit func(sig uint32, items []schedule.Product)) {
	for rest := f.Outers; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Sig == rest[0].Sig {
			n++
		}
		visit(rest[0].Sig, rest[:n])
		rest = rest[n:]
	}
}

// planLibrary finds the gradients that the library forms, and collects their operands in a level, behind which the
// script is cut. There are none where the library cannot be had.
func (f *Finisher) planLibrary(level int32) {
	p := f.Plan
	if p.Library == nil || !p.InParts() {
		return
	}
	f.eachOuter(f.countLibrary)
	f.dropLibrary(p.Library.Items)
	if len(f.Library) == 0 {
		return
	}
	if !p.Library.Ready() {
		f.dropLibrary(math.MaxInt)
		return
	}
	f.Cut = level + 1
	f.collectOperands(level)
}

// countLibrary adds outer products to the library's product that they are a part of.
func (f *Finisher) countLibrary(sig uint32, items []schedule.Product) {
	words := f.Sigs.Of(sig) // of an Outer: opcode, length, segments, matrix, scale, destination
	seg, m := isa.Segment(words[2]&15), int(words[3])
	if f.Plan.Residence(m).Unit == 0 {
		return
	}
	g := f.LibraryInto(seg, words[5])
	if g == nil {
		x := &f.Plan.Matrices[m]
		acc := words[0]>>16&isa.Acc != 0 || seg == isa.SegGrad && f.Params[x.Param].Pending
		f.Library = append(f.Library, isa.LibraryGradient{Matrix: m, Rows: x.Rows, Cols: x.Cols, Segment: seg, G: words[5], Scale: math.Float32frombits(words[4]), Acc: acc})
		g = &f.Library[len(f.Library)-1]
	}
	g.Items += len(items)
}

// dropLibrary leaves the products of fewer items to the kernel, and those whose operands have no room in segment act.
func (f *Finisher) dropLibrary(least int) {
	kept, room := f.Library[:0], f.Room()
	for _, g := range f.Library {
		size := uint64(g.Items)*uint64(g.Rows+g.Cols) + 8 // as alloc rounds up
		if g.Items < least || size > room {
			continue
		}
		room -= size
		kept = append(kept, g)
	}
	f.Library = kept
}

// collectOperands copies the operands of the library's products side by side.
func (f *Finisher) collectOperands(level int32) {
	floats := 0
	for i := range f.Library {
		g := &f.Library[i]
		floats += g.Items * (g.Rows + g.Cols)
		g.DY, g.X = f.Alloc(g.Items*g.Rows), f.Alloc(g.Items*g.Cols) // where the next item goes, until all are there
	}
	c := collector{b: f, level: level, share: floats/(collectors*f.Plan.Processors) + 1}
	f.eachOuter(func(sig uint32, items []schedule.Product) {
		g := f.LibraryOf(sig)
		if g == nil {
			return
		}
		segs := f.Sigs.Of(sig)[2]
		for i := range items {
			x := &items[i].Words
			c.copy(schedule.At(isa.SegAct, g.DY), schedule.At(isa.Segment(segs>>4&15), x[0]), g.Rows)
			c.copy(schedule.At(isa.SegAct, g.X), schedule.At(isa.Segment(segs>>8&15), x[1]), g.Cols)
			g.DY, g.X = g.DY+uint32(g.Rows), g.X+uint32(g.Cols)
		}
	})
	for i := range f.Library {
		g := &f.Library[i]
		g.DY, g.X = g.DY-uint32(g.Items*g.Rows), g.X-uint32(g.Items*g.Cols)
	}
}

// collectors is how many clusters of copies there are for each processor, so that these get about as much.
const collectors = 4

// collector shares copies out to clusters of one level.
type collector struct {
	b           *Finisher
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
