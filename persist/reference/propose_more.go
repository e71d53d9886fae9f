package reference

import (
	"libvpps/bridge"
	"libvpps/bridge/ops"
)

// Proposals for the rules of lines.go and multilinear.go.

// without is d without an axis.
func without(d bridge.Dim, axis int) bridge.Dim {
	out := bridge.Dim{Bd: d.Bd}
	for i := range int(d.Nd) {
		if i != axis {
			out.D[out.Nd] = d.D[i]
			out.Nd++
		}
	}
	if out.Nd == 0 {
		out.Nd, out.D[0] = 1, 1
	}
	return out
}

// some is a node whose dim satisfies want, else a new leaf.
func (r *recorder) some(leaf bridge.Dim, want func(d *bridge.Dim) bool) (uint32, bridge.Dim) {
	x, ok := r.find(want)
	if !ok || r.rng.IntN(3) == 0 {
		x = r.leaf(leaf)
	}
	return x, *r.graph.Graph.DimOf(x)
}

// oneOrSome is 1 or the graph's batch size.
func (r *recorder) oneOrSome() int { return []int{1, r.batch}[r.rng.IntN(2)] }

func stdProposal(r *recorder) proposal {
	x, axes, batch, out, ok := r.reduced()
	p := propose(out, []uint32{x}, axes, batch, r.rng.Uint32N(2)*r.rng.Uint32N(7))
	p.ok = ok
	return p
}

func logSumExpProposal(r *recorder) proposal {
	p := listProposal(r)
	for p.dim.Nd > 1 && p.dim.D[p.dim.Nd-1] == 1 {
		p.dim.Nd--
		p.dim.D[p.dim.Nd] = 0
	}
	return p
}

func axisProposal(r *recorder) proposal {
	x, d := r.any()
	axis := r.rng.IntN(int(d.Nd))
	return propose(without(d, axis), []uint32{x}, uint32(axis))
}

func kMaxProposal(r *recorder) proposal {
	x, d := r.any()
	axis := r.rng.Uint32N(d.Nd)
	k := 1 + r.rng.Uint32N(d.D[axis])
	d.D[axis] = k
	return propose(d, []uint32{x}, k, axis)
}

func argmaxProposal(r *recorder) proposal {
	p := vectorProposal(r)
	p.attrs = []uint32{word(r.value())}
	return p
}

func cumulativeProposal(r *recorder) proposal {
	x, d := r.any()
	return propose(d, []uint32{x}, r.rng.Uint32N(d.Nd))
}

func foldProposal(r *recorder) proposal {
	rows, cols := 1+r.rng.IntN(3), 1+r.rng.IntN(3)
	out := 1 + r.rng.IntN(3)
	batch := r.oneOrSome()
	return propose(makeDim(batch, out, cols), []uint32{r.of(makeDim(batch, rows*out, cols))}, uint32(rows))
}

func weightNormProposal(r *recorder) proposal {
	x, d := r.any()
	return propose(d, []uint32{x, r.of(makeDim(1, 1))})
}

func traceProposal(r *recorder) proposal {
	x, d, ok := r.matrix()
	p := propose(makeDim(int(d.Bd), 1), []uint32{x, r.of(d)})
	p.ok = ok
	return p
}

// regular is a square matrix that is far from singular, with a positive determinant.
func (r *recorder) regular() (uint32, bridge.Dim, bool) {
	m := 1 + r.rng.IntN(3)
	d := makeDim(r.oneOrSome(), m, m)
	x := r.of(d)
	small, ok := r.node(ops.Tanh, propose(d, []uint32{x}))
	if !ok {
		return 0, d, false
	}
	words := make([]uint32, m*m)
	for i := range m {
		words[i*m+i] = word(3.5)
	}
	e := d
	e.Bd = 1
	diagonal, ok := r.node(ops.Input, propose(e, nil, r.data(words...)))
	if !ok {
		return 0, d, false
	}
	sum, ok := r.node(ops.CwiseSum, propose(d, []uint32{small, diagonal}))
	return sum, d, ok
}

func inverseProposal(r *recorder) proposal {
	x, d, ok := r.regular()
	p := propose(d, []uint32{x})
	p.ok = ok
	return p
}

func logDetProposal(r *recorder) proposal {
	x, d, ok := r.regular()
	p := propose(makeDim(int(d.Bd), 1), []uint32{x})
	p.ok = ok
	return p
}

