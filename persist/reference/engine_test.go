package reference_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist"
	"libvpps/persist/isa"
	"libvpps/persist/reference"
)

// load makes a CPU engine with the parameters of a random graph, in a collection with weight
// decay lambda.
func load(t *testing.T, g *reference.RandomGraph, threads, processors int, lambda float32) *persist.Engine {
	t.Helper()
	e, err := persist.Open(persist.Options{Device: "cpu", Threads: threads, Processors: processors, Seed: 1})
	require.NoError(t, err)
	t.Cleanup(e.Close)
	c, err := e.NewCollection(lambda)
	require.NoError(t, err)
	for i, p := range g.Params {
		id, err := e.NewParameter(c, "p", p.Dim, p.Lookup, floats(p.Values))
		require.NoError(t, err)
		require.EqualValues(t, i, id)
	}
	return e
}

func floats(v []float64) []float32 {
	f := make([]float32, len(v))
	for i, x := range v {
		f[i] = float32(x)
	}
	return f
}

// near holds float32 results to float64 ones; it gives the first element that is off.
func near(have []float32, want []float64) (element int, ok bool) {
	largest := 0.0
	for _, w := range want {
		if !math.IsInf(w, 0) {
			largest = max(largest, math.Abs(w))
		}
	}
	for i, w := range want {
		h := float64(have[i])
		if h != w && !(math.Abs(h-w) <= 2e-4*math.Abs(w)+1e-4*largest+1e-5) {
			return i, false
		}
	}
	return 0, true
}

// comparison is a random graph in an engine, held to the reference.
type comparison struct {
	*testing.T
	engine *persist.Engine
	random *reference.RandomGraph
	graph  *persist.Graph
}

func (c *comparison) values(values [][]float64) {
	c.Helper()
	g := c.random.Graph
	for n := range c.random.Loss + 1 {
		have := make([]float32, len(values[n]))
		require.NoError(c, c.graph.Value(nil, n, have))
		if i, ok := near(have, values[n]); !ok {
			c.Fatalf("node %d (%s %s of %v), element %d: value %g, the reference has %g\n%s",
				n, g.Op[n], g.DimOf(n), g.ArgsOf(n), i, have[i], values[n][i], c.engine.Dump())
		}
	}
}

// gradients compares those of the nodes (of all, or of those that a parameter feeds) and of the
// parameters.
func (c *comparison) gradients(d *reference.Gradients, full bool) {
	c.Helper()
	g := c.random.Graph
	needs := reference.NeedsGradient(g)
	for n := range c.random.Loss + 1 {
		want, have := d.Nodes[n], make([]float32, len(d.Nodes[n]))
		if !full && !needs[n] && n != c.random.Loss {
			want = make([]float64, len(have))
		}
		require.NoError(c, c.graph.Gradient(n, have))
		if i, ok := near(have, want); !ok {
			c.Fatalf("node %d (%s %s of %v), element %d: gradient %g, the reference has %g\n%s",
				n, g.Op[n], g.DimOf(n), g.ArgsOf(n), i, have[i], want[i], c.engine.Dump())
		}
	}
	c.parameters(persist.Gradient, func(id uint32) []float64 { return d.Params[id] })
}

// parameters compares a part of all parameters; nil stands for zeros.
func (c *comparison) parameters(part persist.Part, of func(id uint32) []float64) {
	c.Helper()
	for id, p := range c.random.Params {
		want, have := of(uint32(id)), make([]float32, len(p.Values))
		if want == nil {
			want = make([]float64, len(have))
		}
		require.NoError(c, c.engine.ReadParameter(uint32(id), part, 0, have))
		if i, ok := near(have, want); !ok {
			c.Fatalf("parameter %d (%v), element %d: part %d is %g, the reference has %g\n%s",
				id, p.Dim, i, part, have[i], want[i], c.engine.Dump())
		}
	}
}

