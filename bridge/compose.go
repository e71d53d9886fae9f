package bridge

import (
	"math"

	"libvpps/bridge/ops"
)

// Operations spelled out in simpler ones: distances, norms, convolutions.

// compositions is indexed by operation. A function adds the nodes that stand for one of dim d with arguments x; the last
// of them has its value.
var compositions [256]func(e *Expanded, d Dim, attrs, x []uint32)

func init() {
	for op, f := range map[ops.Code]func(e *Expanded, d Dim, attrs, x []uint32){
		ops.StdDimension: (*Expanded).std, ops.LogSumExp: (*Expanded).logSumExp, ops.FoldRows: (*Expanded).foldRows,
		ops.WeightNormalization: (*Expanded).weightNormalization, ops.TraceOfProduct: (*Expanded).traceOfProduct,
		ops.InnerProduct3D1D: (*Expanded).contract, ops.InnerProduct3D1D1D: (*Expanded).contractTwice,
		ops.CircularConvolution: (*Expanded).convolveCircular, ops.CircularCorrelation: (*Expanded).correlateCircular,
		ops.Filter1DNarrow: (*Expanded).filter1D, ops.KMHNGram: (*Expanded).nGrams,
		ops.Conv2D: (*Expanded).conv2D, ops.MaxPooling2D: (*Expanded).maxPooling2D,
		ops.L1Distance: (*Expanded).l1Distance, ops.PairwiseRankLoss: (*Expanded).pairwiseRankLoss, ops.SparsemaxLoss: (*Expanded).sparsemaxLoss,
		ops.DropoutDim: (*Expanded).dropoutDim, ops.DropoutBatch: (*Expanded).dropoutBatch, ops.BlockDropout: (*Expanded).blockDropout,
	} {
		compositions[op], composite[op] = f, true
	}
}

func dim(batch uint32, axes ...uint32) Dim {
	d := Dim{Nd: uint32(len(axes)), Bd: batch}
	copy(d.D[:], axes)
	return d
}

// reshape adds a node for x's elements under dim d.
func (e *Expanded) reshape(x uint32, d Dim) uint32 { return e.add(ops.Reshape, d, nil, x) }

// times adds c*x.
func (e *Expanded) times(c float32, x uint32) uint32 {
	return e.add(ops.ConstScalarMultiply, *e.DimOf(x), []uint32{math.Float32bits(c)}, x)
}

// minus adds x-y, whose dim is d.
func (e *Expanded) minus(d Dim, x, y uint32) uint32 {
	return e.add(ops.CwiseSum, d, nil, x, e.add(ops.Negate, *e.DimOf(y), nil, y))
}

// std is the root of the mean square of what is left of x without its mean.
func (e *Expanded) std(d Dim, attrs, x []uint32) {
	axes, batch, n := attrs[0], attrs[1], attrs[2]
	full := *e.DimOf(x[0])
	kept := full
	for i := range kept.Nd {
		if axes>>i&1 != 0 {
			kept.D[i] = 1
		}
	}
	if batch != 0 {
		kept.Bd = 1
	}
	mean := e.add(ops.MomentDimension, d, []uint32{axes, 1, batch, n}, x[0])
	centred := e.minus(full, x[0], e.reshape(mean, kept))
	e.add(ops.Sqrt, d, nil, e.add(ops.MomentDimension, d, []uint32{axes, 2, batch, n}, centred))
}

// logSumExp puts the arguments side by side as columns. A vector is a column as it is.
func (e *Expanded) logSumExp(d Dim, _, x []uint32) {
	size := uint32(d.Batch())
	for k, a := range x {
		if from := e.DimOf(a); from.Nd != 1 {
			x[k] = e.reshape(a, dim(from.Bd, size))
		}
	}
	all := e.add(ops.Concatenate, dim(d.Bd, size, uint32(len(x))), []uint32{1}, x...)
	sums := e.add(ops.LogSumExpDimension, dim(d.Bd, size), []uint32{1}, all)
	if d.Nd != 1 {
		e.reshape(sums, d)
	}
}

func (e *Expanded) foldRows(d Dim, attrs, x []uint32) {
	folded := e.reshape(x[0], dim(d.Bd, attrs[0], uint32(d.Batch())))
	e.reshape(e.add(ops.SumDimension, dim(d.Bd, uint32(d.Batch())), []uint32{1, 0}, folded), d)
}

// weightNormalization has one norm for the whole tensor, batch and all.
func (e *Expanded) weightNormalization(d Dim, _, x []uint32) {
	one := dim(1, 1)
	norm := e.add(ops.L2Norm, one, nil, e.reshape(x[0], dim(1, uint32(d.Size()))))
	factor := e.add(ops.CwiseQuotient, one, nil, e.reshape(x[1], one), norm)
	e.add(ops.CwiseMultiply, d, nil, x[0], factor)
}

