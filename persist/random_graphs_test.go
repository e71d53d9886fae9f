package persist

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"libvpps/bridge"
	"libvpps/gpu"
	"libvpps/gpu/mocks"
	"libvpps/persist/cpu"
	"libvpps/persist/cuda"
	"libvpps/persist/cuda/standin"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/reference"
	"libvpps/persist/schedule"
)

// Random graphs on every kind of executor and plan, held to a float64 evaluator. An engine trains thousands of small graphs, in
// sequences of calls: fb several times in flight, forward in pieces, backward, update. After each sequence all that
// the engine knows - losses, values, gradients, parameters, what rules remember - is compared.

// dealtOut is a CPU executor whose matrices lie as a function says.
type dealtOut struct {
	*cpu.Executor
	deal func(matrices []plan.Matrix) (*plan.Plan, error)
}

func (d dealtOut) Plan(matrices []plan.Matrix) (*plan.Plan, error) { return d.deal(matrices) }

// world is an engine, its parameters and trainers, and the reference's of all of them.
type world struct {
	*testing.T
	rng      *rand.Rand
	engine   *Engine
	what     string // kind of executor and plan
	model    *reference.Model
	trainers []*reference.Trainer
	real     []*Trainer
	handles  []*Handle
	reversed bool // trainers take their parameters from the last to the first
}

func (w *world) ok(err error) {
	if err != nil {
		w.Helper()
		w.Fatalf("%s: %v", w.what, err)
	}
}

// worldKinds are the executors on which random graphs run.
var worldKinds = []string{"cpu", "cpu", "cpu, plan of a GPU", "cpu, plan of a GPU", "stand-in"}

// newWorld opens an engine of a random kind.
func newWorld(t *testing.T, rng *rand.Rand, compiler gpu.Compiler, reversed bool) *world {
	w := &world{T: t, rng: rng, reversed: reversed}
	kind := worldKinds[rng.IntN(len(worldKinds))]
	w.what = kind
	switch kind {
	case "stand-in":
		w.engine = w.onStandIn(compiler)
	default:
		w.engine = w.onCPU(kind != "cpu")
	}
	w.engine.verify = rng.IntN(8) == 0
	w.engine.apart = rng.IntN(3) == 0
	if rng.IntN(2) == 0 {
		w.engine.wide = schedule.Wideness{Batched: 1 + rng.IntN(20), Single: 1 + rng.IntN(20), Piece: 1 + rng.IntN(4), Terms: 1 + rng.IntN(3)}
	}
	w.engine.perShape = rng.IntN(2)
	w.what += fmt.Sprintf(", verify %v, merge %v, wide %v, per shape %d", w.engine.verify, !w.engine.apart, w.engine.wide, w.engine.perShape)
	w.fill()
	return w
}

func (w *world) onCPU(likeGPU bool) *Engine {
	threads, processors := []int{1, 1, 1, 2, 3, 4}[w.rng.IntN(6)], w.rng.IntN(7)
	device := w.device()
	if likeGPU {
		processors = device.Processors
	}
	x, err := cpu.New(threads, processors, 60)
	w.ok(err)
	w.what += fmt.Sprintf(", %d threads, %d processors", threads, processors)
	if !likeGPU {
		return newEngine(x, 1)
	}
	rpw := 1 + w.rng.IntN(4)
	w.what += fmt.Sprintf(", %+v, rpw %d", device, rpw)
	return newEngine(dealtOut{x, func(matrices []plan.Matrix) (*plan.Plan, error) {
		return plan.RoundRobin(matrices, device, rpw)
	}}, 1)
}

