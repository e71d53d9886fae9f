package reference

import (
	"libvpps/bridge"
	"libvpps/bridge/ops"
)

// proposals says, for each operation, how to choose arguments and attributes for it and
// which dim the result has. The dims are worked out here a second time, on purpose: it
// is a test of the shape rules.
var proposals map[ops.Code]func(r *recorder) proposal

func init() {
	proposals = map[ops.Code]func(r *recorder) proposal{
		ops.RandomNormal:    leafProposal(0, 1),
		ops.RandomBernoulli: leafProposal(0.5, 0.75),
		ops.RandomUniform:   leafProposal(-1, 1),
		ops.RandomGumbel:    leafProposal(0, 1),

		ops.ConstantPlusX: constantProposal, ops.ConstantMinusX: constantProposal, ops.ConstScalarMultiply: constantProposal,
		ops.Dropout: attributed(0.25), ops.GaussianNoise: attributed(0.5),
		ops.Reshape: reshapeProposal, ops.NoBackprop: attributed(), ops.SoftSign: vectorProposal, ops.Acosh: acoshProposal,

		ops.CwiseSum: broadcastProposal, ops.CwiseMultiply: broadcastProposal, ops.CwiseQuotient: quotientProposal,
		ops.Pow: powProposal, ops.Min: equalProposal, ops.Max: equalProposal,
		ops.Sum: listProposal, ops.Average: listProposal, ops.AddVectorToAllColumns: columnsProposal,

		ops.SumElements: scalarProposal, ops.SquaredNorm: scalarProposal, ops.L2Norm: scalarProposal,
		ops.SumDimension: sumProposal, ops.MomentDimension: momentProposal,
		ops.DotProduct: pairProposal, ops.SquaredEuclideanDistance: pairProposal,

		ops.MatrixMultiply: multiplyProposal, ops.AffineTransform: affineProposal,
		ops.Transpose: transposeProposal, ops.Concatenate: concatenateProposal, ops.ConcatenateToBatch: toBatchProposal,
		ops.PickElement: pickProposal, ops.PickRange: rangeProposal, ops.PickBatchElements: batchProposal,

		ops.Softmax: softmaxProposal, ops.LogSoftmax: logSoftmaxProposal, ops.RestrictedLogSoftmax: restrictedProposal,
		ops.PickNegLogSoftmax: labelProposal(), ops.Hinge: labelProposal(0.75), ops.BinaryLogLoss: binaryLogProposal,

		ops.StdDimension: stdProposal, ops.LogSumExp: logSumExpProposal, ops.LogSumExpDimension: axisProposal, ops.MaxDimension: axisProposal,
		ops.MinDimension: axisProposal, ops.KMaxPooling: kMaxProposal, ops.Argmax: argmaxProposal, ops.CumulativeSum: cumulativeProposal,
		ops.FoldRows: foldProposal, ops.WeightNormalization: weightNormProposal, ops.TraceOfProduct: traceProposal,
		ops.MatrixInverse: inverseProposal, ops.LogDet: logDetProposal, ops.InnerProduct3D1D: contractProposal, ops.InnerProduct3D1D1D: contractTwiceProposal,
		ops.CircularConvolution: circularProposal, ops.CircularCorrelation: circularProposal, ops.Filter1DNarrow: filterProposal, ops.KMHNGram: nGramProposal,
		ops.Conv2D: conv2DProposal, ops.MaxPooling2D: poolProposal,
		ops.SelectRows: selectProposal(0), ops.SelectCols: selectProposal(1), ops.StridedSelect: stridedProposal,
		ops.L1Distance: pairProposal, ops.HuberDistance: huberProposal, ops.PairwiseRankLoss: rankProposal, ops.PoissonRegressionLoss: poissonProposal,
		ops.HingeDim: hingeDimProposal, ops.Sparsemax: vectorProposal, ops.SparsemaxLoss: sparsemaxLossProposal, ops.ConstrainedSoftmax: constrainedProposal,
		ops.DropoutDim: dropoutDimProposal, ops.DropoutBatch: attributed(0.25), ops.BlockDropout: attributed(0.25),

		ops.VanillaLSTMGates: gatesProposal(false), ops.VanillaLSTMGatesDropout: gatesProposal(true),
		ops.VanillaLSTMC: cellProposal, ops.VanillaLSTMH: cellProposal,
	}
	for op := range ops.Table {
		if c := ops.Code(op); ops.Table[op].Element != nil && proposals[c] == nil {
			proposals[c] = elementProposal(c)
		}
	}
}

