package reference

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"libvpps/bridge"
	"libvpps/bridge/ops"
)

// along: functions of what lies along an axis, and selections that depend on values.
var along = map[ops.Code]rule{
	ops.StdDimension:        {stdValue, stdGradient},
	ops.LogSumExp:           {logSumExpValue, logSumExpGradient},
	ops.LogSumExpDimension:  {logSumExpDimValue, logSumExpDimGradient},
	ops.MaxDimension:        moving(func(n *node) ([]source, error) { return n.largest(n.uint(0), 1, 1), nil }),
	ops.MinDimension:        moving(func(n *node) ([]source, error) { return n.largest(n.uint(0), 1, -1), nil }),
	ops.KMaxPooling:         moving(func(n *node) ([]source, error) { return n.largest(n.uint(1), n.uint(0), 1), nil }),
	ops.MaxPooling2D:        moving(poolSources),
	ops.Argmax:              {argmaxValue, func(n *node) { addTimes(n.dx[0], n.dy, n.float(0)) }},
	ops.Sparsemax:           {sparsemaxValue, sparsemaxGradient},
	ops.SparsemaxLoss:       {sparsemaxLossValue, sparsemaxLossGradient},
	ops.ConstrainedSoftmax:  {constrainedValue, constrainedGradient},
	ops.HingeDim:            {hingeDimValue, hingeDimGradient},
	ops.SelectRows:          moving(func(n *node) ([]source, error) { return n.selected(0) }),
	ops.SelectCols:          moving(func(n *node) ([]source, error) { return n.selected(1) }),
	ops.StridedSelect:       moving(stridedSources),
	ops.WeightNormalization: {weightNormValue, weightNormGradient},
	ops.MatrixInverse:       {inverseValue, inverseGradient},
	ops.LogDet:              {logDetValue, logDetGradient},
	ops.DropoutDim:          {dropoutValue, dropoutGradient},
	ops.DropoutBatch:        {dropoutValue, dropoutGradient},
	ops.BlockDropout:        {dropoutValue, dropoutGradient},

	ops.L1Distance: pairwise(func(x, y float64) float64 { return math.Abs(x - y) }, func(x, y float64) (float64, float64) {
		s := step(x-y) - step(y-x)
		return s, -s
	}),
	ops.HuberDistance:    {huberValue, huberGradient},
	ops.PairwiseRankLoss: {rankValue, rankGradient},
	ops.PoissonRegressionLoss: {
		func(n *node) error {
			count := float64(n.input(0, 1)[0])
			factorial, _ := math.Lgamma(count + 1)
			n.y[0] = math.Exp(n.x[0][0]) - count*n.x[0][0] + factorial
			return nil
		},
		func(n *node) { n.dx[0][0] += n.dy[0] * (math.Exp(n.x[0][0]) - float64(n.input(0, 1)[0])) },
	},
}

func addTimes(to, from []float64, by float64) {
	for i, v := range from {
		to[i] += by * v
	}
}

// axisLines lists the elements of every line of the first argument along an axis, those of earlier axes first.
func (n *node) axisLines(axis int) [][]int {
	d := n.dims[0]
	before, length := 1, d.Axis(axis)
	for i := range axis {
		before *= d.Axis(i)
	}
	var list [][]int
	for first := 0; first < d.Size(); first += before * length {
		for i := range before {
			line := make([]int, length)
			for k := range line {
				line[k] = first + i + k*before
			}
			list = append(list, line)
		}
	}
	return list
}

// largest are the k largest elements of each line, times sign, in their order; the result has lines of k elements.
func (n *node) largest(axis, k int, sign float64) []source {
	before := 1
	for i := range axis {
		before *= n.dims[0].Axis(i)
	}
	list := make([]source, len(n.y))
	for l, line := range n.axisLines(axis) {
		sorted := slices.Clone(line)
		sort.SliceStable(sorted, func(i, j int) bool { return sign*n.x[0][sorted[i]] > sign*n.x[0][sorted[j]] })
		sorted = sorted[:k]
		slices.Sort(sorted)
		for i, from := range sorted {
			list[l/before*before*k+l%before+i*before] = source{0, from}
		}
	}
	return list
}

func logSumExpDimValue(n *node) error {
	for l, line := range n.axisLines(n.uint(0)) {
		n.y[l] = logSumExp(n.x[0], line)
	}
	return nil
}