// device is a random GPU.
func (w *world) device() plan.Device {
	d := plan.Device{Processors: []int{1 + w.rng.IntN(8), 20, 132}[w.rng.IntN(3)], Warps: []int{1, 1, 2, 8}[w.rng.IntN(4)],
		RegistersPer: 255, SetAside: 80 + w.rng.IntN(40), SharedPerBlock: 200 << 10, Copies: w.rng.IntN(4)}
	if w.rng.IntN(4) == 0 { // hardly any registers: shared memory and memory
		d.Weights, d.Partials, d.SharedPerBlock = 1, 4, 64<<10+32
	}
	return d
}

func (w *world) onStandIn(compiler gpu.Compiler) *Engine {
	s := plan.Settings{RowsPerWarp: w.rng.IntN(3), Copies: w.rng.IntN(3)}
	if w.rng.IntN(4) == 0 {
		s.Registers, s.Partials = 1, 1
	}
	g := &standin.GPU{}
	x, err := cuda.New(g, compiler, 60, s, "0.1.0")
	w.ok(err)
	e := newEngine(x, 1)
	g.Plan = func() *plan.Plan { return e.plan }
	w.what += fmt.Sprintf(", %+v", s)
	return e
}

// fill makes parameters and trainers.
func (w *world) fill() {
	params := reference.RandomParameters(w.rng.Uint64(), 8+w.rng.IntN(16))
	lambda := []float64{0, 0, 0, 1.0 / 64}[w.rng.IntN(4)]
	w.model = reference.NewModel(params, lambda)
	c, err := w.engine.NewCollection(float32(lambda))
	w.ok(err)
	var ids []uint32
	for i, p := range params {
		id, err := w.engine.NewParameter(c, "p", p.Dim, p.Lookup, single(p.Values))
		w.ok(err)
		if int(id) != i {
			w.Fatalf("%s: parameter %d has id %d", w.what, i, id)
		}
		if w.rng.IntN(8) == 0 {
			w.model.Frozen[i] = true
			w.ok(w.engine.SetUpdated(id, false))
		}
		ids = append(ids, id)
	}
	n := 1 + w.rng.IntN(2)
	if lambda > 0 {
		n = 1 // each update of a collection's trainer is a step of its decay
	}
	w.rng.Shuffle(len(ids), func(i, k int) { ids[i], ids[k] = ids[k], ids[i] })
	cut := len(ids)
	if n == 2 {
		cut = 1 + w.rng.IntN(len(ids)-1)
	}
	w.train(ids[:cut])
	if n == 2 {
		w.train(ids[cut:])
	}
}

// train makes a trainer of some parameters, and its handle.
func (w *world) train(ids []uint32) {
	if w.reversed {
		ids = slices.Clone(ids)
		slices.Reverse(ids)
	}
	rule := isa.Rule(w.rng.IntN(int(isa.EG))) // EG wants positive values
	o := TrainerOptions{LearningRate: 1.0 / 128, Clipping: true, Threshold: []float32{0.0625, 1 << 20}[w.rng.IntN(2)], Rule: rule,
		Momentum: 0.75, Rho: 0.875, Epsilon: 0.03125, Beta1: 0.75, Beta2: 0.875, Sparse: w.rng.IntN(2) == 0}
	t, err := w.engine.NewTrainer(o, ids)
	w.ok(err)
	h, err := w.engine.NewHandle(ids, t)
	w.ok(err)
	w.real, w.handles = append(w.real, t), append(w.handles, h)
	w.trainers = append(w.trainers, reference.NewTrainer(reference.Trainer{Rule: isa.RuleTable[rule].Name, Rate: float64(o.LearningRate), Sparse: o.Sparse,
		Threshold: float64(o.Threshold), Momentum: 0.75, Rho: 0.875, Epsilon: 0.03125, B1: 0.75, B2: 0.875}, w.model, ids))
	w.what += fmt.Sprintf(", %s clipped at %g sparse %v", isa.RuleTable[rule].Name, o.Threshold, o.Sparse)
}

func single(v []float64) []float32 {
	f := make([]float32, len(v))
	for i, x := range v {
		f[i] = float32(x)
	}
	return f
}