// elementProposal: one argument of any dim, and a number for each attribute.
func elementProposal(op ops.Code) func(r *recorder) proposal {
	return func(r *recorder) proposal {
		x, d := r.any()
		p := propose(d, []uint32{x})
		for range ops.Table[op].Attrs {
			p.attrs = append(p.attrs, word(r.value()))
		}
		return p
	}
}

// acoshProposal: the argument is above 1.
func acoshProposal(r *recorder) proposal {
	x, d := r.any()
	square, ok := r.node(ops.Square, propose(d, []uint32{x}))
	if !ok {
		return proposal{}
	}
	above, ok := r.node(ops.ConstantPlusX, propose(d, []uint32{square}, word(1.25)))
	p := propose(d, []uint32{above})
	p.ok = ok
	return p
}

// vectorProposal: one argument that is a vector.
func vectorProposal(r *recorder) proposal {
	x, ok := r.find(func(d *bridge.Dim) bool { return d.Nd == 1 })
	p := propose(*r.graph.Graph.DimOf(x), []uint32{x})
	p.ok = ok
	return p
}

func propose(dim bridge.Dim, args []uint32, attrs ...uint32) proposal {
	return proposal{dim: dim, args: args, attrs: attrs, ok: true}
}

func leafProposal(attrs ...float64) func(r *recorder) proposal {
	return func(r *recorder) proposal {
		p := propose(r.randomDim(), nil)
		for _, a := range attrs {
			p.attrs = append(p.attrs, word(a))
		}
		return p
	}
}

// attributed: one argument of any dim, which the result keeps, and constants.
func attributed(attrs ...float64) func(r *recorder) proposal {
	return func(r *recorder) proposal {
		x, d := r.any()
		p := propose(d, []uint32{x})
		for _, a := range attrs {
			p.attrs = append(p.attrs, word(a))
		}
		return p
	}
}

func constantProposal(r *recorder) proposal { return attributed(2 * r.value())(r) }

func reshapeProposal(r *recorder) proposal {
	x, d := r.any()
	switch r.rng.IntN(3) {
	case 0: // flat, the batch kept
		return propose(makeDim(int(d.Bd), d.Batch()), []uint32{x})
	case 1: // the batch becomes an axis
		return propose(makeDim(1, d.Batch(), int(d.Bd)), []uint32{x})
	}
	for _, k := range []int{4, 3, 2, 1} {
		if d.Batch()%k == 0 {
			return propose(makeDim(int(d.Bd), k, d.Batch()/k), []uint32{x})
		}
	}
	return proposal{}
}

// shrunk is d with some axes, and maybe the batch, set to 1 and trailing ones maybe dropped.
func (r *recorder) shrunk(d bridge.Dim) bridge.Dim {
	for i := range d.Nd {
		if r.rng.IntN(3) == 0 {
			d.D[i] = 1
		}
	}
	if r.rng.IntN(2) == 0 {
		d.Bd = 1
	}
	for d.Nd > 1 && d.D[d.Nd-1] == 1 && r.rng.IntN(2) == 0 {
		d.Nd--
		d.D[d.Nd] = 0
	}
	return d
}

func broadcastProposal(r *recorder) proposal {
	x, d := r.any()
	if d.Nd > 4 {
		return proposal{}
	}
	if r.rng.IntN(3) == 0 { // both sides broadcast: x from its shrunk form too
		x = r.of(r.shrunk(d))
	}
	y := r.of(r.shrunk(d))
	dx, dy := r.graph.Graph.DimOf(x), r.graph.Graph.DimOf(y)
	out := bridge.Dim{Nd: max(dx.Nd, dy.Nd), Bd: max(dx.Bd, dy.Bd)}
	for i := range int(out.Nd) {
		out.D[i] = uint32(max(dx.Axis(i), dy.Axis(i)))
	}
	if r.rng.IntN(2) == 0 {
		x, y = y, x
	}
	return propose(out, []uint32{x, y})
}

func quotientProposal(r *recorder) proposal {
	x, d := r.any()
	return propose(d, []uint32{x, r.of(r.shrunk(d))})
}

func powProposal(r *recorder) proposal {
	x, d := r.any()
	for d.Nd > 1 && d.D[d.Nd-1] == 1 {
		d.Nd--
		d.D[d.Nd] = 0
	}
	return propose(d, []uint32{x, r.of(makeDim(1, 1))})
}

