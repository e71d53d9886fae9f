package persist

import (
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/persist/isa"
)

// A trainer that is told what another one remembers goes on like it, bit for bit.
func TestARuleGoesOnFromAStateThatIsWritten(t *testing.T) {
	for rule := range isa.Rules {
		m := newModel(t, 0)
		options := TrainerOptions{Rule: rule, LearningRate: 0.5, Momentum: 0.5, Rho: 0.5, Epsilon: 0.5, Beta1: 0.5, Beta2: 0.75}
		first, err := m.NewTrainer(options, []uint32{paramTable, paramW})
		require.NoError(t, err)
		h, err := m.NewHandle(first.ids, first)
		require.NoError(t, err)
		require.NoError(t, m.train(h, 1, 2))
		require.NoError(t, m.train(h, 2, 1))

		n := 2 * isa.RuleTable[rule].States
		state, values := make([]float32, n), m.read(paramW, Values)
		require.NoError(t, first.ReadState(paramW, state))
		updates, err := first.Updates()
		require.NoError(t, err)
		require.EqualValues(t, 2, updates)
		require.NoError(t, m.train(h, 1, 1))
		want := m.read(paramW, Values)

		second, err := m.NewTrainer(options, []uint32{paramW})
		require.NoError(t, err)
		require.NoError(t, second.WriteState(paramW, state))
		require.NoError(t, second.SetUpdates(updates))
		require.NoError(t, m.WriteParameter(paramW, Values, 0, values))
		h, err = m.NewHandle(second.ids, second)
		require.NoError(t, err)
		require.NoError(t, m.train(h, 1, 1))
		require.Equal(t, want, m.read(paramW, Values), "rule %s", isa.RuleTable[rule].Name)

		require.ErrorContains(t, second.ReadState(paramW, make([]float32, n+1)), "floats of it, not")
		require.ErrorContains(t, second.WriteState(paramTable, state), "is not one of the trainer's")
		require.ErrorContains(t, second.WriteState(99, state), "no parameter 99")
	}
}

// Batches in flight count: the state is that behind them, or a failed one is told first.
func TestReadingAStateWaits(t *testing.T) {
	m, _ := newAhead(t)
	trainer, err := m.NewTrainer(TrainerOptions{Rule: isa.Momentum, LearningRate: 1, Momentum: 0.5, Sparse: true}, []uint32{paramW})
	require.NoError(t, err)
	h, err := m.NewHandle(trainer.ids, trainer)
	require.NoError(t, err)
	require.NoError(t, trainBatch(m, h))
	require.NoError(t, trainBatch(m, h))
	state := make([]float32, 2)
	require.NoError(t, trainer.ReadState(paramW, state))
	require.NotZero(t, state[0])
	n, err := trainer.Updates()
	require.NoError(t, err)
	require.EqualValues(t, 2, n)

	g := m.NewGraph()
	defer g.Close()
	_, err = h.FB(g, infinite(), 3)
	require.NoError(t, err)
	require.ErrorIs(t, trainer.WriteState(paramW, make([]float32, 2)), ErrNumeric)
	kept := make([]float32, 2)
	require.NoError(t, trainer.ReadState(paramW, kept))
	require.Equal(t, state, kept)
}
