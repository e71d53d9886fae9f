// Package isa is the instruction set of the virtual processors: opcodes, element functions and the layout of a script.
//
// The scheduler, the verifier and the disassembler read the tables of this file. The kernel on both devices reads them
// through the generated isa.h. A Script is only words: whoever executes or verifies one needs nothing else but the plan.
package isa

//go:generate go run ./gen

// Opcode is the low byte of an instruction's first word.
type Opcode uint8

// An instruction is
//
//	word 0   opcode | fn<<8 | flags<<16
//	word 1   length in words | item count<<16      (not HALT, which is one zero word)
//	fixed    Fixed words, named in Fields
//	items    count times ItemWords, each word an address or an immediate; of an instruction with
//	         flag Listed one word, which says where in the script they are
//
// An address is an offset in floats into a segment; which segment each slot
// addresses is in the word "segments", four bits a slot, slot 0 lowest. Slot 0 is
// what the instruction writes.
const (
	Halt Opcode = iota
	Signal
	Wait
	Fill
	Map
	Strided
	Chain
	Sum
	Product
	ProductT
	Outer
	Gemm
	Row
	Random
	Norm
	Clip
	Update
	opcodes
)

// Flags of an instruction (bits of word 0 from bit 16 on).
const (
	Acc    = 1 << iota // add to what is there instead of storing
	Sync               // the CTA's threads meet before it: it depends on an earlier instruction of the same processor
	Bias               // Product, Gemm: has a bias
	Last               // Clip: this processor reports the norm
	NoGrad             // Update: the gradients are 0, wherever the items say they are
	Listed             // products: the items are in the script's lists, from the word on that stands in their place
	Loss               // Clip: the loss decides, too, whether the batch is committed
)

// flagNames by bit.
var flagNames = [...]string{"acc", "sync", "bias", "last", "nograd", "listed", "loss"}

// Phase is the part of a call that an instruction belongs to. The first instruction of a level says
// it, in the flags from bit PhaseShift on, and it holds for those after it. Clocks ask for it, and a GPU's interpreter, which
// takes the matrices' registers for gradients (jit/kernel/interpreter.h: Half).
type Phase uint8

const (
	NoPhase     Phase = iota // as before it
	InForward                // values
	InBackward               // gradients of nodes
	InGradients              // gradients of parameters
	InUpdate                 // norm, clipping, update
	Phases
)

// PhaseShift is where in the flags the phase begins; it ends with them.
const PhaseShift = 13

func (p Phase) String() string {
	return [...]string{"start", "forward", "backward", "gradients", "update"}[p]
}

// Segment numbers an address space; see DESIGN: 32-bit offsets in floats.
type Segment uint8

const (
	SegParam  Segment = iota // dense parameters, stored values
	SegGrad                  // their gradients
	SegTable                 // lookup tables, stored values
	SegTGrad                 // their gradients
	SegAct                   // node values, node gradients, temporaries
	SegInput                 // this launch's input words
	SegResult                // what the host reads back
	SegState                 // what update rules remember of parameters
	Segments
)

func (s Segment) String() string {
	return [...]string{"param", "grad", "table", "tgrad", "act", "input", "result", "state"}[s]
}

// Sentinel is the bit pattern of a word that nobody has written yet. Stores turn
// every NaN into 0x7FC00000, so no result has it.
const Sentinel = 0xFFFFFFFF

// Format describes an opcode's words.
type Format struct {
	Name   string
	Fields []string // fixed words after word 1
	Items  int      // words per item; -1: 1 + the arity of fn, -2: as the row function says, -3: random, -4: as the update rule says, -5: fn, the slots
	Doc    string
}

