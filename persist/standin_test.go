package persist

import (
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/gpu/mocks"
	"libvpps/log"
	"libvpps/persist/cuda"
	"libvpps/persist/cuda/standin"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
)

// The engine on a GPU that does everything as late as it may, and on one that fails.

// Every plan has one kernel, so that what the tests see does not depend on how busy the machine is.
func TestMain(m *testing.M) {
	cuda.Patience = time.Minute
	os.Exit(m.Run())
}

// onGPU is the little model on a stand-in for a GPU, which is closed with nothing left.
func onGPU(t *testing.T) (*model, *standin.GPU) {
	t.Helper()
	t.Setenv("VPPS_CACHE_DIR", t.TempDir())
	g := &standin.GPU{}
	x, err := cuda.New(g, mocks.NVRTC(t), 5, plan.Settings{}, "0.1.0")
	require.NoError(t, err)
	m := &model{t, newEngine(x, 1), nil, nil}
	g.Plan = func() *plan.Plan { return m.Engine.plan }
	t.Cleanup(func() {
		m.Close()
		if !g.Lost() {
			require.Zero(t, g.Held(), "everything is given back")
		}
	})
	m.fill(0)
	return m, g
}

// fill makes the parameters of newModel, and a matrix.
func (m *model) fill(lambda float32) {
	m.Helper()
	c, err := m.NewCollection(lambda)
	require.NoError(m, err)
	_, err = m.NewParameter(c, "w", dim(2), false, []float32{1, 2})
	require.NoError(m, err)
	_, err = m.NewParameter(c, "table", dim(2, 4), true, []float32{1, 2, 3, 4, 5, 6, 7, 8})
	require.NoError(m, err)
	m.graph = m.NewGraph()
}

const paramM = 2

func (m *model) addMatrix() {
	m.Helper()
	_, err := m.NewParameter(0, "M", dim(3, 2), false, []float32{.1, .2, .3, .4, .5, .6})
	require.NoError(m, err)
}

// mixed records loss = sum(square(M * (x + w + table[row]))): nodes 0 to 8.
func mixed(row uint32, x ...float32) *bridge.Words {
	w := words(true, append(bits(x...), row), op(ops.Parameter, 3, paramM), op(ops.Parameter, dim2, paramW), op(ops.Input, dim2, 0),
		op(ops.Lookup, dim2, paramTable, 2), op(ops.Sum, dim2, 3, 1, 2, 3), op(ops.MatrixMultiply, dim3, 0, 4), op(ops.Square, dim3, 5),
		op(ops.SumElements, dim1, 6))
	w.Dims = append(w.Dims, dim(3, 2))
	return w
}

// A program trains with a quick kernel until the other one is compiled, and comes to the same parameters.
func TestTrainingGoesOnWithABetterKernel(t *testing.T) {
	train := func(t *testing.T) [][]float32 {
		m, g := onGPU(t)
		m.addMatrix()
		h := m.handle()
		batches(m, h, 10)
		require.LessOrEqual(t, g.Held().Modules, 1)
		time.Sleep(600 * time.Millisecond)
		return batches(m, h, 10)
	}
	var want [][]float32
	t.Run("as usual", func(t *testing.T) { want = train(t) })
	t.Run("slowly", func(t *testing.T) {
		lines := listen(t, log.Info)
		t.Setenv("VPPS_FAKE_SLOW", "500")
		defer func(was time.Duration) { cuda.Patience = was }(cuda.Patience)
		cuda.Patience = 50 * time.Millisecond
		require.Equal(t, want, train(t))
		require.Len(t, saying(*lines, `^compile: the next batch is the first of a better kernel: `), 1)
	})
}

// batches trains mixed for some steps over new graphs and returns the parameters.
func batches(m *model, h *Handle, steps int) (all [][]float32) {
	m.Helper()
	for k := range steps {
		g := m.NewGraph()
		_, err := h.FB(g, mixed(uint32(k%4), float32(k%3)*.5, 1), 7)
		require.NoError(m, err)
		g.Close()
	}
	for id := range m.params {
		all = append(all, m.read(uint32(id), Values))
	}
	return all
}

func (m *model) handleOfAll() *Handle {
	m.Helper()
	h, err := m.NewHandle([]uint32{paramW, paramTable, paramM}, nil)
	require.NoError(m, err)
	return h
}

