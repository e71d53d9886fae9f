package script_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"libvpps/persist/isa"
	"libvpps/persist/plan"
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
		n, runs, count := 1+rng.IntN(100), 1+rng.IntN(isa.MaxRuns), 1+rng.IntN(7)
		if rng.IntN(4) == 0 {
			n, runs, count = 16, 1+rng.IntN(3), 64
		}
		apart := n + rng.IntN(3)
		items := make([][]uint32, 1+rng.IntN(2))
		for i := range items {
			items[i] = []uint32{g.memory(isa.SegAct, n)}
			for range runs {
				at := rng.Uint32N(uint32(memoryWords - count*apart)) // runs may overlap
				items[i] = append(items[i], at)
			}
		}
		a := isa.NewAssembler(1, 1)
		a.Rank[0], a.Group[0] = rng.Uint32N(32), 32
		flags, scale := g.flags(isa.Own, isa.Acc), float32(0.7)
		if flags&isa.Acc == 0 {
			flags |= g.flags(isa.Published)
		}
		a.Do(0, isa.Collect, uint8(runs), flags, []uint32{isa.Segs(isa.SegAct, isa.SegGrad), uint32(n), isa.Float(scale), uint32(count), uint32(apart), 0}, items...)
		var before [isa.Segments][]float32
		after := runOn(t, e, a.Script(), rng.Uint64(), nil, &before)
		lo, hi := 0, n
		if flags&isa.Own != 0 {
			lo, hi = plan.Slice(n, int(a.Rank[0]), 32)
		}
		want := before[isa.SegAct]
		for _, item := range items {
			for i := lo; i < hi; i++ {
				sum, to := float32(0), &want[int(item[0])+i]
				for _, from := range item[1:] {
					for j := range count {
						sum += before[isa.SegGrad][int(from)+j*apart+i]
					}
				}
				if sum = float32(sum * scale); flags&isa.Acc != 0 {
					sum += *to
				}
				*to = sum
			}
		}
		for i, w := range want {
			if have := after[isa.SegAct][i]; math.Float32bits(have) != math.Float32bits(w) {
				t.Fatalf("act+%d is %g, want %g: rank %d: %s", i, have, w, a.Rank[0], firstOf(a.Script()))
			}
		}
	}
}
