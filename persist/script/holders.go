package script

import (
	"encoding/binary"
	"slices"

	"libvpps/persist/plan"
)

// Who holds what of a plan: what the streams of processors have in common follows from it.

// holderTable is who holds which matrix. Part m is the rows of matrix m; part m + the number of matrices is
// the columns of its transposed product, which are the rows' holders' unless it is read from memory.
type holderTable struct {
	of     *plan.Plan
	copies [][][]int32 // by part and copy: its holders, those of the first rows or columns first
	outers []int       // by matrix: how many copies have columns of its gradient to form
	copy   []int32     // by part and processor: which copy it holds, -1: none
	class  []int32     // by processor; a class holds parts of the same copies of the same matrices
	first  []int32     // by class: its first processor
	size   []int32     // by class: how many processors it has
	group  []int32     // by class: the group that it is, -1: none
	groups int         // how many
	place  []uint32    // by processor: its place in its group
	each   uint32      // how many processors a group has
	shares []bool      // by class: as much of its processors' streams as is alike is there only once
	beside []int32     // where there are groups: the processors of classes without a stream in common

	forming bool // products may form their vectors
}

// update makes it the table of a plan.
func (t *holderTable) update(p *plan.Plan) {
	if t.of == p {
		return
	}
	n, parts := p.Processors, 2*len(p.Matrices)
	*t = holderTable{of: p, copy: extend(t.copy[:0], n*parts, -1)}
	for i := range p.Matrices {
		outers := 0
		for _, x := range p.Of(i) {
			if b := p.OuterBlock(&x); b.Columns > 0 {
				outers = max(outers, x.Copy+1)
			}
		}
		t.outers = append(t.outers, outers)
		t.addRows(p, i)
	}
	for i := range p.Matrices {
		if p.Residence(i).Columns > 0 {
			t.addColumns(p, i)
		} else {
			t.addRows(p, i)
		}
	}
	t.addClasses(n)
	t.addGroups(p)
	t.forming = p.SharesRows()
}

// fewHolders is how many processors of a class, of those that share rows, have streams of their own.
const fewHolders = 16

// addGroups makes groups of the largest classes where processors share rows, unless they are too small.
func (t *holderTable) addGroups(p *plan.Plan) {
	t.group, t.shares, t.place = extend(t.group, len(t.first), -1), make([]bool, len(t.first)), make([]uint32, p.Processors)
	if !p.SharesRows() {
		return
	}
	largest := slices.Max(t.size)
	if largest < fewHolders {
		return
	}
	for c, n := range t.size {
		t.shares[c] = n >= fewHolders
		if n == largest {
			t.group[c] = int32(t.groups)
			t.groups++
		}
	}
	members := make([]uint32, t.groups)
	for q, c := range t.class {
		if g := t.group[c]; g >= 0 {
			t.place[q] = members[g]
			members[g]++
		} else if !t.shares[c] {
			t.beside = append(t.beside, int32(q))
		}
	}
	t.each = uint32(largest)
}

// addClasses finds the classes of n processors.
func (t *holderTable) addClasses(n int) {
	known := map[string]int32{}
	for p := range n {
		var holds []byte
		for at := p; at < len(t.copy); at += n {
			holds = binary.LittleEndian.AppendUint32(holds, uint32(t.copy[at]))
		}
		c, ok := known[string(holds)]
		if !ok {
			c = int32(len(t.first))
			known[string(holds)] = c
			t.first, t.size = append(t.first, int32(p)), append(t.size, 0)
		}
		t.class = append(t.class, c)
		t.size[c]++
	}
}

// addRows adds a part whose holders are those of a matrix's partitions.
func (t *holderTable) addRows(p *plan.Plan, m int) {
	copies := make([][]int32, max(1, p.Matrices[m].Copies))
	for _, x := range p.Of(m) {
		at := len(t.copies)*p.Processors + x.Processor
		if t.copy[at] < 0 {
			t.copy[at] = int32(x.Copy)
			copies[x.Copy] = append(copies[x.Copy], int32(x.Processor))
		}
	}
	t.copies = append(t.copies, copies)
}

// addColumns adds a part whose holders are who forms columns of a transposed product.
func (t *holderTable) addColumns(p *plan.Plan, m int) {
	var holders []int32
	for q := range p.Processors {
		if lo, hi := p.ColumnsOf(m, q); lo < hi {
			t.copy[len(t.copies)*p.Processors+q] = 0
			holders = append(holders, int32(q))
		}
	}
	t.copies = append(t.copies, [][]int32{holders})
}

// columnPart is the part of matrix m that transposed products work on.
func (t *holderTable) columnPart(m int32) int32 { return m + int32(len(t.of.Matrices)) }
