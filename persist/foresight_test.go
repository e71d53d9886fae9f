package persist

// DyNet's three calls as two scripts, of which the second waits for the program: whatever a program does between them, it sees what it would see if each
// call had its own script.

import (
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/cpu"
	"libvpps/persist/executor"
	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/plan"
)

// threeCalls is a model, its trainer, and what a program has seen of both.
type threeCalls struct {
	*model
	trainer *Trainer
	seen    []float32
}

// everyParameter are the ids of the model of calls_test.go.
var everyParameter = []uint32{callsW, callsU, callsB, callsTable}

// everyDevice is what newThreeCalls knows.
var everyDevice = []string{"cpu", "cpus", "gpu"}

// newThreeCalls makes the model on a device: one processor or more of a CPU, or a stand-in for a GPU.
func newThreeCalls(t *testing.T, device string) *threeCalls {
	t.Helper()
	var m *model
	switch device {
	case "gpu":
		e, _ := engineBeyond(t, plan.Settings{})
		t.Cleanup(e.Close)
		m = &model{T: t, Engine: e}
	default:
		x, err := cpu.New(1, map[string]int{"cpu": 1, "cpus": 3}[device], 5)
		require.NoError(t, err)
		m = &model{T: t, Engine: newEngine(x, 1)}
		t.Cleanup(m.Close)
	}
	m.verify = true
	c, err := m.NewCollection(0)
	require.NoError(t, err)
	for id, d := range []bridge.Dim{dim(8, 8), dim(8, 8), dim(8), dim(8, 64)} {
		v := make([]float32, d.Size())
		for i := range v {
			v[i] = float32(math.Sin(float64(7*i+id))) / 4
		}
		_, err := m.NewParameter(c, "p", d, id == callsTable, v)
		require.NoError(t, err)
	}
	m.Seed(7)
	trainer, err := m.NewTrainer(TrainerOptions{LearningRate: 0.1}, everyParameter)
	require.NoError(t, err)
	return &threeCalls{model: m, trainer: trainer}
}

// record records a graph of some words on a new graph.
func (m *threeCalls) record(list ...uint32) (r *recorder, loss uint32) {
	r = &recorder{}
	m.graph = m.NewGraph()
	r.begin()
	for _, word := range list {
		r.step(word)
	}
	return r, r.loss()
}

func (m *threeCalls) sees(x ...float32) { m.seen = append(m.seen, x...) }

// forward records a graph, evaluates its loss and reads it.
func (m *threeCalls) forward(list ...uint32) (r *recorder, loss uint32) {
	m.Helper()
	r, loss = m.record(list...)
	require.NoError(m, m.graph.Forward(r.take(), loss, true))
	m.sees(m.value1(nil, loss))
	return r, loss
}

func (m *threeCalls) backward(loss uint32) {
	m.Helper()
	require.NoError(m, m.graph.Backward(nil, loss, false))
}

func (m *threeCalls) update() {
	m.Helper()
	_, err := m.trainer.Update()
	require.NoError(m, err)
}

// step is a usual one.
func (m *threeCalls) step() {
	m.Helper()
	_, loss := m.forward(3, 1, 4)
	m.backward(loss)
	m.update()
	m.graph.Close()
}