// act is what a step of a sequence does with its graph.
type act int

const (
	actFB act = iota
	actKeep
	actInfer
	actBackward
	actFull // backward to all nodes
	actUpdate
	actFactor // the weight decay's is set
)

func (a act) String() string {
	return [...]string{"fb", "fb keeping nodes", "infer", "backward", "full backward", "update", "factor"}[a]
}

// step is one call or a few.
type stepOf struct {
	act     act
	graph   *reference.RandomGraph
	trainer int
	pieces  []uint32 // nodes up to which forward evaluates before
	keep    []uint32
	factor  float32
}

// item is one result: what it is of, and its numbers.
type item struct {
	name   string
	step   int
	number uint32 // of a node or parameter
	want   []float64
	have   []float32
	untold bool // no call says what it is
}

// sequence makes some random steps and has the reference make them, too.
func (w *world) sequence(state *reckoning) (steps []stepOf) {
	kind := w.rng.IntN(3)
	take := func(s stepOf) {
		steps = append(steps, s)
		state.make(len(steps)-1, &s, nil)
	}
	for range 1 + w.rng.IntN(4) {
		if w.rng.IntN(16) == 0 {
			take(w.anotherFactor())
		}
		s := stepOf{trainer: w.rng.IntN(len(w.trainers))}
		o := reference.Options{Nodes: 5 + w.rng.IntN(8), Params: state.model.Params}
		if w.rng.IntN(400) == 0 { // long enough for merging, for parts and those who help
			o.Sentences = 20 + w.rng.IntN(200)
		}
		if w.rng.IntN(3) == 0 {
			o.Layers = 1 + w.rng.IntN(6)
		}
		g, err := reference.Random(w.rng.Uint64(), o)
		w.ok(err)
		s.graph = g
		switch {
		case w.rng.IntN(4) == 0:
			s.act = actInfer
		case kind == 0:
			s.act = actFB
		case kind == 1 && w.rng.IntN(2) == 0:
			s.act = actKeep
			for range 1 + w.rng.IntN(4) {
				s.keep = append(s.keep, w.rng.Uint32N(g.Loss+1))
			}
		case kind == 1:
			s.act = actFB
			s.pieces = w.pieces(g)
		default:
			s.act = []act{actBackward, actBackward, actFull}[w.rng.IntN(3)]
			s.pieces = w.pieces(g)
		}
		take(s)
		if s.act >= actBackward && w.rng.IntN(3) > 0 {
			if w.rng.IntN(16) == 0 {
				take(w.anotherFactor())
			}
			take(stepOf{act: actUpdate, trainer: s.trainer})
		}
	}
	state.finish()
	return steps
}

// anotherFactor is one that the next update may multiply into the values.
func (w *world) anotherFactor() stepOf {
	return stepOf{act: actFactor, factor: 0.125 + 0.875*w.rng.Float32()}
}

func (w *world) pieces(g *reference.RandomGraph) (list []uint32) {
	for range w.rng.IntN(3) {
		list = append(list, w.rng.Uint32N(g.Loss+1))
	}
	return list
}

// reckoning is the reference at work on a sequence.
type reckoning struct {
	*testing.T
	model    *reference.Model
	trainers []*reference.Trainer
	items    []item
	nearClip bool // a norm was so close to the threshold that rounding decides
}

func (w *world) reckon() *reckoning {
	r := &reckoning{T: w.T, model: w.model.Clone()}
	for _, t := range w.trainers {
		r.trainers = append(r.trainers, t.Clone())
	}
	return r
}

func (r *reckoning) add(name string, step int, number uint32, v []float64) {
	r.items = append(r.items, item{name: name, step: step, number: number, want: slices.Clone(v)})
}

