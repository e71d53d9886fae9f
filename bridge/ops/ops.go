// Package ops is the operation table: every kind of node that a graph may hold,
// with its wire code, its arguments and its attribute words. The C++ front-ends,
// the decoder, the lowering and the documentation are all driven by it.
//
// Operations are DyNet's node classes, not its expression functions: x-y is
// Negate and CwiseSum. Codes are part of the wire format and never change.
//
// A new operation: add it here, run go generate, and only then write its rule in shape.h,
// which needs the generated code to compile.
package ops

//go:generate go run ./gen

// Code identifies an operation on the wire.
type Code uint8

// Variadic is the Args of an operation whose argument count is on the wire.
const Variadic = -1

// Kind says how an attribute word is read.
type Kind uint8

const (
	Uint   Kind = iota // an unsigned integer
	Float              // a float32 by bit pattern
	Offset             // an index into the graph's input words
	Param              // a parameter's id
)

// Attr is one attribute word.
type Attr struct {
	Name string
	Kind Kind
}

// Op describes one operation.
type Op struct {
	Name  string // DyNet's node class
	Args  int    // number of arguments, or Variadic
	Attrs []Attr
	Doc   string
	Same  bool // the result has the dim of the only argument, whatever the attributes are
}

func u(n string) Attr   { return Attr{n, Uint} }
func f(n string) Attr   { return Attr{n, Float} }
func off(n string) Attr { return Attr{n, Offset} }
func par() Attr         { return Attr{"param", Param} }

// The codes. Leaves first; gaps are room for the rest of DyNet's classes.
const (
	Invalid         Code = 0
	Input           Code = 1
	ScalarInput     Code = 2
	SparseInput     Code = 3
	Constant        Code = 4
	Parameter       Code = 5
	ConstParameter  Code = 6
	Lookup          Code = 7
	ConstLookup     Code = 8
	RandomNormal    Code = 9
	RandomBernoulli Code = 10
	RandomUniform   Code = 11

	Tanh                Code = 16
	LogisticSigmoid     Code = 17
	Rectify             Code = 18
	Exp                 Code = 19
	Log                 Code = 20
	Sqrt                Code = 21
	Square              Code = 22
	Abs                 Code = 23
	Negate              Code = 24
	ConstantPlusX       Code = 25
	ConstantMinusX      Code = 26
	ConstScalarMultiply Code = 27
	Dropout             Code = 28
	GaussianNoise       Code = 29
	NoBackprop          Code = 30
	Reshape             Code = 31

	CwiseSum                 Code = 48
	CwiseMultiply            Code = 49
	CwiseQuotient            Code = 50
	Pow                      Code = 51
	Min                      Code = 52
	Max                      Code = 53
	Sum                      Code = 54
	Average                  Code = 55
	AddVectorToAllColumns    Code = 56
	SumElements              Code = 57
	SumDimension             Code = 58
	MomentDimension          Code = 59
	DotProduct               Code = 60
	SquaredEuclideanDistance Code = 61
	SquaredNorm              Code = 62
	L2Norm                   Code = 63
	AffineTransform          Code = 80
	MatrixMultiply           Code = 81
	Transpose                Code = 82
	Concatenate              Code = 96
	ConcatenateToBatch       Code = 97
	PickElement              Code = 98
	PickRange                Code = 99
	PickBatchElements        Code = 100
	Softmax                  Code = 112
	LogSoftmax               Code = 113
	PickNegLogSoftmax        Code = 114
	Hinge                    Code = 115
	BinaryLogLoss            Code = 116
	RestrictedLogSoftmax     Code = 117
	VanillaLSTMGates         Code = 128
	VanillaLSTMC             Code = 129
	VanillaLSTMH             Code = 130
	VanillaLSTMGatesDropout  Code = 131
)