func contractProposal(r *recorder) proposal {
	i, j, k := 1+r.rng.IntN(3), 1+r.rng.IntN(3), 1+r.rng.IntN(4)
	batch := r.oneOrSome()
	some := func() int { return []int{1, batch}[r.rng.IntN(2)] }
	args := []uint32{r.of(makeDim(batch, i, j, k)), r.of(makeDim(some(), k))}
	if r.rng.IntN(2) == 0 {
		args = append(args, r.of(makeDim(some(), i, j)))
	}
	return propose(makeDim(batch, i, j), args)
}

func contractTwiceProposal(r *recorder) proposal {
	i, j, k := 1+r.rng.IntN(3), 1+r.rng.IntN(3), 1+r.rng.IntN(4)
	batch := r.oneOrSome()
	some := func() int { return []int{1, batch}[r.rng.IntN(2)] }
	args := []uint32{r.of(makeDim(some(), i, j, k)), r.of(makeDim(some(), k)), r.of(makeDim(batch, j))}
	if r.rng.IntN(2) == 0 {
		args = append(args, r.of(makeDim(some(), i)))
	}
	return propose(makeDim(batch, i), args)
}

func circularProposal(r *recorder) proposal {
	x, d := r.some(makeDim(r.oneOrSome(), 1+r.rng.IntN(5)), func(d *bridge.Dim) bool { return d.Nd == 1 })
	return propose(d, []uint32{x, r.of(d)})
}

func filterProposal(r *recorder) proposal {
	x, d := r.some(makeDim(r.oneOrSome(), 1+r.rng.IntN(3), 1+r.rng.IntN(4)), func(d *bridge.Dim) bool { return d.Nd == 2 })
	m, k := 1+r.rng.IntN(d.Cols()), 1+r.rng.IntN(3)
	f, out := makeDim(1, d.Rows(), m, k), makeDim(int(d.Bd), k, d.Cols()-m+1)
	if k == 1 && r.rng.IntN(2) == 0 {
		f = makeDim(1, d.Rows(), m)
	}
	return propose(out, []uint32{x, r.of(f)})
}

func nGramProposal(r *recorder) proposal {
	x, d := r.some(makeDim(r.oneOrSome(), 1+r.rng.IntN(3), 1+r.rng.IntN(4)), func(d *bridge.Dim) bool { return d.Nd == 2 })
	n := 1 + r.rng.IntN(d.Cols())
	return propose(makeDim(int(d.Bd), d.Rows(), d.Cols()-n+1), []uint32{x}, uint32(n))
}

// windowed chooses windows over an image: their size, distance, whether they stay inside, and what they make of it.
func (r *recorder) windowed(d bridge.Dim) (k, s [2]int, valid int, out [2]int) {
	valid = r.rng.IntN(2)
	size, distance := 3, 2
	if r.rng.IntN(6) == 0 { // also larger than the image, and of more elements than are compared one after the other
		size, distance = 9, 5
	}
	for i := range 2 {
		n := d.Axis(i)
		k[i], s[i] = 1+r.rng.IntN(size), 1+r.rng.IntN(distance)
		if valid == 1 {
			k[i] = min(k[i], n)
			for at := 0; at+k[i] <= n; at += s[i] {
				out[i]++
			}
		} else {
			for at := 0; at < n; at += s[i] {
				out[i]++
			}
		}
	}
	return k, s, valid, out
}

func (r *recorder) image() (uint32, bridge.Dim) {
	most := 4
	if r.rng.IntN(8) == 0 {
		most = 12
	}
	return r.some(makeDim(r.oneOrSome(), 1+r.rng.IntN(most), 1+r.rng.IntN(most), 1+r.rng.IntN(2)), func(d *bridge.Dim) bool { return d.Nd == 2 || d.Nd == 3 })
}

func conv2DProposal(r *recorder) proposal {
	x, d := r.image()
	k, s, valid, out := r.windowed(d)
	filters := 1 + r.rng.IntN(3)
	args := []uint32{x, r.of(makeDim(1, k[0], k[1], d.Axis(2), filters))}
	if r.rng.IntN(2) == 0 {
		args = append(args, r.of(makeDim(1, filters)))
	}
	return propose(makeDim(int(d.Bd), out[0], out[1], filters), args, uint32(s[0]), uint32(s[1]), uint32(valid))
}

