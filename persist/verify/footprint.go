// The memory an instruction touches, as strided ranges, from its words and the plan
// alone. It is the meaning of every instruction as far as memory goes; the verifier
// trusts it and the kernel must do neither more nor less.
package verify

import (
	"fmt"

	"libvpps/persist/isa"
	"libvpps/persist/plan"
)

// MaxAxes bounds the axes of a range: Strided's kept and reduced ones.
const MaxAxes = 10

// Axis is one dimension of a range.
type Axis struct{ Size, Stride uint64 }

// Range is one operand of an instruction: the elements Offset + sum of i*Stride.
type Range struct {
	Segment isa.Segment
	Offset  uint64
	Axes    [MaxAxes]Axis
	Rank    int // axes in use; 0: one element

	// Unit is the part of the instruction that the operand belongs to: its item, or 0
	// where all items make one result. Units of an instruction run in parallel.
	Unit   int
	Write  bool
	Read   bool
	Paired bool // each element is read by the thread that writes the same element of the unit's result
	Matrix int  // 1 + the matrix of which this is the resident part, else 0
}

// farAway is beyond every segment.
const farAway = 1 << 40

// Count is the number of elements visited, at most farAway.
func (r *Range) Count() uint64 {
	n := uint64(1)
	for _, a := range r.Axes[:r.Rank] {
		if a.Size > farAway/n {
			return farAway
		}
		n *= a.Size
	}
	return n
}

// Last is the range's highest element, farAway if that is beyond every segment.
func (r *Range) Last() uint64 {
	last := r.Offset
	for _, a := range r.Axes[:r.Rank] {
		if a.Stride > 0 && a.Size > farAway/a.Stride {
			return farAway
		}
		last += (a.Size - 1) * a.Stride
	}
	return last
}

// Footprint enumerates ranges; its zero value is ready and keeps its memory between calls.
type Footprint struct {
	Ranges []Range
	in     *isa.Instruction
	plan   *plan.Plan

	processor int
	blocks    []plan.Block // scratch
}

// Of returns the ranges that an instruction reads and writes, empty ones left out. They
// are valid until the next call. Signal, Wait and Halt touch nothing.
func (f *Footprint) Of(in *isa.Instruction, p *plan.Plan, processor int) ([]Range, error) {
	f.Ranges, f.in, f.plan, f.processor = f.Ranges[:0], in, p, processor
	if in.Has("segments") {
		for slot := range 8 {
			if s := in.Segment(slot); s >= isa.Segments {
				return nil, fmt.Errorf("slot %d is in segment %d: there are %d", slot, s, isa.Segments)
			}
		}
	}
	if err := footprints[in.Op](f); err != nil {
		return nil, err
	}
	return f.Ranges, nil
}

// footprints is indexed by Opcode.
var footprints = [isa.Opcodes]func(*Footprint) error{
	isa.Halt: nothing, isa.Signal: nothing, isa.Wait: nothing,
	isa.Fill: (*Footprint).fill, isa.Map: (*Footprint).elements, isa.Strided: (*Footprint).strided, isa.Chain: (*Footprint).chain,
	isa.Sum: (*Footprint).sum, isa.Product: (*Footprint).product, isa.ProductT: (*Footprint).productT, isa.Outer: (*Footprint).outer,
	isa.Gemm: (*Footprint).gemm, isa.Row: (*Footprint).row, isa.Random: (*Footprint).elements, isa.Norm: (*Footprint).norm,
	isa.Clip: (*Footprint).clip, isa.Update: (*Footprint).update,
}

func nothing(*Footprint) error { return nil }

// add appends a range of slot at offset with the given axes, unless it is empty.
func (f *Footprint) add(slot int, unit int, offset uint64, how access, axes ...Axis) {
	r := Range{Segment: f.in.Segment(slot), Offset: offset, Unit: unit,
		Read: how&asRead != 0, Write: how&asWrite != 0, Paired: how&asPaired != 0}
	for _, a := range axes {
		switch {
		case a.Size == 0:
			return
		case a.Size == 1, a.Stride == 0 && !r.Write: // a read repeated is a read
		default:
			r.Axes[r.Rank] = a
			r.Rank++
		}
	}
	f.Ranges = append(f.Ranges, r)
}

// access says how an operand is used.
type access uint8