// Formats is indexed by Opcode.
//
// Strided's fixed words are followed by axes: the kept and then the reduced sizes,
// then for each slot that many strides. Chain's are followed by its slots and operations: see ChainOp.
var Formats = [opcodes]Format{
	Halt:     {"halt", nil, 0, "ends a stream. A zeroed script stops at once"},
	Signal:   {"signal", []string{"barrier"}, 0, "adds 1 to a barrier after all this processor's earlier work"},
	Wait:     {"wait", []string{"barrier", "expected"}, 0, "waits until a barrier has the expected count"},
	Fill:     {"fill", []string{"segments", "n", "value"}, 1, "dst[0..n) = value"},
	Map:      {"map", []string{"segments", "n", "p", "q"}, -1, "dst[i] = f(in...[i]), i < n"},
	Strided:  {"strided", []string{"segments", "axes", "p", "q"}, -1, "map over up to 5 kept and 5 reduced axes, summed over the reduced ones"},
	Chain:    {"chain", []string{"n", "operations"}, -5, "several operations of map, one after the other, on slots whose elements stay with the thread"},
	Sum:      {"sum", []string{"segments", "n", "scale", "dst", "runs", "apart", "y"}, 1, "dst[i] = f(scale * sum of src[i] over the items)"},
	Product:  {"product", []string{"segments", "matrix", "scale", "bias", "bias_scale"}, 2, "y[r] = f(bias_scale*bias[r] + scale * W[r,:]·x), for the processor's rows of a matrix"},
	ProductT: {"product_t", []string{"segments", "matrix", "scale", "apart"}, 2, "t[c] = scale * sum of W[r,c]*dy[r] over the processor's rows"},
	Outer:    {"outer", []string{"segments", "matrix", "scale", "dst"}, 2, "G[r,c] = scale * sum over items of dy[r]*x[c], for the processor's blocks"},
	Gemm:     {"gemm", []string{"segments", "m", "n", "k", "c_row", "c_col", "a_row", "a_col", "b_row", "b_col", "scale", "bias"}, 3, "C[i,j] = bias[i] + scale * sum over k of A[i,k]*B[k,j], any strides"},
	Row:      {"row", []string{"segments", "n", "stride", "p", "lines"}, -2, "softmax-like functions of lines of n elements"},
	Random:   {"random", []string{"segments", "n", "p", "q", "seed", "graph", "forward", "first"}, -3, "dst[i] = a function of (seed, node, element first + i) and maybe src[i]"},
	Norm:     {"norm", []string{"segments", "dst"}, 2, "dst[0] = sum of g[i]² over ranges; dst[1] = 2^-192 times that sum, which stays finite"},
	Clip:     {"clip", []string{"segments", "partials", "n", "threshold", "result", "loss"}, 0, "adds the partial sums of n norms; decides the gradients' scale and whether the update is committed"},
	Update:   {"update", []string{"segments", "rate", "p", "q", "r"}, -4, "a step of an update rule over ranges, if committed"},
}

// Fn is an element function of Map, Strided and Chain. Its formula, over the inputs
// a, b, c, d and the constants p, q, stands in jit/kernel/formulas.h.
type Fn uint8

const (
	Copy Fn = iota
	Scale
	AddConst
	SubFrom
	Tanh
	TanhB
	Logistic
	LogisticB
	Relu
	ReluB
	Exp
	Log
	Sqrt
	SqrtB
	Square
	SquareB
	Abs
	AbsB
	Add
	Mul
	Div
	DivB
	Pow
	PowBX
	PowBY
	Min
	MinBX
	MinBY
	Max
	MaxBX
	MaxBY
	SquareDiff
	SquareDiffB
	BinLog
	BinLogB
	Moment
	MomentB
	MulDiv

	// Seldom ones, computed out of line.
	Sin
	SinB
	Cos
	CosB
	Tan
	TanB
	Asin
	AsinB
	Acos
	Atan
	AtanB
	Sinh
	SinhB
	Cosh
	CoshB
	Asinh
	AsinhB
	Acosh
	AcoshB
	Atanh
	AtanhB
	Erf
	ErfB
	LogGamma
	LogGammaB
	LogSigmoid
	LogSigmoidB
	Elu
	EluB
	Silu
	SiluB
	SoftSign
	SoftSignB
	Round
	Ceil
	Floor
	Poisson
	PoissonB
	Huber
	HuberB
	Fns
)

// FnInfo names an element function and counts its inputs. Doc is its formula, or, of a
// derivative, its inputs.
type FnInfo struct {
	Name  string
	Arity int
	Doc   string
}

