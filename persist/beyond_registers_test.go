package persist

import (
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/gpu/mocks"
	"libvpps/persist/cpu"
	"libvpps/persist/cuda"
	"libvpps/persist/cuda/standin"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/reference"
)

// Gradients of matrices beyond the registers, on the stand-in for a GPU: they are those of the CPU, and a batch is one launch.

// The model of these tests: no matrix has its gradient in registers.
const (
	wideW = iota // 72 x 8
	wideV        // 8 x 72
	wideB        // 72
	wideT        // a table of 4 rows of 8
	wideParams
)

// wideModel fills an engine with the model's parameters.
func wideModel(t *testing.T, e *Engine) *model {
	t.Helper()
	m := &model{t, e, nil, nil}
	c, err := m.NewCollection(0)
	require.NoError(t, err)
	for id, d := range []bridge.Dim{dim(72, 8), dim(8, 72), dim(72), dim(8, 4)} {
		v := make([]float32, d.Size())
		for i := range v {
			v[i] = float32(math.Sin(float64(7*i+id))) / 8
		}
		_, err := m.NewParameter(c, "p", d, id == wideT, v)
		require.NoError(t, err)
	}
	return m
}

// beyondRegisters is the model on a stand-in for a GPU that has hardly any registers for weights.
func beyondRegisters(t *testing.T) (*model, *standin.GPU) {
	t.Helper()
	e, g := engineBeyond(t, plan.Settings{})
	m := wideModel(t, e)
	t.Cleanup(m.Close)
	return m, g
}

// engineBeyond is an engine on it, which gives everything back when it is closed.
func engineBeyond(t *testing.T, s plan.Settings) (*Engine, *standin.GPU) {
	t.Helper()
	t.Setenv("VPPS_CACHE_DIR", t.TempDir())
	g := &standin.GPU{}
	t.Cleanup(func() { require.Zero(t, g.Held(), "everything is given back") })
	s.Registers, s.Partials = 1, 1
	x, err := cuda.New(g, mocks.NVRTC(t), 5, s, "0.1.0")
	require.NoError(t, err)
	e := newEngine(x, 1)
	g.Plan = func() *plan.Plan { return e.plan }
	return e, g
}

// onCPU is the model on the CPU.
func onCPU(t *testing.T) *model {
	t.Helper()
	x, err := cpu.New(1, 2, 5)
	require.NoError(t, err)
	m := wideModel(t, newEngine(x, 1))
	t.Cleanup(m.Close)
	return m
}

// wideWords records the loss of some inputs: each twice through both matrices. The sum of the squares of W is added, so
// that W has a gradient besides.
func wideWords(inputs int, scale float32) (w *bridge.Words, loss uint32) {
	const scalar, narrow, tall = 0, 1, 2
	w = &bridge.Words{Dims: []bridge.Dim{dim(1), dim(8), dim(72), dim(72, 8), dim(8, 72)}}
	add := func(node []uint32) uint32 {
		w.Nodes = append(w.Nodes, node...)
		w.NodeCount++
		return uint32(w.NodeCount - 1)
	}
	W, V, b := add(op(ops.Parameter, 3, wideW)), add(op(ops.Parameter, 4, wideV)), add(op(ops.Parameter, tall, wideB))
	losses := []uint32{add(op(ops.SumElements, scalar, add(op(ops.Square, 3, W))))}
	for k := range inputs {
		at := uint32(len(w.Inputs))
		for i := range 8 {
			w.Inputs = append(w.Inputs, bits(scale*float32(math.Cos(float64(8*k+i))))...)
		}
		w.Inputs = append(w.Inputs, uint32(k%3))
		x := add(op(ops.Input, narrow, at))
		x = add(op(ops.Sum, narrow, 2, x, add(op(ops.Lookup, narrow, wideT, at+8))))
		for range 2 {
			h := add(op(ops.Tanh, tall, add(op(ops.AffineTransform, tall, 3, b, W, x))))
			x = add(op(ops.MatrixMultiply, narrow, V, h))
		}
		losses = append(losses, add(op(ops.SumElements, scalar, add(op(ops.Square, narrow, x)))))
	}
	return w, add(append(op(ops.Sum, scalar, uint32(len(losses))), losses...))
}

// wideHandle is a handle with an update rule over all parameters.
func (m *model) wideHandle(rule isa.Rule, threshold float32) *Handle {
	m.Helper()
	ids := []uint32{wideW, wideV, wideB, wideT}
	t, err := m.NewTrainer(TrainerOptions{Rule: rule, LearningRate: 0.05, Clipping: true, Threshold: threshold, Sparse: true,
		Momentum: 0.9, Rho: 0.95, Epsilon: 1e-3, Beta1: 0.9, Beta2: 0.999}, ids)
	require.NoError(m, err)
	h, err := m.NewHandle(ids, t)
	require.NoError(m, err)
	return h
}

// fb is one batch, whose loss it waits for.
func (m *model) fb(h *Handle, inputs int, scale float32) (float32, error) {
	m.Helper()
	g := m.NewGraph()
	defer g.Close()
	w, loss := wideWords(inputs, scale)
	if _, err := h.FB(g, w, loss); err != nil {
		return 0, err
	}
	return h.SyncLatestLoss()
}

// everything reads all parameters.
func (m *model) everything(part Part) (all [][]float32) {
	m.Helper()
	for id := range uint32(wideParams) {
		all = append(all, m.read(id, part))
	}
	return all
}

func alike(t *testing.T, want, have [][]float32) {
	t.Helper()
	for id := range want {
		for i, w := range want[id] {
			require.InDelta(t, w, have[id][i], 1e-5*(1+math.Abs(float64(w))), "parameter %d, element %d", id, i)
		}
	}
}

