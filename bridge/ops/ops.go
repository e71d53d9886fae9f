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

	// Element says how each element is computed from that of the only argument; nil: otherwise.
	Element *Element
}

// Element is an element function and its derivative, by their names in persist/isa, with their constants. The
// derivative's inputs are the gradient and the argument, or the result where FromY says so. Scale has the gradient only.
type Element struct {
	Function, Derivative string
	P, Q                 Number // of Function
	DP, DQ               Number // of Derivative
	FromY                bool
}

// Number is Value, or the node's attribute word Attr-1 if Attr is not 0.
type Number struct {
	Value float32
	Attr  int
}

func is(v float32) Number { return Number{Value: v} }
func attr(i int) Number   { return Number{Attr: 1 + i} }

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
	RandomGumbel    Code = 12

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

	Erf                   Code = 32
	LogGamma              Code = 33
	LogSigmoid            Code = 34
	Cube                  Code = 35
	ExponentialLinearUnit Code = 36
	SigmoidLinearUnit     Code = 37
	SoftSign              Code = 38
	Round                 Code = 39
	Ceil                  Code = 40
	Floor                 Code = 41
	ScaleGradient         Code = 42

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

	StdDimension          Code = 64
	LogSumExp             Code = 65
	LogSumExpDimension    Code = 66
	CumulativeSum         Code = 67
	MaxDimension          Code = 68
	MinDimension          Code = 69
	KMaxPooling           Code = 70
	Argmax                Code = 71
	FoldRows              Code = 72
	WeightNormalization   Code = 73
	TraceOfProduct        Code = 83
	MatrixInverse         Code = 84
	LogDet                Code = 85
	InnerProduct3D1D      Code = 86
	InnerProduct3D1D1D    Code = 87
	CircularConvolution   Code = 88
	CircularCorrelation   Code = 89
	Filter1DNarrow        Code = 90
	KMHNGram              Code = 91
	Conv2D                Code = 92
	MaxPooling2D          Code = 93
	SelectRows            Code = 101
	SelectCols            Code = 102
	StridedSelect         Code = 103
	L1Distance            Code = 118
	HuberDistance         Code = 119
	PairwiseRankLoss      Code = 120
	PoissonRegressionLoss Code = 121
	HingeDim              Code = 122
	Sparsemax             Code = 123
	SparsemaxLoss         Code = 124
	ConstrainedSoftmax    Code = 125
	DropoutDim            Code = 160
	DropoutBatch          Code = 161
	BlockDropout          Code = 162

	Sin   Code = 144
	Cos   Code = 145
	Tan   Code = 146
	Asin  Code = 147
	Acos  Code = 148
	Atan  Code = 149
	Sinh  Code = 150
	Cosh  Code = 151
	Asinh Code = 152
	Acosh Code = 153
	Atanh Code = 154
)

// Windows is no operation of the wire format: bridge makes it of convolution and pooling. x {h,w,c} becomes {oh*ow, kh*kw,
// c}, the windows of kh x kw elements, sh and sw from each other, that begin top and left before x; outside x is fill.
// Its attributes are kh, kw, sh, sw, oh, ow, top, left, fill.
const Windows Code = 255