func logSumExpDimGradient(n *node) {
	for l, line := range n.axisLines(n.uint(0)) {
		for _, i := range line {
			n.dx[0][i] += n.dy[l] * math.Exp(n.x[0][i]-n.y[l])
		}
	}
}

func logSumExpValue(n *node) error {
	for b := range int(n.dim.Bd) {
		y := element(n.y, n.dim, b)
		for i := range y {
			s := 0.0
			for k := range n.x {
				s += math.Exp(n.batch(k, b)[i])
			}
			y[i] = math.Log(s)
		}
	}
	return nil
}

func logSumExpGradient(n *node) {
	for b := range int(n.dim.Bd) {
		y, dy := element(n.y, n.dim, b), element(n.dy, n.dim, b)
		for i := range y {
			for k := range n.x {
				n.batchGradient(k, b)[i] += dy[i] * math.Exp(n.batch(k, b)[i]-y[i])
			}
		}
	}
}

// deviations are the groups' elements less their mean, and the divisor.
func (n *node) deviations() (c []float64, to []int, by float64) {
	to = n.targets(n.uint(0), n.uint(1))
	by = float64(len(n.x[0])) / float64(len(n.y))
	if count := n.uint(2); count > 0 {
		by = float64(count)
	}
	mean := make([]float64, len(n.y))
	for i, x := range n.x[0] {
		mean[to[i]] += x / by
	}
	c = make([]float64, len(to))
	for i, x := range n.x[0] {
		c[i] = x - mean[to[i]]
	}
	return c, to, by
}

func stdValue(n *node) error {
	c, to, by := n.deviations()
	for i, v := range c {
		n.y[to[i]] += v * v / by
	}
	for k, v := range n.y {
		n.y[k] = math.Sqrt(v)
	}
	return nil
}

func stdGradient(n *node) {
	c, to, by := n.deviations()
	sum := make([]float64, len(n.y))
	for i, v := range c {
		sum[to[i]] += v
	}
	for i, v := range c {
		n.dx[0][i] += n.dy[to[i]] / n.y[to[i]] * (v/by - sum[to[i]]/(by*by))
	}
}

func argmaxValue(n *node) error {
	for b := range int(n.dim.Bd) {
		x, best := n.batch(0, b), 0
		for i := range x {
			if x[i] > x[best] {
				best = i
			}
		}
		element(n.y, n.dim, b)[best] = 1
	}
	return nil
}

// threshold of the sparsemax of x: its elements above are the support.
func threshold(x []float64) float64 {
	sorted := slices.Clone(x)
	slices.Sort(sorted)
	slices.Reverse(sorted)
	sum, tau := 0.0, 0.0
	for k, v := range sorted {
		sum += v
		if 1+float64(k+1)*v > sum {
			tau = (sum - 1) / float64(k+1)
		}
	}
	return tau
}

func sparsemaxValue(n *node) error {
	for b := range int(n.dim.Bd) {
		x, y := n.batch(0, b), element(n.y, n.dim, b)
		tau := threshold(x)
		for i := range x {
			y[i] = max(0, x[i]-tau)
		}
	}
	return nil
}

func sparsemaxGradient(n *node) {
	for b := range int(n.dim.Bd) {
		y, dy, dx := element(n.y, n.dim, b), element(n.dy, n.dim, b), n.batchGradient(0, b)
		sum, count := 0.0, 0.0
		for i := range y {
			sum += step(y[i]) * dy[i]
			count += step(y[i])
		}
		for i := range y {
			dx[i] += step(y[i]) * (dy[i] - sum/count)
		}
	}
}

func sparsemaxLossValue(n *node) error {
	support := n.input(0, n.uint(1))
	q := 1 / float64(len(support))
	for b := range n.y {
		x := n.batch(0, b)
		tau := threshold(x)
		for _, v := range x {
			n.y[b] += step(v-tau) * (v*v - tau*tau) / 2
		}
		for _, row := range support {
			if int(row) >= len(x) {
				return fmt.Errorf("row %d of %d", row, len(x))
			}
			n.y[b] += q*q/2 - q*x[row]
		}
	}
	return nil
}