// Table is indexed by Code; a zero Name is a code without an operation.
var Table = [256]Op{
	Input:           {"InputNode", 0, []Attr{off("data")}, "dim.size() floats at data, re-read whenever the node is evaluated", false},
	ScalarInput:     {"ScalarInputNode", 0, []Attr{off("data")}, "one float at data", false},
	SparseInput:     {"SparseInputNode", 0, []Attr{f("default"), off("ids"), u("n")}, "n flat ids at ids, then n floats; the other elements are default; later duplicates win", false},
	Constant:        {"Constant", 0, []Attr{f("value")}, "every element is value", false},
	Parameter:       {"ParameterNode", 0, []Attr{par()}, "a parameter, or a whole lookup table, times its weight decay factor", false},
	ConstParameter:  {"ConstParameterNode", 0, []Attr{par()}, "the same without a gradient", false},
	Lookup:          {"LookupNode", 0, []Attr{par(), off("rows")}, "dim.bd row numbers at rows; one row per batch element", false},
	ConstLookup:     {"ConstLookupNode", 0, []Attr{par(), off("rows")}, "the same without a gradient", false},
	RandomNormal:    {"RandomNormal", 0, []Attr{f("mean"), f("stddev")}, "drawn anew at every evaluation", false},
	RandomBernoulli: {"RandomBernoulli", 0, []Attr{f("p"), f("scale")}, "scale with probability p, else 0", false},
	RandomUniform:   {"RandomUniform", 0, []Attr{f("left"), f("right")}, "uniform in [left, right)", false},

	Tanh:                {"Tanh", 1, nil, "tanh x", true},
	LogisticSigmoid:     {"LogisticSigmoid", 1, nil, "1/(1+exp(-x))", true},
	Rectify:             {"Rectify", 1, nil, "max(x, 0)", true},
	Exp:                 {"Exp", 1, nil, "exp x", true},
	Log:                 {"Log", 1, nil, "ln x", true},
	Sqrt:                {"Sqrt", 1, nil, "the square root of x", true},
	Square:              {"Square", 1, nil, "x*x", true},
	Abs:                 {"Abs", 1, nil, "|x|", true},
	Negate:              {"Negate", 1, nil, "-x", true},
	ConstantPlusX:       {"ConstantPlusX", 1, []Attr{f("c")}, "c+x", true},
	ConstantMinusX:      {"ConstantMinusX", 1, []Attr{f("c")}, "c-x", true},
	ConstScalarMultiply: {"ConstScalarMultiply", 1, []Attr{f("alpha")}, "alpha*x", true},
	Dropout:             {"Dropout", 1, []Attr{f("p")}, "x with each element dropped with probability p, the others times 1/(1-p)", false},
	GaussianNoise:       {"GaussianNoise", 1, []Attr{f("stddev")}, "x plus noise of N(0, stddev²)", true},
	NoBackprop:          {"NoBackprop", 1, nil, "x without a gradient", true},
	Reshape:             {"Reshape", 1, nil, "x's elements under the node's own dim", false},

	CwiseSum:                 {"CwiseSum", 2, nil, "x+y, each axis and the batch broadcast from 1", false},
	CwiseMultiply:            {"CwiseMultiply", 2, nil, "x*y element by element, broadcast likewise", false},
	CwiseQuotient:            {"CwiseQuotient", 2, nil, "x/y element by element, only y broadcast", false},
	Pow:                      {"Pow", 2, nil, "x to the power of the scalar y", false},
	Min:                      {"Min", 2, nil, "the smaller of x and y; a tie sends the gradient to y", false},
	Max:                      {"Max", 2, nil, "the larger of x and y; a tie sends the gradient to y", false},
	Sum:                      {"Sum", Variadic, nil, "the sum of all arguments, the batch broadcast from 1", false},
	Average:                  {"Average", Variadic, nil, "the mean of all arguments", false},
	AddVectorToAllColumns:    {"AddVectorToAllColumns", 2, nil, "the matrix x plus the vector y in every column", false},
	SumElements:              {"SumElements", 1, nil, "the sum inside each batch element", false},
	SumDimension:             {"SumDimension", 1, []Attr{u("axes"), u("batch")}, "the sum over the axes in the bit mask and, if batch is 1, over the batch", false},
	MomentDimension:          {"MomentDimension", 1, []Attr{u("axes"), u("order"), u("batch"), u("n")}, "the mean of x to the power of order, over the axes (and batch); n replaces the divisor if not 0", false},
	DotProduct:               {"DotProduct", 2, nil, "the sum of x*y inside each batch element", false},
	SquaredEuclideanDistance: {"SquaredEuclideanDistance", 2, nil, "the sum of (x-y)² inside each batch element", false},
	SquaredNorm:              {"SquaredNorm", 1, nil, "the sum of x² inside each batch element", false},
	L2Norm:                   {"L2Norm", 1, nil, "its square root", false},

	AffineTransform: {"AffineTransform", Variadic, nil, "x0 + x1*x2 + x3*x4 + ...", false},
	MatrixMultiply:  {"MatrixMultiply", 2, nil, "x*y", false},
	Transpose:       {"Transpose", 1, []Attr{u("axes")}, "axis i of the result is axis (axes>>4i)&15 of x", false},

	Concatenate:        {"Concatenate", Variadic, []Attr{u("axis")}, "arguments side by side along axis", false},
	ConcatenateToBatch: {"ConcatenateToBatch", Variadic, nil, "arguments one after another along the batch", false},
	PickElement:        {"PickElement", 1, []Attr{u("axis"), off("rows"), u("n")}, "slice number rows[b] (n = 1: the same for the whole batch) along axis, which goes away", false},
	PickRange:          {"PickRange", 1, []Attr{u("start"), u("end"), u("axis")}, "slices start..end-1 along axis", false},
	PickBatchElements:  {"PickBatchElements", 1, []Attr{off("elements"), u("n")}, "n batch elements by number", false},

	Softmax:              {"Softmax", 1, []Attr{u("axis")}, "softmax of each column (axis 0) or row (axis 1)", false},
	LogSoftmax:           {"LogSoftmax", 1, nil, "x - logsumexp(x), column by column", false},
	PickNegLogSoftmax:    {"PickNegLogSoftmax", 1, []Attr{off("rows")}, "-log softmax(x)[row], one row number per batch element", false},
	Hinge:                {"Hinge", 1, []Attr{f("margin"), off("rows")}, "sum over i != row of max(0, margin - x[row] + x[i])", false},
	BinaryLogLoss:        {"BinaryLogLoss", 2, nil, "-sum of y ln x + (1-y) ln(1-x)", false},
	RestrictedLogSoftmax: {"RestrictedLogSoftmax", 1, []Attr{off("rows"), u("n")}, "the log softmax of the n rows of a vector that rows lists; the others are -inf", false},

	VanillaLSTMGates:        {"VanillaLSTMGates", Variadic, []Attr{f("forget_bias")}, "x..., h, Wx, Wh, b: the gates i, f, o (logistic) and g (tanh) of one LSTM step", false},
	VanillaLSTMC:            {"VanillaLSTMC", 2, nil, "c', gates: i*g + f*c'", false},
	VanillaLSTMH:            {"VanillaLSTMH", 2, nil, "c, gates: o*tanh(c)", false},
	VanillaLSTMGatesDropout: {"VanillaLSTMGatesDropout", Variadic, []Attr{f("forget_bias")}, "x..., h, Wx, Wh, b, mask_x, mask_h: the same with x and h multiplied by masks first", false},
}

// Known reports whether c is an operation.
func (c Code) Known() bool { return Table[c].Name != "" }

// String returns the operation's name, or its number.
func (c Code) String() string {
	if c.Known() {
		return Table[c].Name
	}
	return "operation " + itoa(uint(c))
}

func itoa(n uint) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}
