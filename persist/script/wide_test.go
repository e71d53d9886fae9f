package script_test

import (
	"math/rand/v2"
	"testing"

	"libvpps/persist/isa"
	"libvpps/persist/script"
	"libvpps/persist/verify"
)

// Divided work gives the results of work that is not, and the verifier finds nothing that a piece reads too early.
func TestWideWorkGivesTheSameResults(t *testing.T) {
	var b script.Builder
	differ, last := 0, uint64(script.Few(3000))
	for seed := range last {
		r := script.Requested(t, seed)
		if r.Plan.Processors == 1 || r.Plan.Slices != nil {
			continue
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		whole := &isa.Script{Words: wordsOf(t, &b, r, 1)}
		r.State = &script.State{}
		r.Wide = script.Wideness{Batched: 1 + rng.IntN(20), Single: 1 + rng.IntN(20), Piece: 1 + rng.IntN(4)}
		wide := &isa.Script{Words: wordsOf(t, &b, r, 1)}
		if len(wide.Words) != len(whole.Words) {
			differ++
		}
		if err := verify.Verify(wide, r.Plan); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		compareWithin(t, seed, r, whole, wide, 1e-5) // an affine transform adds its products as they get ready
	}
	if differ < int(last)/20 {
		t.Errorf("only %d of %d graphs had wide work", differ, last)
	}
}
