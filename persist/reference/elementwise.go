package reference

import (
	"math"

	"libvpps/bridge"
	"libvpps/bridge/ops"
)

// elementwise: operations that work element by element, broadcasting or not.
var elementwise = map[ops.Code]rule{
	ops.Tanh:            unary(math.Tanh, func(x, y float64) float64 { return 1 - y*y }),
	ops.LogisticSigmoid: unary(logistic, func(x, y float64) float64 { return y * (1 - y) }),
	ops.Rectify:         unary(func(x float64) float64 { return max(x, 0) }, func(x, y float64) float64 { return step(y) }),
	ops.Exp:             unary(math.Exp, func(x, y float64) float64 { return y }),
	ops.Log:             unary(math.Log, func(x, y float64) float64 { return 1 / x }),
	ops.Sqrt:            unary(math.Sqrt, func(x, y float64) float64 { return 1 / (2 * y) }),
	ops.Square:          unary(func(x float64) float64 { return x * x }, func(x, y float64) float64 { return 2 * x }),
	ops.Abs:             unary(math.Abs, func(x, y float64) float64 { return step(x) - step(-x) }),
	ops.Negate:          unary(func(x float64) float64 { return -x }, func(x, y float64) float64 { return -1 }),
	ops.Cube:            unary(func(x float64) float64 { return x * x * x }, func(x, y float64) float64 { return 3 * x * x }),

	ops.Sin:   unary(math.Sin, func(x, y float64) float64 { return math.Cos(x) }),
	ops.Cos:   unary(math.Cos, func(x, y float64) float64 { return -math.Sin(x) }),
	ops.Tan:   unary(math.Tan, func(x, y float64) float64 { return 1 / (math.Cos(x) * math.Cos(x)) }),
	ops.Asin:  unary(math.Asin, func(x, y float64) float64 { return 1 / math.Sqrt(1-x*x) }),
	ops.Acos:  unary(math.Acos, func(x, y float64) float64 { return -1 / math.Sqrt(1-x*x) }),
	ops.Atan:  unary(math.Atan, func(x, y float64) float64 { return 1 / (1 + x*x) }),
	ops.Sinh:  unary(math.Sinh, func(x, y float64) float64 { return math.Cosh(x) }),
	ops.Cosh:  unary(math.Cosh, func(x, y float64) float64 { return math.Sinh(x) }),
	ops.Asinh: unary(math.Asinh, func(x, y float64) float64 { return 1 / math.Sqrt(x*x+1) }),
	ops.Acosh: unary(math.Acosh, func(x, y float64) float64 { return 1 / math.Sqrt(x*x-1) }),
	ops.Atanh: unary(math.Atanh, func(x, y float64) float64 { return 1 / (1 - x*x) }),

	ops.Erf:        unary(math.Erf, func(x, y float64) float64 { return 2 / math.Sqrt(math.Pi) * math.Exp(-x*x) }),
	ops.LogGamma:   unary(func(x float64) float64 { v, _ := math.Lgamma(x); return v }, func(x, y float64) float64 { return digamma(x) }),
	ops.LogSigmoid: unary(func(x float64) float64 { return math.Log(logistic(x)) }, func(x, y float64) float64 { return logistic(-x) }),
	ops.SoftSign: unary(func(x float64) float64 { return x / (1 + math.Abs(x)) }, func(x, y float64) float64 {
		return 1 / ((1 + math.Abs(x)) * (1 + math.Abs(x)))
	}),
	ops.ExponentialLinearUnit: withAttributes(func(x float64, a []float64) float64 {
		if x > 0 {
			return a[0] * x
		}
		return a[0] * a[1] * (math.Exp(x) - 1)
	}, func(x float64, a []float64) float64 {
		if x > 0 {
			return a[0]
		}
		return a[0] * a[1] * math.Exp(x)
	}),
	ops.SigmoidLinearUnit: withAttributes(func(x float64, a []float64) float64 { return x * logistic(a[0]*x) },
		func(x float64, a []float64) float64 {
			return logistic(a[0]*x) + a[0]*x*logistic(a[0]*x)*logistic(-a[0]*x)
		}),
	ops.Round:         declared(math.Round),
	ops.Ceil:          declared(math.Ceil),
	ops.Floor:         declared(math.Floor),
	ops.ScaleGradient: declared(same),

	ops.NoBackprop: unary(same, func(x, y float64) float64 { return 0 }),
	ops.Reshape:    unary(same, func(x, y float64) float64 { return 1 }),

	ops.ConstantPlusX:       affine(func(c float64) (a, b float64) { return 1, c }),
	ops.ConstantMinusX:      affine(func(c float64) (a, b float64) { return -1, c }),
	ops.ConstScalarMultiply: affine(func(c float64) (a, b float64) { return c, 0 }),
	ops.Dropout:             {dropoutValue, dropoutGradient},
	ops.GaussianNoise:       {noiseValue, func(n *node) { add(n.dx[0], n.dy) }},

	ops.CwiseSum: binary(func(x, y float64) float64 { return x + y },
		func(x, y, r float64) float64 { return 1 }, func(x, y, r float64) float64 { return 1 }),
	ops.CwiseMultiply: binary(func(x, y float64) float64 { return x * y },
		func(x, y, r float64) float64 { return y }, func(x, y, r float64) float64 { return x }),
	ops.CwiseQuotient: binary(func(x, y float64) float64 { return x / y },
		func(x, y, r float64) float64 { return 1 / y }, func(x, y, r float64) float64 { return -x / (y * y) }),
	ops.Pow: binary(math.Pow,
		func(x, y, r float64) float64 { return y * math.Pow(x, y-1) }, func(x, y, r float64) float64 { return r * math.Log(x) }),
	ops.Min: binary(math.Min, // a tie sends the gradient to y
		func(x, y, r float64) float64 { return step(y - x) }, func(x, y, r float64) float64 { return 1 - step(y-x) }),
	ops.Max: binary(math.Max,
		func(x, y, r float64) float64 { return step(x - y) }, func(x, y, r float64) float64 { return 1 - step(x-y) }),
	ops.AddVectorToAllColumns: binary(func(x, y float64) float64 { return x + y },
		func(x, y, r float64) float64 { return 1 }, func(x, y, r float64) float64 { return 1 }),

	ops.Sum:     {func(n *node) error { return sumValue(n, 1) }, func(n *node) { sumGradient(n, 1) }},
	ops.Average: {func(n *node) error { return sumValue(n, 1/float64(len(n.x))) }, func(n *node) { sumGradient(n, 1/float64(len(n.x))) }},
}

