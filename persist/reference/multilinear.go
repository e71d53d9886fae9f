package reference

import (
	"libvpps/bridge"
	"libvpps/bridge/ops"
)

// multilinear: operations whose results are sums of products of elements. Each is a list of these products.
var multilinear = map[ops.Code]rule{
	ops.CumulativeSum:       sumOfProducts(cumulativeProducts),
	ops.FoldRows:            sumOfProducts(foldProducts),
	ops.KMHNGram:            sumOfProducts(nGramProducts),
	ops.TraceOfProduct:      sumOfProducts(traceProducts),
	ops.InnerProduct3D1D:    sumOfProducts(contractProducts),
	ops.InnerProduct3D1D1D:  sumOfProducts(contractTwiceProducts),
	ops.CircularConvolution: sumOfProducts(func(n *node, add func(to int, factors ...source)) { circularProducts(n, -1, add) }),
	ops.CircularCorrelation: sumOfProducts(func(n *node, add func(to int, factors ...source)) { circularProducts(n, 1, add) }),
	ops.Filter1DNarrow:      sumOfProducts(filterProducts),
	ops.Conv2D:              sumOfProducts(conv2DProducts),
}

// sumOfProducts is the rule of an operation with the given products, each of elements of arguments.
func sumOfProducts(list func(n *node, add func(to int, factors ...source))) rule {
	return rule{
		func(n *node) error {
			list(n, func(to int, factors ...source) {
				p := 1.0
				for _, f := range factors {
					p *= n.x[f.arg][f.element]
				}
				n.y[to] += p
			})
			return nil
		},
		func(n *node) {
			list(n, func(to int, factors ...source) {
				for k, f := range factors {
					p := n.dy[to]
					for j, g := range factors {
						if j != k {
							p *= n.x[g.arg][g.element]
						}
					}
					n.dx[f.arg][f.element] += p
				}
			})
		},
	}
}

// at is the element of argument k at some coordinates of batch element b.
func (n *node) at(k, b int, c ...int) source {
	var all [bridge.MaxDims + 1]int
	copy(all[:], c)
	all[bridge.MaxDims] = b
	return source{k, flat(n.dims[k], all)}
}

// to is the element of the result at some coordinates of batch element b.
func (n *node) to(b int, c ...int) int {
	var all [bridge.MaxDims + 1]int
	copy(all[:], c)
	all[bridge.MaxDims] = b
	return flat(n.dim, all)
}

func cumulativeProducts(n *node, add func(to int, factors ...source)) {
	for _, line := range n.axisLines(n.uint(0)) {
		for k, to := range line {
			for _, from := range line[:k+1] {
				add(to, source{0, from})
			}
		}
	}
}

func foldProducts(n *node, add func(to int, factors ...source)) {
	for i := range n.x[0] {
		add(i/n.uint(0), source{0, i})
	}
}

func nGramProducts(n *node, add func(to int, factors ...source)) {
	for b := range int(n.dim.Bd) {
		for j := range n.dim.Cols() {
			for i := range n.dim.Rows() {
				for k := range n.uint(0) {
					add(n.to(b, i, j), n.at(0, b, i, j+k))
				}
			}
		}
	}
}

func traceProducts(n *node, add func(to int, factors ...source)) {
	size := n.dims[0].Batch()
	for i := range n.x[0] {
		add(i/size, source{0, i}, source{1, i})
	}
}

func contractProducts(n *node, add func(to int, factors ...source)) {
	x := n.dims[0]
	for b := range int(n.dim.Bd) {
		for i := range x.Axis(0) {
			for j := range x.Axis(1) {
				for k := range x.Axis(2) {
					add(n.to(b, i, j), n.at(0, b, i, j, k), n.at(1, b, k))
				}
				if len(n.x) > 2 {
					add(n.to(b, i, j), n.at(2, b, i, j))
				}
			}
		}
	}
}

func contractTwiceProducts(n *node, add func(to int, factors ...source)) {
	x := n.dims[0]
	for b := range int(n.dim.Bd) {
		for i := range x.Axis(0) {
			for j := range x.Axis(1) {
				for k := range x.Axis(2) {
					add(n.to(b, i), n.at(0, b, i, j, k), n.at(1, b, k), n.at(2, b, j))
				}
			}
			if len(n.x) > 3 {
				add(n.to(b, i), n.at(3, b, i))
			}
		}
	}
}

func circularProducts(n *node, sign int, add func(to int, factors ...source)) {
	d := n.dim.Rows()
	for b := range int(n.dim.Bd) {
		for k := range d {
			for i := range d {
				add(n.to(b, k), n.at(0, b, i), n.at(1, b, (k+sign*i+d)%d))
			}
		}
	}
}

func filterProducts(n *node, add func(to int, factors ...source)) {
	f := n.dims[1]
	for b := range int(n.dim.Bd) {
		for k := range n.dim.Rows() {
			for t := range n.dim.Cols() {
				for r := range f.Axis(0) {
					for m := range f.Axis(1) {
						add(n.to(b, k, t), n.at(1, b, r, m, k), n.at(0, b, r, t+m))
					}
				}
			}
		}
	}
}

func conv2DProducts(n *node, add func(to int, factors ...source)) {
	x, f := n.dims[0], n.dims[1]
	top := padding(x.Axis(0), n.dim.Axis(0), f.Axis(0), n.uint(0), n.uint(2))
	left := padding(x.Axis(1), n.dim.Axis(1), f.Axis(1), n.uint(1), n.uint(2))
	for b := range int(n.dim.Bd) {
		for k := range n.dim.Axis(2) {
			for i := range n.dim.Axis(0) {
				for j := range n.dim.Axis(1) {
					to := n.to(b, i, j, k)
					for r := range f.Axis(0) {
						for c := range f.Axis(1) {
							row, col := i*n.uint(0)+r-top, j*n.uint(1)+c-left
							if row < 0 || col < 0 || row >= x.Axis(0) || col >= x.Axis(1) {
								continue
							}
							for ch := range f.Axis(2) {
								add(to, n.at(0, b, row, col, ch), n.at(1, b, r, c, ch, k))
							}
						}
					}
					if len(n.x) > 2 {
						add(to, n.at(2, b, k))
					}
				}
			}
		}
	}
}