// Values and gradients are the reference's for any number of processors, wherever evaluation
// pauses; every script passes the verifier.
func TestEngineAgreesWithTheReference(t *testing.T) {
	t.Setenv("VPPS_VERIFY", "1")
	seen := map[ops.Code]bool{}
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 9))
		g, err := reference.Random(seed, reference.Options{Nodes: 10 + rng.IntN(40)})
		require.NoError(t, err, "seed %d", seed)
		for _, op := range g.Graph.Op {
			seen[op] = true
		}
		e := load(t, g, 1+rng.IntN(2), 1+rng.IntN(6), 0)
		c := &comparison{t, e, g, e.NewGraph()}
		words := &g.Words
		for range rng.IntN(3) { // evaluation in pieces
			require.NoError(t, c.graph.Forward(words, rng.Uint32N(g.Loss+1), false), "seed %d", seed)
			words = nil
		}
		full := rng.IntN(2) == 0
		require.NoError(t, c.graph.Backward(words, g.Loss, full), "seed %d", seed)
		d, err := reference.Differentiate(g.Graph, g.Surroundings(), g.Loss, g.Values)
		require.NoError(t, err)
		c.values(g.Values)
		c.gradients(d, full)
		e.Close()
	}
	for op, info := range ops.Table {
		random := info.Name != "" && reference.IsRandom(ops.Code(op))
		if info.Name != "" && !random && !seen[ops.Code(op)] {
			t.Errorf("%s was never drawn", info.Name)
		}
	}
}

// Random nodes draw in the engine; what they drew, handed to the reference, gives the same
// values and gradients.
func TestRandomNodesAgreeWithTheReference(t *testing.T) {
	t.Setenv("VPPS_VERIFY", "1")
	smooth := []ops.Code{ops.RandomNormal, ops.RandomBernoulli, ops.RandomUniform, ops.Dropout, ops.GaussianNoise, ops.Dropout,
		ops.GaussianNoise, ops.Tanh, ops.LogisticSigmoid, ops.CwiseMultiply, ops.CwiseSum, ops.AffineTransform, ops.Negate}
	compared := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 10))
		g, err := reference.Random(seed, reference.Options{Nodes: 20, Ops: smooth})
		require.NoError(t, err)
		e := load(t, g, 1+rng.IntN(2), 1+rng.IntN(4), 0)
		c := &comparison{t, e, g, e.NewGraph()}
		require.NoError(t, c.graph.Forward(&g.Words, g.Loss, true))
		if !readDraws(c) {
			e.Close()
			continue
		}
		compared++
		values, err := reference.Evaluate(g.Graph, g.Surroundings(), g.Loss)
		require.NoError(t, err)
		c.values(values)
		require.NoError(t, c.graph.Backward(nil, g.Loss, true))
		d, err := reference.Differentiate(g.Graph, g.Surroundings(), g.Loss, values)
		require.NoError(t, err)
		c.gradients(d, true)
		e.Close()
	}
	require.Greater(t, compared, 20)
}

// readDraws finds out what the engine's random nodes drew. That fails where a dropout had a zero
// to drop: its mask does not show.
func readDraws(c *comparison) bool {
	g := c.random.Graph
	read := func(n uint32) []float32 {
		v := make([]float32, g.DimOf(n).Size())
		require.NoError(c, c.graph.Value(nil, n, v))
		return v
	}
	for n := range c.random.Draws {
		draws := make([]float64, 0, g.DimOf(n).Size())
		y, x := read(n), []float32(nil)
		if args := g.ArgsOf(n); len(args) > 0 {
			x = read(args[0])
		}
		for i := range y {
			d := float64(y[i])
			switch g.Op[n] {
			case ops.Dropout:
				if x[i] == 0 {
					return false
				}
				if d != 0 { // kept
					d = 1 / (1 - float64(math.Float32frombits(g.AttrsOf(n)[0])))
				}
			case ops.GaussianNoise:
				d -= float64(x[i])
			}
			draws = append(draws, d)
		}
		c.random.Draws[n] = draws
	}
	return true
}

// makePositive changes the parameters' values.
func makePositive(g *reference.RandomGraph) {
	for _, p := range g.Params {
		for i, x := range p.Values {
			p.Values[i] = math.Abs(x) + 0.125
		}
	}
}

