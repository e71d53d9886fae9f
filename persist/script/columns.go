package script

import (
	"slices"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/memory"
)

// Columns of batch elements. A minibatch of fewer elements than half of the processors would leave the others waiting. So
// nodes whose columns have nothing to do with one another are divided by these: a piece has some columns of all batch
// elements. A column is what has one place along the last axis that has several.

// findColumns finds which nodes are divided by columns. All who may join a node's cluster must be, or they would be a level
// later: a matrix that is transposed stays with its batch element.
func (b *Builder) findColumns() {
	b.columnsIn = memory.Resize(b.columnsIn, int(b.r.Node)+1)
	if !b.Wide.On {
		return
	}
	few := func(batch uint32) bool { return batch > 1 && 2*int(batch) <= b.r.Plan.Processors }
	if !slices.ContainsFunc(b.dims, func(x shape) bool { return few(x.batch) }) {
		for v := range b.columnsIn {
			b.columnsIn[v] = 1
		}
		return
	}
	clear(b.columnsIn)
	for v := b.r.Node + 1; v > 0; {
		v--
		n, batch := uint32(1), b.shape(v).batch
		if few(batch) {
			n = b.columnsApart(v)
		}
		if as := b.columnsIn[v]; as > 0 && as != n { // those who read it
			n = 1
		}
		b.columnsIn[v] = n
		for k, a := range b.g.ArgsOf(v) {
			switch as := &b.columnsIn[a]; {
			case b.shape(a).batch != batch || b.isByParameter(user{node: v, arg: uint32(k)}): // it is a level later anyway
			case *as == 0:
				*as = n
			case *as != n:
				*as = 1
			}
		}
	}
}

// multiplies reports whether node v is a product. Its columns are cut in tiles.
func (b *Builder) multiplies(v uint32) bool {
	return b.g.Op[v] == ops.MatrixMultiply || b.g.Op[v] == ops.AffineTransform
}

// isByParameter reports whether a use is a product by a parameter.
func (b *Builder) isByParameter(u user) bool {
	left, ok := b.isRight(u)
	return ok && b.isParameter(left)
}

// lastAxis is the last axis of several elements, and how many these are; (0, 1): there is none.
func lastAxis(d *bridge.Dim) (axis int, size uint32) {
	for a := int(d.Nd) - 1; a >= 0; a-- {
		if d.D[a] > 1 {
			return a, d.D[a]
		}
	}
	return 0, 1
}

// columnsApart is how many columns a batch element of v has, if each is made of the same column of v's arguments; else 1.
func (b *Builder) columnsApart(v uint32) uint32 {
	axis, n := lastAxis(b.g.DimOf(v))
	if !b.formsColumns(v, axis, n) {
		return 1
	}
	return n
}

func (b *Builder) formsColumns(v uint32, axis int, n uint32) bool {
	op, a, args := b.g.Op[v], b.g.AttrsOf(v), b.g.ArgsOf(v)
	switch op {
	case ops.Input, ops.Constant, ops.RandomNormal, ops.RandomBernoulli, ops.RandomUniform, ops.RandomGumbel:
		return true
	case ops.Reshape, ops.NoBackprop:
		_, m := lastAxis(b.g.DimOf(args[0]))
		return m == n
	case ops.SumDimension, ops.MomentDimension:
		last, m := lastAxis(b.g.DimOf(args[0]))
		return m == n && a[0]>>last&1 == 0
	case ops.MatrixMultiply, ops.AffineTransform:
		return b.areByParameters(v, axis, n)
	case ops.Softmax, ops.Concatenate:
		if a[0] == uint32(axis) {
			return false
		}
	case ops.LogSoftmax:
		if axis == 0 {
			return false
		}
	case ops.PickRange:
		if a[2] == uint32(axis) {
			return false
		}
	case ops.CwiseSum, ops.CwiseMultiply, ops.CwiseQuotient, ops.Pow, ops.Min, ops.Max, ops.AddVectorToAllColumns, ops.Sum,
		ops.Average, ops.Dropout, ops.GaussianNoise:
	default:
		if !unaryRules[op].ok {
			return false
		}
	}
	for _, x := range args {
		if !b.hasColumns(x, axis, n) {
			return false
		}
	}
	return true
}

// areByParameters reports whether the products of node v are by parameters. What these multiply is in other clusters.
func (b *Builder) areByParameters(v uint32, axis int, n uint32) bool {
	for k, x := range b.g.ArgsOf(v) {
		u := user{node: v, arg: uint32(k)}
		if b.isLeft(u) && !b.isParameter(x) || !b.isByParameter(u) && !b.hasColumns(x, axis, n) {
			return false
		}
	}
	return true
}

// hasColumns reports whether an argument has no batch elements, or these have n columns along the same axis.
func (b *Builder) hasColumns(x uint32, axis int, n uint32) bool {
	d := b.g.DimOf(x)
	last, m := lastAxis(d)
	return d.Bd == 1 || last == axis && m == n
}