func equalProposal(r *recorder) proposal {
	x, d := r.any()
	return propose(d, []uint32{x, r.of(d)})
}

// listProposal: up to five arguments of the same axes, batched or not.
func listProposal(r *recorder) proposal {
	x, d := r.any()
	args := []uint32{x}
	for range r.rng.IntN(5) {
		e := d
		if r.rng.IntN(2) == 0 {
			e.Bd = 1
		}
		args = append(args, r.of(e))
	}
	if len(args) > 1 && r.rng.IntN(2) == 0 && r.graph.Graph.DimOf(args[1]).Bd != d.Bd {
		args[0], args[1] = args[1], args[0]
	}
	return propose(d, args)
}

func columnsProposal(r *recorder) proposal {
	x, ok := r.find(func(d *bridge.Dim) bool { return d.Nd == 2 })
	if !ok {
		return proposal{}
	}
	d := *r.graph.Graph.DimOf(x)
	v := makeDim(int(d.Bd), d.Rows())
	if d.Bd > 1 && r.rng.IntN(2) == 0 {
		v.Bd = 1
	} else if d.Bd == 1 && r.rng.IntN(2) == 0 {
		v.Bd = uint32(r.batch)
	}
	d.Bd = max(d.Bd, v.Bd)
	return propose(d, []uint32{x, r.of(v)})
}

func scalarProposal(r *recorder) proposal {
	x, d := r.any()
	return propose(makeDim(int(d.Bd), 1), []uint32{x})
}

// reduced chooses at most two axes and maybe the batch, and gives the dim that is left.
func (r *recorder) reduced() (x uint32, axes, batch uint32, out bridge.Dim, ok bool) {
	x, d := r.any()
	if d.Nd > 3 {
		return 0, 0, 0, out, false
	}
	for range 2 {
		if r.rng.IntN(3) > 0 {
			axes |= 1 << r.rng.Uint32N(d.Nd)
		}
	}
	batch = r.rng.Uint32N(2)
	if axes == 0 && batch == 0 {
		return 0, 0, 0, out, false
	}
	out.Bd = d.Bd
	if batch == 1 {
		out.Bd = 1
	}
	for i := range d.Nd {
		if axes>>i&1 == 0 {
			out.D[out.Nd] = d.D[i]
			out.Nd++
		}
	}
	if out.Nd == 0 {
		out.Nd, out.D[0] = 1, 1
	}
	return x, axes, batch, out, true
}

func sumProposal(r *recorder) proposal {
	x, axes, batch, out, ok := r.reduced()
	p := propose(out, []uint32{x}, axes, batch)
	p.ok = ok
	return p
}

func momentProposal(r *recorder) proposal {
	x, axes, batch, out, ok := r.reduced()
	p := propose(out, []uint32{x}, axes, 1+r.rng.Uint32N(3), batch, r.rng.Uint32N(2)*r.rng.Uint32N(7))
	p.ok = ok
	return p
}

func pairProposal(r *recorder) proposal {
	x, d := r.any()
	e := d
	if r.rng.IntN(2) == 0 {
		e.Bd = 1
	}
	args := []uint32{x, r.of(e)}
	if r.rng.IntN(2) == 0 {
		args[0], args[1] = args[1], args[0]
	}
	return propose(makeDim(int(d.Bd), 1), args)
}

// matrix is a node with at most two axes.
func (r *recorder) matrix() (uint32, bridge.Dim, bool) {
	n, ok := r.find(func(d *bridge.Dim) bool { return d.Nd <= 2 })
	return n, *r.graph.Graph.DimOf(n), ok
}

// right is the right factor of a product: a vector or a matrix of so many rows.
func (r *recorder) right(rows, cols, batch int) uint32 {
	if cols == 1 && r.rng.IntN(2) == 0 {
		return r.of(makeDim(batch, rows))
	}
	return r.of(makeDim(batch, rows, cols))
}

func (r *recorder) oneOrBatch(batch uint32) int {
	if batch == 1 && r.rng.IntN(3) > 0 {
		return 1
	}
	if batch == 1 {
		return r.batch
	}
	return []int{1, int(batch)}[r.rng.IntN(2)]
}

func multiplyProposal(r *recorder) proposal {
	x, d, ok := r.matrix()
	if !ok {
		return proposal{}
	}
	cols := 1 + r.rng.IntN(3)
	y := r.right(d.Cols(), cols, r.oneOrBatch(d.Bd))
	e := r.graph.Graph.DimOf(y)
	out := makeDim(int(max(d.Bd, e.Bd)), d.Rows())
	if e.Nd > 1 {
		out = makeDim(int(out.Bd), d.Rows(), cols)
	}
	return propose(out, []uint32{x, y})
}

