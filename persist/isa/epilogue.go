package isa

// Epilogues are the functions that Product and Sum may apply to their sums before storing them. EpilogueDerivatives are
// those of Sum.
var Epilogues, EpilogueDerivatives = [Fns]bool{Copy: true, Tanh: true, Logistic: true, Relu: true}, [Fns]bool{TanhB: true, LogisticB: true, ReluB: true}
