package persist

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
)

// shareGradient is the gradient's memory as the program has it.
func (m *model) shareGradient(id uint32) []float32 {
	m.Helper()
	memory, err := m.GradientMemory(id, true)
	require.NoError(m, err)
	require.NotNil(m, memory)
	return unsafe.Slice((*float32)(memory), m.params[id].Size)
}

func (m *model) sgd(ids ...uint32) *Trainer {
	m.Helper()
	t, err := m.NewTrainer(TrainerOptions{Rule: isa.SGD, LearningRate: 1, Sparse: true}, ids)
	require.NoError(m, err)
	return t
}

func (m *model) backward(w *bridge.Words, node uint32) {
	m.Helper()
	g := m.NewGraph()
	defer g.Close()
	require.NoError(m, g.Backward(w, node, false))
}

// rowSum records loss = sum(table[row]): nodes 0 and 1.
func rowSum(row uint32) *bridge.Words {
	return words(true, []uint32{row}, op(ops.Lookup, dim2, paramTable, 0), op(ops.SumElements, dim1, 0))
}

func TestTheProgramsChangesToAGradientCount(t *testing.T) {
	m := newModel(t, 0)
	trainer := m.sgd(paramW)
	m.backward(product(3, 4), 3)
	g := m.shareGradient(paramW)
	require.Equal(t, []float32{3, 4}, g, "what was pending")
	m.backward(product(1, 1), 3)
	require.Equal(t, []float32{4, 5}, g)
	g[0], g[1] = 0.5, 0
	m.backward(product(0, 1), 3)
	require.Equal(t, []float32{0.5, 1}, g)
	_, err := trainer.Update()
	require.NoError(t, err)
	require.Equal(t, []float32{0.5, 1}, m.read(paramW, Values))
	require.Equal(t, []float32{0, 0}, g, "an update leaves zeros")
	g[1] = -2 // and no backward
	_, err = trainer.Update()
	require.NoError(t, err)
	require.Equal(t, []float32{0.5, 3}, m.read(paramW, Values))
	g[0] = 7
	require.NoError(t, m.ScaleParameter(paramW, Gradient, 0))
	require.Equal(t, []float32{0, 0}, g)
}

// Nor does a program have to call backward before it writes.
func TestAGradientThatIsWrittenBeforeAnyBackwardCounts(t *testing.T) {
	m := newModel(t, 0)
	trainer := m.sgd(paramW)
	m.shareGradient(paramW)[1] = 0.5
	_, err := trainer.Update()
	require.NoError(t, err)
	require.Equal(t, []float32{1, 1.5}, m.read(paramW, Values))
}

func TestRowsOfASharedGradientAreTheProgramsToo(t *testing.T) {
	m := newModel(t, 0)
	trainer := m.sgd(paramTable)
	m.backward(rowSum(1), 1)
	g := m.shareGradient(paramTable)
	require.Equal(t, []float32{0, 0, 1, 1, 0, 0, 0, 0}, g)
	m.backward(rowSum(2), 1)
	rows := make([]uint32, 4)
	n, all, err := m.Touched(paramTable, rows)
	require.NoError(t, err)
	require.False(t, all)
	require.Equal(t, []uint32{1, 2}, rows[:n])
	g[2], g[3] = 0, 0 // the program clears row 1, and writes row 3
	g[6] = 2
	require.NoError(t, m.SetTouched(paramTable, []uint32{3, 2, 3}, false))
	_, err = trainer.Update()
	require.NoError(t, err)
	require.Equal(t, []float32{1, 2, 3, 4, 4, 5, 5, 8}, m.read(paramTable, Values))
	require.Equal(t, make([]float32, 8), g)
	g[0] = 1
	require.NoError(t, m.SetTouched(paramTable, nil, true))
	m.backward(rowSum(0), 1)
	require.Equal(t, []float32{2, 1, 0, 0, 0, 0, 0, 0}, g)
	_, err = trainer.Update()
	require.NoError(t, err)
	require.Equal(t, []float32{-1, 1, 3, 4, 4, 5, 5, 8}, m.read(paramTable, Values))
	require.Equal(t, make([]float32, 8), g)
}

// What was applied or never formed is zero in the program's memory, whatever lies there.
func TestAGradientIsSharedAsItReads(t *testing.T) {
	m := newModel(t, 0)
	h := m.handle()
	for _, w := range []*bridge.Words{product(3, 4), rowSum(2)} {
		_, err := h.FB(m.NewGraph(), w, uint32(w.NodeCount-1))
		require.NoError(t, err)
	}
	m.backward(rowSum(1), 1)
	require.Equal(t, []float32{0, 0}, m.shareGradient(paramW))
	require.Equal(t, []float32{0, 0, 1, 1, 0, 0, 0, 0}, m.shareGradient(paramTable))
}

// After one gradient that is not finite the program sets it to zero and goes on.
func TestAClearedGradientIsForgiven(t *testing.T) {
	m := newModel(t, 0)
	trainer, err := m.NewTrainer(TrainerOptions{Rule: isa.SGD, LearningRate: 1, Clipping: true, Threshold: 50, Sparse: true}, []uint32{paramW})
	require.NoError(t, err)
	g := m.shareGradient(paramW)
	g[0] = inf
	_, err = trainer.Update()
	require.ErrorIs(t, err, ErrNumeric)
	g[0] = 0
	m.backward(product(1, 1), 3)
	_, err = trainer.Update()
	require.NoError(t, err)
	require.Equal(t, []float32{0, 1}, m.read(paramW, Values))
}

func TestGradientsGoBackBeforeFB(t *testing.T) {
	m := newModel(t, 0)
	h := m.handle()
	g := m.shareGradient(paramW)
	g[0] = 1
	err := m.train(h, 1, 1)
	require.ErrorIs(t, err, ErrState)
	require.ErrorContains(t, err, "vpps_parameter_gradient_memory")
	require.Equal(t, []float32{1, 2}, m.read(paramW, Values))
	_, err = m.GradientMemory(paramW, false)
	require.NoError(t, err)
	require.Equal(t, []float32{1, 0}, m.read(paramW, Gradient), "it stays")
	require.NoError(t, m.ScaleParameter(paramW, Gradient, 0))
	require.NoError(t, m.train(h, 1, 1))
	require.ErrorIs(t, m.SetTouched(paramTable, nil, false), ErrState)
	require.ErrorIs(t, m.SetTouched(paramW, nil, false), ErrArgument)
	m.shareGradient(paramTable)
	require.ErrorIs(t, m.SetTouched(paramTable, []uint32{4}, false), ErrArgument)
	require.ErrorIs(t, m.SetTouched(paramTable, make([]uint32, 5), false), ErrArgument)
}