// by is a handle with an update rule.
func (m *model) by(rule isa.Rule) *Handle {
	m.Helper()
	ids := []uint32{paramW, paramTable, paramM}
	t, err := m.NewTrainer(TrainerOptions{Rule: rule, LearningRate: 0.05, Clipping: true, Threshold: 5, Sparse: true,
		Momentum: 0.9, Rho: 0.95, Epsilon: 1e-3, Beta1: 0.9, Beta2: 0.999}, ids)
	require.NoError(m, err)
	h, err := m.NewHandle(ids, t)
	require.NoError(m, err)
	return h
}

// The device runs behind by as much as it may: whoever reused pinned memory, results, activations or
// states too early would train something else than the CPU does.
func TestBatchesOnADeviceThatIsBehindGiveTheCPUsResults(t *testing.T) {
	for rule := range isa.Rules {
		t.Run(isa.RuleTable[rule].Name, func(t *testing.T) {
			c := newModel(t, 0)
			c.addMatrix()
			want := batches(c, c.by(rule), 20)
			wanted, err := c.handleOfAll().trainedLoss(c)
			require.NoError(t, err)

			m, _ := onGPU(t)
			m.addMatrix()
			have := batches(m, m.by(rule), 20)
			for id := range want {
				require.InDeltaSlice(t, want[id], have[id], 1e-5, "parameter %d", id)
			}
			got, err := m.handleOfAll().trainedLoss(m)
			require.NoError(t, err)
			require.InDelta(t, wanted, got, 1e-5)
		})
	}
}

// A graph that is cleared while its batch is in flight keeps its dims: front-ends do not send them
// again.
func TestAGraphThatIsClearedInFlightKeepsItsDims(t *testing.T) {
	m, _ := onGPU(t)
	h := m.handle()
	for k := range 12 {
		w := product(1, 1)
		if k > 0 {
			w.Dims = nil
		}
		_, err := h.FB(m.graph, w, 3)
		require.NoError(t, err)
		require.NoError(t, m.graph.Truncate(0))
	}
	_, err := h.SyncLatestLoss()
	require.NoError(t, err)
	require.InDelta(t, 1-1.2, m.read(paramW, Values)[0], 1e-5)
}

// trainedLoss is the loss of one more batch.
func (h *Handle) trainedLoss(m *model) (float32, error) {
	g := m.NewGraph()
	defer g.Close()
	if _, err := h.FB(g, mixed(1, 1, 1), 7); err != nil {
		return 0, err
	}
	return h.SyncLatestLoss()
}

// In the steady state a batch is one launch and one copy, and nothing waits for the whole stream.
func TestABatchIsOneLaunchAndOneCopy(t *testing.T) {
	m, g := onGPU(t)
	m.addMatrix()
	h := m.handleOfAll()
	batches(m, h, 2*InFlight)
	const more = 12
	before := g.Calls()
	for k := range more {
		graph := m.NewGraph()
		_, err := h.FB(graph, mixed(uint32(k%4), 1, 1), 7)
		require.NoError(t, err)
		graph.Close()
	}
	m.enter() // the workers are idle
	m.mu.Unlock()
	now := g.Calls()
	calls := func(name string) int { return now[name] - before[name] }
	require.Equal(t, more, calls("Launch"))
	require.Equal(t, more, calls("CopyAhead"))
	require.Equal(t, more, calls("Record"))
	for _, name := range []string{"CopyToDevice", "CopyFromDevice", "CopyOnDevice", "Memset32", "Synchronize", "Alloc", "AllocHost", "Free", "FreeHost", "Load"} {
		require.Zero(t, calls(name), name)
	}
	require.Positive(t, g.Waiting(), "fb returns before the device is done")
	_, err := h.SyncLatestLoss()
	require.NoError(t, err)
}

// failing makes the n-th next call of a method fail, and those behind it if there are to be more.
func failing(g *standin.GPU, method string, n, times int, err error) {
	var mu sync.Mutex
	g.Fail(func(call string) error {
		mu.Lock()
		defer mu.Unlock()
		if call != method {
			return nil
		}
		if n--; n < 0 && -n <= times {
			return err
		}
		return nil
	})
}

