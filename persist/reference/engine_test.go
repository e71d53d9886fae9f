package reference_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"libvpps/persist"
	"libvpps/persist/reference"
)

// load makes an engine with the parameters of a random graph.
func load(t *testing.T, g *reference.RandomGraph, threads, processors int) *persist.Engine {
	t.Helper()
	e, err := persist.Open(persist.Options{Device: "cpu", Threads: threads, Processors: processors, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	c, err := e.NewCollection(0)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range g.Params {
		if id, err := e.NewParameter(c, "p", p.Dim, p.Lookup, floats(p.Values)); err != nil || int(id) != i {
			t.Fatalf("parameter %d has id %d, error %v", i, id, err)
		}
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

// near holds float32 results to float64 ones.
func near(have []float32, want []float64) (int, bool) {
	largest := 0.0
	for _, w := range want {
		largest = max(largest, math.Abs(w))
	}
	for i, w := range want {
		if !(math.Abs(float64(have[i])-w) <= 2e-4*math.Abs(w)+1e-4*largest+1e-5) {
			return i, false
		}
	}
	return 0, true
}

// The engine's values and gradients are the reference's on random graphs, for any number
// of processors and wherever evaluation pauses; every script passes the verifier.
func TestEngineAgreesWithTheReference(t *testing.T) {
	t.Setenv("VPPS_VERIFY", "1")
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 9))
		g, err := reference.Random(seed, reference.Options{Nodes: 10 + rng.IntN(40)})
		if err != nil {
			t.Fatal(err)
		}
		e := load(t, g, 1+rng.IntN(2), 1+rng.IntN(6))
		if !agrees(t, e, g, rng) {
			t.Logf("seed %d\n%s", seed, e.Dump())
			t.FailNow()
		}
		e.Close()
	}
}

func agrees(t *testing.T, e *persist.Engine, g *reference.RandomGraph, rng *rand.Rand) bool {
	t.Helper()
	graph := e.NewGraph()
	defer graph.Close()
	words := &g.Words
	for range rng.IntN(3) { // evaluation in pieces
		if err := graph.Forward(words, rng.Uint32N(g.Loss+1), false); err != nil {
			t.Errorf("forward: %v", err)
			return false
		}
		words = nil
	}
	if err := graph.Backward(words, g.Loss, true); err != nil {
		t.Errorf("backward: %v", err)
		return false
	}
	d, err := reference.Differentiate(g.Graph, g.Surroundings(), g.Loss, g.Values)
	if err != nil {
		t.Fatal(err)
	}
	for n := range g.Loss + 1 {
		have := make([]float32, len(g.Values[n]))
		if err := graph.Value(nil, n, have); err != nil {
			t.Errorf("value of node %d (%s): %v", n, g.Graph.Op[n], err)
			return false
		}
		if i, ok := near(have, g.Values[n]); !ok {
			t.Errorf("node %d (%s %s of %v), element %d: value %g, the reference has %g", n, g.Graph.Op[n], g.Graph.DimOf(n), g.Graph.ArgsOf(n), i, have[i], g.Values[n][i])
			return false
		}
	}
	for id, p := range g.Params {
		want, have := d.Params[uint32(id)], make([]float32, len(p.Values))
		if want == nil {
			want = make([]float64, len(have))
		}
		if err := e.ReadParameter(uint32(id), persist.Gradient, 0, have); err != nil {
			t.Errorf("gradient of parameter %d: %v", id, err)
			return false
		}
		if i, ok := near(have, want); !ok {
			t.Errorf("parameter %d (%v), element %d: gradient %g, the reference has %g", id, p.Dim, i, have[i], want[i])
			return false
		}
	}
	return true
}
