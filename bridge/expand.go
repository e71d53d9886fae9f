package bridge

// Some of DyNet's node classes are small programs: the LSTM nodes, and those of compose.go. The engine works on a
// graph in which they are spelled out, so that one lowering and one derivative serve all.

import "libvpps/bridge/ops"

// Expanded is a graph without composite nodes, kept in step with the graph it is made from.
type Expanded struct {
	Graph
	At   []uint32 // of the original's node i: its node here
	plus []uint32 // scratch
	same []uint32 // of the original's dims: the number of the same dim here, if it was not cut off since
}

// composite is indexed by operation. Those of compose.go are added.
var composite = [256]bool{ops.VanillaLSTMGates: true, ops.VanillaLSTMGatesDropout: true, ops.VanillaLSTMC: true, ops.VanillaLSTMH: true}

// Composite reports whether an operation is spelled out.
func Composite(op ops.Code) bool { return composite[op] }

// Reset empties it, keeping its memory.
func (e *Expanded) Reset() {
	e.At = e.At[:0]
	e.Graph.Reset()
}

// Extend appends g's nodes from len(At) on.
func (e *Expanded) Extend(g *Graph) {
	if len(e.ArgStart) == 0 {
		e.ArgStart, e.AttrStart = append(e.ArgStart, 0), append(e.AttrStart, 0)
	}
	for n := len(e.At); n < g.Len(); n++ {
		e.extend(g, uint32(n))
	}
	e.Inputs = g.Inputs
}

// TruncateTo drops the nodes that stand for g's nodes from n on.
func (e *Expanded) TruncateTo(n int) {
	if n >= len(e.At) {
		return
	}
	end := 0
	if n > 0 {
		end = int(e.At[n-1]) + 1
	}
	e.At = e.At[:n]
	e.Truncate(end)
}

func (e *Expanded) extend(g *Graph, n uint32) {
	e.plus = e.plus[:0]
	for _, a := range g.ArgsOf(n) {
		e.plus = append(e.plus, e.At[a])
	}
	d := *g.DimOf(n)
	switch g.Op[n] {
	case ops.VanillaLSTMC:
		c, gates := e.plus[0], e.plus[1]
		h := uint32(d.Rows())
		i, f, z := e.part(gates, 0, h), e.part(gates, 1, h), e.part(gates, 3, h)
		e.add(ops.CwiseSum, d, nil, e.add(ops.CwiseMultiply, d, nil, i, z), e.add(ops.CwiseMultiply, d, nil, f, c))
	case ops.VanillaLSTMH:
		c, gates := e.plus[0], e.plus[1]
		o := e.part(gates, 2, uint32(d.Rows()))
		e.add(ops.CwiseMultiply, d, nil, o, e.add(ops.Tanh, *e.DimOf(c), nil, c))
	case ops.VanillaLSTMGates, ops.VanillaLSTMGatesDropout:
		e.gates(g, n, d)
	default:
		if spell := compositions[g.Op[n]]; spell != nil {
			spell(e, d, g.AttrsOf(n), e.plus)
		} else {
			e.put(g.Op[n], e.numberOf(g, g.Dim[n]), g.AttrsOf(n), e.plus...)
		}
	}
	e.At = append(e.At, uint32(e.Len()-1))
}

// gates spells out x..., h, Wx, Wh, b [, mask_x, mask_h]: i, f, o logistic and g tanh.
func (e *Expanded) gates(g *Graph, n uint32, d Dim) {
	a := e.plus
	masked := g.Op[n] == ops.VanillaLSTMGatesDropout
	masks := a[len(a):]
	if masked {
		a, masks = a[:len(a)-2], a[len(a)-2:]
	}
	k := len(a) - 4
	h, wx, wh, bias := a[k], a[k+1], a[k+2], a[k+3]
	x := a[0]
	if k > 1 {
		xd := *e.DimOf(x)
		for _, y := range a[1:k] {
			xd.D[0] += e.DimOf(y).D[0]
			xd.Bd = max(xd.Bd, e.DimOf(y).Bd)
		}
		x = e.add(ops.Concatenate, xd, []uint32{0}, a[:k]...)
	}
	if masked {
		x, h = e.mask(x, masks[0]), e.mask(h, masks[1])
	}
	pre := e.add(ops.AffineTransform, d, nil, bias, wx, x, wh, h)
	size := uint32(d.Rows()) / 4
	var out [4]uint32
	for q := range out {
		y := e.part(pre, uint32(q), size)
		yd := *e.DimOf(y)
		switch q {
		case 1:
			y = e.add(ops.LogisticSigmoid, yd, nil, e.add(ops.ConstantPlusX, yd, g.AttrsOf(n), y))
		case 3:
			y = e.add(ops.Tanh, yd, nil, y)
		default:
			y = e.add(ops.LogisticSigmoid, yd, nil, y)
		}
		out[q] = y
	}
	e.add(ops.Concatenate, d, []uint32{0}, out[:]...)
}

// mask multiplies by a mask that gets no gradient.
func (e *Expanded) mask(x, mask uint32) uint32 {
	d := *e.DimOf(x)
	d.Bd = max(d.Bd, e.DimOf(mask).Bd)
	return e.add(ops.CwiseMultiply, d, nil, x, e.add(ops.NoBackprop, *e.DimOf(mask), nil, mask))
}

// part is quarter q of the gates.
func (e *Expanded) part(gates, q, size uint32) uint32 {
	d := *e.DimOf(gates)
	d.D[0] = size
	return e.add(ops.PickRange, d, []uint32{q * size, (q + 1) * size, 0}, gates)
}

func (e *Expanded) add(op ops.Code, d Dim, attrs []uint32, args ...uint32) uint32 {
	return e.put(op, e.number(&d), attrs, args...)
}

// put adds a node whose dim has a number.
func (e *Expanded) put(op ops.Code, dim uint32, attrs []uint32, args ...uint32) uint32 {
	e.Op = append(e.Op, op)
	e.Graph.Dim = append(e.Graph.Dim, dim)
	e.Args = append(e.Args, args...)
	e.ArgStart = append(e.ArgStart, uint32(len(e.Args)))
	e.Attrs = append(e.Attrs, attrs...)
	e.AttrStart = append(e.AttrStart, uint32(len(e.Attrs)))
	return uint32(e.Len() - 1)
}

// recentDims is how many dims are compared with a new one.
const recentDims = 16

// number is the number of a dim in the table: that of a recent one, or a new one.
func (e *Expanded) number(d *Dim) uint32 {
	for k := len(e.Dims) - 1; k >= max(0, len(e.Dims)-recentDims); k-- {
		if e.Dims[k] == *d {
			return uint32(k)
		}
	}
	e.Dims = append(e.Dims, *d)
	return uint32(len(e.Dims) - 1)
}

// numberOf is the number here of the original's dim number k.
func (e *Expanded) numberOf(g *Graph, k uint32) uint32 {
	for uint32(len(e.same)) <= k {
		e.same = append(e.same, 0)
	}
	if here := e.same[k]; here >= uint32(len(e.Dims)) || e.Dims[here] != g.Dims[k] {
		e.same[k] = e.number(&g.Dims[k])
	}
	return e.same[k]
}