func sparsemaxLossGradient(n *node) {
	support := n.input(0, n.uint(1))
	for b, dy := range n.dy {
		x, dx := n.batch(0, b), n.batchGradient(0, b)
		tau := threshold(x)
		for i, v := range x {
			dx[i] += dy * max(0, v-tau)
		}
		for _, row := range support {
			dx[row] -= dy / float64(len(support))
		}
	}
}

// constrain is the softmax of x bounded by u, and which elements are at their bound.
func constrain(x, u []float64) (y []float64, bound []bool) {
	y, bound = make([]float64, len(x)), make([]bool, len(x))
	for again := true; again; {
		again = false
		mass, rest := 0.0, 0.0
		for i := range x {
			if bound[i] {
				mass += u[i]
			} else {
				rest += math.Exp(x[i])
			}
		}
		for i := range x {
			if bound[i] {
				y[i] = u[i]
				continue
			}
			y[i] = math.Exp(x[i]) * (1 - mass) / rest
			if y[i] > u[i] {
				bound[i], again = true, true
			}
		}
	}
	return y, bound
}

func constrainedValue(n *node) error {
	for b := range int(n.dim.Bd) {
		y, _ := constrain(n.batch(0, b), n.batch(1, b))
		copy(element(n.y, n.dim, b), y)
	}
	return nil
}

func constrainedGradient(n *node) {
	for b := range int(n.dim.Bd) {
		u, dy := n.batch(1, b), element(n.dy, n.dim, b)
		y, bound := constrain(n.batch(0, b), u)
		mean, mass := 0.0, 0.0
		for i := range y {
			if bound[i] {
				mass += u[i]
			} else {
				mean += y[i] * dy[i]
			}
		}
		if mean != 0 {
			mean /= 1 - mass
		}
		for i := range y {
			if bound[i] {
				n.batchGradient(1, b)[i] += dy[i] - mean
			} else {
				n.batchGradient(0, b)[i] += y[i] * (dy[i] - mean)
			}
		}
	}
}

// hinges calls f for each pair of a line that is within the margin.
func (n *node) hinges(f func(line, label, i int, over float64)) error {
	labels := n.input(2, n.uint(3))
	for l, line := range n.axisLines(n.uint(1)) {
		row := int(labels[l%len(labels)])
		if row >= len(line) {
			return fmt.Errorf("label %d of %d", row, len(line))
		}
		label := line[row]
		for _, i := range line {
			if over := n.float(0) - n.x[0][label] + n.x[0][i]; i != label && over > 0 {
				f(l, label, i, over)
			}
		}
	}
	return nil
}

func hingeDimValue(n *node) error {
	return n.hinges(func(line, _, _ int, over float64) { n.y[line] += over })
}

func hingeDimGradient(n *node) {
	_ = n.hinges(func(line, label, i int, _ float64) {
		n.dx[0][i] += n.dy[line]
		n.dx[0][label] -= n.dy[line]
	})
}

func (n *node) selected(axis int) ([]source, error) {
	rows := n.input(0, n.uint(1))
	return n.each(func(c [bridge.MaxDims + 1]int) (source, error) {
		row := int(rows[c[axis]])
		if row >= n.dims[0].Axis(axis) {
			return source{}, fmt.Errorf("row %d of %d", row, n.dims[0].Axis(axis))
		}
		c[axis] = row
		return source{0, flat(n.dims[0], c)}, nil
	})
}

func stridedSources(n *node) ([]source, error) {
	return n.each(func(c [bridge.MaxDims + 1]int) (source, error) {
		for i := range 4 {
			c[i] = n.uint(3*i) + c[i]*n.uint(3*i+2)
		}
		c[bridge.MaxDims] = n.uint(12) + c[bridge.MaxDims]*n.uint(14)
		return source{0, flat(n.dims[0], c)}, nil
	})
}

// padding is how much is added before an axis of n elements so that out windows of k elements fit.
func padding(n, out, k, stride, valid int) int {
	if valid != 0 {
		return 0
	}
	return max(0, (out-1)*stride+k-n) / 2
}

