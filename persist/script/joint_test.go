package script_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
	"libvpps/persist/reference"
	"libvpps/persist/schedule"
	"libvpps/persist/script"
	"libvpps/persist/verify"
)

// sameSets compares sets of nodes.
func sameSets(t *testing.T, name string, want, have [][]uint32) {
	t.Helper()
	require.Equal(t, len(want), len(have), "%s: joint products %v, not %v", name, have, want)
	for k := range want {
		require.Equal(t, want[k], have[k], name)
	}
}

// Products that cannot depend on one another are one, forward and backward. They train as an evaluator in double
// precision does, and as they do apart.
func TestJointProducts(t *testing.T) {
	for name, c := range script.JointCases(t) {
		var b, apart script.Builder
		script.Unjoined(&apart)
		forward := *c.Request
		forward.Backward, forward.Update, forward.Result = false, nil, script.NoOffset
		wordsOf(t, &b, &forward)
		sameSets(t, name+", forward", c.Forward, script.JointNodes(&b, false))
		c.Update.Threshold, c.Update.Rate, c.Result = 1e30, 0.5, 0
		joined := &isa.Script{Words: wordsOf(t, &b, c.Request)}
		sameSets(t, name+", backward", c.Backward, script.JointNodes(&b, true))
		require.NoError(t, verify.Verify(joined, c.Plan), name)
		alone := &isa.Script{Words: wordsOf(t, &apart, c.Request)}
		require.Empty(t, script.JointNodes(&apart, false))
		nearlyAlike(t, 0, c.Request, alone, joined, 1e-5)
		if !c.Random {
			trainsAsReference(t, name, c.Request)
		}
	}
}

// All scores of a language model's minibatches are one product, and so is what comes back from them. No level more is
// needed. Those of one short sentence have fewer columns than a tile.
func TestScoresAreOneProduct(t *testing.T) {
	for _, batch := range []uint32{1, 8, 16} {
		var b, apart script.Builder
		script.Unjoined(&apart)
		hidden := uint32(512)
		if batch == 1 {
			hidden = 64
		}
		r := script.LanguageModel(t, 10000, hidden, batch, 12)
		whole := &isa.Script{Words: wordsOf(t, &b, r)}
		require.NoError(t, verify.Verify(whole, r.Plan))
		if batch == 1 {
			require.Empty(t, script.JointNodes(&b, false))
			continue
		}
		forward, backward := script.LevelsInTiles(&b)
		require.Equal(t, []int{1, 1}, []int{forward, backward}, "levels with products in tiles, batch %d", batch)
		require.Len(t, script.JointNodes(&b, true)[0], 12)
		levels := script.Levels(&b)
		wordsOf(t, &apart, r)
		require.LessOrEqual(t, levels, script.Levels(&apart))
		if forward, backward = script.LevelsInTiles(&apart); batch > 8 { // errors of all steps come back at once
			require.Equal(t, []int{12, 1}, []int{forward, backward}, "levels without joint products")
		}
	}
}

// Scores are one product, however few columns they have, if the matrix would be read from memory for each: if it is larger than
// the cache, or not in registers.
func TestScoresOfALargeMatrixAreOneProduct(t *testing.T) {
	for _, x := range []struct{ words, hidden uint32 }{{40000, 256}, {10000, 512}} {
		var b script.Builder
		r := script.LanguageModel(t, x.words, x.hidden, 1, 12)
		whole := &isa.Script{Words: wordsOf(t, &b, r)}
		require.NoError(t, verify.Verify(whole, r.Plan))
		require.Len(t, script.JointNodes(&b, true)[0], 12)
		forward, backward := script.LevelsInTiles(&b)
		require.Equal(t, []int{1, 1}, []int{forward, backward}, "levels with products in tiles")
		wordsOf(t, &b, script.LanguageModel(t, x.words, x.hidden, 1, 8))
		require.Empty(t, script.JointNodes(&b, false), "a tile would be mostly empty")
	}
}