func same(x float64) float64     { return x }
func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// step is 1 above 0, else 0.
func step(x float64) float64 {
	if x > 0 {
		return 1
	}
	return 0
}

// unary is the rule of y = f(x) with the derivative d(x, y).
func unary(f func(x float64) float64, d func(x, y float64) float64) rule {
	return rule{
		func(n *node) error {
			for i, x := range n.x[0] {
				n.y[i] = f(x)
			}
			return nil
		},
		func(n *node) {
			for i, x := range n.x[0] {
				if dy := n.dy[i]; dy != 0 {
					n.dx[0][i] += dy * d(x, n.y[i])
				}
			}
		},
	}
}

// withAttributes is the rule of y = f(x, attributes) with the derivative d.
func withAttributes(f, d func(x float64, a []float64) float64) rule {
	floats := func(n *node) (list []float64) {
		for i := range n.attrs {
			list = append(list, n.float(i))
		}
		return list
	}
	return rule{
		func(n *node) error {
			a := floats(n)
			for i, x := range n.x[0] {
				n.y[i] = f(x, a)
			}
			return nil
		},
		func(n *node) {
			a := floats(n)
			for i, x := range n.x[0] {
				n.dx[0][i] += n.dy[i] * d(x, a)
			}
		},
	}
}

// declared is the rule of y = f(x) whose gradient is the attribute, whatever f's derivative is.
func declared(f func(x float64) float64) rule {
	return withAttributes(func(x float64, _ []float64) float64 { return f(x) }, func(_ float64, a []float64) float64 { return a[0] })
}