// make makes one step. With blur everything is evaluated anew, and rounded roughly.
func (r *reckoning) make(n int, s *stepOf, blur func(v []float64)) {
	t := r.trainers[s.trainer]
	if s.act == actUpdate {
		r.apply(t)
		return
	}
	if s.act == actFactor {
		r.model.Factor = float64(s.factor)
		r.model.Settle()
		return
	}
	g, around := s.graph, &reference.Surroundings{Blur: blur}
	around.Params = func(id uint32) []float64 { return r.model.Params[id].Values }
	values := g.Values
	var err error
	if blur != nil {
		if values, err = reference.Evaluate(g.Graph, around, g.Loss); err != nil {
			r.Fatal(err)
		}
	}
	if s.act == actInfer {
		for k := range g.Loss + 1 {
			r.add("value", n, k, values[k])
		}
		return
	}
	d, err := reference.Differentiate(g.Graph, around, g.Loss, values)
	if err != nil {
		r.Fatal(err)
	}
	r.model.Add(d)
	switch s.act {
	case actFB:
		r.add("loss", n, g.Loss, values[g.Loss])
		r.apply(t)
	case actKeep:
		for _, k := range s.keep {
			r.add("value", n, k, values[k])
		}
		r.add("loss", n, g.Loss, values[g.Loss])
		r.apply(t)
	default:
		needs := reference.NeedsGradient(g.Graph)
		for k := range g.Loss + 1 {
			r.add("value", n, k, values[k])
			if s.act == actFull || needs[k] || k == g.Loss {
				r.add("gradient", n, k, d.Nodes[k])
			}
		}
	}
}

func (r *reckoning) apply(t *reference.Trainer) {
	t.Apply(r.model)
	r.nearClip = r.nearClip || math.Abs(t.Norm/t.Threshold-1) < 1e-3
}

// finish adds what is there after the sequence.
func (r *reckoning) finish() {
	for id := range r.model.Params {
		r.add("parameter", -1, uint32(id), r.model.Raw[id])
		r.add("pending gradient", -1, uint32(id), r.model.Pending[id])
	}
	for _, t := range r.trainers {
		info := ruleByName(t.Rule)
		for i, id := range t.IDs {
			if info.States > 0 {
				r.add("state", -1, id, slices.Concat(t.State[i][:info.States]...))
			}
		}
	}
}

func ruleByName(name string) *isa.RuleInfo {
	for i := range isa.RuleTable {
		if isa.RuleTable[i].Name == name {
			return &isa.RuleTable[i]
		}
	}
	panic(name)
}

// perform has the engine make the steps, and fills in what it has.
func (w *world) perform(steps []stepOf, items []item) {
	next := 0
	take := func() *item {
		i := &items[next]
		next++
		i.have = make([]float32, len(i.want))
		return i
	}
	var sent []*item // losses of fb calls of one handle since the last wait
	last := -1
	var tickets []asked
	settle := func() {
		if last >= 0 {
			loss, err := w.handles[last].SyncLatestLoss()
			w.ok(err)
			sent[len(sent)-1].have[0] = loss
			for k := 2; k <= min(InFlight, len(sent)); k++ {
				sent[len(sent)-k].untold = true // fb tells the loss of InFlight calls before
			}
		}
		sent, last = sent[:0], -1
	}
	for n := range steps {
		s := &steps[n]
		h := w.handles[s.trainer]
		if s.act == actUpdate {
			_, err := w.real[s.trainer].Update()
			w.ok(err)
			continue
		}
		if s.act == actFactor {
			w.ok(w.engine.SetFactor(0, s.factor))
			continue
		}
		words := &s.graph.Words
		g := w.engine.NewGraph()
		if s.act == actInfer {
			x := asked{ticket: w.infer(g, words, s.graph.Loss)}
			for range s.graph.Loss + 1 {
				x.items = append(x.items, take())
			}
			tickets = append(tickets, x)
			continue
		}
		for _, node := range s.pieces {
			w.ok(g.Forward(words, node, false))
			words = nil
		}
		switch s.act {
		case actFB, actKeep:
			if last != s.trainer {
				settle()
			}
			if s.act == actKeep {
				w.ok(h.Keep(g, s.keep))
			}
			stale, err := h.FB(g, words, s.graph.Loss)
			w.ok(err)
			for range s.keep {
				i := take()
				w.ok(g.Value(nil, i.number, i.have))
			}
			sent, last = append(sent, take()), s.trainer
			if k := len(sent) - 1 - InFlight; k >= 0 {
				sent[k].have[0] = stale
			}
		default:
			settle()
			w.ok(g.Backward(words, s.graph.Loss, s.act == actFull))
			for next < len(items) && items[next].step == n {
				i := take()
				if i.name == "value" {
					w.ok(g.Value(nil, i.number, i.have))
				} else {
					w.ok(g.Gradient(i.number, i.have))
				}
			}
		}
		g.Close()
	}
	w.rng.Shuffle(len(tickets), func(i, k int) { tickets[i], tickets[k] = tickets[k], tickets[i] })
	for _, x := range tickets {
		w.fetch(&x)
	}
	settle()
	for next < len(items) {
		i := take()
		switch i.name {
		case "parameter":
			w.ok(w.engine.ReadParameter(i.number, Values, 0, i.have))
		case "pending gradient":
			w.ok(w.engine.ReadParameter(i.number, Gradient, 0, i.have))
		case "state":
			w.ok(w.trainerOf(i.number).ReadState(i.number, i.have))
		}
	}
}