// programs are what programs do; a step before and two behind are usual ones.
var programs = map[string]func(m *threeCalls){
	"a usual step": func(*threeCalls) {},
	"the loss's value without forward": func(m *threeCalls) {
		r, loss := m.record(1, 5, 9)
		m.sees(m.value1(r.take(), loss))
		m.backward(loss)
		m.update()
	},
	"backward without forward": func(m *threeCalls) {
		r, loss := m.record(1, 5, 9)
		require.NoError(m, m.graph.Backward(r.take(), loss, false))
		m.update()
		m.sees(m.value1(nil, loss))
	},
	"values of nodes before and after backward, and after update": func(m *threeCalls) {
		_, loss := m.forward(2, 6)
		m.sees(m.value(loss-1, 1)...)
		m.backward(loss)
		m.sees(m.value(6, 8)...)
		m.update()
		for n := range loss + 1 {
			m.sees(m.value(n, m.graph.wire.DimOf(n).Size())...)
		}
	},
	"gradients of parameters": func(m *threeCalls) {
		_, loss := m.forward(2, 6)
		m.backward(loss)
		m.sees(m.read(callsW, Gradient)...)
		m.sees(m.read(callsTable, Gradient)...)
		m.update()
	},
	"gradients of nodes before update": func(m *threeCalls) {
		_, loss := m.forward(2, 6)
		m.backward(loss)
		for n := range loss + 1 {
			m.sees(m.gradient(n)...)
		}
		m.update()
	},
	"gradients of nodes after update": func(m *threeCalls) {
		_, loss := m.forward(2, 6)
		m.backward(loss)
		m.update()
		for n := range loss + 1 {
			m.sees(m.gradient(n)...)
		}
	},
	"gradients of nodes before backward": func(m *threeCalls) {
		_, loss := m.forward(2, 6)
		require.NoError(m, m.graph.NodeGradients(nil, loss))
		for n := range loss + 1 {
			m.sees(m.gradient(n)...)
		}
		m.backward(loss)
		m.update()
	},
	"a full backward before the usual one": func(m *threeCalls) {
		_, loss := m.forward(2, 6)
		require.NoError(m, m.graph.Backward(nil, loss, true))
		m.backward(loss)
		m.update()
	},
	"two backwards": func(m *threeCalls) {
		_, loss := m.forward(2, 6)
		m.backward(loss)
		m.backward(loss)
		m.update()
	},
	"gradients of two graphs": func(m *threeCalls) {
		_, loss := m.forward(2, 6)
		m.backward(loss)
		m.graph.Close()
		_, loss = m.forward(7)
		m.backward(loss)
		m.update()
	},
	"the graph is closed before update": func(m *threeCalls) {
		_, loss := m.forward(2, 6)
		m.backward(loss)
		m.graph.Close()
		m.update()
	},
	"the graph is cleared before update": func(m *threeCalls) {
		_, loss := m.forward(2, 6)
		m.backward(loss)
		require.NoError(m, m.graph.Truncate(0))
		m.update()
	},
	"the graph is cleared and used again before update": func(m *threeCalls) {
		_, loss := m.forward(2, 6)
		m.backward(loss)
		require.NoError(m, m.graph.Truncate(0))
		r := &recorder{}
		r.begin()
		r.step(9)
		loss = r.loss()
		require.NoError(m, m.graph.Backward(r.take(), loss, false))
		m.sees(m.read(callsU, Gradient)...)
		m.update()
	},
	"nodes are dropped before update": func(m *threeCalls) {
		_, loss := m.forward(2, 6)
		m.backward(loss)
		require.NoError(m, m.graph.Truncate(loss))
		m.update()
	},
	"nodes are added before backward": func(m *threeCalls) {
		r, loss := m.forward(2, 6)
		twice := r.add(ops.ConstScalarMultiply, callsScalar, loss, bits(2)[0])
		require.NoError(m, m.graph.Backward(r.take(), twice, false))
		m.update()
	},
	"nodes are added and evaluated before update": func(m *threeCalls) {
		r, loss := m.forward(2, 6)
		m.backward(loss)
		twice := r.add(ops.ConstScalarMultiply, callsScalar, loss, bits(2)[0])
		m.sees(m.value1(r.take(), twice))
		m.update()
	},
	"another rate": func(m *threeCalls) {
		_, loss := m.forward(2, 6)
		m.backward(loss)
		require.NoError(m, m.trainer.Set(TrainerOptions{LearningRate: 0.01}))
		m.update()
	},
	"a parameter is written before backward": func(m *threeCalls) {
		_, loss := m.forward(2, 6)
		require.NoError(m, m.WriteParameter(callsW, Values, 5, []float32{0.5, -0.5}))
		m.backward(loss)
		m.update()
	},
	"a parameter is written before update": func(m *threeCalls) {
		_, loss := m.forward(2, 6)
		m.backward(loss)
		require.NoError(m, m.WriteParameter(callsW, Values, 5, []float32{0.5, -0.5}))
		m.update()
	},
	"values of parameters after they are written, scaled and loaded": func(m *threeCalls) {
		checkpoint := m.TempDir() + "/c"
		require.NoError(m, m.SaveCheckpoint(checkpoint, &Contents{IDs: everyParameter}))
		for k := range 3 {
			m.forward(2, 6)
			var err error
			switch k {
			case 0:
				err = m.WriteParameter(callsW, Values, 0, []float32{0.5, -0.5})
			case 1:
				err = m.ScaleParameter(callsW, Values, 0.5)
			default:
				c, opened := OpenCheckpoint(checkpoint)
				require.NoError(m, opened)
				err = c.Load(m.Engine, &Contents{IDs: everyParameter})
				c.Close()
			}
			require.NoError(m, err)
			m.sees(m.value(0, 64)...)
		}
	},
	"a parameter is frozen before update": func(m *threeCalls) {
		_, loss := m.forward(2, 6)
		m.backward(loss)
		require.NoError(m, m.SetUpdated(callsB, false))
		m.update()
		require.NoError(m, m.SetUpdated(callsB, true))
	},
	"a parameter is made and planned before backward": func(m *threeCalls) {
		_, loss := m.forward(2, 6)
		id, err := m.NewParameter(0, "late", dim(24, 64), false, nil)
		require.NoError(m, err)
		_, err = m.NewHandle(append([]uint32{id}, everyParameter...), m.trainer)
		require.NoError(m, err)
		m.backward(loss)
		m.update()
		require.NoError(m, m.DestroyParameter(id))
	},
	"a parameter is made before update": func(m *threeCalls) {
		_, loss := m.forward(2, 6)
		m.backward(loss)
		id, err := m.NewParameter(0, "late", dim(8, 8), false, nil)
		require.NoError(m, err)
		m.update()
		require.NoError(m, m.DestroyParameter(id))
	},
	"another trainer": func(m *threeCalls) {
		_, loss := m.forward(2, 6)
		m.backward(loss)
		other, err := m.NewTrainer(TrainerOptions{LearningRate: 0.3}, []uint32{callsB, callsU})
		require.NoError(m, err)
		_, err = other.Update()
		require.NoError(m, err)
		m.update()
		other.Close()
	},
	"fb before update": func(m *threeCalls) {
		_, loss := m.forward(2, 6)
		m.backward(loss)
		h, err := m.NewHandle(everyParameter, m.trainer)
		require.NoError(m, err)
		r, other := m.record(9)
		_, err = h.FB(m.graph, r.take(), other)
		require.NoError(m, err)
		last, err := h.SyncLatestLoss()
		require.NoError(m, err)
		m.sees(last)
	},
	"forward without backward": func(m *threeCalls) {
		for k := range uint32(5) {
			m.forward(k, 6)
			m.graph.Close()
		}
	},
	"the same graph again and again": func(m *threeCalls) {
		_, loss := m.forward(2, 6)
		for range 3 {
			m.backward(loss)
			m.update()
			require.NoError(m, m.graph.Forward(nil, loss, true))
			m.sees(m.value1(nil, loss))
		}
	},
	"update twice": func(m *threeCalls) {
		_, loss := m.forward(2, 6)
		m.backward(loss)
		m.update()
		m.update()
	},
	"two losses of one graph": func(m *threeCalls) {
		r, loss := m.forward(2, 6, 8)
		m.backward(r.terms[1])
		m.backward(loss)
		m.update()
	},
}

