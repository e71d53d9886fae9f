package reference

import (
	"math"

	"libvpps/bridge/ops"
)

// reductions: sums of functions of elements over axes.
var reductions = map[ops.Code]rule{
	ops.SumElements: {
		func(n *node) error { return n.eachElement(func(x float64) float64 { return x }) },
		func(n *node) { n.eachGradient(func(x, y float64) float64 { return 1 }) },
	},
	ops.SquaredNorm: {
		func(n *node) error { return n.eachElement(func(x float64) float64 { return x * x }) },
		func(n *node) { n.eachGradient(func(x, y float64) float64 { return 2 * x }) },
	},
	ops.L2Norm: {l2Value, func(n *node) { n.eachGradient(func(x, y float64) float64 { return x / y }) }},
	ops.SumDimension: {
		func(n *node) error { return n.reduce(n.uint(0), n.uint(1), func(x float64) float64 { return x }) },
		func(n *node) { n.reduceGradient(n.uint(0), n.uint(1), func(x float64) float64 { return 1 }) },
	},
	ops.MomentDimension:          {momentValue, momentGradient},
	ops.DotProduct:               pairwise(func(x, y float64) float64 { return x * y }, func(x, y float64) (float64, float64) { return y, x }),
	ops.SquaredEuclideanDistance: pairwise(func(x, y float64) float64 { return (x - y) * (x - y) }, func(x, y float64) (float64, float64) { return 2 * (x - y), 2 * (y - x) }),
}

// eachElement sums f inside each batch element.
func (n *node) eachElement(f func(x float64) float64) error {
	for b := range n.y {
		for _, x := range n.batch(0, b) {
			n.y[b] += f(x)
		}
	}
	return nil
}

func (n *node) eachGradient(d func(x, y float64) float64) {
	for b, dy := range n.dy {
		dx := n.batchGradient(0, b)
		for i, x := range n.batch(0, b) {
			dx[i] += dy * d(x, n.y[b])
		}
	}
}

func l2Value(n *node) error {
	_ = n.eachElement(func(x float64) float64 { return x * x })
	for b, v := range n.y {
		n.y[b] = math.Sqrt(v)
	}
	return nil
}

// targets returns, for every element of the argument, the element of the result that it
// is summed into.
func (n *node) targets(axes, batch int) []int {
	d := n.dims[0]
	list := make([]int, d.Size())
	for i := range list {
		rest, stride, at := i, 1, 0
		for a := range int(d.Nd) {
			c := rest % d.Axis(a)
			rest /= d.Axis(a)
			if axes>>a&1 == 0 {
				at += c * stride
				stride *= d.Axis(a)
			}
		}
		if batch == 0 {
			at += rest * stride
		}
		list[i] = at
	}
	return list
}

func (n *node) reduce(axes, batch int, f func(x float64) float64) error {
	for i, to := range n.targets(axes, batch) {
		n.y[to] += f(n.x[0][i])
	}
	return nil
}

func (n *node) reduceGradient(axes, batch int, d func(x float64) float64) {
	for i, to := range n.targets(axes, batch) {
		n.dx[0][i] += n.dy[to] * d(n.x[0][i])
	}
}

// divisor is the number of elements that a moment averages over.
func (n *node) divisor() float64 {
	if count := n.uint(3); count > 0 {
		return float64(count)
	}
	return float64(len(n.x[0])) / float64(len(n.y))
}

func momentValue(n *node) error {
	order, by := float64(n.uint(1)), n.divisor()
	return n.reduce(n.uint(0), n.uint(2), func(x float64) float64 { return math.Pow(x, order) / by })
}

func momentGradient(n *node) {
	order, by := float64(n.uint(1)), n.divisor()
	n.reduceGradient(n.uint(0), n.uint(2), func(x float64) float64 { return order * math.Pow(x, order-1) / by })
}

// pairwise is the rule of a sum of f(x, y) inside each batch element.
func pairwise(f func(x, y float64) float64, d func(x, y float64) (byX, byY float64)) rule {
	return rule{
		func(n *node) error {
			for b := range n.y {
				y := n.batch(1, b)
				for i, x := range n.batch(0, b) {
					n.y[b] += f(x, y[i])
				}
			}
			return nil
		},
		func(n *node) {
			for b, dy := range n.dy {
				y, dx0, dx1 := n.batch(1, b), n.batchGradient(0, b), n.batchGradient(1, b)
				for i, x := range n.batch(0, b) {
					byX, byY := d(x, y[i])
					dx0[i] += dy * byX
					dx1[i] += dy * byY
				}
			}
		},
	}
}