// asked is the values of all nodes of a graph, by ticket.
type asked struct {
	ticket Ticket
	items  []*item
}

// infer asks for all nodes of a graph, which is closed.
func (w *world) infer(g *Graph, words *bridge.Words, last uint32) Ticket {
	defer g.Close()
	var nodes []uint32
	for k := range last + 1 {
		nodes = append(nodes, k)
	}
	t, err := g.Infer(words, nodes)
	w.ok(err)
	return t
}

// fetch gives the items their numbers.
func (w *world) fetch(x *asked) {
	n := 0
	for _, i := range x.items {
		n += len(i.have)
	}
	all := make([]float32, n)
	w.ok(w.engine.Result(x.ticket, all))
	for _, i := range x.items {
		all = all[copy(i.have, all):]
	}
}

func (w *world) trainerOf(id uint32) *Trainer {
	for i, t := range w.trainers {
		if slices.Contains(t.IDs, id) {
			return w.real[i]
		}
	}
	panic("no trainer")
}

// adopt takes over what the engine has, so that rounding does not add up over sequences.
func (w *world) adopt(state *reckoning) {
	w.model, w.trainers = state.model, state.trainers
	for k := range state.items {
		i := &state.items[k]
		switch i.name {
		case "parameter":
			double(w.model.Raw[i.number], i.have)
		case "pending gradient":
			double(w.model.Pending[i.number], i.have)
		case "state":
			for t := range w.trainers {
				if at := slices.Index(w.trainers[t].IDs, i.number); at >= 0 {
					n := len(w.model.Raw[i.number])
					for s := range len(i.have) / n {
						double(w.trainers[t].State[at][s], i.have[s*n:])
					}
				}
			}
		}
	}
	f, err := w.engine.Factor(0)
	w.ok(err)
	w.model.Factor = float64(f)
	w.model.Settle()
}

func double(to []float64, from []float32) {
	for i := range to {
		to[i] = float64(from[i])
	}
}

// refresh gives the parameters new values, which training has moved away, and clears their gradients.
func (w *world) refresh() {
	for id, raw := range w.model.Raw {
		for i := range raw {
			raw[i] = float64(float32((0.1 + 0.9*w.rng.Float64()) * float64(1-2*w.rng.IntN(2))))
		}
		w.ok(w.engine.WriteParameter(uint32(id), Values, 0, single(raw)))
		w.ok(w.engine.ScaleParameter(uint32(id), Gradient, 0))
		clear(w.model.Pending[id])
		clear(w.model.Touched[id])
	}
	w.model.Settle()
}

