package persist

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/persist/isa"
)

// momentum is a trainer and its handle: rate 0.5, momentum 0.5, no clipping.
func (m *model) momentum(ids ...uint32) (*Trainer, *Handle) {
	m.Helper()
	t, err := m.NewTrainer(TrainerOptions{Rule: isa.Momentum, LearningRate: 0.5, Momentum: 0.5, Sparse: true}, ids)
	require.NoError(m, err)
	h, err := m.NewHandle(ids, t)
	require.NoError(m, err)
	return t, h
}

// state reads the first state of the trainer's k-th parameter.
func (m *model) state(t *Trainer, k int) []float32 {
	m.Helper()
	v := make([]float32, t.e.params[t.ids[k]].Size)
	require.NoError(m, m.download(isa.SegState, uint64(t.state[k]), v))
	return v
}

// train runs one batch of product(x) and waits for it.
func (m *model) train(h *Handle, x ...float32) error {
	g := m.NewGraph()
	defer g.Close()
	if _, err := h.FB(g, product(x...), 3); err != nil {
		return err
	}
	_, err := h.SyncLatestLoss()
	return err
}

// The gradient by w is x, so v = v/2 - x/2.
func TestMomentumGoesOnWithoutAGradient(t *testing.T) {
	m := newModel(t, 0)
	trainer, h := m.momentum(paramW)
	require.NoError(t, m.train(h, 1, 2))
	require.Equal(t, []float32{-0.5, -1}, m.state(trainer, 0))
	require.Equal(t, []float32{0.5, 1}, m.read(paramW, Values))
	require.NoError(t, m.train(h, 0, 0))
	require.Equal(t, []float32{-0.25, -0.5}, m.state(trainer, 0))
	require.Equal(t, []float32{0.25, 0.5}, m.read(paramW, Values))
	_, err := trainer.Update() // w has no gradient at all
	require.ErrorIs(t, err, ErrState, "fb has applied it")
	require.NoError(t, m.WriteParameter(paramW, Gradient, 0, []float32{0, 0}))
	require.NoError(t, m.ScaleParameter(paramW, Gradient, 0))
	_, err = trainer.Update()
	require.NoError(t, err)
	require.Equal(t, []float32{0.125, 0.25}, m.read(paramW, Values))
}

func TestABatchThatIsNotFiniteLeavesTheState(t *testing.T) {
	for _, rule := range []isa.Rule{isa.Momentum, isa.Adagrad, isa.Adadelta, isa.RMSProp, isa.Adam, isa.AMSGrad, isa.EG} {
		m := newModel(t, 0.25)
		trainer, err := m.NewTrainer(TrainerOptions{Rule: rule, LearningRate: 0.5, Momentum: 0.5, Rho: 0.5, Epsilon: 0.5, Beta1: 0.5, Beta2: 0.5}, []uint32{paramW, paramTable})
		require.NoError(t, err)
		h, err := m.NewHandle([]uint32{paramW, paramTable}, trainer)
		require.NoError(t, err)
		require.NoError(t, m.train(h, 1, 2))
		all := func() []float32 {
			v := append(m.read(paramW, Values), m.read(paramTable, Values)...)
			states := make([]float32, m.used[isa.SegState])
			require.NoError(t, m.download(isa.SegState, 0, states))
			return append(v, states...)
		}
		before := all()
		require.NotEqual(t, make([]float32, len(before)-10), before[10:], "%v: no state", rule)
		infinity := float32(math.Inf(1))
		require.ErrorIs(t, m.train(h, 1, infinity), ErrNumeric)
		require.Equal(t, before, all(), "rule %v, fb", rule)
		require.EqualValues(t, 1, trainer.steps)

		require.NoError(t, m.WriteParameter(paramW, Gradient, 0, []float32{infinity, 0}))
		_, err = trainer.Update()
		require.ErrorIs(t, err, ErrNumeric)
		require.Equal(t, before, all(), "rule %v, update", rule)
		require.EqualValues(t, 1, trainer.steps)
	}
}

// Batches that a failed one takes along count no step, whoever launches them.
func TestStepsOfBatchesInFlightAreTakenBack(t *testing.T) {
	m, _ := newAhead(t)
	trainer, err := m.NewTrainer(TrainerOptions{Rule: isa.Adam, LearningRate: 0.1, Sparse: true, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}, []uint32{paramW, paramTable})
	require.NoError(t, err)
	h, err := m.NewHandle(trainer.ids, trainer)
	require.NoError(t, err)
	require.NoError(t, trainBatch(m, h))
	g := m.NewGraph()
	defer g.Close()
	_, err = h.FB(g, infinite(), 3)
	require.NoError(t, err)
	require.NoError(t, trainBatch(m, h))
	_, err = h.SyncLatestLoss()
	require.ErrorIs(t, err, ErrNumeric)
	require.EqualValues(t, 1, trainer.steps)
	require.NoError(t, trainBatch(m, h))
	_, err = h.SyncLatestLoss()
	require.NoError(t, err)
	require.EqualValues(t, 2, trainer.steps)
	require.InDeltaSlice(t, []float32{0.8, 1.8}, weights(t, m), 1e-5) // equal gradients: Adam's steps are the rate
}