// gradient is that of a node.
func (m *threeCalls) gradient(n uint32) []float32 {
	m.Helper()
	x := make([]float32, m.graph.wire.DimOf(n).Size())
	require.NoError(m, m.graph.Gradient(n, x))
	return x
}

// run runs a program between usual steps, and adds the model at the end to what it has seen.
func (m *threeCalls) run(program func(m *threeCalls), foresees bool) {
	m.Helper()
	steps := func(n int) {
		for range n {
			if !foresees {
				m.foresight.wait = 1 << 20
			}
			m.step()
			if !foresees {
				m.foresight.wait = 1 << 20
			}
		}
	}
	steps(2)
	require.Equal(m, foresees, m.foresight.wait == 0)
	program(m)
	m.foresight.wait = 0
	steps(2)
	for _, id := range everyParameter {
		m.sees(m.read(id, Values)...)
		m.sees(m.read(id, Gradient)...)
	}
}

func TestForesightIsNotSeen(t *testing.T) {
	for _, device := range everyDevice {
		for name, program := range programs {
			t.Run(device+"/"+name, func(t *testing.T) {
				want := newThreeCalls(t, device)
				want.run(program, false)
				have := newThreeCalls(t, device)
				have.run(program, true)
				require.InDeltaSlice(t, want.seen, have.seen, 2e-5)
			})
		}
	}
}