// Rounding. Unless it is far nearer than that, a result may be as far from the reference's as perturbations of every value and
// every gradient by a few units in the last place move the reference's own, several times over: that is what an
// evaluation in float32 does (a backward stable one: each operation is exact for slightly different operands).
const (
	unit      = 1.0 / (1 << 24)
	roughly   = 8 * unit // how far the evaluator moves a value
	samples   = 12
	allowance = 4 // how many times what was seen of these
	atMost    = 8 * unit
	near      = 64 * unit
	tooFar    = 1e-2 // whoever may be so far off is not compared: the graph is ill-conditioned
)

// compare holds the engine's results to the reference's.
func (w *world) compare(steps []stepOf, start, state *reckoning) {
	var spread [][]float64
	for k := range state.items {
		i := &state.items[k]
		if i.untold {
			continue
		}
		largest := 0.0
		for _, x := range i.want {
			if !math.IsInf(x, 0) {
				largest = max(largest, math.Abs(x))
			}
		}
		if largest > 1e20 {
			continue // the gradient by a label of BinaryLogLoss, of the smallest float
		}
		for e, want := range i.want {
			have := float64(i.have[e])
			off := math.Abs(have - want)
			if have == want || off <= near*max(largest, 1.0/16) {
				continue
			}
			if spread == nil {
				spread = w.spread(steps, start, state)
			}
			bound := allowance*spread[k][e] + atMost*max(largest, 1)
			if off <= bound || bound > tooFar*max(1, math.Abs(want)) && off <= 100*bound {
				w.worst(off / bound)
				continue
			}
			if state.nearClip && i.step < 0 {
				continue
			}
			w.explain(steps, start, state.items, i, e, bound)
		}
	}
}

// worstSeen is the largest part of a bound that was used up.
var worstSeen float64

func (w *world) worst(part float64) {
	if part <= 1 {
		worstSeen = max(worstSeen, part)
	}
}

// spread is how far rounding moves each number of the results.
func (w *world) spread(steps []stepOf, start, state *reckoning) [][]float64 {
	all := make([][]float64, len(state.items))
	for k := range all {
		all[k] = make([]float64, len(state.items[k].want))
	}
	blur := func(v []float64) {
		for i := range v {
			v[i] *= 1 + roughly*(2*w.rng.Float64()-1)
		}
	}
	for range samples {
		r := &reckoning{T: w.T, model: start.model.Clone()}
		for _, t := range start.trainers {
			r.trainers = append(r.trainers, t.Clone())
		}
		for n := range steps {
			r.make(n, &steps[n], blur)
		}
		r.finish()
		for k := range all {
			for e, x := range r.items[k].want {
				if d := math.Abs(x - state.items[k].want[e]); d > all[k][e] {
					all[k][e] = d
				}
			}
		}
	}
	return all
}

// explain says what is wrong, with the graph up to there.
func (w *world) explain(steps []stepOf, start *reckoning, losses []item, i *item, e int, bound float64) {
	w.Helper()
	text := ""
	for n, s := range steps {
		text += fmt.Sprintf("step %d: %v by trainer %d", n, s.act, s.trainer)
		if s.graph != nil {
			text += fmt.Sprintf(", %d nodes, pieces %v, keep %v", s.graph.Graph.Len(), s.pieces, s.keep)
		}
		text += "\n"
		if s.graph != nil && s.graph.Graph.Len() < 60 {
			for k := range uint32(s.graph.Graph.Len()) {
				g := s.graph.Graph
				text += fmt.Sprintf("  %d %s%v %s %v\n", k, g.Op[k], g.ArgsOf(k), g.DimOf(k), g.AttrsOf(k))
			}
		}
	}
	for _, l := range losses {
		if l.name == "loss" && !l.untold {
			text += fmt.Sprintf("loss of step %d: %g, the reference has %g\n", l.step, l.have[0], l.want[0])
		}
	}
	if i.step >= 0 {
		text += w.localise(steps, i.step, start)
	}
	w.Fatalf("%s\n%sstep %d, %s %d, element %d of %d: %g, the reference has %g; rounding explains %g", w.what, text,
		i.step, i.name, i.number, e, len(i.want), i.have[e], i.want[e], bound)
}

