package script_test

import (
	"math"
	"slices"
	"testing"

	"libvpps/persist/isa"
	"libvpps/persist/script"
)

// wordsOf builds a script.
func wordsOf(t *testing.T, b *script.Builder, r *script.Request) []uint32 {
	t.Helper()
	r.State = &script.State{}
	built, err := b.Build(r)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(built.Script.Words)
}

// nearlyAlike runs two scripts and compares parameters, tables, the rule's memory and what they report, which may differ
// by so much, relatively from 1 on.
func nearlyAlike(t *testing.T, seed uint64, r *script.Request, x, y *isa.Script, tolerance float64) {
	t.Helper()
	compareRuns(t, seed, r, x, y, func(a, b float64) bool { return math.Abs(a-b) <= tolerance*max(1, math.Abs(a)) })
}

// relativelyAlike is nearlyAlike with relative differences only.
func relativelyAlike(t *testing.T, seed uint64, r *script.Request, x, y *isa.Script, tolerance float64) {
	t.Helper()
	compareRuns(t, seed, r, x, y, func(a, b float64) bool { return math.Abs(a-b) < tolerance*math.Abs(a) })
}

// compareRuns runs two scripts and compares what they leave: the same bits, or numbers that are alike.
func compareRuns(t *testing.T, seed uint64, r *script.Request, x, y *isa.Script, alike func(a, b float64) bool) {
	t.Helper()
	memory := liveMemory(x)
	e, f := checking(t, 1, r.Plan, memory), checking(t, 1, r.Plan, liveMemory(y))
	load(t, f, memory)
	if err := e.Launch(x, 1); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if err := f.Launch(y, 1); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	for _, seg := range []isa.Segment{isa.SegParam, isa.SegTable, isa.SegState, isa.SegResult} {
		a, b := e.Shared(seg), f.Shared(seg)
		for i := range memory[seg] {
			if math.Float32bits(a[i]) != math.Float32bits(b[i]) && !alike(float64(a[i]), float64(b[i])) {
				t.Errorf("seed %d: %v+%d is %v and %v", seed, seg, i, a[i], b[i])
				break
			}
		}
	}
}
