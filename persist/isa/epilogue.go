package isa

// Functions that an instruction applies to its sums before it stores them, and the matrices of Affine and AffineT.

import "fmt"

// Matrices lists the numbers of the matrices that the instruction names.
func (in *Instruction) Matrices() (list [MaxTerms]uint32, n int) {
	for k := range min(int(in.Fn), MaxTerms) {
		list[k] = in.Field("matrices") >> (8 * k) & 0xff
	}
	return list, min(int(in.Fn), MaxTerms)
}

// Epilogues are the functions that Product, Sum and Affine may apply to their sums before storing them.
// EpilogueDerivatives are those of Sum, ProductT and Collect.
var Epilogues, EpilogueDerivatives = [Fns]bool{Copy: true, Tanh: true, Logistic: true, Relu: true}, [Fns]bool{TanhB: true, LogisticB: true, ReluB: true}

// CheckFunction refuses a field "function" that the instruction cannot apply to its sums.
func (in *Instruction) CheckFunction() error {
	fn := in.Field("function")
	switch {
	case fn >= uint32(Fns):
		return fmt.Errorf("function %d: there are %d", fn, Fns)
	case in.Op == Affine && Epilogues[fn], in.Op == Collect && in.Fn&Derived != 0 && EpilogueDerivatives[fn], in.Op == Collect && in.Fn&Derived == 0 && Fn(fn) == Copy:
		return nil
	}
	return fmt.Errorf("function %s cannot be behind it", FnTable[fn].Name)
}
