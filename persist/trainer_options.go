package persist

import (
	"math"

	"libvpps/persist/isa"
)

// A trainer's rule and hyper-parameters, and which of their values make sense.

// TrainerOptions are those of DyNet's trainers. A rule reads the hyper-parameters that it has.
type TrainerOptions struct {
	Rule         isa.Rule
	LearningRate float32
	Clipping     bool
	Threshold    float32
	Sparse       bool // of tables, change only rows with a gradient
	Collection   uint32
	Momentum     float32 // Momentum, EG
	Rho          float32 // Adadelta, RMSProp
	Epsilon      float32 // all but SGD, Momentum and EG
	Beta1, Beta2 float32 // Adam, AMSGrad
}

// numbers are the options that are numbers, in the order of checkpoints and notices.
func (o *TrainerOptions) numbers() []*float32 {
	return []*float32{&o.LearningRate, &o.Threshold, &o.Momentum, &o.Rho, &o.Epsilon, &o.Beta1, &o.Beta2}
}

// check refuses values, among those that the rule reads, with which no update can be right.
func (o *TrainerOptions) check() error {
	var rate, momentum, rho, epsilon, betas bool
	switch o.Rule {
	case isa.SGD:
		rate = true
	case isa.Momentum, isa.EG:
		rate, momentum = true, true
	case isa.Adagrad:
		rate, epsilon = true, true
	case isa.Adadelta:
		rho, epsilon = true, true
	case isa.RMSProp:
		rate, rho, epsilon = true, true, true
	case isa.Adam, isa.AMSGrad:
		rate, betas, epsilon = true, true, true
	}
	for _, x := range []struct {
		read   bool
		name   string
		value  float32
		good   bool
		bounds string
	}{
		{rate, "learning rate", o.LearningRate, notNegative(o.LearningRate), "it must be finite and not negative"},
		{momentum, "momentum", o.Momentum, fraction(o.Momentum), "it must be in [0, 1)"},
		{rho, "rho", o.Rho, fraction(o.Rho), "it must be in [0, 1)"},
		{epsilon, "epsilon", o.Epsilon, notNegative(o.Epsilon), "it must be finite and not negative"},
		{betas, "beta_1", o.Beta1, fraction(o.Beta1), "it must be in [0, 1)"},
		{betas, "beta_2", o.Beta2, fraction(o.Beta2), "it must be in [0, 1)"},
		{o.Clipping, "clip threshold", o.Threshold, o.Threshold > 0, "it must be above 0; to clip nothing turn clipping off"},
	} {
		if x.read && !x.good {
			return wrong(ErrArgument, "%s %g of a trainer: %s", x.name, x.value, x.bounds)
		}
	}
	return nil
}

func notNegative(x float32) bool { return x >= 0 && !math.IsInf(float64(x), 1) }
func fraction(x float32) bool    { return x >= 0 && x < 1 }