// Table is indexed by Code; a zero Name is a code without an operation.
var Table = [256]Op{
	Input:           {"InputNode", 0, []Attr{off("data")}, "dim.size() floats at data, re-read whenever the node is evaluated", false, nil},
	ScalarInput:     {"ScalarInputNode", 0, []Attr{off("data")}, "one float at data", false, nil},
	SparseInput:     {"SparseInputNode", 0, []Attr{f("default"), off("ids"), u("n")}, "n flat ids at ids, then n floats; the other elements are default; later duplicates win", false, nil},
	Constant:        {"Constant", 0, []Attr{f("value")}, "every element is value", false, nil},
	Parameter:       {"ParameterNode", 0, []Attr{par()}, "a parameter, or a whole lookup table, times its weight decay factor", false, nil},
	ConstParameter:  {"ConstParameterNode", 0, []Attr{par()}, "the same without a gradient", false, nil},
	Lookup:          {"LookupNode", 0, []Attr{par(), off("rows")}, "dim.bd row numbers at rows; one row per batch element", false, nil},
	ConstLookup:     {"ConstLookupNode", 0, []Attr{par(), off("rows")}, "the same without a gradient", false, nil},
	RandomNormal:    {"RandomNormal", 0, []Attr{f("mean"), f("stddev")}, "drawn anew at every evaluation", false, nil},
	RandomBernoulli: {"RandomBernoulli", 0, []Attr{f("p"), f("scale")}, "scale with probability p, else 0", false, nil},
	RandomUniform:   {"RandomUniform", 0, []Attr{f("left"), f("right")}, "uniform in [left, right)", false, nil},
	RandomGumbel:    {"RandomGumbel", 0, []Attr{f("mu"), f("beta")}, "mu - beta*ln(-ln u) for a uniform u in (0, 1)", false, nil},

	Tanh:                {"Tanh", 1, nil, "tanh x", true, &Element{Function: "tanh", Derivative: "tanh_b", FromY: true}},
	LogisticSigmoid:     {"LogisticSigmoid", 1, nil, "1/(1+exp(-x))", true, &Element{Function: "logistic", Derivative: "logistic_b", FromY: true}},
	Rectify:             {"Rectify", 1, nil, "max(x, 0)", true, &Element{Function: "relu", Derivative: "relu_b", FromY: true}},
	Exp:                 {"Exp", 1, nil, "exp x", true, &Element{Function: "exp", Derivative: "mul", DP: is(1), FromY: true}},
	Log:                 {"Log", 1, nil, "ln x", true, &Element{Function: "log", Derivative: "div"}},
	Sqrt:                {"Sqrt", 1, nil, "the square root of x", true, &Element{Function: "sqrt", Derivative: "sqrt_b", FromY: true}},
	Square:              {"Square", 1, nil, "x*x", true, &Element{Function: "square", Derivative: "square_b"}},
	Abs:                 {"Abs", 1, nil, "|x|", true, &Element{Function: "abs", Derivative: "abs_b"}},
	Negate:              {"Negate", 1, nil, "-x", true, &Element{Function: "scale", P: is(-1), Derivative: "scale", DP: is(-1)}},
	ConstantPlusX:       {"ConstantPlusX", 1, []Attr{f("c")}, "c+x", true, &Element{Function: "add_const", P: attr(0), Derivative: "scale", DP: is(1)}},
	ConstantMinusX:      {"ConstantMinusX", 1, []Attr{f("c")}, "c-x", true, &Element{Function: "sub_from", P: attr(0), Derivative: "scale", DP: is(-1)}},
	ConstScalarMultiply: {"ConstScalarMultiply", 1, []Attr{f("alpha")}, "alpha*x", true, &Element{Function: "scale", P: attr(0), Derivative: "scale", DP: attr(0)}},
	Dropout:             {"Dropout", 1, []Attr{f("p")}, "x with each element dropped with probability p, the others times 1/(1-p)", false, nil},
	GaussianNoise:       {"GaussianNoise", 1, []Attr{f("stddev")}, "x plus noise of N(0, stddev²)", true, nil},
	NoBackprop:          {"NoBackprop", 1, nil, "x without a gradient", true, nil},
	Reshape:             {"Reshape", 1, nil, "x's elements under the node's own dim", false, nil},

	CwiseSum:                 {"CwiseSum", 2, nil, "x+y, each axis and the batch broadcast from 1", false, nil},
	CwiseMultiply:            {"CwiseMultiply", 2, nil, "x*y element by element, broadcast likewise", false, nil},
	CwiseQuotient:            {"CwiseQuotient", 2, nil, "x/y element by element, only y broadcast", false, nil},
	Pow:                      {"Pow", 2, nil, "x to the power of the scalar y", false, nil},
	Min:                      {"Min", 2, nil, "the smaller of x and y; a tie sends the gradient to y", false, nil},
	Max:                      {"Max", 2, nil, "the larger of x and y; a tie sends the gradient to y", false, nil},
	Sum:                      {"Sum", Variadic, nil, "the sum of all arguments, the batch broadcast from 1", false, nil},
	Average:                  {"Average", Variadic, nil, "the mean of all arguments", false, nil},
	AddVectorToAllColumns:    {"AddVectorToAllColumns", 2, nil, "the matrix x plus the vector y in every column", false, nil},
	SumElements:              {"SumElements", 1, nil, "the sum inside each batch element", false, nil},
	SumDimension:             {"SumDimension", 1, []Attr{u("axes"), u("batch")}, "the sum over the axes in the bit mask and, if batch is 1, over the batch", false, nil},
	MomentDimension:          {"MomentDimension", 1, []Attr{u("axes"), u("order"), u("batch"), u("n")}, "the mean of x to the power of order, over the axes (and batch); n replaces the divisor if not 0", false, nil},
	DotProduct:               {"DotProduct", 2, nil, "the sum of x*y inside each batch element", false, nil},
	SquaredEuclideanDistance: {"SquaredEuclideanDistance", 2, nil, "the sum of (x-y)² inside each batch element", false, nil},
	SquaredNorm:              {"SquaredNorm", 1, nil, "the sum of x² inside each batch element", false, nil},
	L2Norm:                   {"L2Norm", 1, nil, "its square root", false, nil},

	AffineTransform: {"AffineTransform", Variadic, nil, "x0 + x1*x2 + x3*x4 + ...", false, nil},
	MatrixMultiply:  {"MatrixMultiply", 2, nil, "x*y", false, nil},
	Transpose:       {"Transpose", 1, []Attr{u("axes")}, "axis i of the result is axis (axes>>4i)&15 of x", false, nil},

	Concatenate:        {"Concatenate", Variadic, []Attr{u("axis")}, "arguments side by side along axis", false, nil},
	ConcatenateToBatch: {"ConcatenateToBatch", Variadic, nil, "arguments one after another along the batch", false, nil},
	PickElement:        {"PickElement", 1, []Attr{u("axis"), off("rows"), u("n")}, "slice number rows[b] (n = 1: the same for the whole batch) along axis, which goes away", false, nil},
	PickRange:          {"PickRange", 1, []Attr{u("start"), u("end"), u("axis")}, "slices start..end-1 along axis", false, nil},
	PickBatchElements:  {"PickBatchElements", 1, []Attr{off("elements"), u("n")}, "n batch elements by number", false, nil},

	Softmax:              {"Softmax", 1, []Attr{u("axis")}, "softmax of each column (axis 0) or row (axis 1)", false, nil},
	LogSoftmax:           {"LogSoftmax", 1, nil, "x - logsumexp(x), column by column", false, nil},
	PickNegLogSoftmax:    {"PickNegLogSoftmax", 1, []Attr{off("rows")}, "-log softmax(x)[row], one row number per batch element", false, nil},
	Hinge:                {"Hinge", 1, []Attr{f("margin"), off("rows")}, "sum over i != row of max(0, margin - x[row] + x[i])", false, nil},
	BinaryLogLoss:        {"BinaryLogLoss", 2, nil, "-sum of y ln x + (1-y) ln(1-x)", false, nil},
	RestrictedLogSoftmax: {"RestrictedLogSoftmax", 1, []Attr{off("rows"), u("n")}, "the log softmax of the n rows of a vector that rows lists; the others are -inf", false, nil},

	VanillaLSTMGates:        {"VanillaLSTMGates", Variadic, []Attr{f("forget_bias")}, "x..., h, Wx, Wh, b: the gates i, f, o (logistic) and g (tanh) of one LSTM step", false, nil},
	VanillaLSTMC:            {"VanillaLSTMC", 2, nil, "c', gates: i*g + f*c'", false, nil},
	VanillaLSTMH:            {"VanillaLSTMH", 2, nil, "c, gates: o*tanh(c)", false, nil},
	VanillaLSTMGatesDropout: {"VanillaLSTMGatesDropout", Variadic, []Attr{f("forget_bias")}, "x..., h, Wx, Wh, b, mask_x, mask_h: the same with x and h multiplied by masks first", false, nil},

	Sin:   {"Sin", 1, nil, "sin x", true, &Element{Function: "sin", Derivative: "sin_b"}},
	Cos:   {"Cos", 1, nil, "cos x", true, &Element{Function: "cos", Derivative: "cos_b"}},
	Tan:   {"Tan", 1, nil, "tan x", true, &Element{Function: "tan", Derivative: "tan_b", FromY: true}},
	Asin:  {"Asin", 1, nil, "the arcsine of x", true, &Element{Function: "asin", Derivative: "asin_b", DP: is(1)}},
	Acos:  {"Acos", 1, nil, "the arccosine of x", true, &Element{Function: "acos", Derivative: "asin_b", DP: is(-1)}},
	Atan:  {"Atan", 1, nil, "the arctangent of x", true, &Element{Function: "atan", Derivative: "atan_b"}},
	Sinh:  {"Sinh", 1, nil, "sinh x", true, &Element{Function: "sinh", Derivative: "sinh_b"}},
	Cosh:  {"Cosh", 1, nil, "cosh x", true, &Element{Function: "cosh", Derivative: "cosh_b"}},
	Asinh: {"Asinh", 1, nil, "the inverse of sinh at x", true, &Element{Function: "asinh", Derivative: "asinh_b"}},
	Acosh: {"Acosh", 1, nil, "the inverse of cosh at x", true, &Element{Function: "acosh", Derivative: "acosh_b"}},
	Atanh: {"Atanh", 1, nil, "the inverse of tanh at x", true, &Element{Function: "atanh", Derivative: "atanh_b"}},

	Erf:                   {"Erf", 1, nil, "the error function of x", true, &Element{Function: "erf", Derivative: "erf_b"}},
	LogGamma:              {"LogGamma", 1, nil, "ln of the gamma function of x", true, &Element{Function: "log_gamma", Derivative: "log_gamma_b"}},
	LogSigmoid:            {"LogSigmoid", 1, nil, "ln(1/(1+exp(-x)))", true, &Element{Function: "log_sigmoid", Derivative: "log_sigmoid_b"}},
	Cube:                  {"Cube", 1, nil, "x*x*x", true, &Element{Function: "moment", P: is(1), Q: is(3), Derivative: "moment_b", DP: is(1), DQ: is(3)}},
	ExponentialLinearUnit: {"ExponentialLinearUnit", 1, []Attr{f("lambda"), f("alpha")}, "lambda*x above 0, else lambda*alpha*(exp(x)-1)", true, &Element{Function: "elu", P: attr(0), Q: attr(1), Derivative: "elu_b", DP: attr(0), DQ: attr(1)}},
	SigmoidLinearUnit:     {"SigmoidLinearUnit", 1, []Attr{f("beta")}, "x/(1+exp(-beta*x))", true, &Element{Function: "silu", P: attr(0), Derivative: "silu_b", DP: attr(0)}},
	SoftSign:              {"SoftSign", 1, nil, "x/(1+|x|)", false, &Element{Function: "soft_sign", Derivative: "soft_sign_b", FromY: true}},
	Round:                 {"Round", 1, []Attr{f("slope")}, "the nearest whole number, halves away from 0; slope times the gradient goes back", true, &Element{Function: "round", Derivative: "scale", DP: attr(0)}},
	Ceil:                  {"Ceil", 1, []Attr{f("slope")}, "the smallest whole number not below x; slope times the gradient goes back", true, &Element{Function: "ceil", Derivative: "scale", DP: attr(0)}},
	Floor:                 {"Floor", 1, []Attr{f("slope")}, "the largest whole number not above x; slope times the gradient goes back", true, &Element{Function: "floor", Derivative: "scale", DP: attr(0)}},
	ScaleGradient:         {"ScaleGradient", 1, []Attr{f("slope")}, "x; slope times the gradient goes back", true, &Element{Function: "copy", Derivative: "scale", DP: attr(0)}},

	StdDimension:        {"StdDimension", 1, []Attr{u("axes"), u("batch"), u("n")}, "the standard deviation of x over the axes (and batch); n replaces the divisor if not 0", false, nil},
	LogSumExp:           {"LogSumExp", Variadic, nil, "ln of the sum of all arguments' exp, the batch broadcast from 1", false, nil},
	LogSumExpDimension:  {"LogSumExpDimension", 1, []Attr{u("axis")}, "ln of the sum of exp x along axis, which goes away", false, nil},
	CumulativeSum:       {"CumulativeSum", 1, []Attr{u("axis")}, "sums along axis up to each element", false, nil},
	MaxDimension:        {"MaxDimension", 1, []Attr{u("axis")}, "the largest element along axis, which goes away; of equal ones the first gets the gradient", false, nil},
	MinDimension:        {"MinDimension", 1, []Attr{u("axis")}, "the smallest likewise", false, nil},
	KMaxPooling:         {"KMaxPooling", 1, []Attr{u("k"), u("axis")}, "the k largest elements along axis, in their order", false, nil},
	Argmax:              {"Argmax", 1, []Attr{f("slope")}, "1 at the largest element of a vector, else 0; slope times the gradient goes back", false, nil},
	FoldRows:            {"FoldRows", 1, []Attr{u("rows")}, "sums of so many neighbouring rows", false, nil},
	WeightNormalization: {"WeightNormalization", 2, nil, "y times x divided by the norm of x", false, nil},

	TraceOfProduct:      {"TraceOfProduct", 2, nil, "the trace of x times y transposed", false, nil},
	MatrixInverse:       {"MatrixInverse", 1, nil, "the inverse of x", false, nil},
	LogDet:              {"LogDet", 1, nil, "ln of the determinant of x", false, nil},
	InnerProduct3D1D:    {"InnerProduct3D_1D", Variadic, nil, "x, y, maybe b: the sum over k of x[i,j,k]*y[k], plus b[i,j]", false, nil},
	InnerProduct3D1D1D:  {"InnerProduct3D_1D_1D", Variadic, nil, "x, y, z, maybe b: the sum over j and k of x[i,j,k]*y[k]*z[j], plus b[i]", false, nil},
	CircularConvolution: {"CircularConvolution", 2, nil, "element k is the sum over i of x[i]*y[k-i], indices modulo the length", false, nil},
	CircularCorrelation: {"CircularCorrelation", 2, nil, "element k is the sum over i of x[i]*y[k+i], indices modulo the length", false, nil},
	Filter1DNarrow:      {"Filter1DNarrow", 2, nil, "filters y {r,m,k} over the columns of x {r,c}: {k,c-m+1}", false, nil},
	KMHNGram:            {"KMHNGram", 1, []Attr{u("n")}, "sums of n neighbouring columns", false, nil},
	Conv2D:              {"Conv2D", Variadic, []Attr{u("sh"), u("sw"), u("valid")}, "x {h,w,c}, filters {fh,fw,c,k}, maybe a bias {k}; without valid, padded with 0 to {h/sh,w/sw,k}", false, nil},
	MaxPooling2D:        {"MaxPooling2D", 1, []Attr{u("kh"), u("kw"), u("sh"), u("sw"), u("valid")}, "the largest element of each window of x {h,w,c}", false, nil},

	SelectRows:    {"SelectRows", 1, []Attr{off("rows"), u("n")}, "n rows by number", false, nil},
	SelectCols:    {"SelectCols", 1, []Attr{off("cols"), u("n")}, "n columns of a matrix by number", false, nil},
	StridedSelect: {"StridedSelect", 1, []Attr{u("from0"), u("to0"), u("stride0"), u("from1"), u("to1"), u("stride1"), u("from2"), u("to2"), u("stride2"), u("from3"), u("to3"), u("stride3"), u("from_batch"), u("to_batch"), u("stride_batch")}, "elements from, from+stride, ... before to, along each of up to four axes and the batch", false, nil},

	L1Distance:            {"L1Distance", 2, nil, "the sum of |x-y| inside each batch element", false, nil},
	HuberDistance:         {"HuberDistance", 2, []Attr{f("c")}, "the sum of d²/2 where d = |x-y| is below c, else c*d - c²/2", false, nil},
	PairwiseRankLoss:      {"PairwiseRankLoss", 2, []Attr{f("margin")}, "max(0, margin - x + y) element by element", false, nil},
	PoissonRegressionLoss: {"PoissonRegressionLoss", 1, []Attr{off("count")}, "exp(x) - n*x + ln n! for the whole number n", false, nil},
	HingeDim:              {"HingeDim", 1, []Attr{f("margin"), u("axis"), off("rows"), u("n")}, "Hinge along axis of a matrix; one row number for each line, or for each line of each batch element", false, nil},
	Sparsemax:             {"Sparsemax", 1, nil, "the nearest point to x whose elements are not negative and add up to 1", false, nil},
	SparsemaxLoss:         {"SparsemaxLoss", 1, []Attr{off("support"), u("n")}, "the loss of which Sparsemax(x) minus 1/n at the n rows is the gradient", false, nil},
	ConstrainedSoftmax:    {"ConstrainedSoftmax", 2, nil, "the softmax of x with no element above that of y", false, nil},

	DropoutDim:   {"DropoutDim", 1, []Attr{u("axis"), f("p")}, "x with lines along axis dropped with probability p, the others times 1/(1-p)", false, nil},
	DropoutBatch: {"DropoutBatch", 1, []Attr{f("p")}, "x with whole batch elements dropped", false, nil},
	BlockDropout: {"BlockDropout", 1, []Attr{f("p")}, "x dropped as a whole", false, nil},
}

// Known reports whether c is an operation.
func (c Code) Known() bool { return Table[c].Name != "" }

// String returns the operation's name, or its number.
func (c Code) String() string {
	switch {
	case c.Known():
		return Table[c].Name
	case c == Windows:
		return "Windows"
	}
	return "operation " + itoa(uint(c))
}

func itoa(n uint) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}