// localise evaluates the graph of a step again, alone and node by node, and names the first node that differs.
func (w *world) localise(steps []stepOf, step int, start *reckoning) string {
	r := &reckoning{T: w.T, model: start.model.Clone()}
	for _, t := range start.trainers {
		r.trainers = append(r.trainers, t.Clone())
	}
	for n := range step {
		r.make(n, &steps[n], nil)
	}
	factor, err := w.engine.Factor(0)
	w.ok(err)
	for id := range r.model.Raw {
		values := single(r.model.Params[id].Values)
		for i := range values {
			values[i] /= factor
		}
		w.ok(w.engine.WriteParameter(uint32(id), Values, 0, values))
	}
	random, g := steps[step].graph, w.engine.NewGraph()
	defer g.Close()
	w.ok(g.Forward(&random.Words, random.Loss, false))
	for n := range random.Loss + 1 {
		have := make([]float32, len(random.Values[n]))
		w.ok(g.Value(nil, n, have))
		for e, want := range random.Values[n] {
			if math.Abs(float64(have[e])-want) > 1e-4*max(1, math.Abs(want)) {
				args := ""
				for _, a := range random.Graph.ArgsOf(n) {
					args += fmt.Sprintf(" %d: %s %s %v", a, random.Graph.Op[a], random.Graph.DimOf(a), random.Values[a][:min(8, len(random.Values[a]))])
				}
				return fmt.Sprintf("forward: node %d (%s %s of %v, attributes %v), element %d is %g, not %g; of%s\n", n, random.Graph.Op[n], random.Graph.DimOf(n),
					random.Graph.ArgsOf(n), random.Graph.AttrsOf(n), e, have[e], want, args)
			}
		}
	}
	again := w.engine.NewGraph()
	defer again.Close()
	_, err = w.handles[steps[step].trainer].FB(again, &random.Words, random.Loss)
	w.ok(err)
	loss, err := w.handles[steps[step].trainer].SyncLatestLoss()
	w.ok(err)
	return fmt.Sprintf("forward alone gives the reference's values, fb alone the loss %g, weight decay was %g and is %g\n", loss, start.model.Factor, factor)
}

// train some sequences; returns how many graphs were executed.
func (w *world) sequences(n int) (graphs int) {
	for k := range n {
		if k%16 == 15 {
			w.refresh()
		}
		start, state := w.reckon(), w.reckon()
		steps := w.sequence(state)
		w.perform(steps, state.items)
		w.compare(steps, start, state)
		w.adopt(state)
		for _, s := range steps {
			if s.graph != nil {
				graphs++
			}
		}
		if w.Failed() {
			break
		}
	}
	return graphs
}

// TestRandomGraphs trains random graphs on engines of all kinds.
func TestRandomGraphs(t *testing.T) {
	t.Setenv("VPPS_CACHE_DIR", t.TempDir())
	compiler := mocks.NVRTC(t)
	graphs := map[string]int{}
	figures := func() string {
		all := 0
		for _, n := range graphs {
			all += n
		}
		return fmt.Sprintf("%d executed graphs %v, at most %.2f of a bound", all, graphs, worstSeen)
	}
	rounds(t, 3*time.Second, figures, func(n uint64) {
		w := newWorld(t, source(n), compiler, false)
		defer w.engine.Close()
		kind, _, _ := strings.Cut(w.what, ",")
		graphs[kind] += w.sequences(200)
	})
}
