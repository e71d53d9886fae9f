package reference

import (
	"math"
	"slices"
)

// Model is the parameters of a model with all that training changes of them.
type Model struct {
	Params  []Parameter // of these the dims; Values are in effect: weight decay is applied
	Raw     [][]float64 // the values before weight decay
	Pending [][]float64 // gradients that no trainer has applied yet
	Touched [][]bool    // of tables, by row: it has a pending gradient, be it 0
	Frozen  []bool      // no trainer changes the parameter
	Lambda  float64
	Factor  float64
}

// NewModel makes a model of parameters, whose values it copies.
func NewModel(params []Parameter, lambda float64) *Model {
	m := &Model{Params: slices.Clone(params), Frozen: make([]bool, len(params)), Lambda: lambda, Factor: 1}
	for i, p := range params {
		m.Raw, m.Pending = append(m.Raw, slices.Clone(p.Values)), append(m.Pending, make([]float64, len(p.Values)))
		m.Params[i].Values = slices.Clone(p.Values)
		m.Touched = append(m.Touched, make([]bool, p.Rows()))
	}
	return m
}

// Clone copies the model.
func (m *Model) Clone() *Model {
	c := *m
	c.Params, c.Raw, c.Pending, c.Touched, c.Frozen = slices.Clone(m.Params), nil, nil, nil, slices.Clone(m.Frozen)
	for i := range m.Params {
		c.Params[i].Values = slices.Clone(m.Params[i].Values)
		c.Raw, c.Pending = append(c.Raw, slices.Clone(m.Raw[i])), append(c.Pending, slices.Clone(m.Pending[i]))
		c.Touched = append(c.Touched, slices.Clone(m.Touched[i]))
	}
	return &c
}

// Settle computes the values in effect.
func (m *Model) Settle() {
	for i, raw := range m.Raw {
		for k, x := range raw {
			m.Params[i].Values[k] = x * m.Factor
		}
	}
}

// Add adds gradients to the pending ones.
func (m *Model) Add(d *Gradients) {
	for id, g := range d.Params {
		add(m.Pending[id], g)
	}
	for _, r := range d.Touched {
		m.Touched[r.Param][r.Row] = true
	}
}

// Rows is how many rows a table has; any other parameter is one.
func (p *Parameter) Rows() int {
	if !p.Lookup {
		return 1
	}
	return int(p.Dim.D[p.Dim.Nd-1])
}

// Trainer is an update rule with what it remembers of its parameters.
type Trainer struct {
	Rule                                            string // as isa.RuleTable names them
	Rate, Threshold, Momentum, Rho, Epsilon, B1, B2 float64
	IDs                                             []uint32
	Sparse                                          bool // of tables, only rows with a gradient change
	Steps                                           int
	State                                           [][3][]float64 // by place in IDs
	Norm                                            float64        // of the last update's gradients
}

// NewTrainer makes a trainer of some of a model's parameters, from one that has the options.
func NewTrainer(options Trainer, m *Model, ids []uint32) *Trainer {
	t := options
	t.IDs, t.State = ids, nil
	for _, id := range ids {
		var s [3][]float64
		for k := range s {
			s[k] = make([]float64, len(m.Raw[id]))
		}
		t.State = append(t.State, s)
	}
	return &t
}

// Clone copies the trainer.
func (t *Trainer) Clone() *Trainer {
	c := *t
	c.State = slices.Clone(t.State)
	for i := range c.State {
		for k := range c.State[i] {
			c.State[i][k] = slices.Clone(t.State[i][k])
		}
	}
	return &c
}

// Apply makes one update with the pending gradients of the trainer's parameters, which are gone then; those of
// frozen parameters stay.
func (t *Trainer) Apply(m *Model) (clipped bool) {
	norm := 0.0
	for _, id := range t.IDs {
		for _, x := range m.Pending[id] {
			norm += x * x
		}
	}
	t.Norm = math.Sqrt(norm)
	scale := min(1, t.Threshold/t.Norm)
	t.Steps++
	for i, id := range t.IDs {
		if m.Frozen[id] {
			continue
		}
		values, s := m.Raw[id], &t.State[i]
		row := len(values) / m.Params[id].Rows()
		for k := range values {
			if t.Sparse && m.Params[id].Lookup && !m.Touched[id][k/row] {
				continue
			}
			t.step(&values[k], m.Factor, scale*m.Pending[id][k], &s[0][k], &s[1][k], &s[2][k])
		}
		if t.Rule == "eg" {
			for at := 0; at < len(values); at += row {
				normalise(values[at:at+row], min(int(m.Params[id].Dim.D[0]), row))
			}
		}
		clear(m.Pending[id])
		clear(m.Touched[id])
	}
	t.decay(m)
	return scale < 1
}

// decay lets the weight decay advance; a factor that has become small is multiplied into the values.
func (t *Trainer) decay(m *Model) {
	m.Factor *= 1 - m.Lambda
	if m.Factor < 0.25 {
		for _, id := range t.IDs {
			if !m.Frozen[id] {
				for k := range m.Raw[id] {
					m.Raw[id][k] *= m.Factor
				}
			}
		}
		m.Factor = 1
	}
	m.Settle()
}

// step is a step of one element; of EG the exponent.
func (t *Trainer) step(v *float64, factor, g float64, h, k, m *float64) {
	mean := func(old *float64, weight, x float64) { *old = weight**old + (1-weight)*x }
	switch t.Rule {
	case "sgd":
		*v -= t.Rate * g / factor
	case "momentum":
		*h = t.Momentum**h - t.Rate*g
		*v += *h / factor
	case "adagrad":
		*h += g * g
		*v -= t.Rate * g / math.Sqrt(*h+t.Epsilon) / factor
	case "adadelta":
		mean(h, t.Rho, g*g)
		d := g * math.Sqrt(*k+t.Epsilon) / math.Sqrt(*h+t.Epsilon)
		mean(k, t.Rho, d*d)
		*v -= d / factor
	case "rmsprop":
		mean(h, t.Rho, g*g)
		*v -= t.Rate * g / math.Sqrt(*h+t.Epsilon) / factor
	case "adam", "amsgrad":
		mean(h, t.B1, g)
		mean(k, t.B2, g*g)
		root := math.Sqrt(*k)
		if t.Rule == "amsgrad" {
			*m = max(*m, *k)
			root = math.Sqrt(*m)
		}
		n := float64(t.Steps)
		*v -= t.Rate * math.Sqrt(1-math.Pow(t.B2, n)) / (1 - math.Pow(t.B1, n)) * *h / (root + t.Epsilon) / factor
	case "eg":
		*h = t.Momentum**h - t.Rate*g
		*v = math.Log(*v) + *h/factor
	}
}

// normalise turns exponents into values of which those of the first column add up to 1.
func normalise(v []float64, column int) {
	sum := 0.0
	for _, x := range v[:column] {
		sum += math.Exp(x)
	}
	for i := range v {
		v[i] = math.Exp(v[i]) / sum
	}
}
