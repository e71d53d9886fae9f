package reference

import (
	"libvpps/bridge"
	"libvpps/bridge/ops"
)

// layer records products of several nodes by one parameter, with one bias or none, as an output layer's in the steps of
// a sequence. Some read a function of a node, some the node itself, perhaps one of the products before.
func (r *recorder) layer() {
	w, d, ok := r.parameterMatrix()
	if !ok {
		return
	}
	bias, op := uint32(0), ops.MatrixMultiply
	if r.rng.IntN(2) == 0 {
		bias, op = r.of(makeDim(1, d.Rows())), ops.AffineTransform
	}
	for range 2 + r.rng.IntN(4) {
		batch, cols := 1+r.rng.IntN(2)*(r.batch-1), 1+r.rng.IntN(3)*r.rng.IntN(2)
		x, y := makeDim(batch, d.Cols()), makeDim(batch, d.Rows())
		if cols > 1 {
			x, y = makeDim(batch, d.Cols(), cols), makeDim(batch, d.Rows(), cols)
		}
		args := []uint32{w, r.operand(x)}
		if op == ops.AffineTransform {
			args = append([]uint32{bias}, args...)
		}
		if n, ok := r.node(op, proposal{dim: y, args: args}); ok && r.rng.IntN(2) == 0 {
			r.node(ops.Tanh, proposal{dim: y, args: []uint32{n}})
		}
	}
}

// parameterMatrix is a new node of a parameter that is a matrix.
func (r *recorder) parameterMatrix() (node uint32, d bridge.Dim, ok bool) {
	d = makeDim(1, 1+r.rng.IntN(5), 1+r.rng.IntN(5))
	if r.shared {
		start := r.rng.IntN(len(r.graph.Params))
		for k := range r.graph.Params {
			if p := &r.graph.Params[(start+k)%len(r.graph.Params)]; !p.Lookup && p.Dim.Nd == 2 {
				d, ok = p.Dim, true
				break
			}
		}
		if !ok {
			return 0, d, false
		}
	}
	id, _ := r.parameter(d, false)
	node, ok = r.node(ops.Parameter, proposal{dim: d, attrs: []uint32{id}})
	return node, d, ok
}

// operand is a node of a dim, or a new function of one.
func (r *recorder) operand(d bridge.Dim) uint32 {
	x := r.of(d)
	if fn := []ops.Code{ops.NoBackprop, ops.Tanh, ops.LogisticSigmoid, ops.Negate, ops.CwiseMultiply}[r.rng.IntN(5)]; fn == ops.CwiseMultiply {
		if n, ok := r.node(fn, proposal{dim: d, args: []uint32{x, r.of(d)}}); ok {
			return n
		}
	} else if fn != ops.NoBackprop {
		if n, ok := r.node(fn, proposal{dim: d, args: []uint32{x}}); ok {
			return n
		}
	}
	return x
}