// FnTable is indexed by Fn.
var FnTable = [Fns]FnInfo{
	Copy:        {"copy", 1, "a"},
	Scale:       {"scale", 1, "p*a"},
	AddConst:    {"add_const", 1, "p+a"},
	SubFrom:     {"sub_from", 1, "p-a"},
	Tanh:        {"tanh", 1, "tanh a"},
	TanhB:       {"tanh_b", 2, "(dy, y)"},
	Logistic:    {"logistic", 1, "1/(1+exp(-(a+p)))"},
	LogisticB:   {"logistic_b", 2, "(dy, y)"},
	Relu:        {"relu", 1, "max(a, 0)"},
	ReluB:       {"relu_b", 2, "(dy, y)"},
	Exp:         {"exp", 1, "exp a"},
	Log:         {"log", 1, "ln a"},
	Sqrt:        {"sqrt", 1, "sqrt a"},
	SqrtB:       {"sqrt_b", 2, "(dy, y)"},
	Square:      {"square", 1, "a*a"},
	SquareB:     {"square_b", 2, "(dy, x)"},
	Abs:         {"abs", 1, "|a|"},
	AbsB:        {"abs_b", 2, "(dy, x)"},
	Add:         {"add", 2, "a+b"},
	Mul:         {"mul", 2, "p*a*b"},
	Div:         {"div", 2, "a/b"},
	DivB:        {"div_b", 3, "(dy, x, y): d/dy of x/y"},
	Pow:         {"pow", 2, "a^b"},
	PowBX:       {"pow_bx", 3, "(dy, x, y)"},
	PowBY:       {"pow_by", 3, "(dy, x, y)"},
	Min:         {"min", 2, "min(a, b)"},
	MinBX:       {"min_bx", 3, "(dy, x, y)"},
	MinBY:       {"min_by", 3, "(dy, x, y)"},
	Max:         {"max", 2, "max(a, b)"},
	MaxBX:       {"max_bx", 3, "(dy, x, y)"},
	MaxBY:       {"max_by", 3, "(dy, x, y)"},
	SquareDiff:  {"square_diff", 2, "(a-b)²"},
	SquareDiffB: {"square_diff_b", 3, "(dy, x, y): p*2*dy*(x-y)"},
	BinLog:      {"bin_log", 2, "-(b ln a + (1-b) ln(1-a))"},
	BinLogB:     {"bin_log_b", 3, "(dy, x, y)"},
	Moment:      {"moment", 1, "p * a^q, q a whole number"},
	MomentB:     {"moment_b", 2, "(dy, x): p*q*dy*a^(q-1)"},
	MulDiv:      {"mul_div", 3, "(dy, x, y): p*dy*x/y"},

	Sin:         {"sin", 1, "sin a"},
	SinB:        {"sin_b", 2, "(dy, x)"},
	Cos:         {"cos", 1, "cos a"},
	CosB:        {"cos_b", 2, "(dy, x)"},
	Tan:         {"tan", 1, "tan a"},
	TanB:        {"tan_b", 2, "(dy, y)"},
	Asin:        {"asin", 1, "arcsin a"},
	AsinB:       {"asin_b", 2, "(dy, x): p*dy/sqrt(1-x²)"},
	Acos:        {"acos", 1, "arccos a"},
	Atan:        {"atan", 1, "arctan a"},
	AtanB:       {"atan_b", 2, "(dy, x)"},
	Sinh:        {"sinh", 1, "sinh a"},
	SinhB:       {"sinh_b", 2, "(dy, x)"},
	Cosh:        {"cosh", 1, "cosh a"},
	CoshB:       {"cosh_b", 2, "(dy, x)"},
	Asinh:       {"asinh", 1, "arsinh a"},
	AsinhB:      {"asinh_b", 2, "(dy, x)"},
	Acosh:       {"acosh", 1, "arcosh a"},
	AcoshB:      {"acosh_b", 2, "(dy, x)"},
	Atanh:       {"atanh", 1, "artanh a"},
	AtanhB:      {"atanh_b", 2, "(dy, x)"},
	Erf:         {"erf", 1, "erf a"},
	ErfB:        {"erf_b", 2, "(dy, x)"},
	LogGamma:    {"log_gamma", 1, "ln of the absolute value of Gamma(a)"},
	LogGammaB:   {"log_gamma_b", 2, "(dy, x)"},
	LogSigmoid:  {"log_sigmoid", 1, "ln(1/(1+exp(-a)))"},
	LogSigmoidB: {"log_sigmoid_b", 2, "(dy, x)"},
	Elu:         {"elu", 1, "p*a above 0, else p*q*(exp(a)-1)"},
	EluB:        {"elu_b", 2, "(dy, x)"},
	Silu:        {"silu", 1, "a/(1+exp(-p*a))"},
	SiluB:       {"silu_b", 2, "(dy, x)"},
	SoftSign:    {"soft_sign", 1, "a/(1+|a|)"},
	SoftSignB:   {"soft_sign_b", 2, "(dy, y)"},
	Round:       {"round", 1, "the nearest whole number, halves away from 0"},
	Ceil:        {"ceil", 1, "the next whole number above"},
	Floor:       {"floor", 1, "the next whole number below"},
	Poisson:     {"poisson", 1, "exp(a) - p*a + q"},
	PoissonB:    {"poisson_b", 2, "(dy, x)"},
	Huber:       {"huber", 2, "of d = a-b: d²/2 where |d| < p, else p*|d| - p²/2"},
	HuberB:      {"huber_b", 3, "(dy, x, y): q*dy times x-y, bounded by p"},
}