// Random graphs with products of several nodes by one matrix leave what they leave with these apart, and the verifier
// finds nothing that is read too early: in one script, and in one for each direction.
func TestRandomJointProducts(t *testing.T) {
	var b, apart script.Builder
	script.Unjoined(&apart)
	forward, backward := 0, 0
	for seed := range uint64(script.Few(2000)) {
		r := script.RequestedWith(t, seed, 1+int(seed%5))
		if r.Plan.Processors == 1 || r.Plan.CPU {
			continue
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		r.Wide = schedule.Wideness{Batched: 1 + rng.IntN(20), Single: 1 + rng.IntN(20), Piece: 1 + rng.IntN(4), Terms: 1 + rng.IntN(3), Columns: 1 + rng.IntN(3)}
		alone := &isa.Script{Words: wordsOf(t, &apart, r)}
		joined := &isa.Script{Words: wordsOf(t, &b, r)}
		forward, backward = forward+len(script.JointNodes(&b, false)), backward+len(script.JointNodes(&b, true))
		if err := verify.Verify(joined, r.Plan); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		nearlyAlike(t, seed, r, alone, joined, 1e-4)
		if r.Backward {
			first, second := splitOf(t, &b, *r)
			if err := verify.VerifySecond(first, second, r.Plan); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			compareSplit(t, seed, r, joined, first, second)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	require.Greater(t, forward, script.Few(2000)/10, "joint products")
	require.Greater(t, backward, script.Few(2000)/40, "transposed joint products")
}

// valuesOf compares the values of nodes, as a script leaves them, with those in double precision.
func valuesOf(t *testing.T, name string, r *script.Request, s *isa.Script, nodes []uint32) {
	t.Helper()
	memory := liveMemory(s)
	around := &reference.Surroundings{Params: func(id uint32) (v []float64) {
		p, seg := &r.Params[id], isa.SegParam
		if p.Lookup {
			seg = isa.SegTable
		}
		for _, x := range memory[seg][p.Offset:][:p.Size] {
			v = append(v, float64(x))
		}
		return v
	}}
	want, err := reference.Evaluate(r.Graph, around, r.Node)
	require.NoError(t, err)
	e := checking(t, 2, r.Plan, memory)
	require.NoError(t, e.Launch(s, 1))
	for _, v := range nodes {
		for i, x := range e.Shared(r.State.Segment[v])[r.State.Value[v]:][:len(want[v])] {
			if math.Abs(float64(x)-want[v][i]) > 1e-4*max(1, math.Abs(want[v][i])) {
				t.Fatalf("%s: element %d of node %d is %g, want %g", name, i, v, x, want[v][i])
			}
		}
	}
}

// The values of all nodes stay where the state says, or of those that are asked for: results, operands and what these
// are made of.
func TestValuesOfJointProductsStay(t *testing.T) {
	for name, c := range script.JointCases(t) {
		if c.Random {
			continue
		}
		var all []uint32
		for v := range c.Node + 1 {
			if op := c.Graph.Op[v]; op != ops.Parameter {
				all = append(all, v)
			}
		}
		var b script.Builder
		forward := *c.Request
		forward.Backward, forward.Update, forward.Needed, forward.Copy, forward.Result = false, nil, false, true, script.NoOffset
		s := &isa.Script{Words: wordsOf(t, &b, &forward)}
		sameSets(t, name, c.Forward, script.JointNodes(&b, false))
		valuesOf(t, name, &forward, s, all)
		c.Update.Threshold, c.Update.Rate = 1e30, 0
		for first := range 3 {
			c.Keep = nil
			for k := first; k < len(all); k += 3 {
				c.Keep = append(c.Keep, all[k])
			}
			s = &isa.Script{Words: wordsOf(t, &b, c.Request)}
			require.NoError(t, verify.Verify(s, c.Plan), name)
			valuesOf(t, name, c.Request, s, c.Keep)
		}
	}
}

// A call that goes on with a graph joins nothing, whatever calls before it did.
func TestACallThatGoesOnJoinsNothing(t *testing.T) {
	c := script.JointCases(t)["a language model"]
	var b script.Builder
	r := *c.Request
	r.Backward, r.Update, r.Needed, r.Copy, r.Result, r.State = false, nil, false, true, script.NoOffset, &script.State{}
	last := r.Node
	r.Node = c.Forward[0][2] // behind the second of the losses
	built, err := b.Build(&r)
	require.NoError(t, err)
	require.NoError(t, verify.Verify(&built.Script, r.Plan))
	sameSets(t, "the first call", [][]uint32{c.Forward[0][:3]}, script.JointNodes(&b, false))
	for _, backward := range []bool{false, true} {
		r.State.Done, r.Base, r.Node = int(r.Node)+1, r.Base+built.Used, last
		r.Forward, r.Backward = !backward, backward
		built, err = b.Build(&r)
		require.NoError(t, err)
		require.NoError(t, verify.Verify(&built.Script, r.Plan))
		require.Empty(t, script.JointNodes(&b, false))
		require.Empty(t, script.JointNodes(&b, true))
	}
}

// The plan of a CPU, and work that is not divided, have no joint products.
func TestJointProductsAreOfAGPU(t *testing.T) {
	c := script.JointCases(t)["a language model"]
	var b script.Builder
	c.Plan.CPU = true
	wordsOf(t, &b, c.Request)
	require.Empty(t, script.JointNodes(&b, false))
	c.Plan.CPU, c.Wide = false, schedule.Wideness{}
	wordsOf(t, &b, c.Request)
	require.Empty(t, script.JointNodes(&b, false))
}

// Of several errors that of the first node in the graph's order is told, though nodes are lowered in another.
func TestTheFirstErrorOfAGraphWithJointProducts(t *testing.T) {
	r, first := script.JointErrors(t)
	var b script.Builder
	_, err := b.Build(r)
	var e *bridge.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, int(first), e.Node)
}

// A joint product of more than 16 GiB is refused, though its size has more than 32 bits.
func TestAJointProductOfTooMuch(t *testing.T) {
	r := script.JointOfTooMuch(t)
	r.Backward, r.Update, r.Needed, r.Copy = false, nil, false, true
	var b script.Builder
	_, err := b.Build(r)
	require.Len(t, script.JointNodes(&b, false), 1)
	require.ErrorIs(t, err, schedule.ErrFull)
}