// fb leaves the parameters that the reference's forward, backward and update leave, with and
// without clipping, with weight decay and with frozen parameters, over several batches.
func TestFBUpdatesLikeTheReference(t *testing.T) {
	t.Setenv("VPPS_VERIFY", "1")
	clips := 0
	for seed := range uint64(80) {
		rng := rand.New(rand.NewPCG(seed, 11))
		g, err := reference.Random(seed+1000, reference.Options{Nodes: 10 + rng.IntN(30), Total: true})
		require.NoError(t, err)
		o := persist.TrainerOptions{LearningRate: 0.01, Clipping: true, Threshold: []float32{0.05, 1e9}[rng.IntN(2)],
			Rule: isa.Rule(seed % uint64(isa.Rules)), Momentum: 0.75, Rho: 0.875, Epsilon: 0.03125, Beta1: 0.75, Beta2: 0.875}
		o.Sparse = o.Rule != isa.EG && rng.IntN(2) == 0
		lambda := []float64{0, 0.03125}[rng.IntN(2)]
		if o.Rule == isa.EG {
			makePositive(g)
		}
		m := reference.NewModel(g.Params, lambda)
		e := load(t, g, 1+rng.IntN(2), 1+rng.IntN(5), float32(lambda))
		var ids []uint32
		for id := range g.Params {
			ids = append(ids, uint32(id))
			if rng.IntN(4) == 0 {
				m.Frozen[id] = true
				require.NoError(t, e.SetUpdated(uint32(id), false))
			}
		}
		trainer, err := e.NewTrainer(o, ids)
		require.NoError(t, err)
		u := reference.NewTrainer(reference.Trainer{Rule: isa.RuleTable[o.Rule].Name, Rate: float64(o.LearningRate),
			Threshold: float64(o.Threshold), Momentum: 0.75, Rho: 0.875, Epsilon: 0.03125, B1: 0.75, B2: 0.875}, m, ids)
		h, err := e.NewHandle(ids, trainer)
		require.NoError(t, err)
		c := &comparison{t, e, g, e.NewGraph()}
		words, clipped := &g.Words, uint64(0)
		for range 3 {
			around := g.Surroundings()
			around.Params = func(id uint32) []float64 { return m.Params[id].Values }
			values, err := reference.Evaluate(g.Graph, around, g.Loss)
			require.NoError(t, err)
			d, err := reference.Differentiate(g.Graph, around, g.Loss, values)
			require.NoError(t, err)
			_, err = h.FB(c.graph, words, g.Loss)
			require.NoError(t, err, "seed %d", seed)
			loss, err := h.SyncLatestLoss()
			require.NoError(t, err, "seed %d", seed)
			require.InDelta(t, values[g.Loss][0], loss, 1e-4*(1+math.Abs(values[g.Loss][0])))
			m.Add(d)
			if u.Apply(m) {
				clipped++
			}
			c.parameters(persist.Values, func(id uint32) []float64 { return m.Raw[id] })
			c.parameters(persist.Gradient, func(id uint32) []float64 { return m.Pending[id] })
			words = nil
		}
		n, err := h.Clips()
		require.NoError(t, err)
		require.Equal(t, clipped, n, "seed %d", seed)
		clips += int(clipped)
		factor, err := e.Factor(0)
		require.NoError(t, err)
		require.InDelta(t, m.Factor, factor, 1e-6)
		e.Close()
	}
	require.Greater(t, clips, 10)
}

// outcome is everything a short training leaves: values, node gradients, parameters. It is nil if the numbers drawn
// lead outside an operation's domain.
func outcome(t *testing.T, g *reference.RandomGraph, threads, processors int) (all []float32) {
	e := load(t, g, threads, processors, 0.01)
	defer e.Close()
	var ids []uint32
	for id := range g.Params {
		ids = append(ids, uint32(id))
	}
	h, err := e.NewHandle(ids, nil)
	require.NoError(t, err)
	graph := e.NewGraph()
	err = graph.Backward(&g.Words, g.Loss, true)
	if err != nil && strings.Contains(err.Error(), "not finite") {
		return nil
	}
	require.NoError(t, err)
	for n := range g.Loss + 1 {
		v := make([]float32, 2*g.Graph.DimOf(n).Size())
		require.NoError(t, graph.Value(nil, n, v[:len(v)/2]))
		require.NoError(t, graph.Gradient(n, v[len(v)/2:]))
		all = append(all, v...)
	}
	for range 2 {
		_, err := h.FB(graph, nil, g.Loss)
		require.NoError(t, err)
	}
	for id, p := range g.Params {
		v := make([]float32, len(p.Values))
		require.NoError(t, e.ReadParameter(uint32(id), persist.Values, 0, v))
		all = append(all, v...)
	}
	return all
}