const (
	asRead access = 1 << iota
	asWrite
	asPaired
)

// result is the access of what an instruction writes: Acc reads it too.
func (f *Footprint) result() access {
	if f.in.Flags&isa.Acc != 0 {
		return asWrite | asRead | asPaired
	}
	return asWrite
}

// vector is the axis of an n-element operand.
func (f *Footprint) vector() Axis { return Axis{uint64(f.in.Field("n")), 1} }

func (f *Footprint) fill() error {
	axis := f.vector()
	for i := range f.in.Items {
		f.add(0, i, uint64(f.in.Item(i)[0]), f.result(), axis)
	}
	return nil
}

// elements is Map and Random; the last word of a Random item is no address.
func (f *Footprint) elements() error {
	axis := f.vector()
	for i := range f.in.Items {
		item := f.in.Item(i)
		if f.in.Op == isa.Random {
			item = item[:len(item)-1]
		}
		f.add(0, i, uint64(item[0]), f.result(), axis)
		for slot, a := range item[1:] {
			f.add(1+slot, i, uint64(a), asRead|asPaired, axis)
		}
	}
	return nil
}

func (f *Footprint) strided() error {
	kept, reduced := f.in.Axes()
	if kept > 5 || reduced > 5 {
		return fmt.Errorf("%d kept and %d reduced axes: at most 5 of each", kept, reduced)
	}
	n := kept + reduced
	words := f.in.Words[2+len(isa.Formats[isa.Strided].Fields):]
	sizes, strides := words[:n], words[n:]
	for i := kept; i < n; i++ {
		if strides[i] != 0 {
			return fmt.Errorf("the result has stride %d along reduced axis %d", strides[i], i-kept)
		}
	}
	var axes [MaxAxes]Axis
	for i := range f.in.Items {
		for slot, a := range f.in.Item(i) {
			for k := range n {
				axes[k] = Axis{uint64(sizes[k]), uint64(strides[slot*n+k])}
			}
			if slot == 0 {
				f.add(0, i, uint64(a), f.result(), axes[:kept]...)
			} else {
				f.add(slot, i, uint64(a), asRead|asPaired, axes[:n]...)
			}
		}
	}
	return nil
}

func (f *Footprint) sum() error {
	axis := f.vector()
	runs, count, apart, err := f.in.Runs()
	if err != nil {
		return err
	}
	f.add(0, 0, uint64(f.in.Field("dst")), f.result(), axis)
	if isa.EpilogueDerivatives[f.in.Fn] {
		f.add(2, 0, uint64(f.in.Field("y")), asRead|asPaired, axis)
	}
	for i := range f.in.Items {
		if i < runs {
			f.add(1, 0, uint64(f.in.Item(i)[0]), asRead|asPaired, axis, Axis{uint64(count), apart})
		} else {
			f.add(1, 0, uint64(f.in.Item(i)[0]), asRead|asPaired, axis)
		}
	}
	return nil
}

// matrix returns the matrix of a product and the processor's partitions of it.
func (f *Footprint) matrix() (*plan.Matrix, []plan.Partition, error) {
	m := int(f.in.Field("matrix"))
	if m >= len(f.plan.Matrices) {
		return nil, nil, fmt.Errorf("matrix %d: the plan has %d", m, len(f.plan.Matrices))
	}
	all := f.plan.Of(m)
	lo := 0
	for lo < len(all) && all[lo].Processor != f.processor {
		lo++
	}
	hi := lo
	for hi < len(all) && all[hi].Processor == f.processor {
		hi++
	}
	mine := all[lo:hi:hi]
	for _, p := range all[hi:] { // partitions handed out round-robin are not together
		if p.Processor == f.processor {
			mine = append(mine, p)
		}
	}
	return &f.plan.Matrices[m], mine, nil
}

// weights adds the processor's part of the matrix itself, read when the launch begins, or, where it is
// streamed, now.
func (f *Footprint) weights(m *plan.Matrix, mine []plan.Partition) {
	for _, p := range mine {
		r := Range{
			Segment: isa.SegParam, Offset: uint64(m.Offset) + uint64(p.Row), Read: true, Matrix: 1 + p.Matrix, Rank: 2,
			Axes: [MaxAxes]Axis{{uint64(p.Rows), 1}, {uint64(m.Cols), uint64(m.Rows)}},
		}
		if f.plan.Residence(p.Matrix).Kind == plan.Streamed {
			r.Matrix = 0
		}
		f.Ranges = append(f.Ranges, r)
	}
}

