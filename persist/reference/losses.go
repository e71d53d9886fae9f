package reference

import (
	"fmt"
	"math"
	"slices"

	"libvpps/bridge/ops"
)

// losses: softmax and what is built on it, hinge, binary log loss.
var losses = map[ops.Code]rule{
	ops.Softmax:              {softmaxValue, softmaxGradient},
	ops.LogSoftmax:           {logSoftmaxValue, logSoftmaxGradient},
	ops.RestrictedLogSoftmax: {restrictedValue, restrictedGradient},
	ops.PickNegLogSoftmax:    {pickValue, pickGradient},
	ops.Hinge:                {hingeValue, hingeGradient},
	ops.BinaryLogLoss:        {binaryLogValue, binaryLogGradient},
}

// lines lists the elements of every column (axis 0) or row (axis 1) of the argument.
func (n *node) lines(axis int) [][]int {
	rows, cols := n.dims[0].Rows(), n.dims[0].Cols()
	var list [][]int
	for b := range int(n.dims[0].Bd) {
		count, length, step, next := cols, rows, 1, rows
		if axis == 1 {
			count, length, step, next = rows, cols, rows, 1
		}
		for l := range count {
			line := make([]int, length)
			for i := range line {
				line[i] = b*rows*cols + l*next + i*step
			}
			list = append(list, line)
		}
	}
	return list
}

// logSumExp over some elements of x.
func logSumExp(x []float64, line []int) float64 {
	m, s := math.Inf(-1), 0.0
	for _, i := range line {
		m = max(m, x[i])
	}
	for _, i := range line {
		s += math.Exp(x[i] - m)
	}
	return m + math.Log(s)
}

func softmaxValue(n *node) error {
	for _, line := range n.lines(n.uint(0)) {
		z := logSumExp(n.x[0], line)
		for _, i := range line {
			n.y[i] = math.Exp(n.x[0][i] - z)
		}
	}
	return nil
}

func softmaxGradient(n *node) {
	for _, line := range n.lines(n.uint(0)) {
		s := 0.0
		for _, i := range line {
			s += n.y[i] * n.dy[i]
		}
		for _, i := range line {
			n.dx[0][i] += n.y[i] * (n.dy[i] - s)
		}
	}
}

func logSoftmaxValue(n *node) error {
	for _, line := range n.lines(0) {
		z := logSumExp(n.x[0], line)
		for _, i := range line {
			n.y[i] = n.x[0][i] - z
		}
	}
	return nil
}

func logSoftmaxGradient(n *node) {
	for _, line := range n.lines(0) {
		s := 0.0
		for _, i := range line {
			s += n.dy[i]
		}
		for _, i := range line {
			n.dx[0][i] += n.dy[i] - math.Exp(n.y[i])*s
		}
	}
}

// restriction lists the rows that a RestrictedLogSoftmax is over, each once.
func (n *node) restriction() []int {
	var list []int
	for _, row := range n.input(0, int(n.attrs[1])) {
		if !slices.Contains(list, int(row)) {
			list = append(list, int(row))
		}
	}
	return list
}

func restrictedValue(n *node) error {
	rows := n.restriction()
	for _, i := range rows {
		if i >= len(n.y) {
			return fmt.Errorf("row %d of %d", i, len(n.y))
		}
	}
	z := logSumExp(n.x[0], rows)
	for i := range n.y {
		n.y[i] = math.Inf(-1)
	}
	for _, i := range rows {
		n.y[i] = n.x[0][i] - z
	}
	return nil
}

func restrictedGradient(n *node) {
	rows, s := n.restriction(), 0.0
	for _, i := range rows {
		s += n.dy[i]
	}
	for _, i := range rows {
		n.dx[0][i] += n.dy[i] - math.Exp(n.y[i])*s
	}
}

// labels are the row numbers of a loss, one a batch element, checked.
func (n *node) labels(attr int) ([]uint32, error) {
	list := n.input(attr, int(n.dims[0].Bd))
	for _, row := range list {
		if int(row) >= n.dims[0].Batch() {
			return nil, fmt.Errorf("row %d of %d", row, n.dims[0].Batch())
		}
	}
	return list, nil
}

func pickValue(n *node) error {
	labels, err := n.labels(0)
	for b, row := range labels {
		line := n.lines(0)[b]
		n.y[b] = logSumExp(n.x[0], line) - n.x[0][line[row]]
	}
	return err
}

func pickGradient(n *node) {
	labels, _ := n.labels(0)
	for b, row := range labels {
		line := n.lines(0)[b]
		z := logSumExp(n.x[0], line)
		for _, i := range line {
			n.dx[0][i] += n.dy[b] * math.Exp(n.x[0][i]-z)
		}
		n.dx[0][line[row]] -= n.dy[b]
	}
}

func hingeValue(n *node) error {
	labels, err := n.labels(1)
	for b, row := range labels {
		x := n.batch(0, b)
		for i := range x {
			if i != int(row) {
				n.y[b] += max(0, n.float(0)-x[row]+x[i])
			}
		}
	}
	return err
}

func hingeGradient(n *node) {
	labels, _ := n.labels(1)
	for b, row := range labels {
		x, dx := n.batch(0, b), n.batchGradient(0, b)
		for i := range x {
			if i != int(row) && n.float(0)-x[row]+x[i] > 0 {
				dx[i] += n.dy[b]
				dx[row] -= n.dy[b]
			}
		}
	}
}

// tiny is where DyNet clamps the argument of a logarithm: FLT_MIN.
const tiny = 0x1p-126

func binaryLogValue(n *node) error {
	for i, x := range n.x[0] {
		y := n.x[1][i]
		if y > 0 && y < 1 && (x == 0 || x == 1) { // DyNet's, whatever the label's weights
			n.y[0] -= math.Log(tiny)
			continue
		}
		if y > 0 {
			n.y[0] -= y * math.Log(max(x, tiny))
		}
		if y < 1 {
			n.y[0] -= (1 - y) * math.Log(max(1-x, tiny))
		}
	}
	return nil
}

func binaryLogGradient(n *node) {
	d := func(x, y float64) float64 {
		r := 0.0
		if x == y {
			return 0
		}
		if y > 0 {
			r -= y / max(x, tiny)
		}
		if y < 1 {
			r += (1 - y) / max(1-x, tiny)
		}
		return r
	}
	for i, x := range n.x[0] {
		y := n.x[1][i]
		n.dx[0][i] += n.dy[0] * d(x, y)
		n.dx[1][i] += n.dy[0] * d(y, x) // as DyNet: the roles swapped, not the derivative
	}
}