// Parameters that no update changes collect their gradients, as they do without foresight.
func TestForesightWithParametersThatStay(t *testing.T) {
	for _, device := range everyDevice {
		var seen [2][]float32
		for foresees := range 2 {
			m := newThreeCalls(t, device)
			require.NoError(t, m.SetUpdated(callsTable, false))
			m.trainer.Close()
			var err error
			m.trainer, err = m.NewTrainer(TrainerOptions{LearningRate: 0.1, Clipping: true, Threshold: 0.5}, []uint32{callsW, callsTable, callsB})
			require.NoError(t, err)
			for k := range 5 {
				if foresees == 0 {
					m.foresight.wait = 2
				}
				require.Equal(t, foresees == 1, m.foreseen(m.step), "step %d", k)
			}
			m.foresight.wait = 2 * (1 - foresees)
			_, loss := m.forward(3, 1, 4)
			require.NoError(t, m.ScaleParameter(callsU, Gradient, 0.5))
			m.backward(loss)
			m.update()
			for _, id := range everyParameter {
				m.sees(m.read(id, Values)...)
				m.sees(m.read(id, Gradient)...)
			}
			seen[foresees] = m.seen
			require.NotZero(t, m.params[callsU].Pending)
		}
		require.InDeltaSlice(t, seen[0], seen[1], 2e-5, device)
	}
}

// foreseen reports whether a step is: it is two launches, not three.
func (m *threeCalls) foreseen(step func()) bool {
	before := m.Statistics().Launches
	step()
	return m.Statistics().Launches == before+2
}

// A foreseen step is two scripts, of which forward's is launched before the other is written; backward is none.
func TestAForeseenStepIsTwoScripts(t *testing.T) {
	for _, device := range []string{"cpu", "gpu"} {
		m := newThreeCalls(t, device)
		m.step()
		m.step()
		before := m.Statistics()
		_, loss := m.forward(3, 1, 4)
		batch := m.batch
		require.Equal(t, before.Launches+1, m.Statistics().Launches)
		require.NotEmpty(t, m.foresight.step.second.Script.Words)
		m.backward(loss)
		require.True(t, m.foresight.step.backward)
		m.update()
		require.Equal(t, before.Launches+2, m.stats.Launches)
		require.Equal(t, batch+1, m.batch)
		require.Equal(t, device == "cpu", m.foresight.step != nil) // updates are held
	}
}

// copying counts what is copied from segment to segment.
type copying struct {
	executor.Executor
	copies int
}

func (c *copying) Copy(to isa.Segment, at uint64, from isa.Segment, offset, n uint64) error {
	c.copies++
	return c.Executor.Copy(to, at, from, offset, n)
}

// An update on a CPU waits for the next call. If that drops the graph, its nodes get no copies of parameters.
func TestAnUpdateWaitsUntilItsGraphIsDropped(t *testing.T) {
	for _, device := range []string{"cpu", "cpus"} {
		for name, next := range map[string]func(m *threeCalls) error{
			"closed":  func(m *threeCalls) error { m.graph.Close(); return nil },
			"cleared": func(m *threeCalls) error { return m.graph.Truncate(0) },
			"kept":    func(m *threeCalls) error { m.NewGraph(); return m.SetUpdated(callsTable, true) },
		} {
			m := newThreeCalls(t, device)
			m.step()
			m.step()
			_, loss := m.forward(3, 1, 4)
			m.backward(loss)
			count := &copying{Executor: m.Engine.exec}
			m.Engine.exec = count
			launches := m.stats.Launches
			m.update()
			require.NotNil(t, m.foresight.step.held)
			require.Equal(t, launches+1, m.stats.Launches)
			require.Zero(t, count.copies)
			require.NoError(t, next(m))
			require.Nil(t, m.foresight.step)
			require.Equal(t, launches+1, m.stats.Launches)
			require.Equal(t, name == "kept", count.copies > 0, name)
		}
	}
}

// Parameters are updated at once if the program has pointers to one.
func TestUpdatesThatDoNotWait(t *testing.T) {
	for _, part := range []func(e *Engine) (unsafe.Pointer, error){
		func(e *Engine) (unsafe.Pointer, error) { return e.Expose(callsW, Values) },
		func(e *Engine) (unsafe.Pointer, error) { return e.Memory(callsW) },
		func(e *Engine) (unsafe.Pointer, error) { return e.GradientMemory(callsW, true) },
	} {
		m := newThreeCalls(t, "cpu")
		m.step()
		m.step()
		_, loss := m.forward(3, 1, 4)
		at, err := part(m.Engine)
		require.NoError(t, err)
		before := *(*float32)(at)
		m.backward(loss)
		m.update()
		require.Nil(t, m.foresight.step)
		require.NotEqual(t, before, m.read(callsW, Values)[0])
	}
}

