package persist

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/gpu"
	"libvpps/gpu/mocks"
	"libvpps/persist/cuda"
	"libvpps/persist/cuda/standin"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
)

// Every call of the driver fails in turn, whatever the program was doing. A fault that the device survives is an error of the
// call, or of the one that waits for it, and nothing is lost: parameters are those before the failed call, bit by bit, and the same call
// then does what it would have done. Of a device that is lost the last snapshot can be read.

// place is a call of the driver: the n-th during what the program was doing.
type place struct {
	state, doing, method string
	n                    int
}

// life is a program on a stand-in for a GPU: the model of these tests.
type life struct {
	*model
	gpu     *standin.GPU
	handle  *Handle
	trainer *Trainer
	graphs  uint32
}

// states are where a program may be when a call of the driver fails.
var states = []struct {
	name string
	plan plan.Settings
	rule isa.Rule
	come func(l *life) error
}{
	{"at its begin", plan.Settings{}, isa.SGD, func(l *life) error { return nil }},
	{"in training", plan.Settings{}, isa.SGD, func(l *life) error { return l.train(5) }},
	{"in training by Adam", plan.Settings{}, isa.Adam, func(l *life) error { return l.train(4) }},
	{"in training by momentum, with gradients to apply", plan.Settings{}, isa.Momentum, func(l *life) error { return errors.Join(l.train(3), l.backward()) }},
	{"in training beyond the registers", plan.Settings{Registers: 1, Partials: 1}, isa.SGD, func(l *life) error { return l.train(3) }},
	{"in training by Adagrad", plan.Settings{}, isa.Adagrad, func(l *life) error { return l.train(3) }},
	{"after a new matrix", plan.Settings{}, isa.SGD, func(l *life) error { return errors.Join(l.train(2), l.grow()) }},
	{"in training with one row a warp", plan.Settings{RowsPerWarp: 1}, isa.AMSGrad, func(l *life) error { return l.train(3) }},
	{"in training in shared memory", plan.Settings{Registers: 1, Copies: 1}, isa.RMSProp, func(l *life) error { return l.train(3) }},
	{"in evaluation", plan.Settings{Copies: 1}, isa.Adadelta, func(l *life) error { return errors.Join(l.forward(), l.forward()) }},
	{"with batches in flight", plan.Settings{}, isa.SGD, func(l *life) error { return errors.Join(l.train(2), l.send(), l.send()) }},
}

// doings are what a program may be doing then. Each ends with a call that waits.
var doings = []struct {
	name    string
	do      func(l *life) error
	several bool // calls: those before the one that fails have done what they do
}{
	{"fb", func(l *life) error { return l.train(1) }, false},
	{"three fb in flight", func(l *life) error { return errors.Join(l.send(), l.send(), l.send(), l.sync()) }, true},
	{"fb that keeps a value", (*life).keep, true},
	{"forward", (*life).forward, false},
	{"backward and update", func(l *life) error {
		if err := l.backward(); err != nil {
			return err
		}
		_, err := l.trainer.Update()
		return err
	}, true},
	{"a new parameter", (*life).grow, false},
	{"a new handle", func(l *life) error { _, err := l.NewHandle([]uint32{paramW, paramTable, paramM}, nil); return err }, false},
	{"a large batch", (*life).large, false},
	{"reading and writing", func(l *life) error {
		v := make([]float32, 2)
		if err := l.ReadParameter(paramW, Values, 0, v); err != nil {
			return err
		}
		return l.WriteParameter(paramW, Values, 0, v)
	}, false},
	{"scaling gradients", func(l *life) error { return l.ScaleParameter(paramM, Gradient, 0.5) }, false},
}