func (e *Expanded) traceOfProduct(d Dim, _, x []uint32) { e.add(ops.DotProduct, d, nil, x...) }

// contract is a product of x {i*j,k} and y {k}.
func (e *Expanded) contract(d Dim, _, x []uint32) {
	e.biased(d, e.contraction(x[0], x[1]), x[2:])
}

// contractTwice multiplies what contract leaves by z.
func (e *Expanded) contractTwice(d Dim, _, x []uint32) {
	first := e.contraction(x[0], x[1])
	batch := max(e.DimOf(first).Bd, e.DimOf(x[2]).Bd)
	z := e.reshape(x[2], dim(e.DimOf(x[2]).Bd, uint32(e.DimOf(x[2]).Batch())))
	e.biased(d, e.add(ops.MatrixMultiply, dim(batch, d.D[0]), nil, first, z), x[3:])
}

// contraction is {i,j}: the sum over k of x[i,j,k]*y[k].
func (e *Expanded) contraction(x, y uint32) uint32 {
	xd, yd := *e.DimOf(x), *e.DimOf(y)
	i, j, k := xd.D[0], xd.D[1], xd.D[2]
	batch := max(xd.Bd, yd.Bd)
	product := e.add(ops.MatrixMultiply, dim(batch, i*j), nil, e.reshape(x, dim(xd.Bd, i*j, k)), e.reshape(y, dim(yd.Bd, k)))
	return e.reshape(product, dim(batch, i, j))
}

// biased ends with x, plus the bias if there is one.
func (e *Expanded) biased(d Dim, x uint32, bias []uint32) {
	if len(bias) > 0 {
		e.add(ops.CwiseSum, d, nil, x, bias[0])
	}
}

// convolveCircular multiplies by the matrix whose column i is y, turned down by i.
func (e *Expanded) convolveCircular(d Dim, _, x []uint32) {
	e.circular(d, x, func(i, n uint32) uint32 { return n - i })
}

// correlateCircular multiplies by the matrix whose column i is y, turned up by i.
func (e *Expanded) correlateCircular(d Dim, _, x []uint32) {
	e.circular(d, x, func(i, n uint32) uint32 { return i })
}

// circular multiplies x by a matrix of slices of y, which stands there twice; first is where the i-th slice begins.
func (e *Expanded) circular(d Dim, x []uint32, first func(i, n uint32) uint32) {
	n := d.D[0]
	twice := e.add(ops.Concatenate, dim(d.Bd, 2*n), []uint32{0}, x[1], x[1])
	columns := make([]uint32, n)
	for i := range n {
		at := first(i, n)
		columns[i] = e.add(ops.PickRange, d, []uint32{at, at + n, 0}, twice)
	}
	matrix := e.add(ops.Concatenate, dim(d.Bd, n, n), []uint32{1}, columns...)
	e.add(ops.MatrixMultiply, d, nil, matrix, x[0])
}

// filter1D multiplies the filters, one a row, by the windows of x, one a column.
func (e *Expanded) filter1D(d Dim, _, x []uint32) {
	xd, fd := *e.DimOf(x[0]), *e.DimOf(x[1])
	r, m, k, n := xd.D[0], fd.D[1], d.D[0], d.D[1]
	parts := make([]uint32, m)
	for i := range m {
		parts[i] = e.add(ops.PickRange, dim(xd.Bd, r, n), []uint32{i, i + n, 1}, x[0])
	}
	windows := e.add(ops.Concatenate, dim(xd.Bd, r*m, n), []uint32{0}, parts...)
	filters := e.add(ops.Transpose, dim(fd.Bd, k, r*m), []uint32{0x01}, e.reshape(x[1], dim(fd.Bd, r*m, k)))
	e.add(ops.MatrixMultiply, d, nil, filters, windows)
}

func (e *Expanded) nGrams(d Dim, attrs, x []uint32) {
	parts := make([]uint32, attrs[0])
	for i := range attrs[0] {
		parts[i] = e.add(ops.PickRange, d, []uint32{i, i + d.D[1], 1}, x[0])
	}
	e.add(ops.Sum, d, nil, parts...)
}

// windows adds the windows {oh*ow, kh*kw, c} of x that results of dim d are made of.
func (e *Expanded) windows(d Dim, x, kh, kw, sh, sw, valid uint32, fill float32) uint32 {
	xd := *e.DimOf(x)
	before := func(n, out, k, s uint32) uint32 { // what is missing is divided between both ends
		if have := (out-1)*s + k; valid == 0 && have > n {
			return (have - n) / 2
		}
		return 0
	}
	oh, ow := d.D[0], d.D[1]
	top, left := before(xd.D[0], oh, kh, sh), before(xd.D[1], ow, kw, sw)
	return e.add(ops.Windows, dim(xd.Bd, oh*ow, kh*kw, uint32(xd.Axis(2))), []uint32{kh, kw, sh, sw, oh, ow, top, left, math.Float32bits(fill)}, x)
}

