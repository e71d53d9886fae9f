package reference

import (
	"math"

	"libvpps/bridge/ops"
)

// cells: the LSTM's fused nodes. Gates are i, f, o (logistic) and g (tanh), one below the other.
var cells = map[ops.Code]rule{
	ops.VanillaLSTMGates:        {gatesValue(0), gatesGradient(0)},
	ops.VanillaLSTMGatesDropout: {gatesValue(2), gatesGradient(2)},
	ops.VanillaLSTMC:            {cellValue, cellGradient},
	ops.VanillaLSTMH:            {hiddenValue, hiddenGradient},
}

// step is one LSTM step of one batch element: where its inputs lie in the arguments.
type gateInputs struct {
	h      int // the argument h; Wx, Wh, b and the masks follow it
	hidden int
	x      []source // element of every row of x
}

func (n *node) gates(masks int) gateInputs {
	g := gateInputs{h: len(n.x) - 4 - masks}
	g.hidden = n.dims[g.h].Rows()
	for k := range g.h {
		for i := range n.dims[k].Rows() {
			g.x = append(g.x, source{k, i})
		}
	}
	return g
}

// factor is element i of a mask, 1 without masks.
func (n *node) factor(masks, k, b, i int) float64 {
	if masks == 0 {
		return 1
	}
	return n.batch(k, b)[i]
}

func gatesValue(masks int) func(n *node) error {
	return func(n *node) error {
		g := n.gates(masks)
		rows := 4 * g.hidden
		wx, wh, bias := n.x[g.h+1], n.x[g.h+2], n.x[g.h+3]
		for b := range int(n.dim.Bd) {
			for r := range rows {
				s := bias[r]
				for c, from := range g.x {
					s += wx[r+c*rows] * n.batch(from.arg, b)[from.element] * n.factor(masks, g.h+4, b, c)
				}
				for c, h := range n.batch(g.h, b) {
					s += wh[r+c*rows] * h * n.factor(masks, g.h+5, b, c)
				}
				switch r / g.hidden {
				case 1:
					s = logistic(s + n.float(0))
				case 3:
					s = math.Tanh(s)
				default:
					s = logistic(s)
				}
				n.y[b*rows+r] = s
			}
		}
		return nil
	}
}

func gatesGradient(masks int) func(n *node) {
	return func(n *node) {
		g := n.gates(masks)
		rows := 4 * g.hidden
		wx, wh := n.x[g.h+1], n.x[g.h+2]
		dwx, dwh, db := n.dx[g.h+1], n.dx[g.h+2], n.dx[g.h+3]
		for b := range int(n.dim.Bd) {
			for r := range rows {
				y, ds := n.y[b*rows+r], n.dy[b*rows+r]
				if r/g.hidden == 3 {
					ds *= 1 - y*y
				} else {
					ds *= y * (1 - y)
				}
				db[r] += ds
				for c, from := range g.x {
					m := n.factor(masks, g.h+4, b, c)
					dwx[r+c*rows] += ds * n.batch(from.arg, b)[from.element] * m
					n.batchGradient(from.arg, b)[from.element] += ds * wx[r+c*rows] * m
				}
				for c, h := range n.batch(g.h, b) {
					m := n.factor(masks, g.h+5, b, c)
					dwh[r+c*rows] += ds * h * m
					n.batchGradient(g.h, b)[c] += ds * wh[r+c*rows] * m
				}
			}
		}
	}
}

func cellValue(n *node) error {
	h := n.dim.Batch()
	for b := range int(n.dim.Bd) {
		c, g := n.batch(0, b), n.batch(1, b)
		for i := range h {
			n.y[b*h+i] = g[i]*g[3*h+i] + g[h+i]*c[i]
		}
	}
	return nil
}

func cellGradient(n *node) {
	h := n.dim.Batch()
	for b := range int(n.dim.Bd) {
		c, g, dc, dg := n.batch(0, b), n.batch(1, b), n.batchGradient(0, b), n.batchGradient(1, b)
		for i := range h {
			dy := n.dy[b*h+i]
			dg[i] += dy * g[3*h+i]
			dg[3*h+i] += dy * g[i]
			dg[h+i] += dy * c[i]
			dc[i] += dy * g[h+i]
		}
	}
}

func hiddenValue(n *node) error {
	h := n.dim.Batch()
	for b := range int(n.dim.Bd) {
		c, g := n.batch(0, b), n.batch(1, b)
		for i := range h {
			n.y[b*h+i] = g[2*h+i] * math.Tanh(c[i])
		}
	}
	return nil
}

func hiddenGradient(n *node) {
	h := n.dim.Batch()
	for b := range int(n.dim.Bd) {
		c, g, dc, dg := n.batch(0, b), n.batch(1, b), n.batchGradient(0, b), n.batchGradient(1, b)
		for i := range h {
			t, dy := math.Tanh(c[i]), n.dy[b*h+i]
			dg[2*h+i] += dy * t
			dc[i] += dy * g[2*h+i] * (1 - t*t)
		}
	}
}