// A weight decay that has become large is multiplied in after an update that waited.
func TestAnUpdateThatWaitsAndADecay(t *testing.T) {
	var values [2][]float32
	for k, device := range []string{"gpu", "cpu"} {
		m := newThreeCalls(t, device)
		m.step()
		m.step()
		m.collections[0] = Collection{Lambda: 0.5, Factor: 0.4}
		_, loss := m.forward(3, 1, 4)
		m.backward(loss)
		m.update()
		require.EqualValues(t, 1, m.collections[0].Factor)
		values[k] = m.read(callsW, Values)
	}
	require.InDeltaSlice(t, values[0], values[1], 2e-5)
}

// What is foreseen in vain is foreseen less and less often, and as usual once it comes again.
func TestForesightGivesUp(t *testing.T) {
	m := newThreeCalls(t, "cpu")
	m.step()
	foreseen := 0
	for range 200 {
		m.forward(3)
		if m.foresight.step != nil {
			foreseen++
		}
		m.graph.Close()
	}
	require.Less(t, foreseen, 9)
	require.NotZero(t, m.foresight.wait)
	require.False(t, m.foreseen(m.step))
	require.Zero(t, m.foresight.wait, "a usual step")
	require.True(t, m.foreseen(m.step))
	require.Zero(t, m.foresight.waited)
}

// An update whose gradients are not finite leaves them pending, and the parameters as they are.
func TestAForeseenUpdateThatFails(t *testing.T) {
	for _, device := range everyDevice {
		m := newThreeCalls(t, device)
		m.step()
		m.step()
		r := &recorder{}
		m.graph = m.NewGraph()
		r.begin()
		r.step(3)
		root := r.add(ops.Sqrt, callsVector, r.add(ops.ConstScalarMultiply, callsVector, r.state, bits(0)[0])) // its derivative is infinite
		r.terms = append(r.terms, r.add(ops.SumElements, callsScalar, root))
		loss := r.loss()
		require.NoError(t, m.graph.Forward(r.take(), loss, true))
		require.NotNil(t, m.foresight.step)
		before := m.snapshotOf()
		m.backward(loss)
		require.True(t, m.foresight.step.backward)
		_, err := m.trainer.Update()
		require.ErrorIs(t, err, ErrNumeric)
		require.ErrorContains(t, err, "the norm of the gradients is not finite")
		require.Equal(t, before, m.snapshotOf())
		require.True(t, m.params[callsW].Pending)
		_, err = m.trainer.Update()
		require.ErrorIs(t, err, ErrNumeric)
		for _, id := range everyParameter {
			require.NoError(t, m.ScaleParameter(id, Gradient, 0))
		}
		m.graph.Close()
		m.step()
	}
}

// snapshotOf are the values of all parameters.
func (m *threeCalls) snapshotOf() (values []float32) {
	for _, id := range everyParameter {
		values = append(values, m.read(id, Values)...)
	}
	return values
}

// A program that goes on after a checkpoint and one that is resumed from it foresee the same.
func TestForesightAfterACheckpoint(t *testing.T) {
	m := newThreeCalls(t, "cpu")
	for range 2 {
		m.forward(3)
		m.graph.Close()
	}
	require.NotZero(t, m.foresight.waited)
	require.NoError(t, m.SaveCheckpoint(t.TempDir()+"/c", &Contents{}))
	require.Equal(t, foresight{}, m.foresight)
}

// narrow has no room for more than so many floats of activations.
type narrow struct {
	executor.Executor
	most uint64
}

func (n narrow) Grow(s isa.Segment, floats uint64) error {
	if s == isa.SegAct && floats > n.most {
		return memory.ErrExhausted
	}
	return n.Executor.Grow(s, floats)
}

// Where there is no room for gradients, forward is possible as it is without foresight.
func TestForesightAsksForNoMoreThanThereIs(t *testing.T) {
	m := newThreeCalls(t, "cpu")
	m.step()
	m.step()
	m.foresight.wait = 1
	r, loss := m.record(2, 6)
	m.sees(m.value1(r.take(), loss))
	require.Nil(t, m.foresight.step)
	m.Engine.exec = narrow{m.Engine.exec, uint64(m.graph.valueEnd)}
	m.graph.Close()
	m.foresight.wait = 0
	r, loss = m.record(2, 6)
	m.sees(m.value1(r.take(), loss))
	require.Nil(t, m.foresight.step)
	require.NotZero(t, m.foresight.waited, "it was tried")
	require.ErrorIs(t, m.graph.Backward(nil, loss, false), ErrMemory)
}
