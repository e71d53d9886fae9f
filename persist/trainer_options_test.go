package persist

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/persist/isa"
)

func TestOptionsOfATrainerAreRefused(t *testing.T) {
	nan, endless := float32(math.NaN()), float32(math.Inf(1))
	reads := func(rules ...isa.Rule) map[isa.Rule]bool {
		m := map[isa.Rule]bool{}
		for _, r := range rules {
			m[r] = true
		}
		return m
	}
	clips := reads()
	for r := range isa.Rules {
		clips[r] = true
	}
	cases := []struct {
		name  string
		field func(*TrainerOptions) *float32
		rules map[isa.Rule]bool
		bad   []float32
		good  []float32
	}{
		{"learning rate", func(o *TrainerOptions) *float32 { return &o.LearningRate },
			reads(isa.SGD, isa.Momentum, isa.Adagrad, isa.RMSProp, isa.Adam, isa.AMSGrad, isa.EG),
			[]float32{nan, endless, -endless, -0.1}, []float32{0, 1e30}},
		{"momentum", func(o *TrainerOptions) *float32 { return &o.Momentum }, reads(isa.Momentum, isa.EG),
			[]float32{nan, endless, -0.1, 1}, []float32{0, 0.999}},
		{"rho", func(o *TrainerOptions) *float32 { return &o.Rho }, reads(isa.Adadelta, isa.RMSProp),
			[]float32{nan, endless, -0.1, 1}, []float32{0, 0.999}},
		{"epsilon", func(o *TrainerOptions) *float32 { return &o.Epsilon },
			reads(isa.Adagrad, isa.Adadelta, isa.RMSProp, isa.Adam, isa.AMSGrad),
			[]float32{nan, endless, -1e-8}, []float32{0, 1}},
		{"beta_1", func(o *TrainerOptions) *float32 { return &o.Beta1 }, reads(isa.Adam, isa.AMSGrad),
			[]float32{nan, endless, -0.1, 1}, []float32{0, 0.999}},
		{"beta_2", func(o *TrainerOptions) *float32 { return &o.Beta2 }, reads(isa.Adam, isa.AMSGrad),
			[]float32{nan, endless, -0.1, 1}, []float32{0, 0.999}},
		{"clip threshold", func(o *TrainerOptions) *float32 { return &o.Threshold }, clips,
			[]float32{nan, -endless, -1, 0}, []float32{1e-30, endless}},
	}
	m := newModel(t, 0)
	for rule := range isa.Rules {
		sound := TrainerOptions{Rule: rule, LearningRate: 0.1, Clipping: true, Threshold: 5, Momentum: 0.9, Rho: 0.95, Epsilon: 1e-8, Beta1: 0.9, Beta2: 0.999}
		trainer, err := m.NewTrainer(sound, []uint32{paramW})
		require.NoError(t, err)
		for _, c := range cases {
			for _, x := range slices.Concat(c.bad, c.good) {
				o := sound
				*c.field(&o) = x
				_, err := m.NewTrainer(o, nil)
				if c.rules[rule] && !slices.Contains(c.good, x) {
					require.ErrorIs(t, err, ErrArgument, "%s %g", c.name, x)
					require.ErrorContains(t, err, c.name)
					require.ErrorContains(t, trainer.Set(o), c.name)
					require.Equal(t, sound, trainer.options)
				} else {
					require.NoError(t, err, "rule %d, %s %g", rule, c.name, x)
				}
			}
		}
		o := sound
		o.Clipping, o.Threshold = false, nan
		require.NoError(t, trainer.Set(o))
	}
}

// Applied twice, an update would move a parameter twice as far.
func TestAParameterIsNamedOnce(t *testing.T) {
	m := newModel(t, 0)
	sgd := TrainerOptions{Rule: isa.SGD, LearningRate: 0.1}
	_, err := m.NewTrainer(sgd, []uint32{paramW, paramW})
	require.ErrorIs(t, err, ErrArgument)
	require.ErrorContains(t, err, "is named twice")
	trainer, err := m.NewTrainer(sgd, []uint32{paramW})
	require.NoError(t, err)
	require.ErrorContains(t, trainer.Add([]uint32{paramTable, paramW}), "is named twice")
	require.Equal(t, []uint32{paramW}, trainer.ids)
	require.NoError(t, trainer.Add([]uint32{paramTable}))
	require.ErrorContains(t, trainer.Add([]uint32{paramTable}), "is named twice")
	_, err = m.NewTrainer(sgd, make([]uint32, len(m.params)+1))
	require.ErrorContains(t, err, "each may be named once")
	for _, of := range []*Trainer{nil, trainer} {
		_, err = m.NewHandle([]uint32{paramW, paramW}, of)
		require.ErrorContains(t, err, "is named twice")
		_, err = m.NewHandle([]uint32{99}, of)
		require.ErrorContains(t, err, "no parameter 99")
	}
	// Another trainer may have it, too.
	_, err = m.NewTrainer(sgd, []uint32{paramW})
	require.NoError(t, err)
}

// A rule that remembers as many floats as 32 bits count is out of memory; it does not get none.
func TestSizesOfStatesHave64Bits(t *testing.T) {
	m := newModel(t, 0)
	used := m.used[isa.SegState]
	m.params[paramW].Size = 1 << 31 // twice as many wrap around to 0
	_, err := m.NewTrainer(TrainerOptions{Rule: isa.Adam, LearningRate: 0.1}, []uint32{paramW})
	require.ErrorIs(t, err, ErrMemory)
	require.Equal(t, used, m.used[isa.SegState])
}

func TestCountsOfUpdatesAreBounded(t *testing.T) {
	m := newModel(t, 0)
	trainer, err := m.NewTrainer(TrainerOptions{Rule: isa.Adam, LearningRate: 0.1}, []uint32{paramW})
	require.NoError(t, err)
	require.NoError(t, trainer.SetUpdates(maxUpdates))
	require.ErrorIs(t, trainer.SetUpdates(maxUpdates+1), ErrArgument)
	require.ErrorIs(t, trainer.SetUpdates(math.MaxUint64), ErrArgument)
	n, err := trainer.Updates()
	require.NoError(t, err)
	require.EqualValues(t, maxUpdates, n)
}

// A trainer that is closed twice gives its memory back once.
func TestATrainerIsClosedOnce(t *testing.T) {
	m := newModel(t, 0)
	trainer, err := m.NewTrainer(TrainerOptions{Rule: isa.Momentum, LearningRate: 0.1}, []uint32{paramW})
	require.NoError(t, err)
	trainer.Close()
	trainer.Close()
	free := 0
	for _, list := range m.freeStates {
		free += len(list)
	}
	require.Equal(t, 1, free)
}
