package reference_test

import (
	"math"

	"libvpps/persist"
	"libvpps/persist/reference"
	"libvpps/persist/script"
)

// update is what DyNet's trainers do to parameters, in float64, weight decay included.
type update struct {
	persist.TrainerOptions
	lambda, factor float64
	frozen         map[uint32]bool
	raw            [][]float64
	rows, columns  []int                // of each parameter: elements of a row (of all, where it is no table), of a column
	kept           map[uint32][]float64 // gradients of frozen parameters, which add up
	states         [][3][]float64
	steps          int
}

func (u *update) add(g *reference.RandomGraph, id uint32) {
	p := &g.Params[id]
	values := append([]float64(nil), p.Values...)
	row := len(values)
	if p.Lookup {
		row /= int(p.Dim.D[p.Dim.Nd-1])
	}
	u.raw, u.rows, u.columns = append(u.raw, values), append(u.rows, row), append(u.columns, min(int(p.Dim.D[0]), row))
	var states [3][]float64
	for k := range states {
		states[k] = make([]float64, len(values))
	}
	u.states = append(u.states, states)
}

func (u *update) effective(id uint32) []float64 {
	v := make([]float64, len(u.raw[id]))
	for i, x := range u.raw[id] {
		v[i] = x * u.factor
	}
	return v
}

// apply makes one update of all parameters.
func (u *update) apply(d *reference.Gradients) (clipped bool) {
	for id := range u.frozen {
		g := make([]float64, len(u.raw[id]))
		copy(g, d.Params[id])
		for i, k := range u.kept[id] {
			g[i] += k
		}
		u.kept[id], d.Params[id] = g, g
	}
	norm := 0.0
	for _, g := range d.Params {
		for _, x := range g {
			norm += x * x
		}
	}
	scale := min(1, float64(u.Threshold)/math.Sqrt(norm))
	u.steps++
	for id, values := range u.raw {
		if u.frozen[uint32(id)] {
			continue
		}
		for i := range values {
			g := 0.0
			if all := d.Params[uint32(id)]; all != nil {
				g = scale * all[i]
			}
			s := &u.states[id]
			u.step(&values[i], g, &s[0][i], &s[1][i], &s[2][i])
		}
		if u.Rule == script.EG {
			for at := 0; at < len(values); at += u.rows[id] {
				normalise(values[at:at+u.rows[id]], u.columns[id])
			}
		}
	}
	u.factor *= 1 - u.lambda
	return scale < 1
}

// step is a step of one element; of EG the exponent.
func (u *update) step(v *float64, g float64, h, k, m *float64) {
	rate, momentum, rho, epsilon := float64(u.LearningRate), float64(u.Momentum), float64(u.Rho), float64(u.Epsilon)
	mean := func(old *float64, weight, x float64) { *old = weight**old + (1-weight)*x }
	switch u.Rule {
	case script.SGD:
		*v -= rate * g / u.factor
	case script.Momentum:
		*h = momentum**h - rate*g
		*v += *h / u.factor
	case script.Adagrad:
		*h += g * g
		*v -= rate * g / math.Sqrt(*h+epsilon) / u.factor
	case script.Adadelta:
		mean(h, rho, g*g)
		d := g * math.Sqrt(*k+epsilon) / math.Sqrt(*h+epsilon)
		mean(k, rho, d*d)
		*v -= d / u.factor
	case script.RMSProp:
		mean(h, rho, g*g)
		*v -= rate * g / math.Sqrt(*h+epsilon) / u.factor
	case script.Adam, script.AMSGrad:
		b1, b2, t := float64(u.Beta1), float64(u.Beta2), float64(u.steps)
		mean(h, b1, g)
		mean(k, b2, g*g)
		*m = max(*m, *k)
		root := math.Sqrt(*k)
		if u.Rule == script.AMSGrad {
			root = math.Sqrt(*m)
		}
		*v -= rate * math.Sqrt(1-math.Pow(b2, t)) / (1 - math.Pow(b1, t)) * *h / (root + epsilon) / u.factor
	case script.EG:
		*h = momentum**h - rate*g
		*v = math.Log(*v) + *h/u.factor
	}
}

func normalise(v []float64, column int) {
	sum := 0.0
	for _, x := range v[:column] {
		sum += math.Exp(x)
	}
	for i := range v {
		v[i] = math.Exp(v[i]) / sum
	}
}