func (f *Footprint) product() error {
	m, mine, err := f.matrix()
	if err != nil || len(mine) == 0 {
		return err
	}
	f.weights(m, mine)
	for i := range f.in.Items {
		item := f.in.Item(i)
		for _, p := range mine {
			rows := Axis{uint64(p.Rows), 1}
			f.add(0, i, uint64(item[0])+uint64(p.Row), f.result(), rows)
			if f.in.Flags&isa.Bias != 0 {
				f.add(2, i, uint64(f.in.Field("bias"))+uint64(p.Row), asRead|asPaired, rows)
			}
		}
		f.add(1, i, uint64(item[1]), asRead, Axis{uint64(m.Cols), 1})
	}
	return nil
}

func (f *Footprint) productT() error {
	m, mine, err := f.matrix()
	if err == nil && f.plan.Residence(int(f.in.Field("matrix"))).Columns > 0 {
		f.columns(m)
		return nil
	}
	if err != nil || len(mine) == 0 {
		return err
	}
	f.weights(m, mine)
	behind := uint64(mine[0].Rank) * uint64(f.in.Field("apart"))
	for i := range f.in.Items {
		item := f.in.Item(i)
		f.add(0, i, uint64(item[0])+behind, f.result(), Axis{uint64(m.Cols), 1})
		for _, p := range mine {
			f.add(1, i, uint64(item[1])+uint64(p.Row), asRead, Axis{uint64(p.Rows), 1})
		}
	}
	return nil
}

// columns is a transposed product of which the processor forms some columns, from memory.
func (f *Footprint) columns(m *plan.Matrix) {
	lo, hi := f.plan.ColumnsOf(int(f.in.Field("matrix")), f.processor)
	if lo == hi {
		return
	}
	f.Ranges = append(f.Ranges, Range{
		Segment: isa.SegParam, Offset: uint64(m.Offset) + uint64(lo*m.Rows), Read: true, Rank: 1,
		Axes: [MaxAxes]Axis{{uint64((hi - lo) * m.Rows), 1}},
	})
	for i := range f.in.Items {
		item := f.in.Item(i)
		f.add(0, i, uint64(item[0])+uint64(lo), f.result(), Axis{uint64(hi - lo), 1})
		f.add(1, i, uint64(item[1]), asRead, Axis{uint64(m.Rows), 1})
	}
}

func (f *Footprint) outer() error {
	m, _, err := f.matrix()
	if err != nil {
		return err
	}
	f.blocks = f.plan.GradientBlocks(f.blocks[:0], int(f.in.Field("matrix")), f.processor)
	if len(f.blocks) == 0 {
		return nil
	}
	rows, columns := span{m.Rows, 0}, span{m.Cols, 0} // of all blocks
	for _, b := range f.blocks {
		f.add(0, 0, uint64(f.in.Field("dst"))+uint64(b.Row)+uint64(b.Column*m.Rows), f.result(), Axis{uint64(b.Rows), 1}, Axis{uint64(b.Columns), uint64(m.Rows)})
		rows.include(b.Row, b.Rows)
		columns.include(b.Column, b.Columns)
	}
	for i := range f.in.Items {
		item := f.in.Item(i)
		f.add(1, 0, uint64(item[0])+uint64(rows.lo), asRead, Axis{uint64(rows.hi - rows.lo), 1})
		f.add(2, 0, uint64(item[1])+uint64(columns.lo), asRead, Axis{uint64(columns.hi - columns.lo), 1})
	}
	return nil
}

// span is a run of rows or columns.
type span struct{ lo, hi int }

func (s *span) include(from, n int) { s.lo, s.hi = min(s.lo, from), max(s.hi, from+n) }