func poolSources(n *node) ([]source, error) {
	x := n.dims[0]
	var before [2]int
	for i := range 2 {
		before[i] = padding(x.Axis(i), n.dim.Axis(i), n.uint(i), n.uint(2+i), n.uint(4))
	}
	return n.each(func(c [bridge.MaxDims + 1]int) (source, error) {
		best := -1
		for j := range n.uint(1) {
			for i := range n.uint(0) {
				at := c
				at[0], at[1] = c[0]*n.uint(2)+i-before[0], c[1]*n.uint(3)+j-before[1]
				if at[0] < 0 || at[1] < 0 || at[0] >= x.Axis(0) || at[1] >= x.Axis(1) {
					continue
				}
				if e := flat(x, at); best < 0 || n.x[0][e] > n.x[0][best] {
					best = e
				}
			}
		}
		return source{0, best}, nil
	})
}

func weightNormValue(n *node) error {
	for i, x := range n.x[0] {
		n.y[i] = x * n.x[1][0] / norm(n.x[0])
	}
	return nil
}

func norm(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v * v
	}
	return math.Sqrt(s)
}

func weightNormGradient(n *node) {
	r, along := norm(n.x[0]), 0.0
	for i, x := range n.x[0] {
		along += n.dy[i] * x / r
	}
	n.dx[1][0] += along
	for i, x := range n.x[0] {
		part := []float64{n.dy[i], along * x / r}
		if n.Blur != nil { // both are rounded before one is taken from the other
			n.Blur(part)
		}
		n.dx[0][i] += n.x[1][0] / r * (part[0] - part[1])
	}
}

// inverse of a matrix in columns, and ln of its determinant.
func inverse(x []float64, m int) (y []float64, logDet float64) {
	a, y := slices.Clone(x), make([]float64, m*m)
	for i := range m {
		y[i*m+i] = 1
	}
	det := 1.0
	for c := range m { // without pivots: the matrices are far from singular
		p := a[c+m*c]
		det *= p
		for k := range m {
			a[c+m*k] /= p
			y[c+m*k] /= p
		}
		for r := range m {
			if f := a[r+m*c]; r != c {
				for k := range m {
					a[r+m*k] -= f * a[c+m*k]
					y[r+m*k] -= f * y[c+m*k]
				}
			}
		}
	}
	return y, math.Log(det)
}

func inverseValue(n *node) error {
	for b := range int(n.dim.Bd) {
		y, _ := inverse(n.batch(0, b), n.dim.Rows())
		copy(element(n.y, n.dim, b), y)
	}
	return nil
}

func inverseGradient(n *node) {
	m := n.dim.Rows()
	for b := range int(n.dim.Bd) {
		y, dy, dx := element(n.y, n.dim, b), element(n.dy, n.dim, b), n.batchGradient(0, b)
		for i := range m { // dx[i,j] = -sum of y[r,i] dy[r,c] y[j,c]
			for j := range m {
				for r := range m {
					for c := range m {
						dx[i+m*j] -= y[r+m*i] * dy[r+m*c] * y[j+m*c]
					}
				}
			}
		}
	}
}

func logDetValue(n *node) error {
	for b := range n.y {
		_, n.y[b] = inverse(n.batch(0, b), n.dims[0].Rows())
	}
	return nil
}

func logDetGradient(n *node) {
	m := n.dims[0].Rows()
	for b, dy := range n.dy {
		y, _ := inverse(n.batch(0, b), m)
		for i := range m {
			for j := range m {
				n.batchGradient(0, b)[i+m*j] += dy * y[j+m*i]
			}
		}
	}
}

func huberValue(n *node) error {
	c := n.float(0)
	for b := range n.y {
		y := n.batch(1, b)
		for i, x := range n.batch(0, b) {
			if d := math.Abs(x - y[i]); d < c {
				n.y[b] += d * d / 2
			} else {
				n.y[b] += c*d - c*c/2
			}
		}
	}
	return nil
}

func huberGradient(n *node) {
	c := n.float(0)
	for b, dy := range n.dy {
		y, dx, dz := n.batch(1, b), n.batchGradient(0, b), n.batchGradient(1, b)
		for i, x := range n.batch(0, b) {
			d := max(-c, min(c, x-y[i]))
			dx[i] += dy * d
			dz[i] -= dy * d
		}
	}
}

func rankValue(n *node) error {
	for i, x := range n.x[0] {
		n.y[i] = max(0, n.float(0)-x+n.x[1][i])
	}
	return nil
}

func rankGradient(n *node) {
	for i, y := range n.y {
		n.dx[0][i] -= n.dy[i] * step(y)
		n.dx[1][i] += n.dy[i] * step(y)
	}
}
