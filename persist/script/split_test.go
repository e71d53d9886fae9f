package script_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"libvpps/bridge/cells"
	"libvpps/persist/isa"
	"libvpps/persist/schedule"
	"libvpps/persist/script"
	"libvpps/persist/verify"
)

// splitOf builds the two scripts of a split request.
func splitOf(t *testing.T, b *script.Builder, r script.Request) (first, second *isa.Script) {
	t.Helper()
	r.State, r.Needed, r.Split = &script.State{}, false, true
	built, err := b.Build(&r)
	if err != nil {
		t.Fatal(err)
	}
	first = &isa.Script{Words: slices.Clone(built.Script.Words)}
	if built, err = b.Second(nil); err != nil {
		t.Fatal(err)
	}
	return first, &isa.Script{Words: slices.Clone(built.Script.Words)}
}

// compareSplit runs a script, and two that stand for it, and compares what they leave.
func compareSplit(t *testing.T, seed uint64, r *script.Request, whole, first, second *isa.Script) {
	t.Helper()
	memory := liveMemory(whole)
	e := checking(t, 1, r.Plan, memory)
	both := liveMemory(second) // first's values are among what is there before
	for seg := range memory {
		copy(both[seg], memory[seg])
	}
	f := checking(t, 1, r.Plan, both)
	if err := e.Launch(whole, 1); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	for k, s := range []*isa.Script{first, second} {
		if err := f.Launch(s, uint32(1+k)); err != nil {
			t.Fatalf("seed %d, script %d: %v", seed, k, err)
		}
	}
	for _, seg := range []isa.Segment{isa.SegParam, isa.SegTable, isa.SegState, isa.SegResult} {
		x, y := e.Shared(seg), f.Shared(seg)
		for i := range memory[seg] {
			if d := math.Abs(float64(x[i] - y[i])); d > 1e-5*max(1, math.Abs(float64(x[i]))) {
				t.Fatalf("seed %d: %v+%d is %v and %v", seed, seg, i, x[i], y[i])
			}
		}
	}
}

// The two scripts of a split request are sound together, and leave what the script of all does: node by node, with wide work,
// and by instances.
func TestASplitRequestLeavesTheSame(t *testing.T) {
	var b script.Builder
	ways := map[string]func(seed uint64, r *script.Request){
		"nodes": func(uint64, *script.Request) {},
		"wide work": func(seed uint64, r *script.Request) {
			rng := rand.New(rand.NewPCG(seed, 1))
			r.Wide = schedule.Wideness{Batched: 1 + rng.IntN(20), Single: 1 + rng.IntN(20), Piece: 1 + rng.IntN(4), Terms: 1 + rng.IntN(3), Columns: 2 + rng.IntN(3)}
		},
		"instances": func(_ uint64, r *script.Request) {
			var d cells.Dictionary
			r.Cells, r.Apart = &cells.Program{}, false
			for range 3 {
				d.Find(r.Graph, 0, r.Node+1, r.Cells)
			}
		},
	}
	for way, ask := range ways {
		instances := 0
		for seed := range uint64(script.Fewer(400)) {
			r := script.Requested(t, seed)
			if !r.Backward {
				continue
			}
			ask(seed, r)
			whole := &isa.Script{Words: wordsOf(t, &b, r)}
			first, second := splitOf(t, &b, *r)
			if err := verify.VerifySecond(first, second, r.Plan); err != nil {
				t.Fatalf("%s, seed %d: %v", way, seed, err)
			}
			if r.Cells != nil && script.ByInstances(&b) {
				instances++
			}
			compareSplit(t, seed, r, whole, first, second)
		}
		if way == "instances" && 20*instances < script.Fewer(400) {
			t.Errorf("only %d graphs were lowered by instances", instances)
		}
	}
	for seed := range uint64(script.Fewer(120)) {
		r := script.Sentences(t, seed, 1+int(seed%8))
		if r == nil {
			continue
		}
		whole := &isa.Script{Words: wordsOf(t, &b, r)}
		first, second := splitOf(t, &b, *r)
		if err := verify.VerifySecond(first, second, r.Plan); err != nil {
			t.Fatalf("sentences, seed %d: %v", seed, err)
		}
		compareSplit(t, seed, r, whole, first, second)
	}
}

// What the second script of a split request reads the first has to write.
func TestASecondScriptReadsWhatTheFirstWrites(t *testing.T) {
	var b script.Builder
	r := script.Sentences(t, 8, 3)
	first, second := splitOf(t, &b, *r)
	for p := range first.Processors() { // forward ends before it begins
		first.Words[isa.HeadWords+p*isa.ProcWords] = first.Words[isa.HeadCounters] - 1
	}
	first.Words[first.Words[isa.HeadCounters]-1] = uint32(isa.Halt)
	if err := verify.VerifySecond(first, second, r.Plan); err == nil || !strings.Contains(err.Error(), "is read before it is written") {
		t.Error(err)
	}
	if err := verify.Verify(second, r.Plan); err != nil { // by itself it may trust its tensor table
		t.Error(err)
	}
}