func poolProposal(r *recorder) proposal {
	x, d := r.image()
	k, s, valid, out := r.windowed(d)
	for i := range 2 { // without padding that is a window of its own
		s[i] = min(s[i], k[i])
	}
	if valid == 0 {
		for i := range 2 {
			out[i] = (d.Axis(i)-1)/s[i] + 1
		}
	} else {
		for i := range 2 {
			out[i] = (d.Axis(i)-k[i])/s[i] + 1
		}
	}
	d.D[0], d.D[1] = uint32(out[0]), uint32(out[1])
	return propose(d, []uint32{x}, uint32(k[0]), uint32(k[1]), uint32(s[0]), uint32(s[1]), uint32(valid))
}

func selectProposal(axis int) func(r *recorder) proposal {
	return func(r *recorder) proposal {
		x, d := r.any()
		if axis == 1 {
			x, d = r.some(makeDim(r.oneOrSome(), 1+r.rng.IntN(3), 1+r.rng.IntN(4)), func(d *bridge.Dim) bool { return d.Nd == 2 })
		}
		n := 1 + r.rng.IntN(4)
		at := r.rows(n, d.D[axis])
		d.D[axis] = uint32(n)
		return propose(d, []uint32{x}, at, uint32(n))
	}
}

func stridedProposal(r *recorder) proposal {
	x, ok := r.find(func(d *bridge.Dim) bool { return d.Nd <= 4 })
	d := *r.graph.Graph.DimOf(x)
	var attrs []uint32
	choose := func(size uint32) uint32 {
		from := r.rng.Uint32N(size)
		to := from + 1 + r.rng.Uint32N(size-from)
		stride := 1 + r.rng.Uint32N(3)
		attrs = append(attrs, from, to, stride)
		return (to - from + stride - 1) / stride
	}
	for i := range uint32(4) {
		if i < d.Nd {
			d.D[i] = choose(d.D[i])
		} else {
			attrs = append(attrs, 0, 1, 1)
		}
	}
	d.Bd = choose(d.Bd)
	p := propose(d, []uint32{x}, attrs...)
	p.ok = ok
	return p
}

func huberProposal(r *recorder) proposal {
	p := pairProposal(r)
	p.attrs = []uint32{word(0.75)}
	return p
}

func rankProposal(r *recorder) proposal {
	x, d := r.some(makeDim(r.oneOrSome(), 1, 1+r.rng.IntN(4)), func(d *bridge.Dim) bool { return d.Nd <= 2 && d.D[0] == 1 })
	return propose(d, []uint32{x, r.of(d)}, word(0.75))
}

func poissonProposal(r *recorder) proposal {
	x, d := r.some(makeDim(1, 1), func(d *bridge.Dim) bool { return d.Size() == 1 })
	return propose(d, []uint32{x}, r.data(r.rng.Uint32N(5)))
}

func hingeDimProposal(r *recorder) proposal {
	x, d := r.some(makeDim(r.oneOrSome(), 1+r.rng.IntN(3), 2+r.rng.IntN(3)), func(d *bridge.Dim) bool { return d.Nd == 2 })
	axis := r.rng.IntN(2)
	n := d.Axis(1 - axis)
	if r.rng.IntN(3) > 0 {
		n *= int(d.Bd)
	}
	return propose(makeDim(int(d.Bd), d.Axis(1-axis)), []uint32{x}, word(0.75), uint32(axis), r.rows(n, d.D[axis]), uint32(n))
}

func sparsemaxLossProposal(r *recorder) proposal {
	x, d := r.some(makeDim(r.oneOrSome(), 2+r.rng.IntN(3)), func(d *bridge.Dim) bool { return d.Nd == 1 })
	n := 1 + r.rng.IntN(2)
	return propose(makeDim(int(d.Bd), 1), []uint32{x}, r.rows(n, d.D[0]), uint32(n))
}

// constrainedProposal: the bounds leave room for a sum of 1.
func constrainedProposal(r *recorder) proposal {
	x, d := r.some(makeDim(r.oneOrSome(), 2+r.rng.IntN(3)), func(d *bridge.Dim) bool { return d.Nd == 1 && d.D[0] > 1 })
	y, ok := r.of(d), true
	for _, step := range []struct {
		op    ops.Code
		attrs []uint32
	}{{ops.LogisticSigmoid, nil}, {ops.ConstScalarMultiply, []uint32{word(0.25)}}, {ops.ConstantPlusX, []uint32{word(1.1 / float64(d.D[0]))}}} {
		if y, ok = r.node(step.op, propose(d, []uint32{y}, step.attrs...)); !ok {
			return proposal{}
		}
	}
	return propose(d, []uint32{x, y})
}

func dropoutDimProposal(r *recorder) proposal {
	x, d := r.any()
	return propose(d, []uint32{x}, r.rng.Uint32N(d.Nd), word(0.25))
}