// Batches of fb, in flight, then one after the other.
func TestModelsBeyondTheRegistersTrainAsOnTheCPU(t *testing.T) {
	for _, c := range []struct {
		name      string
		rule      isa.Rule
		threshold float32
	}{{"clipped", isa.SGD, 0.5}, {"momentum", isa.Momentum, 1e6}, {"adam", isa.Adam, 5}} {
		t.Run(c.name, func(t *testing.T) {
			train := func(m *model) (losses []float32, values [][]float32) {
				h := m.wideHandle(c.rule, c.threshold)
				for range 5 {
					g := m.NewGraph()
					w, loss := wideWords(9, 1)
					_, err := h.FB(g, w, loss)
					require.NoError(t, err)
					g.Close()
				}
				for range 3 {
					loss, err := m.fb(h, 5, .5)
					require.NoError(t, err)
					losses = append(losses, loss)
				}
				return losses, m.everything(Values)
			}
			wanted, want := train(onCPU(t))
			for _, verified := range []bool{false, true} {
				m, g := beyondRegisters(t)
				m.verify = verified
				losses, have := train(m)
				alike(t, want, have)
				require.InDeltaSlice(t, wanted, losses, 1e-4)
				require.Equal(t, 8, g.Calls()["Launch"])
			}
		})
	}
}

// Gradients add up: over two calls of backward, and a batch of fb behind one.
func TestGradientsBeyondTheRegistersAddUp(t *testing.T) {
	train := func(m *model) (gradients, values [][]float32) {
		h := m.wideHandle(isa.SGD, 5)
		backward := func(inputs int) {
			g := m.NewGraph()
			defer g.Close()
			w, loss := wideWords(inputs, 1)
			require.NoError(t, g.Backward(w, loss, false))
		}
		backward(6)
		backward(9)
		gradients = m.everything(Gradient)
		_, err := h.Trainer().Update()
		require.NoError(t, err)
		backward(4)
		_, err = m.fb(h, 7, 1)
		require.NoError(t, err)
		return gradients, m.everything(Values)
	}
	gradients, values := train(onCPU(t))
	m, _ := beyondRegisters(t)
	m.verify = true
	have, after := train(m)
	alike(t, gradients, have)
	alike(t, values, after)
}

// Random graphs, whose parameters are used in all ways, have the gradients that they have on the CPU.
func TestGradientsOfRandomGraphsBeyondTheRegisters(t *testing.T) {
	products := []ops.Code{ops.MatrixMultiply, ops.AffineTransform, ops.Tanh, ops.Sum, ops.CwiseMultiply, ops.Transpose}
	for seed := range uint64(30) {
		r, err := reference.Random(seed+6000, reference.Options{Nodes: 40, Ops: products})
		require.NoError(t, err)
		x, err := cpu.New(1, 2, 5)
		require.NoError(t, err)
		gradients, values, _ := trainedBy(t, newEngine(x, 1), r)
		e, _ := engineBeyond(t, plan.Settings{Processors: 2})
		have, after, _ := trainedBy(t, e, r)
		alike(t, gradients, have)
		alike(t, values, after)
	}
}

// A large batch, and a checking build, which finds NaN in memory that is used again.
func TestALargeBatchBeyondTheRegisters(t *testing.T) {
	train := func(m *model) [][]float32 {
		h := m.wideHandle(isa.SGD, 5)
		for range 3 {
			_, err := m.fb(h, 200, 1)
			require.NoError(t, err)
		}
		return m.everything(Values)
	}
	want := train(onCPU(t))
	for _, check := range []string{"", "1"} {
		t.Setenv("VPPS_CHECK", check)
		for _, verified := range []bool{false, true} {
			m, g := beyondRegisters(t)
			m.verify = verified
			alike(t, want, train(m))
			require.Equal(t, 3, g.Calls()["Launch"])
		}
	}
}

func TestABatchBeyondTheRegistersThatIsNotFiniteChangesNothing(t *testing.T) {
	m, _ := beyondRegisters(t)
	h := m.wideHandle(isa.Momentum, 5)
	_, err := m.fb(h, 5, 1)
	require.NoError(t, err)
	before := m.everything(Values)
	_, err = m.fb(h, 5, float32(math.Inf(1)))
	require.ErrorIs(t, err, ErrNumeric)
	require.Equal(t, before, m.everything(Values))
	_, err = m.fb(h, 5, 1)
	require.NoError(t, err)
	require.NotEqual(t, before, m.everything(Values))
}

// On a GPU, with VPPS_TEST_GPU=1 and the build tag cuda: what the kernel trains is what the CPU does, twice the same bits.
func TestGradientsBeyondTheRegistersOnAGPU(t *testing.T) {
	if os.Getenv("VPPS_TEST_GPU") != "1" {
		t.Skip("skipped: needs a GPU (VPPS_TEST_GPU=1)")
	}
	train := func(m *model) [][]float32 {
		h := m.wideHandle(isa.SGD, 5)
		for _, inputs := range []int{5, 40, 200} {
			_, err := m.fb(h, inputs, 1)
			require.NoError(t, err)
		}
		return m.everything(Values)
	}
	want := train(onCPU(t))
	var before [][]float32
	for range 2 {
		x, err := openCUDA(0, plan.Settings{Registers: 1, Partials: 1}, "0.1.0")
		require.NoError(t, err)
		m := wideModel(t, newEngine(x, 1))
		have := train(m)
		t.Log(m.PlanReport())
		m.Close()
		alike(t, want, have)
		if before != nil {
			require.Equal(t, before, have)
		}
		before = have
	}
}