func affineProposal(r *recorder) proposal {
	w, d, ok := r.matrix()
	if !ok {
		return proposal{}
	}
	cols, batch := 1+r.rng.IntN(3)*r.rng.IntN(2), int(d.Bd)
	args := []uint32{0, w}
	for k := range 1 + r.rng.IntN(3) {
		inner := d.Cols()
		if k > 0 {
			inner = 1 + r.rng.IntN(4)
			args = append(args, r.of(makeDim(1, d.Rows(), inner)))
		}
		b := 1
		if batch > 1 && r.rng.IntN(2) == 0 {
			b = batch
		} else if batch == 1 && r.rng.IntN(4) == 0 {
			b, batch = r.batch, r.batch
		}
		args = append(args, r.right(inner, cols, b))
	}
	bias := makeDim(1, d.Rows())
	if cols > 1 && r.rng.IntN(2) == 0 {
		bias = makeDim(1, d.Rows(), cols)
	}
	if r.rng.IntN(4) == 0 {
		bias.Bd = uint32(batch)
	}
	args[0] = r.of(bias)
	out := makeDim(batch, d.Rows())
	if cols > 1 {
		out = makeDim(batch, d.Rows(), cols)
	}
	return propose(out, args)
}

func transposeProposal(r *recorder) proposal {
	x, d := r.any()
	n := int(d.Nd)
	if n > 4 {
		return proposal{}
	}
	if n == 1 {
		if d.D[0] == 1 {
			return proposal{}
		}
		return propose(makeDim(int(d.Bd), 1, d.Rows()), []uint32{x}, 0x01)
	}
	out, axes := bridge.Dim{Nd: d.Nd, Bd: d.Bd}, uint32(0)
	for i, from := range r.rng.Perm(n) {
		out.D[i] = d.D[from]
		axes |= uint32(from) << (4 * i)
	}
	return propose(out, []uint32{x}, axes)
}

func concatenateProposal(r *recorder) proposal {
	x, d := r.any()
	axis := r.rng.IntN(int(min(d.Nd+1, 3)))
	if d.Nd > 3 || axis > int(d.Nd) {
		return proposal{}
	}
	out := d
	for int(out.Nd) <= axis {
		out.D[out.Nd] = 1
		out.Nd++
	}
	args, length := []uint32{x}, out.D[axis]
	for range r.rng.IntN(3) {
		e := out
		e.D[axis] = uint32(1 + r.rng.IntN(3))
		e.Bd = uint32(r.oneOrBatch(out.Bd))
		args = append(args, r.of(e))
		length += e.D[axis]
		out.Bd = max(out.Bd, e.Bd)
	}
	out.D[axis] = length
	return propose(out, args, uint32(axis))
}

func toBatchProposal(r *recorder) proposal {
	x, d := r.any()
	args, batch := []uint32{x}, d.Bd
	for range r.rng.IntN(3) {
		y, ok := r.find(func(e *bridge.Dim) bool { return e.Nd == d.Nd && e.D == d.D })
		if ok {
			args = append(args, y)
			batch += r.graph.Graph.DimOf(y).Bd
		}
	}
	d.Bd = batch
	return propose(d, args)
}

func pickProposal(r *recorder) proposal {
	x, d := r.any()
	if d.Nd > 3 {
		return proposal{}
	}
	axis, n := r.rng.IntN(int(d.Nd)), uint32(1)
	if r.rng.IntN(2) == 0 {
		n = uint32(r.oneOrBatch(d.Bd))
	}
	rows := r.rows(int(n), d.D[axis])
	out := bridge.Dim{Bd: max(d.Bd, n)}
	for i := range d.Nd {
		if int(i) != axis {
			out.D[out.Nd] = d.D[i]
			out.Nd++
		}
	}
	if out.Nd == 0 {
		out.Nd, out.D[0] = 1, 1
	}
	return propose(out, []uint32{x}, uint32(axis), rows, n)
}

func rangeProposal(r *recorder) proposal {
	x, d := r.any()
	axis := r.rng.Uint32N(d.Nd)
	start := r.rng.Uint32N(d.D[axis])
	end := start + 1 + r.rng.Uint32N(d.D[axis]-start)
	d.D[axis] = end - start
	return propose(d, []uint32{x}, start, end, axis)
}