// State is kept when parameters come later, which plans anew and moves memory.
func TestStateSurvivesNewParametersAndPlans(t *testing.T) {
	m := newModel(t, 0)
	trainer, h := m.momentum(paramW)
	require.NoError(t, m.train(h, 1, 2))
	id, err := m.NewParameter(0, "matrix", dim(3, 5), false, nil)
	require.NoError(t, err)
	require.NoError(t, trainer.Add([]uint32{paramTable, id}))
	require.NoError(t, m.train(h, 1, 2))
	require.Equal(t, []float32{-0.75, -1.5}, m.state(trainer, 0))
	require.Equal(t, make([]float32, 8), m.state(trainer, 1))
	require.Equal(t, make([]float32, 15), m.state(trainer, 2))
	require.GreaterOrEqual(t, m.params[id].Matrix, int32(0), "it is planned")
}

func TestRestartForgets(t *testing.T) {
	m := newModel(t, 0)
	trainer, h := m.momentum(paramW)
	require.NoError(t, m.train(h, 1, 2))
	require.NoError(t, trainer.Restart())
	require.Equal(t, []float32{0, 0}, m.state(trainer, 0))
	require.EqualValues(t, 1, trainer.steps)
	require.NoError(t, m.train(h, 1, 2))
	require.Equal(t, []float32{0, 0}, m.read(paramW, Values)) // two first steps
}

// The memory of a trainer that is gone is the next one's, and zero.
func TestStateIsReused(t *testing.T) {
	m := newModel(t, 0)
	for range 3 {
		trainer, h := m.momentum(paramW, paramTable)
		require.Equal(t, []float32{0, 0}, m.state(trainer, 0))
		require.NoError(t, m.train(h, 1, 2))
		require.Equal(t, []float32{-0.5, -1}, m.state(trainer, 0))
		require.EqualValues(t, 16, m.used[isa.SegState])
		trainer.Close()
	}
}

// A table's rows have states of their own; untouched ones move only if the table is to be changed
// as a whole.
func TestRowsMoveAlone(t *testing.T) {
	for _, sparse := range []bool{true, false} {
		m := newModel(t, 0)
		m.addMatrix()
		trainer, h := m.momentum(paramTable)
		trainer.options.Sparse = sparse
		batch := func(row uint32) {
			g := m.NewGraph()
			defer g.Close()
			_, err := h.FB(g, mixed(row, 1, 1), 7)
			require.NoError(t, err)
			_, err = h.SyncLatestLoss()
			require.NoError(t, err)
		}
		batch(1)
		once := m.state(trainer, 0)
		require.NotZero(t, once[2])
		batch(2)
		twice := m.state(trainer, 0)
		want := once[2]
		if !sparse {
			want /= 2
		}
		require.Equal(t, want, twice[2], "sparse %v", sparse)
		require.NotZero(t, twice[4])
		require.Equal(t, []float32{0, 0}, twice[:2])
	}
}

// A gradient written row by row is that of a lookup of these rows.
func TestWrittenRowsMoveAlone(t *testing.T) {
	m := newModel(t, 0)
	trainer, _ := m.momentum(paramTable)
	require.NoError(t, m.WriteParameter(paramTable, Gradient, 2, []float32{1, 3}))
	rows := make([]uint32, 4)
	n, all, err := m.Touched(paramTable, rows)
	require.NoError(t, err)
	require.False(t, all)
	require.Equal(t, []uint32{1}, rows[:n])
	_, err = trainer.Update()
	require.NoError(t, err)
	require.NoError(t, m.WriteParameter(paramTable, Gradient, 0, []float32{2, 4}))
	_, err = trainer.Update()
	require.NoError(t, err)
	require.Equal(t, []float32{-1, -2, -0.5, -1.5}, m.state(trainer, 0)[:4])
	require.NoError(t, m.WriteParameter(paramTable, Gradient, 1, []float32{0}), "a part of a row")
	_, all, err = m.Touched(paramTable, nil)
	require.NoError(t, err)
	require.True(t, all)
}

func TestATrainerKeepsItsRule(t *testing.T) {
	m := newModel(t, 0)
	trainer, _ := m.momentum(paramW)
	require.ErrorIs(t, trainer.Set(TrainerOptions{Rule: isa.Adam}), ErrArgument)
	_, err := m.NewTrainer(TrainerOptions{Rule: isa.Rules}, nil)
	require.ErrorIs(t, err, ErrArgument)
	m.exec.full = true
	_, err = m.NewTrainer(TrainerOptions{Rule: isa.Adam}, []uint32{paramW})
	require.ErrorIs(t, err, ErrMemory)
}