// The same program gives the same bits again, also on another number of threads: a script for
// as many processors as a GPU has runs on one thread and on two.
func TestResultsAreTheSameBits(t *testing.T) {
	cases := []struct {
		name                        string
		threads, others, processors int
	}{
		{"twice on one thread", 1, 1, 3},
		{"twice on two threads", 2, 2, 5},
		{"132 processors on one and two threads", 1, 2, 132},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			compared := 0
			for seed := range uint64(16) {
				g, err := reference.Random(seed+2000, reference.Options{Nodes: 40, Random: true})
				require.NoError(t, err)
				first, second := outcome(t, g, c.threads, c.processors), outcome(t, g, c.others, c.processors)
				compared += min(len(first), 1)
				require.Len(t, second, len(first))
				for i := range first {
					require.Equal(t, math.Float32bits(first[i]), math.Float32bits(second[i]), "seed %d, number %d", seed, i)
				}
			}
			require.GreaterOrEqual(t, compared, 8)
		})
	}
}

// leaf is a graph of one node, a parameter's or a row's, of size 1.
func leaf(t *testing.T, op ops.Code, lookup bool, rest ...uint32) *reference.RandomGraph {
	one := bridge.Dim{Nd: 1, Bd: 1, D: [7]uint32{1}}
	p := reference.Parameter{Dim: one, Lookup: lookup, Values: []float64{3}}
	g := &reference.RandomGraph{Graph: &bridge.Graph{}, Params: []reference.Parameter{p}}
	g.Words = bridge.Words{NodeCount: 1, Nodes: append([]uint32{uint32(op), 0}, rest...), Dims: []bridge.Dim{one}, Inputs: []uint32{0}}
	require.NoError(t, g.Graph.Append(&g.Words, g.Parameter))
	var err error
	g.Values, err = reference.Evaluate(g.Graph, g.Surroundings(), 0)
	require.NoError(t, err)
	return g
}

// A loss that is a leaf has gradient 1, and so has what it is made of.
func TestALossThatIsALeafAgreesWithTheReference(t *testing.T) {
	t.Setenv("VPPS_VERIFY", "1")
	for name, g := range map[string]*reference.RandomGraph{
		"parameter": leaf(t, ops.Parameter, false), "table": leaf(t, ops.Parameter, true),
		"constant": leaf(t, ops.ConstParameter, false), "row": leaf(t, ops.Lookup, true, 0),
	} {
		d, err := reference.Differentiate(g.Graph, g.Surroundings(), 0, g.Values)
		require.NoError(t, err)
		want := 1.0
		if name == "constant" {
			want = 0
		}
		require.Equal(t, want, append(d.Params[0], 0)[0], name)
		for _, full := range []bool{false, true} {
			c := &comparison{t, load(t, g, 2, 3, 0), g, nil}
			c.graph = c.engine.NewGraph()
			require.NoError(t, c.graph.Backward(&g.Words, 0, full), name)
			c.values(g.Values)
			c.gradients(d, full)
			_, err = c.engine.NewHandle([]uint32{0}, nil)
			require.NoError(t, err)
		}
	}
}

// Elements that dropout drops together are all 0 or all scaled; both occur.
func TestDropoutOfLinesBatchElementsAndTensors(t *testing.T) {
	d := bridge.Dim{Nd: 2, Bd: 40, D: [7]uint32{3, 4}}
	for op, group := range map[ops.Code]func(i int) int{
		ops.DropoutDim:   func(i int) int { return i%3*1000 + i/12 }, // the rows, whose columns stay together
		ops.DropoutBatch: func(i int) int { return i / 12 },
		ops.BlockDropout: func(i int) int { return 0 },
	} {
		attrs := []uint32{math.Float32bits(0.5)}
		if op == ops.DropoutDim {
			attrs = append([]uint32{1}, attrs...)
		}
		values := map[float32]int{}
		for seed := range uint32(20) {
			g := &reference.RandomGraph{Graph: &bridge.Graph{}}
			g.Words = bridge.Words{NodeCount: 2, Nodes: append([]uint32{uint32(ops.Constant), math.Float32bits(1), uint32(op), 0}, attrs...), Dims: []bridge.Dim{d}}
			e := load(t, g, 1, 1, 0)
			e.Seed(seed)
			y := make([]float32, d.Size())
			require.NoError(t, e.NewGraph().Value(&g.Words, 1, y))
			first := map[int]float32{}
			for i, v := range y {
				if have, ok := first[group(i)]; ok {
					require.Equal(t, have, v, "%s, element %d", op, i)
				}
				first[group(i)] = v
			}
			for _, v := range first {
				values[v]++
			}
			e.Close()
		}
		require.Len(t, values, 2, "%s", op)
		require.Positive(t, values[0], "%s", op)
		require.Positive(t, values[2], "%s", op)
	}
}