// slope is the number that node n declares its derivative to be, if it declares one.
func (n *node) slope() (slope float64, ok bool) {
	switch n.graph.Op[n.index] {
	case ops.NoBackprop:
		return 0, true
	case ops.Round, ops.Ceil, ops.Floor, ops.ScaleGradient, ops.Argmax:
		return n.float(0), true
	}
	return 0, false
}

// digamma is the derivative of ln Gamma(x) for x > 0.
func digamma(x float64) float64 {
	v := 0.0
	for ; x < 30; x++ {
		v -= 1 / x
	}
	z := 1 / (x * x)
	return v + math.Log(x) - 1/(2*x) - z*(1.0/12-z*(1.0/120-z/252))
}

// affine is the rule of y = a*x + b, both from the constant in the first attribute.
func affine(f func(c float64) (a, b float64)) rule {
	return rule{
		func(n *node) error {
			a, b := f(n.float(0))
			for i, x := range n.x[0] {
				n.y[i] = a*x + b
			}
			return nil
		},
		func(n *node) {
			a, _ := f(n.float(0))
			for i, dy := range n.dy {
				n.dx[0][i] += a * dy
			}
		},
	}
}

func dropoutValue(n *node) error {
	mask, err := n.draws()
	for i, m := range mask {
		n.y[i] = n.x[0][i] * m
	}
	return err
}

func dropoutGradient(n *node) {
	mask, _ := n.draws()
	for i, m := range mask {
		n.dx[0][i] += n.dy[i] * m
	}
}

func noiseValue(n *node) error {
	noise, err := n.draws()
	for i, v := range noise {
		n.y[i] = n.x[0][i] + v
	}
	return err
}

// binary is the rule of r = f(x, y), both broadcast to the result, with the derivatives
// by x and by y.
func binary(f func(x, y float64) float64, byX, byY func(x, y, r float64) float64) rule {
	return rule{
		func(n *node) error {
			ix, iy := broadcast(n.dim, n.dims[0]), broadcast(n.dim, n.dims[1])
			for i := range n.y {
				n.y[i] = f(n.x[0][ix[i]], n.x[1][iy[i]])
			}
			return nil
		},
		func(n *node) {
			ix, iy := broadcast(n.dim, n.dims[0]), broadcast(n.dim, n.dims[1])
			for i, dy := range n.dy {
				x, y := n.x[0][ix[i]], n.x[1][iy[i]]
				n.dx[0][ix[i]] += dy * byX(x, y, n.y[i])
				n.dx[1][iy[i]] += dy * byY(x, y, n.y[i])
			}
		},
	}
}

// broadcast returns, for every element of a tensor of dim to, the element of a tensor of
// dim from that it takes: axes and the batch of size 1 repeat.
func broadcast(to, from *bridge.Dim) []int {
	list := make([]int, to.Size())
	for i := range list {
		rest, stride, at := i, 1, 0
		for a := range bridge.MaxDims {
			c := rest % to.Axis(a)
			rest /= to.Axis(a)
			if from.Axis(a) > 1 {
				at += c * stride
			}
			stride *= from.Axis(a)
		}
		if from.Bd > 1 {
			at += rest * stride
		}
		list[i] = at
	}
	return list
}

func sumValue(n *node, scale float64) error {
	for k := range n.x {
		for i, from := range broadcast(n.dim, n.dims[k]) {
			n.y[i] += scale * n.x[k][from]
		}
		if n.Blur != nil { // the sum so far is rounded, too
			n.Blur(n.y)
		}
	}
	return nil
}

func sumGradient(n *node, scale float64) {
	for k := range n.x {
		for i, from := range broadcast(n.dim, n.dims[k]) {
			n.dx[k][from] += scale * n.dy[i]
		}
	}
}