func batchProposal(r *recorder) proposal {
	x, d := r.any()
	n := 1 + r.rng.IntN(3)
	at := r.rows(n, d.Bd)
	d.Bd = uint32(n)
	return propose(d, []uint32{x}, at, uint32(n))
}

func softmaxProposal(r *recorder) proposal {
	x, d, ok := r.matrix()
	p := propose(d, []uint32{x}, r.rng.Uint32N(d.Nd))
	p.ok = ok
	return p
}

func logSoftmaxProposal(r *recorder) proposal {
	x, d, ok := r.matrix()
	p := propose(d, []uint32{x})
	p.ok = ok
	return p
}

func restrictedProposal(r *recorder) proposal {
	x, ok := r.find(func(d *bridge.Dim) bool { return d.Nd == 1 && d.Bd == 1 && d.D[0] > 1 })
	if !ok {
		return proposal{}
	}
	d := *r.graph.Graph.DimOf(x)
	n := 1 + r.rng.IntN(int(d.D[0]))
	return propose(d, []uint32{x}, r.rows(n, d.D[0]), uint32(n))
}

// labelProposal: a loss over a vector with a label; attrs stand before the labels.
func labelProposal(attrs ...float64) func(r *recorder) proposal {
	return func(r *recorder) proposal {
		x, ok := r.find(func(d *bridge.Dim) bool { return d.Nd == 1 && d.D[0] > 1 })
		if !ok {
			return proposal{}
		}
		d := *r.graph.Graph.DimOf(x)
		p := propose(makeDim(int(d.Bd), 1), []uint32{x})
		for _, a := range attrs {
			p.attrs = append(p.attrs, word(a))
		}
		p.attrs = append(p.attrs, r.rows(int(d.Bd), d.D[0]))
		return p
	}
}

func binaryLogProposal(r *recorder) proposal {
	x, ok := r.find(func(d *bridge.Dim) bool { return d.Bd == 1 })
	if !ok {
		return proposal{}
	}
	d := *r.graph.Graph.DimOf(x)
	y, ok := r.node(ops.LogisticSigmoid, propose(d, []uint32{x}))
	if !ok {
		return proposal{}
	}
	words := make([]uint32, d.Size())
	for i := range words {
		words[i] = word([]float64{0, 0.25, 0.75, 1}[r.rng.IntN(4)])
	}
	target, ok := r.node(ops.Input, propose(d, nil, r.data(words...)))
	p := propose(makeDim(1, 1), []uint32{y, target})
	p.ok = ok
	return p
}

func gatesProposal(masks bool) func(r *recorder) proposal {
	return func(r *recorder) proposal {
		hidden, batch := 1+r.rng.IntN(3), r.oneOrBatch(1)
		var args []uint32
		input := 0
		for range 1 + r.rng.IntN(2) {
			n := 1 + r.rng.IntN(3)
			args = append(args, r.of(makeDim(batch, n)))
			input += n
		}
		args = append(args, r.of(makeDim(batch, hidden)), r.of(makeDim(1, 4*hidden, input)), r.of(makeDim(1, 4*hidden, hidden)), r.of(makeDim(1, 4*hidden)))
		if masks {
			for _, n := range []int{input, hidden} {
				b := []int{1, batch}[r.rng.IntN(2)]
				m, ok := r.node(ops.Input, propose(makeDim(b, n), nil, r.values(b*n)))
				if !ok {
					return proposal{}
				}
				args = append(args, m)
			}
		}
		return propose(makeDim(batch, 4*hidden), args, word(1))
	}
}

// cellProposal: a cell vector and gates, which are gates where there are some.
func cellProposal(r *recorder) proposal {
	g := r.graph.Graph
	for i := g.Len() - 1; i >= r.first; i-- {
		if op := g.Op[i]; (op == ops.VanillaLSTMGates || op == ops.VanillaLSTMGatesDropout) && r.rng.IntN(3) > 0 {
			d := makeDim(int(g.DimOf(uint32(i)).Bd), g.DimOf(uint32(i)).Rows()/4)
			return propose(d, []uint32{r.of(d), uint32(i)})
		}
	}
	batch, hidden := r.oneOrBatch(1), 1+r.rng.IntN(3)
	d := makeDim(batch, hidden)
	return propose(d, []uint32{r.of(d), r.of(makeDim(batch, 4*hidden))})
}