// What the driver refuses is an error of the call or of a later one; parameters are as before, and
// when there is room again everything goes on.
func TestWhatTheDriverRefusesChangesNothing(t *testing.T) {
	bigger := func() *bridge.Words { // more activations than there is room for
		w := product(3, 4)
		w.Dims = append(w.Dims, dim(1<<20))
		w.Nodes = append(w.Nodes, op(ops.Constant, 3, bits(1)[0])...)
		w.NodeCount++
		return w
	}
	long := func() *bridge.Words { // a script that no staging slot has room for
		w := product(3, 4)
		w.Inputs = append(w.Inputs, make([]uint32, 1<<18)...)
		return w
	}
	calls := []struct {
		name     string
		launches bool
		call     func(m *model, h *Handle) error
	}{
		{"value", true, func(m *model, h *Handle) error { return m.graph.Value(bigger(), 4, make([]float32, 1<<20)) }},
		{"forward", true, func(m *model, h *Handle) error { return m.graph.Forward(bigger(), 4, true) }},
		{"forward with many inputs", true, func(m *model, h *Handle) error { return m.graph.Forward(long(), 3, true) }},
		{"fb with many inputs", true, func(m *model, h *Handle) error {
			if _, err := h.FB(m.graph, long(), 3); err != nil {
				return err
			}
			_, err := h.SyncLatestLoss()
			return err
		}},
		{"a parameter", false, func(m *model, h *Handle) error {
			_, err := m.NewParameter(0, "big", dim(1<<21), false, nil)
			return err
		}},
		{"a table", false, func(m *model, h *Handle) error {
			_, err := m.NewParameter(0, "big", dim(2, 1<<20), true, nil)
			return err
		}},
	}
	for _, c := range calls {
		for _, f := range []struct {
			method string
			err    error
			kind   error
		}{
			{"Alloc", standin.OutOfMemory, ErrMemory},
			{"AllocHost", standin.OutOfMemory, ErrMemory},
			{"Launch", standin.TooLarge, ErrDevice},
		} {
			if !c.launches && f.method != "Alloc" {
				continue
			}
			t.Run(c.name+" "+f.method, func(t *testing.T) {
				m, g := onGPU(t)
				h := m.handle()
				require.NoError(t, trainBatch(m, h))
				_, err := h.SyncLatestLoss()
				require.NoError(t, err)
				before := m.read(paramW, Values)
				failing(g, f.method, 0, 1000, f.err)
				err = c.call(m, h)
				g.Fail(nil)
				require.ErrorIs(t, err, f.kind)
				require.Equal(t, before, m.read(paramW, Values))
				for range 3 {
					require.NoError(t, trainBatch(m, h))
				}
				_, err = h.SyncLatestLoss()
				require.NoError(t, err)
				require.InDelta(t, before[0]-.3, m.read(paramW, Values)[0], 1e-5)
				require.NoError(t, c.call(m, h))
			})
		}
	}
}

// A device is lost in the midst of work: the call that finds out and every later one says so, the
// values of the last snapshot can be read, and the process goes on.
func TestParametersOfALostDeviceReadAsOfTheLastSnapshot(t *testing.T) {
	for _, method := range []string{"Launch", "CopyAhead", "Record", "EventWait", "CopyFromDevice", "Synchronize", "Alloc"} {
		t.Run(method, func(t *testing.T) {
			m, g := onGPU(t)
			m.snapshot.every = 4
			h := m.handle()
			failing(g, method, 6, 1, standin.Lost)
			var err error
			for k := 0; err == nil && k < 100; k++ {
				err = trainBatch(m, h)
				if err == nil && k%9 == 8 {
					err = m.ReadParameter(paramTable, Values, 0, make([]float32, 8))
				}
				if err == nil && k%9 == 8 { // needs room
					_, err = m.NewParameter(0, "more", dim(1<<20), false, nil)
				}
			}
			require.ErrorIs(t, err, ErrDevice)
			require.ErrorContains(t, err, "CUDA_ERROR_ILLEGAL_ADDRESS")
			require.ErrorContains(t, err, "the last snapshot")
			after := m.snapshot.updates
			require.Zero(t, after%4)

			for name, call := range map[string]func() error{
				"fb":       func() error { return trainBatch(m, h) },
				"forward":  func() error { return m.graph.Forward(product(1, 1), 3, true) },
				"value":    func() error { return m.graph.Value(product(1, 1), 3, make([]float32, 1)) },
				"backward": func() error { return m.graph.Backward(product(1, 1), 3, false) },
				"sync":     func() error { _, err := h.SyncLatestLoss(); return err },
				"clips":    func() error { _, err := h.Clips(); return err },
				"update":   func() error { _, err := h.Trainer().Update(); return err },
				"handle":   func() error { _, err := m.NewHandle([]uint32{paramW}, nil); return err },
				"new":      func() error { _, err := m.NewParameter(0, "x", dim(1), false, nil); return err },
				"write":    func() error { return m.WriteParameter(paramW, Values, 0, make([]float32, 2)) },
				"scale":    func() error { return m.ScaleParameter(paramW, Values, 2) },
				"expose":   func() error { _, err := m.Expose(paramW, Values); return err },
				"gradient": func() error { return m.ReadParameter(paramW, Gradient, 0, make([]float32, 2)) },
			} {
				require.ErrorIs(t, call(), ErrDevice, name)
			}
			w := m.read(paramW, Values) // every step takes 0.1 off both weights
			require.InDelta(t, 1-.1*float64(after), w[0], 1e-5)
			require.InDelta(t, 2-.1*float64(after), w[1], 1e-5)
			require.Equal(t, []float32{1, 2, 3, 4, 5, 6, 7, 8}, m.read(paramTable, Values))
			require.Equal(t, []float32{2, 3}, m.readSome(paramTable, 1, 2))
			require.ErrorIs(t, m.ReadParameter(paramTable, Values, 7, make([]float32, 2)), ErrArgument)
			factor, err := m.Factor(0)
			require.NoError(t, err)
			require.EqualValues(t, 1, factor)
			require.NotEmpty(t, m.Describe())
		})
	}
}

