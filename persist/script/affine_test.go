package script_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"libvpps/persist/isa"
	"libvpps/persist/plan"
)

// one runs a script of a single processor and returns segment act.
func one(t *testing.T, g *instructions, seed uint64, rank uint32, do func(a *isa.Assembler)) []float32 {
	t.Helper()
	e := newExecutor(t, 1)
	if err := e.SetPlan(g.plan); err != nil {
		t.Fatal(err)
	}
	a := isa.NewAssembler(1, 1)
	a.Rank[0], a.Group[0] = rank, 3
	do(a)
	var before [isa.Segments][]float32
	return slices.Clone(runOn(t, e, a.Script(), seed, nil, &before)[isa.SegAct])
}

func sameBits(t *testing.T, have, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(have[i]) != math.Float32bits(want[i]) {
			t.Fatalf("act+%d is %g, want %g", i, have[i], want[i])
		}
	}
}

// Affine gives what a product for each matrix and the function give, bit for bit, and AffineT what the transposed
// products give.
func TestAffineIsItsProducts(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	act := []isa.Segment{isa.SegAct, isa.SegAct, isa.SegAct}
	for range 60 {
		g := newInstructions(t, rng)
		rows, cols, terms, matrices := g.alike()
		flags, seed, rank := g.flags(isa.Acc, isa.Bias), rng.Uint64(), rng.Uint32N(3)
		fn := []isa.Fn{isa.Copy, isa.Tanh, isa.Logistic, isa.Relu}[rng.IntN(4)]
		bias, two := g.memory(isa.SegAct, rows), isa.Float(2)
		items := make([][]uint32, 1+rng.IntN(6))
		for i := range items {
			items[i] = []uint32{g.memory(isa.SegAct, rows)}
			for range terms {
				items[i] = append(items[i], g.memory(isa.SegAct, cols))
			}
		}
		have := one(t, g, seed, rank, func(a *isa.Assembler) {
			a.Do(0, isa.Affine, uint8(terms), flags, []uint32{isa.Segs(act...), matrices, two, bias, two, uint32(fn)}, items...)
		})
		want := one(t, g, seed, rank, func(a *isa.Assembler) {
			for k := range terms {
				for _, item := range items {
					f := flags
					if k > 0 {
						f = isa.Acc
					}
					a.Do(0, isa.Product, 0, f|isa.Sync, []uint32{isa.Segs(act...), matrices >> (8 * k) & 0xff, two, bias, two, 0, 0}, []uint32{item[0], item[1+k]})
				}
			}
			for _, x := range g.plan.Of(0) {
				for _, item := range items {
					if at := item[0] + uint32(x.Row); x.Processor == 0 {
						a.Do(0, isa.Map, uint8(fn), isa.Sync, []uint32{isa.Segs(act[:2]...), uint32(x.Rows), 0, 0}, []uint32{at, at})
					}
				}
			}
		})
		sameBits(t, have, want)

		apart := cols + rng.IntN(3)
		for i := range items {
			items[i] = []uint32{g.memory(isa.SegAct, 3*terms*apart), items[i][0]}
		}
		have = one(t, g, seed, rank, func(a *isa.Assembler) {
			a.Do(0, isa.AffineT, uint8(terms), 0, []uint32{isa.Segs(act[:2]...), matrices, two, uint32(apart)}, items...)
		})
		want = one(t, g, seed, rank, func(a *isa.Assembler) {
			for k := range terms {
				for _, item := range items {
					to := item[0] + uint32(3*k+int(rank))*uint32(apart)
					a.Do(0, isa.ProductT, 0, isa.Sync, []uint32{isa.Segs(act[:2]...), matrices >> (8 * k) & 0xff, two, 0, 0}, []uint32{to, item[1]})
				}
			}
		})
		sameBits(t, have, want)
	}
}

// A derivative behind a sum is that of the sum.
func TestADerivativeBehindASum(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	p, err := plan.Sliced(nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	act, scale := isa.Segs(isa.SegAct, isa.SegAct, isa.SegAct), isa.Float(0.5)
	for _, fn := range []isa.Fn{isa.TanhB, isa.LogisticB, isa.ReluB} {
		for range 20 {
			g := &instructions{rng: rng, plan: p}
			n, count, seed := 1+rng.IntN(40), 1+rng.IntN(4), rng.Uint64()
			dst, sum, y := g.memory(isa.SegAct, n), g.memory(isa.SegAct, n), g.memory(isa.SegAct, n)
			runs := []uint32{g.memory(isa.SegAct, count*n), g.memory(isa.SegAct, count*n)}
			head := []uint32{act, uint32(n), scale, uint32(count), uint32(n)}
			have := one(t, g, seed, 0, func(a *isa.Assembler) {
				a.Do(0, isa.Collect, 3|isa.Derived, 0, append(slices.Clone(head), uint32(fn)), []uint32{dst, runs[0], runs[1], isa.Absent, y})
			})
			want := one(t, g, seed, 0, func(a *isa.Assembler) {
				a.Do(0, isa.Collect, 2, 0, append(slices.Clone(head), uint32(isa.Copy)), []uint32{sum, runs[0], runs[1]})
				a.Do(0, isa.Map, uint8(fn), isa.Sync, []uint32{act, uint32(n), 0, 0}, []uint32{dst, sum, y})
			})
			sameBits(t, have[dst:int(dst)+n], want[dst:int(dst)+n])
		}
	}
}
