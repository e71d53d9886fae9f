package plan

import (
	"encoding/binary"
	"slices"
)

// Holders is who works on which matrix of a plan: what the streams of processors have in common follows from it. Of n
// matrices part m is the rows of matrix m. Part m + n is the columns of its transposed product, which are the rows' holders'
// unless it is read from memory. Part m + 2n is its gradient.
type Holders struct {
	of     *Plan
	Copies [][][]int32 // by part and copy: its holders, those of the first rows or columns first
	Blocks []int32     // by matrix and processor: how many blocks of its gradient it forms
	Copy   []int32     // by part and processor: which copy it holds, -1: none
	Class  []int32     // by processor; a class holds parts of the same copies of the same matrices, and forms as many blocks
	First  []int32     // by class: its first processor
	Size   []int32     // by class: how many processors it has
}

// Update makes it the table of a plan.
func (t *Holders) Update(p *Plan) {
	if t.of == p {
		return
	}
	n, parts := p.Processors, 3*len(p.Matrices)
	*t = Holders{of: p, Copy: slices.Repeat([]int32{-1}, n*parts)}
	for i := range p.Matrices {
		t.addRows(p, i)
	}
	for i := range p.Matrices {
		if p.Residence(i).Columns > 0 {
			t.addColumns(p, i)
		} else {
			t.addRows(p, i)
		}
	}
	for i := range p.Matrices {
		t.addGradient(p, i)
	}
	t.addClasses(n)
}

// addClasses finds the classes of n processors.
func (t *Holders) addClasses(n int) {
	known := map[string]int32{}
	for p := range n {
		var holds []byte
		for at := p; at < len(t.Copy); at += n {
			holds = binary.LittleEndian.AppendUint32(holds, uint32(t.Copy[at]))
		}
		for at := p; at < len(t.Blocks); at += n {
			holds = binary.LittleEndian.AppendUint32(holds, uint32(t.Blocks[at]))
		}
		c, ok := known[string(holds)]
		if !ok {
			c = int32(len(t.First))
			known[string(holds)] = c
			t.First, t.Size = append(t.First, int32(p)), append(t.Size, 0)
		}
		t.Class = append(t.Class, c)
		t.Size[c]++
	}
}

// addRows adds a part whose holders are those of a matrix's partitions.
func (t *Holders) addRows(p *Plan, m int) {
	copies := make([][]int32, max(1, p.Matrices[m].Copies))
	for _, x := range p.Of(m) {
		at := len(t.Copies)*p.Processors + x.Processor
		if t.Copy[at] < 0 {
			t.Copy[at] = int32(x.Copy)
			copies[x.Copy] = append(copies[x.Copy], int32(x.Processor))
		}
	}
	t.Copies = append(t.Copies, copies)
}

// addColumns adds a part whose holders are who forms columns of a transposed product.
func (t *Holders) addColumns(p *Plan, m int) {
	var holders []int32
	for q := range p.Processors {
		if lo, hi := p.ColumnsOf(m, q); lo < hi {
			t.Copy[len(t.Copies)*p.Processors+q] = 0
			holders = append(holders, int32(q))
		}
	}
	t.Copies = append(t.Copies, [][]int32{holders})
}

// addGradient adds a part whose holders form blocks of a gradient.
func (t *Holders) addGradient(p *Plan, m int) {
	var holders []int32
	var blocks []Block
	for q := range p.Processors {
		blocks = p.GradientBlocks(blocks[:0], m, q)
		t.Blocks = append(t.Blocks, int32(len(blocks)))
		if len(blocks) > 0 {
			t.Copy[len(t.Copies)*p.Processors+q] = 0
			holders = append(holders, int32(q))
		}
	}
	t.Copies = append(t.Copies, [][]int32{holders})
}

// GradientPart is the part of matrix m that outer products form.
func (t *Holders) GradientPart(m int32) int32 { return m + 2*int32(len(t.of.Matrices)) }

// ColumnPart is the part of matrix m that transposed products work on.
func (t *Holders) ColumnPart(m int32) int32 { return m + int32(len(t.of.Matrices)) }