func (f *Footprint) gemm() error {
	axis := func(size, stride string) Axis {
		return Axis{uint64(f.in.Field(size)), uint64(f.in.Field(stride))}
	}
	for i := range f.in.Items {
		if f.in.Flags&isa.Bias != 0 {
			f.add(3, i, uint64(f.in.Field("bias")), asRead, Axis{uint64(f.in.Field("m")), 1})
		}
		item := f.in.Item(i)
		f.add(0, i, uint64(item[0]), f.result(), axis("m", "c_row"), axis("n", "c_col"))
		f.add(1, i, uint64(item[1]), asRead, axis("m", "a_row"), axis("k", "a_col"))
		f.add(2, i, uint64(item[2]), asRead, axis("k", "b_row"), axis("n", "b_col"))
	}
	return nil
}

func (f *Footprint) row() error {
	info, n := &isa.RowTable[f.in.Fn], f.in.Field("n")
	stride, lines := uint64(f.in.Field("stride")), uint64(f.in.Field("lines"))
	if stride == 0 || lines == 0 || lines > stride && lines%stride != 0 {
		return fmt.Errorf("%d lines of which each %d lie between one another", lines, stride)
	}
	row := Axis{uint64(n), stride}
	add := func(w, i int, a uint64, how access, line Axis) {
		inner := min(lines, stride)
		f.add(w, i, a, how, line, Axis{inner, 1}, Axis{lines / inner, stride * line.Size})
	}
	for i := range f.in.Items {
		item, part := f.in.Item(i), row
		if info.Label {
			last := len(item) - 1
			label := item[last]
			if f.in.Segment(last) == isa.SegInput { // one for each line, and no operand's length
				if f.add(last, i, uint64(label), asRead, Axis{lines, 1}); info.Parts != 0 || isa.RowFn(f.in.Fn) == isa.Invert {
					return fmt.Errorf("item %d: a label for each line", i)
				}
				label = 0
			}
			if label >= n {
				return fmt.Errorf("item %d: label %d of %d rows", i, label, n)
			}
			item, part.Size = item[:len(item)-1], uint64(label)+1
			if isa.RowFn(f.in.Fn) == isa.Invert && part.Size*part.Size != uint64(n) {
				return fmt.Errorf("item %d: a matrix of %d rows has not %d elements", i, part.Size, n)
			}
		}
		for w, a := range item {
			bit := uint8(1) << w
			how := asRead
			if info.Writes&bit != 0 {
				how = asWrite
				if w == 0 { // Acc adds to the result, not to what is kept for backward
					how = f.result()
				}
			}
			switch {
			case info.Rows&bit != 0:
				add(w, i, uint64(a), how|asPaired, row)
			case info.Parts&bit != 0:
				add(w, i, uint64(a), how, part)
			default:
				add(w, i, uint64(a), how, Axis{1, stride})
			}
		}
	}
	return nil
}

func (f *Footprint) norm() error {
	f.add(0, 0, uint64(f.in.Field("dst")), f.result(), Axis{isa.NormWords, 1})
	for i := range f.in.Items {
		item := f.in.Item(i)
		f.add(1, 0, uint64(item[0]), asRead, Axis{uint64(item[1]), 1})
	}
	return nil
}

// resultWords is the length of Clip's report.
const resultWords = 4

func (f *Footprint) clip() error {
	if f.in.Flags&isa.Last != 0 {
		f.add(0, 0, uint64(f.in.Field("result")), asWrite, Axis{resultWords, 1})
	}
	f.add(1, 0, uint64(f.in.Field("partials")), asRead, Axis{uint64(f.in.Field("n")), isa.NormWords}, Axis{isa.NormWords, 1})
	if f.in.Flags&isa.Loss != 0 {
		f.add(2, 0, uint64(f.in.Field("loss")), asRead)
	}
	return nil
}

func (f *Footprint) update() error {
	rule := &isa.RuleTable[f.in.Fn]
	for i := range f.in.Items {
		item := f.in.Item(i)
		axis := Axis{uint64(item[2]), 1}
		f.add(0, i, uint64(item[0]), asRead|asWrite|asPaired, axis)
		if f.in.Flags&isa.NoGrad == 0 {
			f.add(1, i, uint64(item[1]), asRead|asPaired, axis)
		}
		for _, state := range item[3 : 3+rule.States] {
			f.add(2, i, uint64(state), asRead|asWrite|asPaired, axis)
		}
		if rule.Normalises && (item[4] == 0 || item[4] > item[2]) {
			return fmt.Errorf("item %d: the sum is over %d of %d elements", i, item[4], item[2])
		}
	}
	return nil
}
