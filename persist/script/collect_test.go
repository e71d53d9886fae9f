package script_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"libvpps/persist/plan"
	"libvpps/persist/script"
)

// Collect adds up what a plain loop does, in its order, and leaves a processor's slice if it is told to.
func TestCollectIsItsLoop(t *testing.T) {
	e := newExecutor(t, 1)
	p, err := plan.Sliced(nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.SetPlan(p); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(9, 10))
	for range 400 {
		g := &instructions{rng: rng}
		n, runs, count := 1+rng.IntN(100), 1+rng.IntN(script.MaxRuns), 1+rng.IntN(7)
		if rng.IntN(4) == 0 {
			n, runs, count = 16, 1+rng.IntN(3), 64
		}
		apart := n + rng.IntN(3)
		items := make([][]uint32, 1+rng.IntN(2))
		for i := range items {
			items[i] = []uint32{g.memory(script.SegAct, n)}
			for range runs {
				at := rng.Uint32N(uint32(memoryWords - count*apart)) // runs may overlap
				items[i] = append(items[i], at)
			}
		}
		a := script.NewAssembler(1, 1)
		a.Rank[0], a.Group[0] = rng.Uint32N(32), 32
		flags, scale := g.flags(script.Own, script.Acc), float32(0.7)
		if flags&script.Acc == 0 {
			flags |= g.flags(script.Published)
		}
		a.Do(0, script.Collect, uint8(runs), flags, []uint32{script.Segs(script.SegAct, script.SegGrad), uint32(n), script.Float(scale), uint32(count), uint32(apart), 0}, items...)
		var before [script.Segments][]float32
		after := runOn(t, e, a.Script(), rng.Uint64(), nil, &before)
		lo, hi := 0, n
		if flags&script.Own != 0 {
			lo, hi = plan.Slice(n, int(a.Rank[0]), 32)
		}
		want := before[script.SegAct]
		for _, item := range items {
			for i := lo; i < hi; i++ {
				sum, to := float32(0), &want[int(item[0])+i]
				for _, from := range item[1:] {
					for j := range count {
						sum += before[script.SegGrad][int(from)+j*apart+i]
					}
				}
				if sum = float32(sum * scale); flags&script.Acc != 0 {
					sum += *to
				}
				*to = sum
			}
		}
		for i, w := range want {
			if have := after[script.SegAct][i]; math.Float32bits(have) != math.Float32bits(w) {
				t.Fatalf("act+%d is %g, want %g: rank %d: %s", i, have, w, a.Rank[0], firstOf(a.Script()))
			}
		}
	}
}
