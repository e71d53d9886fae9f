package script_test

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"

	"libvpps/persist/isa"
	"libvpps/persist/script"
	"libvpps/persist/verify"
)

// wordsOf builds a script with so many goroutines; of is the Builder.
func wordsOf(t *testing.T, b *script.Builder, r *script.Request, goroutines int) []uint32 {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(goroutines))
	r.State = &script.State{}
	built, err := b.Build(r)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(built.Script.Words)
}

// A batch lowered by parts makes the same script with any number of goroutines, which is sound and leaves the bits
// that the script of a batch lowered in one go does.
func TestPartsMakeOneScript(t *testing.T) {
	var b script.Builder
	for seed := range uint64(60) {
		r := script.Sentences(t, seed, 7)
		if r == nil {
			continue
		}
		whole := &isa.Script{Words: wordsOf(t, &b, r, 1)}
		was := script.PartNodes(5)
		divided := &isa.Script{Words: wordsOf(t, &b, r, 1)}
		for _, n := range []int{2, 4} {
			if !slices.Equal(wordsOf(t, &b, r, n), divided.Words) {
				t.Errorf("seed %d: %d goroutines make another script than one", seed, n)
			}
		}
		script.PartNodes(was)
		if slices.Equal(whole.Words, divided.Words) {
			t.Errorf("seed %d: not divided", seed)
		}
		if err := verify.Verify(divided, r.Plan); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		compareRuns(t, seed, r, whole, divided)
	}
}

// compareRuns runs two scripts and compares the bits of parameters, tables and what they report.
func compareRuns(t *testing.T, seed uint64, r *script.Request, x, y *isa.Script) {
	t.Helper()
	compareWithin(t, seed, r, x, y, 0)
}

// compareWithin is compareRuns up to a relative error.
func compareWithin(t *testing.T, seed uint64, r *script.Request, x, y *isa.Script, most float64) {
	t.Helper()
	memory := liveMemory(x)
	e, f := checking(t, 1, r.Plan, memory), checking(t, 1, r.Plan, liveMemory(y))
	if err := e.Launch(x, 1); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if err := f.Launch(y, 1); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	for _, seg := range []isa.Segment{isa.SegParam, isa.SegTable, isa.SegState, isa.SegResult} {
		a, b := e.Shared(seg), f.Shared(seg)
		for i := range memory[seg] {
			same := math.Float32bits(a[i]) == math.Float32bits(b[i])
			if !same && !(math.Abs(float64(a[i]-b[i])) < most*math.Abs(float64(a[i]))) {
				t.Errorf("seed %d: %v+%d is %v and %v", seed, seg, i, a[i], b[i])
				break
			}
		}
	}
}

// A forward part alone by parts leaves the values that one lowered in one go does, with any number of goroutines; up to
// rounding, for an affine transform adds its products as they get ready, and copies of parameters are another level's
// for a part.
func TestAForwardByPartsLeavesTheSameValues(t *testing.T) {
	var b script.Builder
	divided := 0
	for seed := range uint64(120) {
		r := script.Sentences(t, seed, 1+int(seed%8))
		if r == nil {
			continue
		}
		r.Backward, r.Needed, r.Copy, r.Update, r.Result = false, false, true, nil, script.NoOffset
		whole := &isa.Script{Words: wordsOf(t, &b, r, 1)}
		at := r.State
		was := script.PartNodes(2)
		parts := &isa.Script{Words: wordsOf(t, &b, r, 1)}
		if !slices.Equal(wordsOf(t, &b, r, 4), parts.Words) {
			t.Errorf("seed %d: four goroutines make another script than one", seed)
		}
		script.PartNodes(was)
		if !slices.Equal(whole.Words, parts.Words) {
			divided++
		}
		if err := verify.Verify(parts, r.Plan); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		e, f := checking(t, 1, r.Plan, liveMemory(whole)), checking(t, 1, r.Plan, liveMemory(parts))
		if err := errors.Join(e.Launch(whole, 1), f.Launch(parts, 1)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for v := range r.Node + 1 {
			if at.Segment[v] != r.State.Segment[v] {
				t.Fatalf("seed %d: node %d is in %v and %v", seed, v, at.Segment[v], r.State.Segment[v])
			}
			x, y := e.Shared(at.Segment[v])[at.Value[v]:], f.Shared(at.Segment[v])[r.State.Value[v]:]
			for i := range r.Graph.DimOf(v).Size() {
				same := math.Float32bits(x[i]) == math.Float32bits(y[i])
				if d := math.Abs(float64(x[i] - y[i])); !same && !(d <= 1e-6*max(1, math.Abs(float64(x[i])))) {
					t.Fatalf("seed %d: element %d of node %d, %v, is %v and %v", seed, i, v, r.Graph.Op[v], x[i], y[i])
				}
			}
		}
	}
	if divided < 40 {
		t.Errorf("only %d graphs were divided", divided)
	}
}

// How large the matrices are does not matter: a part has no memory of its own for them.
func TestLargeMatricesAreNoReasonNotToDivide(t *testing.T) {
	g, params, matrices := newForest(t, 8, 512)
	p := onGPU(t, params, matrices, 1)
	var b script.Builder
	r := &script.Request{Apart: true, Graph: g, Params: params, Plan: p, Node: uint32(g.Len() - 1), Forward: true, Needed: true, Backward: true, Result: script.NoOffset}
	divided := wordsOf(t, &b, r, 1)
	defer script.PartNodes(script.PartNodes(1 << 30))
	if slices.Equal(wordsOf(t, &b, r, 1), divided) {
		t.Errorf("a batch of %d nodes is not divided", g.Len())
	}
}