// conv2D multiplies windows, one a row, by filters, one a column.
func (e *Expanded) conv2D(d Dim, attrs, x []uint32) {
	fd := *e.DimOf(x[1])
	n, size, k := d.D[0]*d.D[1], fd.D[0]*fd.D[1]*fd.D[2], fd.D[3]
	windows := e.windows(d, x[0], fd.D[0], fd.D[1], attrs[0], attrs[1], attrs[2], 0)
	product := e.add(ops.MatrixMultiply, dim(d.Bd, n, k), nil, e.reshape(windows, dim(d.Bd, n, size)), e.reshape(x[1], dim(1, size, k)))
	result := e.reshape(product, d)
	if len(x) > 2 {
		e.add(ops.CwiseSum, d, nil, result, e.reshape(x[2], dim(1, 1, 1, k)))
	}
}

// fewInWindow is how many elements of a window are compared one after the other, all windows at a time. More are a line
// each, of which there are few then.
const fewInWindow = 32

// maxPooling2D takes the largest element of each window, the first of equal ones; padding is never larger.
func (e *Expanded) maxPooling2D(d Dim, attrs, x []uint32) {
	windows := e.windows(d, x[0], attrs[0], attrs[1], attrs[2], attrs[3], attrs[4], -math.MaxFloat32)
	n, each := attrs[0]*attrs[1], dim(d.Bd, d.D[0]*d.D[1], 1, uint32(e.DimOf(x[0]).Axis(2)))
	if n > fewInWindow {
		each = dim(d.Bd, each.D[0], each.D[2])
		e.reshape(e.add(ops.MaxDimension, each, []uint32{1}, windows), d)
		return
	}
	var largest uint32
	for k := range n {
		element := e.add(ops.PickRange, each, []uint32{k, k + 1, 1}, windows)
		if k == 0 {
			largest = element
		} else {
			largest = e.add(ops.Max, each, nil, element, largest)
		}
	}
	e.reshape(largest, d)
}

func (e *Expanded) l1Distance(d Dim, _, x []uint32) {
	full := *e.DimOf(x[0])
	full.Bd = d.Bd
	y := x[1]
	if yd := *e.DimOf(y); !yd.sameAxes(&full) || yd.Nd != full.Nd {
		yd.Nd, yd.D = full.Nd, full.D
		y = e.reshape(y, yd)
	}
	e.add(ops.SumElements, d, nil, e.add(ops.Abs, full, nil, e.minus(full, x[0], y)))
}

func (e *Expanded) pairwiseRankLoss(d Dim, attrs, x []uint32) {
	e.add(ops.Rectify, d, nil, e.add(ops.ConstantPlusX, d, attrs, e.minus(d, x[1], x[0])))
}

// sparsemaxLoss is p*x - q*x - p*p/2 + q*q/2 for p = Sparsemax(x) and q = 1/n at n rows. In this order it is 0 where p is q.
// Its gradient is p-q, as if p were constant.
func (e *Expanded) sparsemaxLoss(d Dim, attrs, x []uint32) {
	xd := *e.DimOf(x[0])
	if xd.Nd == 0 { // a scalar, of whose one row there may be several
		xd.Nd, xd.D[0] = 1, 1
		x = []uint32{e.reshape(x[0], xd)}
	}
	p := e.add(ops.NoBackprop, xd, nil, e.add(ops.Sparsemax, xd, nil, x[0]))
	chosen := xd
	chosen.D[0] = attrs[1]
	target := e.add(ops.SumElements, d, nil, e.add(ops.SelectRows, chosen, attrs, x[0]))
	n := 1 / float32(attrs[1])
	terms := e.add(ops.Sum, d, nil, e.add(ops.DotProduct, d, nil, p, x[0]), e.times(-n, target), e.times(-0.5, e.add(ops.SquaredNorm, d, nil, p)))
	e.add(ops.ConstantPlusX, d, []uint32{math.Float32bits(n / 2)}, terms)
}

// masked multiplies x by a mask whose elements are 0 with probability p, else 1/(1-p).
func (e *Expanded) masked(d Dim, mask Dim, p uint32, x uint32) {
	keep := 1 - math.Float32frombits(p)
	m := e.add(ops.RandomBernoulli, mask, []uint32{math.Float32bits(keep), math.Float32bits(1 / keep)})
	e.add(ops.CwiseMultiply, d, nil, x, m)
}

func (e *Expanded) dropoutDim(d Dim, attrs, x []uint32) {
	mask := d
	mask.D[attrs[0]] = 1
	e.masked(d, mask, attrs[1], x[0])
}

func (e *Expanded) dropoutBatch(d Dim, attrs, x []uint32) { e.masked(d, dim(d.Bd, 1), attrs[0], x[0]) }

func (e *Expanded) blockDropout(d Dim, attrs, x []uint32) { e.masked(d, dim(1, 1), attrs[0], x[0]) }
