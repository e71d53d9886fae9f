package persist

// Words that a broken or hostile front-end might record: those of random graphs, damaged. Whatever they are, a call decodes, lowers,
// proves and executes them, or says what is wrong and changes nothing. What runs is held to the float64 evaluator.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/cpu"
	"libvpps/persist/reference"
)

// target is an engine that words are thrown at.
type target struct {
	testing.TB
	engine  *Engine
	handle  *Handle
	params  []reference.Parameter
	values  [][]float32
	counts  struct{ inputs, decoded, executed, compared int }
	decoded *bridge.Graph
}

// What is larger says no more, and takes long.
const (
	mostElements = 1 << 14
	mostOrder    = 64 // of a moment
)

func newTarget(t testing.TB, seed uint64) *target {
	x, err := cpu.New(1, 1+int(seed%4), 60)
	if err != nil {
		t.Fatal(err)
	}
	a := &target{TB: t, engine: newEngine(x, 1), params: reference.RandomParameters(seed, 10)}
	a.engine.verify, a.engine.apart = true, seed/4%2 == 0 // whatever the processors
	if _, err := a.engine.NewCollection(0); err != nil {
		t.Fatal(err)
	}
	var ids []uint32
	for _, p := range a.params {
		a.values = append(a.values, single(p.Values))
		id, err := a.engine.NewParameter(0, "p", p.Dim, p.Lookup, single(p.Values))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if a.handle, err = a.engine.NewHandle(ids, nil); err != nil {
		t.Fatal(err)
	}
	return a
}

// throw has the engine take the words; how chooses the calls.
func (a *target) throw(w *bridge.Words, how uint8) {
	a.counts.inputs++
	var decoded bridge.Graph
	a.decoded = &decoded
	if err := decoded.Append(w, a.engine.dimOf); err != nil {
		if decoded.Len() != 0 {
			a.Fatalf("refused with %q, but %d nodes are left", err, decoded.Len())
		}
		if how%16 == 0 {
			a.refuses(w)
		}
		return
	}
	a.counts.decoded++
	if decoded.Len() == 0 || tooLarge(&decoded) {
		return
	}
	last := uint32(decoded.Len() - 1)
	g := a.engine.NewGraph()
	defer g.Close()
	var err error
	trained := false
	switch scalar := decoded.DimOf(last).Size() == 1; {
	case how%4 == 1 && scalar:
		err = g.Backward(w, last, how&4 != 0)
		a.clearGradients()
	case how%4 == 2 && scalar:
		if _, err = a.handle.FB(g, w, last); err == nil {
			_, err = a.handle.SyncLatestLoss()
		}
		trained = err == nil
	default:
		err = g.Forward(w, last, false)
	}
	if err != nil {
		a.harmless(err)
		a.unchanged()
		return
	}
	a.counts.executed++
	if trained {
		a.restore()
		return
	}
	a.compare(&decoded, g)
}

// refuses calls the engine with words that the decoder refuses.
func (a *target) refuses(w *bridge.Words) {
	g := a.engine.NewGraph()
	defer g.Close()
	err := g.Forward(w, 0, false)
	if err == nil {
		a.Fatalf("forward takes words that the decoder refuses")
	}
	a.harmless(err)
	a.unchanged()
}

func tooLarge(g *bridge.Graph) bool {
	n := 0
	for i := range uint32(g.Len()) {
		size := g.DimOf(i).Size()
		if a := g.AttrsOf(i); g.Op[i] == ops.MaxPooling2D {
			size *= int(a[0]) * int(a[1])
		}
		if n += size; n > mostElements {
			return true
		}
		if g.Op[i] == ops.MomentDimension && g.AttrsOf(i)[1] > mostOrder {
			return true
		}
	}
	return false
}

// harmless: the error is one of the call's, and the engine goes on.
func (a *target) harmless(err error) {
	a.Helper()
	var fault *bridge.Error
	known := errors.As(err, &fault) || errors.Is(err, ErrArgument) || errors.Is(err, ErrNumeric) || errors.Is(err, ErrMemory)
	if !known || strings.Contains(err.Error(), "internal") || a.engine.dead != nil {
		a.Fatalf("words that the decoder takes end in %q; the engine's state is %v\n%s%s", err, a.engine.dead, listing(a.decoded), a.engine.Dump())
	}
}

// unchanged: the parameters are as they were, bit by bit.
func (a *target) unchanged() {
	a.Helper()
	for id, want := range a.values {
		have := make([]float32, len(want))
		if err := a.engine.ReadParameter(uint32(id), Values, 0, have); err != nil {
			a.Fatal(err)
		}
		for i := range want {
			if math.Float32bits(have[i]) != math.Float32bits(want[i]) {
				a.Fatalf("a failed call changed element %d of parameter %d from %g to %g", i, id, want[i], have[i])
			}
		}
	}
	a.clearGradients()
}

func (a *target) clearGradients() {
	for id := range a.values {
		if err := a.engine.ScaleParameter(uint32(id), Gradient, 0); err != nil {
			a.Fatal(err)
		}
	}
}

func (a *target) restore() {
	for id, v := range a.values {
		if err := a.engine.WriteParameter(uint32(id), Values, 0, v); err != nil {
			a.Fatal(err)
		}
	}
}

// compare holds values to the evaluator's, where those are moderate and rounding does not decide.
func (a *target) compare(decoded *bridge.Graph, g *Graph) {
	for _, op := range decoded.Op {
		if reference.IsRandom(op) {
			return
		}
	}
	around := &reference.Surroundings{Params: func(id uint32) []float64 { return a.params[id].Values }}
	last := uint32(decoded.Len() - 1)
	values, err := reference.Evaluate(decoded, around, last)
	if err != nil {
		a.Fatalf("the evaluator refuses what the engine takes: %v", err)
	}
	for _, v := range values {
		for _, x := range v {
			if !(x == 0 || math.Abs(x) > 1e-15 && math.Abs(x) < 1e15) {
				return
			}
		}
	}
	for i := range uint32(decoded.Len()) { // a label is a probability, or what comes of it is anything
		if decoded.Op[i] == ops.BinaryLogLoss && slices.ContainsFunc(values[decoded.ArgsOf(i)[1]], func(x float64) bool { return x < 0 || x > 1 }) {
			return
		}
	}
	a.counts.compared++
	have := make([]float32, len(values[last]))
	if err := g.Value(nil, last, have); err != nil {
		a.Fatal(err)
	}
	for i, want := range values[last] {
		if d := math.Abs(float64(have[i]) - want); d > 1e-5*math.Abs(want)+1e-6 && d > a.rounding(decoded, last, i, want) {
			a.Fatalf("node %d, element %d: %g, the evaluator has %g\n%s", last, i, have[i], want, listing(decoded))
		}
	}
}

// rounding is how far an element may be off.
func (a *target) rounding(g *bridge.Graph, last uint32, element int, want float64) float64 {
	rng, off := rand.New(rand.NewPCG(1, 1)), 0.0
	around := &reference.Surroundings{Params: func(id uint32) []float64 { return a.params[id].Values }, Blur: func(v []float64) {
		for i := range v {
			v[i] *= 1 + roughly*(2*rng.Float64()-1)
		}
	}}
	for range 2 * samples {
		values, err := reference.Evaluate(g, around, last)
		if err != nil || math.IsNaN(values[last][element]) {
			return math.Inf(1)
		}
		off = max(off, math.Abs(values[last][element]-want))
	}
	return 4 * allowance * off
}

func listing(g *bridge.Graph) (s string) {
	for i := range uint32(g.Len()) {
		s += fmt.Sprintf("  %d %s%v %s %v\n", i, g.Op[i], g.ArgsOf(i), g.DimOf(i), g.AttrsOf(i))
	}
	return s + fmt.Sprintln(g.Inputs)
}

// mutator damages words.
type mutator struct {
	rng  *rand.Rand
	pool []*reference.RandomGraph
}

func newMutator(t testing.TB, rng *rand.Rand, params []reference.Parameter) *mutator {
	m := &mutator{rng: rng}
	for range 100 {
		g, err := reference.Random(rng.Uint64(), reference.Options{Nodes: 4 + rng.IntN(10), Params: params, Random: rng.IntN(4) == 0})
		if err != nil {
			t.Fatal(err)
		}
		m.pool = append(m.pool, g)
	}
	return m
}

// next is a damaged graph.
func (m *mutator) next() *bridge.Words {
	from := &m.pool[m.rng.IntN(len(m.pool))].Words
	w := &bridge.Words{Nodes: slices.Clone(from.Nodes), NodeCount: from.NodeCount, Dims: slices.Clone(from.Dims), Inputs: slices.Clone(from.Inputs)}
	for range 1 + m.rng.IntN(3) {
		switch m.rng.IntN(8) {
		case 0, 1, 2:
			m.damage(w.Nodes)
		case 3:
			if len(w.Dims) > 0 {
				d := &w.Dims[m.rng.IntN(len(w.Dims))]
				all := append([]uint32{d.Nd, d.Bd}, d.D[:]...)
				m.damage(all)
				d.Nd, d.Bd = all[0], all[1]
				copy(d.D[:], all[2:])
			}
		case 4, 5:
			m.damage(w.Inputs)
		case 6:
			w.NodeCount += 1 - 2*m.rng.IntN(2)
			if w.NodeCount > 2 && m.rng.IntN(2) == 0 {
				w.NodeCount = m.rng.IntN(w.NodeCount)
			}
		default: // a piece of another graph
			other := &m.pool[m.rng.IntN(len(m.pool))].Words
			if n := len(other.Nodes); n > 0 && len(w.Nodes) > 0 {
				at, from := m.rng.IntN(len(w.Nodes)), m.rng.IntN(n)
				w.Nodes = slices.Insert(w.Nodes, at, other.Nodes[from:min(n, from+m.rng.IntN(8))]...)
				w.NodeCount += m.rng.IntN(3)
			}
		}
	}
	return w
}

// special are words that mean something somewhere: limits, floats that are none.
var special = []uint32{0, 1, 2, 3, 7, 8, 0x7fffffff, 0x80000000, 0xffffffff, 1 << 16, 1 << 28, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x00000001, 0x7f7fffff}

// damage changes one word.
func (m *mutator) damage(words []uint32) {
	if len(words) == 0 {
		return
	}
	w := &words[m.rng.IntN(len(words))]
	switch m.rng.IntN(6) {
	case 0:
		*w ^= 1 << m.rng.IntN(32)
	case 1:
		*w = m.rng.Uint32N(24)
	case 2:
		*w = words[m.rng.IntN(len(words))]
	case 3:
		*w += uint32(m.rng.IntN(5)) - 2
	case 4:
		*w = *w&^0xff | m.rng.Uint32N(128) // another operation
	default:
		*w = special[m.rng.IntN(len(special))]
	}
}

// TestMutatedWords throws damaged graphs at engines.
func TestMutatedWords(t *testing.T) {
	var all target
	figures := func() string {
		c := all.counts
		return fmt.Sprintf("%d mutated inputs, %d decoded, %d executed, %d compared", c.inputs, c.decoded, c.executed, c.compared)
	}
	rounds(t, 2*time.Second, figures, func(n uint64) {
		rng := source(n)
		a := newTarget(t, rng.Uint64N(1<<20))
		defer a.engine.Close()
		m := newMutator(t, rng, a.params)
		for range 20000 {
			a.throw(m.next(), uint8(rng.IntN(256)))
		}
		c := &all.counts
		c.inputs, c.decoded, c.executed, c.compared = c.inputs+a.counts.inputs, c.decoded+a.counts.decoded, c.executed+a.counts.executed, c.compared+a.counts.compared
	})
}

// FuzzExecute is the same under Go's fuzzer, which sees what the code does with its input. The checked-in corpus is in
// testdata/fuzz.
func FuzzExecute(f *testing.F) {
	a := newTarget(f, 3)
	for seed := range uint64(6) {
		g, err := reference.Random(seed, reference.Options{Nodes: 10, Params: a.params, Random: true})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packed(g.Words.Nodes), g.Words.NodeCount, packedDims(g.Words.Dims), packed(g.Words.Inputs), uint8(seed))
	}
	f.Fuzz(func(t *testing.T, nodes []byte, count int, dims, inputs []byte, how uint8) {
		if count > len(nodes) || len(nodes)+len(dims)+len(inputs) > 1<<14 {
			return
		}
		a.TB = t
		a.throw(&bridge.Words{Nodes: unpacked(nodes), NodeCount: count, Dims: unpackedDims(dims), Inputs: unpacked(inputs)}, how)
	})
}

func packed(words []uint32) (b []byte) {
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

func unpacked(b []byte) []uint32 {
	words := make([]uint32, len(b)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return words
}

func packedDims(dims []bridge.Dim) []byte {
	var words []uint32
	for i := range dims {
		words = append(append(words, dims[i].Nd, dims[i].Bd), dims[i].D[:]...)
	}
	return packed(words)
}

func unpackedDims(b []byte) []bridge.Dim {
	words := unpacked(b)
	dims := make([]bridge.Dim, len(words)/9)
	for i := range dims {
		w := words[9*i:]
		dims[i].Nd, dims[i].Bd = w[0], w[1]
		copy(dims[i].D[:], w[2:9])
	}
	return dims
}