func (m *model) readSome(id uint32, offset uint64, n int) []float32 {
	m.Helper()
	v := make([]float32, n)
	require.NoError(m, m.ReadParameter(id, Values, offset, v))
	return v
}

func TestWithoutASnapshotALostDeviceHasNoParameters(t *testing.T) {
	m, g := onGPU(t)
	h := m.handle()
	require.NoError(t, trainBatch(m, h))
	failing(g, "Launch", 0, 1, standin.Lost)
	err := m.graph.Forward(product(1, 1), 3, true)
	require.ErrorIs(t, err, ErrDevice)
	require.ErrorContains(t, err, "VPPS_SNAPSHOT_BATCHES")
	require.ErrorIs(t, m.ReadParameter(paramW, Values, 0, make([]float32, 2)), ErrDevice)
}

// A kernel that cannot be made or loaded is an error of the handle, which may be tried again.
func TestAKernelThatCannotBeHadIsAnErrorOfTheHandle(t *testing.T) {
	for _, c := range []struct {
		method string
		err    error
		kind   error
		text   string
	}{
		{"Load", standin.OutOfMemory, ErrMemory, "OUT_OF_MEMORY"},
		{"Load", standin.Error(209, "CUDA_ERROR_NO_BINARY_FOR_GPU"), ErrUnsupported, "NO_BINARY"},
		{"Function", standin.Error(500, "CUDA_ERROR_NOT_FOUND"), ErrUnsupported, "NOT_FOUND"},
		{"MaxBlocksPerSM", standin.Error(1, "CUDA_ERROR_INVALID_VALUE"), ErrUnsupported, "INVALID_VALUE"},
		{"", nil, ErrUnsupported, "the kernel does not compile"},
	} {
		t.Run(c.method+" "+c.text, func(t *testing.T) {
			m, g := onGPU(t)
			if c.method == "" {
				t.Setenv("VPPS_FAKE_FAIL", "nvrtcCompileProgram:6")
			} else {
				failing(g, c.method, 0, 1000, c.err)
			}
			for range 2 {
				_, err := m.NewHandle([]uint32{paramW}, nil)
				require.ErrorIs(t, err, c.kind)
				require.ErrorContains(t, err, c.text)
				require.ErrorIs(t, m.graph.Forward(product(3, 4), 3, true), c.kind)
			}
			require.Equal(t, []float32{1, 2}, m.read(paramW, Values))
			g.Fail(nil)
			t.Setenv("VPPS_FAKE_FAIL", "")
			require.NoError(t, trainBatch(m, m.handle()))
			require.InDelta(t, .9, m.read(paramW, Values)[0], 1e-5)
			require.Equal(t, 1, g.Held().Modules, "what could not be used was unloaded")
		})
	}
}
