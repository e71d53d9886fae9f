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
