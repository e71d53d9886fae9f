package reference

import "libvpps/bridge/ops"

// products: matrix products.
var products = map[ops.Code]rule{
	ops.MatrixMultiply: {
		func(n *node) error { n.multiply(0, 1); return nil },
		func(n *node) { n.multiplyGradient(0, 1) },
	},
	ops.AffineTransform: {affineValue, affineGradient},
}

// multiply adds x[k]*x[l] to y, batch element by batch element.
func (n *node) multiply(k, l int) {
	rows, inner, cols := n.dims[k].Rows(), n.dims[k].Cols(), n.dims[l].Cols()
	for b := range int(n.dim.Bd) {
		x, w, y := n.batch(k, b), n.batch(l, b), element(n.y, n.dim, b)
		for i := range rows {
			for j := range cols {
				for c := range inner {
					y[i+j*rows] += x[i+c*rows] * w[c+j*inner]
				}
			}
		}
	}
}

func (n *node) multiplyGradient(k, l int) {
	rows, inner, cols := n.dims[k].Rows(), n.dims[k].Cols(), n.dims[l].Cols()
	for b := range int(n.dim.Bd) {
		x, w, dy := n.batch(k, b), n.batch(l, b), element(n.dy, n.dim, b)
		dx, dw := n.batchGradient(k, b), n.batchGradient(l, b)
		for i := range rows {
			for j := range cols {
				for c := range inner {
					dx[i+c*rows] += dy[i+j*rows] * w[c+j*inner]
					dw[c+j*inner] += dy[i+j*rows] * x[i+c*rows]
				}
			}
		}
	}
}

func affineValue(n *node) error {
	for i, from := range broadcast(n.dim, n.dims[0]) {
		n.y[i] = n.x[0][from]
	}
	for k := 1; k+1 < len(n.x); k += 2 {
		n.multiply(k, k+1)
	}
	return nil
}

func affineGradient(n *node) {
	for i, from := range broadcast(n.dim, n.dims[0]) {
		n.dx[0][from] += n.dy[i]
	}
	for k := 1; k+1 < len(n.x); k += 2 {
		n.multiplyGradient(k, k+1)
	}
}