// RowFn is a function of Row. Element i of a line is at the line's address + i*stride. An item has several lines. Groups of
// stride lines are interleaved, and one group follows the other. An operand with one element of a line, or the first few,
// has lines in the same order.
type RowFn uint8

const (
	Softmax RowFn = iota
	SoftmaxB
	LogSoftmax
	LogSoftmaxB
	NegLogPick
	NegLogPickB
	Hinge
	HingeB
	Pick
	PickB
	LogSumExp
	LogSumExpB
	KMax
	KMaxB
	ArgMax
	CumSum
	Sparsemax
	SparsemaxB
	ConstrainedSoftmax
	ConstrainedSoftmaxB
	Invert
	RowFns
)

// RowInfo describes a row function's item: which words are rows of n elements,
// which are single elements, whether a second word is written, and that the last
// word is a label: a number, or, if its slot's segment is input, where there is a number
// for each line.
type RowInfo struct {
	Name    string
	Rows    uint8 // bit i: item word i addresses a row
	Scalars uint8 // bit i: item word i addresses one element
	Parts   uint8 // bit i: item word i addresses the first label+1 elements of a row
	Writes  uint8 // bit i: item word i is written
	Label   bool  // the last item word is a row number
	Words   int
	Doc     string // the item's words
}

// RowTable is indexed by RowFn.
var RowTable = [RowFns]RowInfo{
	Softmax:             {"softmax", 0b11, 0, 0, 1, false, 2, "(y, x)"},
	SoftmaxB:            {"softmax_b", 0b111, 0, 0, 1, false, 3, "(dx, y, dy)"},
	LogSoftmax:          {"log_softmax", 0b11, 0, 0, 1, false, 2, "(y, x)"},
	LogSoftmaxB:         {"log_softmax_b", 0b111, 0, 0, 1, false, 3, "(dx, y, dy)"},
	NegLogPick:          {"neg_log_pick", 0b010, 0b101, 0, 0b101, true, 4, "(loss, x, z, label): z receives logsumexp(x)"},
	NegLogPickB:         {"neg_log_pick_b", 0b0011, 0b1100, 0, 1, true, 5, "(dx, x, z, dloss, label)"},
	Hinge:               {"hinge", 0b10, 0b01, 0, 1, true, 3, "(loss, x, label), margin p"},
	HingeB:              {"hinge_b", 0b011, 0b100, 0, 1, true, 4, "(dx, x, dloss, label), margin p"},
	Pick:                {"pick", 0b10, 0b01, 0, 1, true, 3, "(y, x, label): y is the label's element of x"},
	PickB:               {"pick_b", 0b01, 0b10, 0, 1, true, 3, "(dx, dy, label): dy at the label, 0 elsewhere"},
	LogSumExp:           {"log_sum_exp", 0b10, 0b01, 0, 1, false, 2, "(y, x)"},
	LogSumExpB:          {"log_sum_exp_b", 0b0011, 0b1100, 0, 1, false, 4, "(dx, x, y, dy)"},
	KMax:                {"k_max", 0b10, 0, 0b01, 1, true, 3, "(y, x, k-1): the k largest of p*x in their order; of equal ones the first. p is 1 or -1"},
	KMaxB:               {"k_max_b", 0b011, 0, 0b100, 1, true, 4, "(dx, x, dy, k-1)"},
	ArgMax:              {"arg_max", 0b11, 0, 0, 1, false, 2, "(y, x): 1 at the largest element of x, of equal ones at the first, else 0"},
	CumSum:              {"cum_sum", 0b11, 0, 0, 1, false, 2, "(y, x): y[i] is the sum of x up to i, from i on if p is 1"},
	Sparsemax:           {"sparsemax", 0b11, 0, 0, 1, false, 2, "(y, x): the nearest point to x whose elements are not negative and add up to 1"},
	SparsemaxB:          {"sparsemax_b", 0b111, 0, 0, 1, false, 3, "(dx, y, dy)"},
	ConstrainedSoftmax:  {"constrained_softmax", 0b111, 0, 0, 1, false, 3, "(y, x, u): the softmax of x with no element above that of u"},
	ConstrainedSoftmaxB: {"constrained_softmax_b", 0b1111, 0, 0, 1, false, 4, "(dx, y, u, dy), of u's gradient if p is 1"},
	Invert:              {"invert", 0b1110, 0b0001, 0, 0b111, true, 5, "(d, y, t, x, m-1): y is the inverse of the m x m matrix x, d ln of its determinant, t scratch"},
}