// begin opens the program's engine and brings it to a state.
func begin(t *testing.T, compiler gpu.Compiler, state int) *life {
	s := &states[state]
	g := &standin.GPU{}
	x, err := cuda.New(g, compiler, 60, s.plan, "0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	l := &life{model: &model{t, newEngine(x, 1), nil, nil}, gpu: g}
	l.snapshot.every = 1
	g.Plan = func() *plan.Plan { return l.Engine.plan }
	l.fill(0)
	l.addMatrix()
	ids := []uint32{paramW, paramTable, paramM}
	o := TrainerOptions{Rule: s.rule, LearningRate: 0.05, Clipping: true, Threshold: 5, Sparse: true, Momentum: 0.9, Rho: 0.95, Epsilon: 1e-3, Beta1: 0.9, Beta2: 0.999}
	if l.trainer, err = l.NewTrainer(o, ids); err == nil {
		l.handle, err = l.NewHandle(ids, l.trainer)
	}
	if err == nil {
		err = s.come(l)
	}
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	return l
}

func (l *life) next() *bridge.Words {
	l.graphs++
	return mixed(l.graphs%4, float32(l.graphs%3)*.5, 1)
}

func (l *life) send() error {
	g := l.NewGraph()
	defer g.Close()
	_, err := l.handle.FB(g, l.next(), 7)
	return err
}

func (l *life) sync() error { _, err := l.handle.SyncLatestLoss(); return err }

func (l *life) train(n int) error {
	for range n {
		if err := l.send(); err != nil {
			return err
		}
	}
	return l.sync()
}

func (l *life) keep() error {
	g := l.NewGraph()
	defer g.Close()
	if err := l.handle.Keep(g, []uint32{5}); err != nil {
		return err
	}
	if _, err := l.handle.FB(g, l.next(), 7); err != nil {
		return err
	}
	return g.Value(nil, 5, make([]float32, 3))
}

func (l *life) forward() error {
	g := l.NewGraph()
	defer g.Close()
	if err := g.Forward(l.next(), 4, false); err != nil {
		return err
	}
	return g.Value(nil, 7, make([]float32, 1))
}

func (l *life) backward() error {
	g := l.NewGraph()
	defer g.Close()
	return g.Backward(l.next(), 7, true)
}

func (l *life) grow() error {
	_, err := l.NewParameter(0, "more", dim(40, 30), false, nil)
	return err
}

// large is a batch that needs room which is not there yet, for activations and for its script.
func (l *life) large() error {
	w := l.next()
	w.Inputs = append(w.Inputs, make([]uint32, 1<<15)...)
	w.Dims = append(w.Dims, dim(1<<15))
	w.Nodes = append(w.Nodes, op(ops.Constant, 4, bits(1)[0])...)
	w.Nodes = append(w.Nodes, op(ops.SumElements, dim1, 8)...)
	w.Nodes = append(w.Nodes, op(ops.Sum, dim1, 2, 7, 9)...)
	w.NodeCount += 3
	g := l.NewGraph()
	defer g.Close()
	if _, err := l.handle.FB(g, w, 10); err != nil {
		return err
	}
	return l.sync()
}

// memory is everything that training may lose: values, and what the rule remembers.
func (l *life) memory() (all []float32, err error) {
	for _, id := range l.trainer.ids {
		p := &l.params[id]
		v := make([]float32, p.Size)
		if err := l.ReadParameter(id, Values, 0, v); err != nil {
			return nil, err
		}
		all = append(all, v...)
		if n := isa.RuleTable[l.trainer.options.Rule].States; n > 0 {
			v = make([]float32, n*int(p.Size))
			if err := l.trainer.ReadState(id, v); err != nil {
				return nil, err
			}
			all = append(all, v...)
		}
	}
	return all, nil
}

func sameBits(a, b []float32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return true
}

// course is how something goes without a fault: the driver's calls, and the memory before and after.
type course struct {
	methods       []string
	before, after []float32
}

func (l *life) end() {
	l.gpu.Fail(nil)
	l.Engine.Close()
}

func undisturbed(t *testing.T, compiler gpu.Compiler, state, doing int) (c course) {
	l := begin(t, compiler, state)
	defer l.end()
	c.before = l.remembered(state)
	l.gpu.Fail(func(call string) error {
		c.methods = append(c.methods, call)
		return nil
	})
	if err := doings[doing].do(l); err != nil {
		t.Fatalf("%s, %s: %v", states[state].name, doings[doing].name, err)
	}
	l.gpu.Fail(nil)
	c.after = l.must()
	return c
}

// remembered is the memory, unless reading it would wait for the batches in flight.
func (l *life) remembered(state int) []float32 {
	if len(l.flights) > 0 {
		return nil
	}
	return l.must()
}

func (l *life) must() []float32 {
	l.Helper()
	m, err := l.memory()
	if err != nil {
		l.Fatal(err)
	}
	return m
}

// fault has the n-th call fail and checks what is left.
func fault(t *testing.T, compiler gpu.Compiler, state, doing, n int, why error, c *course) error {
	l := begin(t, compiler, state)
	defer l.end()
	l.remembered(state)
	calls, refused := 0, "" // batches in flight make other calls than those of the undisturbed course, depending on time
	l.gpu.Fail(func(call string) error {
		calls++
		if calls == n+1 {
			refused = call
			return why
		}
		return nil
	})
	err := doings[doing].do(l)
	l.gpu.Fail(nil)
	if l.gpu.Lost() || l.dead != nil && !refusals[refused] {
		return l.afterLoss(err)
	}
	if l.dead != nil {
		return fmt.Errorf("the device works on, but the engine does not: %v", l.dead)
	}
	have, failed := l.memory()
	if failed != nil { // of a batch in flight, told once
		if have, failed = l.memory(); failed != nil {
			return fmt.Errorf("parameters cannot be read: %v", failed)
		}
	}
	if err == nil && failed == nil && c.before != nil {
		if !sameBits(have, c.after) {
			return fmt.Errorf("no error, but other results: %v, not %v", have, c.after)
		}
		return nil
	}
	if c.before == nil { // some batches in flight may have been done
		return l.goesOn()
	}
	if !doings[doing].several && !sameBits(have, c.before) {
		return fmt.Errorf("failed with %q, but parameters changed: %v, not %v", err, have, c.before)
	}
	if errAgain := doings[doing].do(l); errAgain != nil {
		return fmt.Errorf("failed with %q, and again without a fault: %v", err, errAgain)
	}
	return l.goesOn()
}

// goesOn trains a little more.
func (l *life) goesOn() error {
	if err := l.train(2); err != nil {
		return fmt.Errorf("cannot train on: %v", err)
	}
	return nil
}

// afterLoss: every call says that the device is lost, and values read as of the last snapshot.
func (l *life) afterLoss(err error) error {
	if err == nil { // the next call that needs it finds out
		err = l.train(1)
	}
	if !errors.Is(err, ErrDevice) {
		return fmt.Errorf("the device is lost, but the error is %v", err)
	}
	if !l.snapshot.taken {
		return nil
	}
	for _, id := range l.trainer.ids {
		v := make([]float32, l.params[id].Size)
		if err := l.ReadParameter(id, Values, 0, v); err != nil {
			return fmt.Errorf("the snapshot cannot be read: %v", err)
		}
		for _, x := range v {
			if math.IsNaN(float64(x)) {
				return fmt.Errorf("the snapshot has NaN: %v", v)
			}
		}
	}
	return nil
}

// refusals are the calls after which, if the driver refuses them, everything is as before. After others, copies and waits, nobody
// knows: the device counts as lost.
var refusals = map[string]bool{"Alloc": true, "AllocHost": true, "Launch": true, "Load": true, "Function": true, "MaxBlocksPerSM": true,
	"NewEvent": true, "MemInfo": true, "Record": true}

// faultKinds are what a driver may say.
var faultKinds = []error{standin.OutOfMemory, standin.Lost}

// TestFaultsOfTheDriver has each call of the driver fail in each state.
func TestFaultsOfTheDriver(t *testing.T) {
	t.Setenv("VPPS_CACHE_DIR", t.TempDir())
	compiler := mocks.NVRTC(t)
	seen, lost := map[place]bool{}, 0
	figures := func() string {
		return fmt.Sprintf("%d distinct faults (place, state), %d lost something", len(seen), lost)
	}
	combinations := len(states) * len(doings)
	rounds(t, 2*time.Second, figures, func(n uint64) {
		k := int(n*37+*tortureSeed) % combinations // all in turn, neighbours apart
		state, doing := k%len(states), k/len(states)
		c := undisturbed(t, compiler, state, doing)
		for i, method := range c.methods {
			for _, why := range faultKinds {
				if err := fault(t, compiler, state, doing, i, why, &c); err != nil {
					lost++
					t.Errorf("%s, %s: call %d of the driver, %s, fails with %v: %v", states[state].name, doings[doing].name, i, method, why, err)
				}
			}
			seen[place{states[state].name, doings[doing].name, method, i}] = true
		}
	})
}
