package verify

import (
	"fmt"

	"libvpps/persist/isa"
	"libvpps/persist/plan"
)

// Footprints of Affine and AffineT: the processor's rows, which are the same of all matrices.

// terms returns the matrices of the instruction, which are as long, and the processor's rows, which are the same of all:
// nil if it has none.
func (f *Footprint) terms() (matrices [isa.MaxTerms]*plan.Matrix, rows *plan.Partition, err error) {
	list, n := f.in.Matrices()
	for k, m := range list[:n] {
		if int(m) >= len(f.plan.Matrices) {
			return matrices, nil, fmt.Errorf("matrix %d: the plan has %d", m, len(f.plan.Matrices))
		}
		mine := f.partitions(int(m))
		if len(mine) > 1 || f.plan.Residence(int(m)).Kind != plan.Registers || f.plan.Residence(int(m)).Columns > 0 {
			return matrices, nil, fmt.Errorf("matrix %d is not in slices", m)
		}
		matrices[k] = &f.plan.Matrices[m]
		if k == 0 && len(mine) > 0 {
			rows = &mine[0]
		}
		alike := len(mine) == 0
		if rows != nil {
			alike = len(mine) > 0 && mine[0].Row == rows.Row && mine[0].Rows == rows.Rows
		}
		if !alike || matrices[k].Cols != matrices[0].Cols {
			return matrices, nil, fmt.Errorf("matrices %d and %d do not lie alike", list[0], m)
		}
		f.weights(matrices[k], mine)
	}
	return matrices, rows, nil
}

// affine is the footprint: the rows of the result, whole vectors.
func (f *Footprint) affine() error {
	if err := f.in.CheckFunction(); err != nil {
		return err
	}
	matrices, mine, err := f.terms()
	if err != nil || mine == nil {
		return err
	}
	rows := Axis{uint64(mine.Rows), 1}
	for i := range f.in.Items {
		item := f.in.Item(i)
		f.add(0, i, uint64(item[0])+uint64(mine.Row), f.result(), rows)
		if f.in.Flags&isa.Bias != 0 {
			f.add(2, i, uint64(f.in.Field("bias"))+uint64(mine.Row), asRead|asPaired, rows)
		}
		for k, x := range item[1:] {
			f.add(1, i, uint64(x), asRead, Axis{uint64(matrices[k].Cols), 1})
		}
	}
	return nil
}

// affineT is the footprint: the rows of the vector, a result of every matrix.
func (f *Footprint) affineT() error {
	matrices, mine, err := f.terms()
	if err != nil || mine == nil {
		return err
	}
	apart := uint64(f.in.Field("apart"))
	for i := range f.in.Items {
		item := f.in.Item(i)
		for k := range int(f.in.Fn) {
			f.add(0, i, uint64(item[0])+uint64(k*f.place.Group+f.place.Rank)*apart, f.result(), Axis{uint64(matrices[k].Cols), 1})
		}
		f.add(1, i, uint64(item[1])+uint64(mine.Row), asRead, Axis{uint64(mine.Rows), 1})
	}
	return nil
}