// RandomFn is a function of Random. The last item word is the node number that
// selects the stream, so that dropout's backward draws the mask again.
type RandomFn uint8

const (
	Normal RandomFn = iota
	Bernoulli
	Uniform
	Noise
	Drop
	Gumbel
	RandomFns
)

// RandomTable is indexed by RandomFn; Words counts an item's words.
var RandomTable = [RandomFns]struct {
	Name  string
	Words int
	Doc   string
}{
	Normal:    {"normal", 2, "(y, node): mean p, standard deviation q"},
	Bernoulli: {"bernoulli", 2, "(y, node): q with probability p, else 0"},
	Uniform:   {"uniform", 2, "(y, node): in [p, q)"},
	Noise:     {"noise", 3, "(y, x, node): x + N(0, p²)"},
	Drop:      {"drop", 3, "(y, x, node): x dropped with probability p, else times 1/(1-p); its own backward"},
	Gumbel:    {"gumbel", 2, "(y, node): p - q ln(-ln u), u uniform in (0, 1)"},
}

// Rule is an update rule of Update. Its formula stands in jit/kernel/update.h.
type Rule uint8

const (
	SGD Rule = iota
	Momentum
	Adagrad
	Adadelta
	RMSProp
	Adam
	AMSGrad
	EG
	Rules
)

// RuleInfo describes an update rule. An item is value, gradient, length and the addresses of
// the states, which are as long; of a rule that normalises, then how many elements the sum is of.
type RuleInfo struct {
	Name       string
	States     int  // vectors that it keeps
	Moves      bool // also parameters whose gradient is 0
	Normalises bool // an item is a whole tensor
	Doc        string
}

// RuleTable is indexed by Rule.
var RuleTable = [Rules]RuleInfo{
	SGD:      {"sgd", 0, false, false, "v -= rate*g"},
	Momentum: {"momentum", 1, true, false, "h = p*h - rate*g; v += q*h"},
	Adagrad:  {"adagrad", 1, false, false, "h += g²; v -= rate*g/sqrt(h+p)"},
	Adadelta: {"adadelta", 2, true, false, "h = p*h + (1-p)*g²; d = g*sqrt(k+q)/sqrt(h+q); k = p*k + (1-p)*d²; v -= r*d"},
	RMSProp:  {"rmsprop", 1, true, false, "h = p*h + (1-p)*g²; v -= rate*g/sqrt(h+q)"},
	Adam:     {"adam", 2, true, false, "h = p*h + (1-p)*g; k = q*k + (1-q)*g²; v -= rate*h/(sqrt(k)+r)"},
	AMSGrad:  {"amsgrad", 3, true, false, "h = p*h + (1-p)*g; k = q*k + (1-q)*g²; m = max(m, k); v -= rate*h/(sqrt(m)+r)"},
	EG:       {"eg", 1, true, true, "h = p*h - rate*g; x = ln v + q*h; v = exp(x - ln of the sum of exp x over the first elements)"},
}

// Words is the number of words of one item.
func (i *RuleInfo) Words() int {
	n := 3 + i.States
	if i.Normalises {
		n++
	}
	return n
}

// ItemWords is the number of words of one item.
func ItemWords(op Opcode, fn uint8) int {
	switch n := Formats[op].Items; n {
	case -1:
		return 1 + FnTable[fn].Arity
	case -2:
		return RowTable[fn].Words
	case -3:
		return RandomTable[fn].Words
	case -4:
		return RuleTable[fn].Words()
	case -5:
		return int(fn)
	default:
		return n
	}
}

// MaxWords bounds an instruction: the device fetches scripts in pieces of this size.
const MaxWords = 1024

// MaxRun bounds how many sources an item of Sum stands for.
const MaxRun = 1024

// MaxListed bounds the words of the items of an instruction with flag Listed: the device fetches a list as a whole,
// from a multiple of 4 words on.
const MaxListed = MaxWords - 3

// NormWords is the length of a Norm's result.
const NormWords = 2
