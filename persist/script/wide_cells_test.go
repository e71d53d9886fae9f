package script_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/cells"
	"libvpps/bridge/ops"
	"libvpps/persist/finish"
	"libvpps/persist/isa"
	"libvpps/persist/schedule"
	"libvpps/persist/script"
	"libvpps/persist/verify"
)

// Wide work in instances gives the values that it gives node by node, and the verifier finds nothing that a piece reads too
// early.
func TestWideWorkOfInstancesGivesTheSameResults(t *testing.T) {
	var b script.Builder
	wide := 0
	for seed := range uint64(script.Few(2000)) {
		r := script.Requested(t, seed)
		if seed%2 > 0 {
			if r = script.Sentences(t, seed, 2+int(seed%5)); r == nil {
				continue
			}
		}
		if r.Plan.Processors == 1 || r.State.Done > 0 {
			continue
		}
		rng := rand.New(rand.NewPCG(seed, 2))
		r.Plan.CPU = false
		narrow := scriptOf(t, &b, r, nil)
		r.PerShape = 1
		r.Wide = schedule.Wideness{Batched: 1 << (rng.IntN(2) * 20), Single: 1 + rng.IntN(20), Piece: 1 + rng.IntN(4), Terms: 1 + rng.IntN(3), Columns: 2 + rng.IntN(3)}
		var p cells.Program
		new(cells.Dictionary).Find(r.Graph, 0, r.Node+1, &p)
		s := scriptOf(t, &b, r, &p)
		require.False(t, script.Unfit(&b), "seed %d", seed)
		if script.InWideCells(&b) {
			wide++
		}
		nearlyAlike(t, seed, r, narrow, s, 1e-4)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if wide < script.Few(2000)/20 {
		t.Errorf("only %d graphs had wide work in instances", wide)
	}
}

// Each operation's work is divided in a template as it is by itself: no cluster has more of it.
func TestLargeOperationsInInstances(t *testing.T) {
	var b script.Builder
	lowered := 0
	for name, r := range script.LargeOperations(t) {
		r.PerShape, r.Update.Rate, r.Update.Threshold = 1, 0.1, 1e30
		alone := scriptOf(t, &b, r, nil)
		_, most := script.ClusterCosts(&b)
		var p cells.Program
		new(cells.Dictionary).Find(r.Graph, 0, r.Node+1, &p)
		s := scriptOf(t, &b, r, &p)
		require.False(t, script.Unfit(&b), name)
		if !script.InWideCells(&b) {
			continue
		}
		lowered++
		_, have := script.ClusterCosts(&b)
		require.LessOrEqual(t, have, 2*most, name)
		nearlyAlike(t, 0, r, alone, s, 1e-4)
	}
	require.Greater(t, lowered, 5)
}

// Graphs whose nodes are divided by batch elements, by labels or in tiles are lowered node by node, others with wide nodes by
// instances.
func TestWideGraphsInCells(t *testing.T) {
	require.False(t, script.InCells(script.LanguageModel(t, 10000, 64, 16, 3)))
	require.False(t, script.InCells(script.LanguageModel(t, 20000, 64, 1, slices.Repeat([]int{3}, 16)...)))
	require.False(t, script.InCells(script.TimesColumns(t, 64)))
	require.True(t, script.InCells(script.TimesColumns(t, 8)))
	// A matrix in memory: one sentence's scores may be joined, but not of so few words, and several sentences share levels.
	require.False(t, script.InCells(script.LanguageModel(t, 10000, 512, 1, 12)))
	require.True(t, script.InCells(script.LanguageModel(t, 10000, 512, 1, 8)))
	require.True(t, script.InCells(script.LanguageModel(t, 10000, 512, 1, slices.Repeat([]int{12}, 6)...)))
	r := script.LanguageModel(t, 12000, 64, 1, slices.Repeat([]int{3}, 16)...)
	require.True(t, script.InCells(r))
	var p cells.Program
	new(cells.Dictionary).Find(r.Graph, 0, r.Node+1, &p)
	r.Cells = &p
	var b script.Builder
	built, err := b.Build(r)
	require.NoError(t, err)
	require.True(t, built.ByInstances)
	require.NoError(t, verify.Verify(&built.Script, r.Plan))
}

// bothWays are scripts of a request with wide work: node by node, and by instances of its cell. The builder has the latter.
func bothWays(t *testing.T, b *script.Builder, r *script.Request, wide schedule.Wideness) (nodes, instances *isa.Script) {
	r.Wide, r.Update.Rate = wide, 1
	nodes = scriptOf(t, b, r, nil)
	var p cells.Program
	d := new(cells.Dictionary)
	for range 8 { // until it knows the cell
		d.Find(r.Graph, 0, r.Node+1, &p)
	}
	require.Less(t, len(p.Instances), r.Graph.Len()/2, "cells of several nodes")
	instances = scriptOf(t, b, r, &p)
	require.True(t, script.InWideCells(b))
	return nodes, instances
}

// sentencesOneByOne is the request of a language model that reads six sentences one by one.
func sentencesOneByOne(t *testing.T, vocabulary, hidden uint32) *script.Request {
	return script.LanguageModel(t, vocabulary, hidden, 1, 8, 13, 18, 10, 15, 20)
}

// A language model that reads sentences one by one is as deep by instances as node by node. The errors over its vocabulary
// are differentiated at once, not word by word with the cells.
func TestSentencesOneByOne(t *testing.T) {
	var b script.Builder
	nodes, instances := bothWays(t, &b, sentencesOneByOne(t, 8504, 256), schedule.Wideness{})
	require.LessOrEqual(t, instances.Words[isa.HeadBarriers], nodes.Words[isa.HeadBarriers], "barriers")
	require.LessOrEqual(t, script.CostlyLevels(&b, 8504/64), 2, "levels with errors over all words")
}

// sharedSums has several processors sum up what a product gives to a vector of 16.
var sharedSums = schedule.Wideness{Batched: 1 << 20, Single: 72, Piece: 8, Terms: 2, Columns: 8}

// Several processors sum up what products give to a cell's gradient, before the next cell's gradient is there.
func TestSumsAheadOfTheNextCell(t *testing.T) {
	var b script.Builder
	r := sentencesOneByOne(t, 70, 16)
	nodes, instances := bothWays(t, &b, r, sharedSums)
	nearlyAlike(t, 0, r, nodes, instances, 1e-5)
}

// That sum is there after the latest of the products, and before what reads it, also if what others give is there sooner.
func TestSumsAheadOfWhatIsThereSooner(t *testing.T) {
	for _, deepFirst := range []bool{false, true} {
		var b script.Builder
		r := script.TwoHeads(t, deepFirst)
		nodes, instances := bothWays(t, &b, r, sharedSums)
		nearlyAlike(t, 0, r, nodes, instances, 1e-5)
	}
}

// A piece of a large input is copied from the instance's own words.
func TestLargeInputsOfInstances(t *testing.T) {
	var b script.Builder
	r := script.LargeInputs(t)
	alone := scriptOf(t, &b, r, nil)
	var p cells.Program
	d := new(cells.Dictionary)
	for range 4 { // until it knows the cell
		d.Find(r.Graph, 0, r.Node+1, &p)
	}
	s := scriptOf(t, &b, r, &p)
	require.True(t, script.InWideCells(&b))
	require.Less(t, len(p.Instances), 8, "cells of several nodes")
	nearlyAlike(t, 0, r, alone, s, 1e-5)
}

// Instances have hinge losses of many classes, each with a label and a margin of its own.
func TestHingeLossesOfManyClasses(t *testing.T) {
	const classes = 300
	vector := func(n uint32) bridge.Dim { return bridge.Dim{Nd: 1, Bd: 1, D: [bridge.MaxDims]uint32{n}} }
	r := trainingWith(t, []bridge.Dim{vector(classes), vector(1)}, func(f *forest) {
		p := f.add(ops.Parameter, 0, []uint32{0})
		for k := range uint32(6) {
			at := f.input(isa.Float(float32(k)))
			for i := range uint32(classes - 1) {
				f.input(isa.Float(float32(i*(k+3)%11) - 5))
			}
			x := f.add(ops.Tanh, 0, nil, f.add(ops.CwiseSum, 0, nil, p, f.add(ops.Input, 0, []uint32{at})))
			f.losses = append(f.losses, f.add(ops.Hinge, 1, []uint32{isa.Float(0.5 + float32(k)), f.input(47 * k)}, x))
		}
		f.add(ops.Sum, 1, nil, f.losses...)
	})
	r.Plan = sliced(t, nil, 20)
	r.Plan.CPU, r.Tensors, r.Result, r.Params[1].Offset = false, true, 0, 0
	r.Update = &finish.Apply{Params: []uint32{0}, State: []uint32{0}, All: []uint32{0}, Threshold: 1e30}
	var b script.Builder
	nodes, instances := bothWays(t, &b, r, sharedSums)
	require.True(t, script.InCells(r))
	nearlyAlike(t, 0, r, nodes, instances, 1e-5)
}
