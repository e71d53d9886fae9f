package script_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/schedule"
	"libvpps/persist/script"
	"libvpps/persist/verify"
)

// The dims of graphs of one matrix of 8 x 8.
const (
	vectorDim = iota
	oneDim
	matrixDim
)

// built8 builds the script of the losses that record adds to a graph of a matrix of 8 x 8 and a vector.
func built8(t *testing.T, record func(f *forest, w, x uint32) []uint32, p *plan.Plan, keep ...uint32) *isa.Script {
	t.Helper()
	f := &forest{}
	f.words.Dims = []bridge.Dim{dimOf(8), dimOf(1), dimOf(8, 8)}
	w, v := f.add(ops.Parameter, matrixDim, []uint32{0}), f.add(ops.Parameter, vectorDim, []uint32{1})
	f.add(ops.Sum, oneDim, nil, record(f, w, v)...)
	f.words.NodeCount = int(f.node)
	g := &bridge.Graph{}
	if err := g.Append(&f.words, func(id uint32) (*bridge.Dim, bool) {
		return []*bridge.Dim{&f.words.Dims[matrixDim], &f.words.Dims[vectorDim]}[id], false
	}); err != nil {
		t.Fatal(err)
	}
	params := []schedule.Param{{Size: 64, Row: 64, Factor: 1, Updated: true}, {Offset: 64, Size: 8, Row: 8, Factor: 1, Matrix: -1, Updated: true}}
	r := &script.Request{Graph: g, State: &script.State{}, Params: params, Plan: p, Node: uint32(g.Len() - 1), Forward: true, Needed: true, Backward: true, Result: script.NoOffset, Tensors: true, Keep: keep}
	var b script.Builder
	built, err := b.Build(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := verify.Verify(&built.Script, p); err != nil {
		t.Error(err)
	}
	return &built.Script
}

// behindAll lists what stands behind all instructions of an opcode.
func behindAll(t *testing.T, s *isa.Script, op isa.Opcode) (behind []isa.Fn) {
	t.Helper()
	for p := range s.Processors() {
		for in, err := range s.Instructions(p) {
			if err != nil {
				t.Fatal(err)
			}
			if in.Op == op {
				behind = append(behind, isa.Fn(in.Fn))
			}
		}
	}
	return behind
}

// The function of a product stands behind its sums if nobody else reads the product; else it has an instruction of its own.
func TestFunctionsStandBehindProducts(t *testing.T) {
	const vector, one = vectorDim, oneDim
	tests := []struct {
		name   string
		record func(f *forest, w, x uint32) []uint32 // returns losses
		keep   bool                                  // the value of the first product is asked for
		behind []isa.Fn                              // of the products, in order
	}{
		{"tanh", func(f *forest, w, x uint32) []uint32 {
			return []uint32{f.add(ops.SquaredNorm, one, nil, f.add(ops.Tanh, vector, nil, f.add(ops.MatrixMultiply, vector, nil, w, x)))}
		}, false, []isa.Fn{isa.Tanh}},
		{"of an affine transform of two products", func(f *forest, w, x uint32) []uint32 {
			y := f.add(ops.AffineTransform, vector, nil, x, w, x, w, x)
			return []uint32{f.add(ops.SquaredNorm, one, nil, f.add(ops.LogisticSigmoid, vector, nil, y))}
		}, false, []isa.Fn{isa.Copy, isa.Logistic}},
		{"one that needs what it is of", func(f *forest, w, x uint32) []uint32 {
			return []uint32{f.add(ops.SquaredNorm, one, nil, f.add(ops.Abs, vector, nil, f.add(ops.MatrixMultiply, vector, nil, w, x)))}
		}, false, []isa.Fn{isa.Copy}},
		{"a product that two read", func(f *forest, w, x uint32) []uint32 {
			y := f.add(ops.MatrixMultiply, vector, nil, w, x)
			return []uint32{f.add(ops.SquaredNorm, one, nil, f.add(ops.Rectify, vector, nil, y)), f.add(ops.SquaredNorm, one, nil, y)}
		}, false, []isa.Fn{isa.Copy}},
		{"a product whose value is asked for", func(f *forest, w, x uint32) []uint32 {
			return []uint32{f.add(ops.SquaredNorm, one, nil, f.add(ops.Tanh, vector, nil, f.add(ops.MatrixMultiply, vector, nil, w, x)))}
		}, true, []isa.Fn{isa.Copy}},
		{"a reader that nobody needs", func(f *forest, w, x uint32) []uint32 {
			y := f.add(ops.MatrixMultiply, vector, nil, w, x)
			f.add(ops.Square, vector, nil, y)
			return []uint32{f.add(ops.SquaredNorm, one, nil, f.add(ops.Rectify, vector, nil, y))}
		}, false, []isa.Fn{isa.Relu}},
	}
	for _, x := range tests {
		t.Run(x.name, func(t *testing.T) {
			var keep []uint32
			if x.keep {
				keep = []uint32{2}
			}
			behind := behindAll(t, built8(t, x.record, sliced(t, []plan.Matrix{{Rows: 8, Cols: 8}}, 1), keep...), isa.Product)
			if !slices.Equal(behind, x.behind) {
				t.Errorf("behind the products stand %v, want %v", behind, x.behind)
			}
		})
	}
}

// A derivative stands behind the sum of what holders leave of a transposed product.
func TestDerivativesStandBehindSums(t *testing.T) {
	twice := func(f *forest, w, x uint32) []uint32 {
		for range 2 {
			x = f.add(ops.Tanh, vectorDim, nil, f.add(ops.MatrixMultiply, vectorDim, nil, w, x))
		}
		return []uint32{f.add(ops.SquaredNorm, oneDim, nil, x)}
	}
	d := plan.Device{Processors: 40, Warps: 1, RegistersPer: 255, SetAside: 60, SharedPerBlock: 64 << 10, Copies: 1}
	p, err := plan.RoundRobin([]plan.Matrix{{Rows: 8, Cols: 8}}, d, 1)
	require.NoError(t, err)
	s := built8(t, twice, p)
	sums := slices.DeleteFunc(behindAll(t, s, isa.Sum), func(fn isa.Fn) bool { return fn == isa.Copy })
	require.Equal(t, []isa.Fn{isa.TanhB}, sums)
	const holders = 8
	require.Equal(t, slices.Repeat([]isa.Fn{isa.Tanh}, 2*holders), behindAll(t, s, isa.Product))
}

// A product with a function gives what a product and then the function give, bit for bit.
func TestAFunctionBehindAProduct(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	act := isa.Segs(isa.SegAct, isa.SegAct, isa.SegAct)
	for range 60 {
		rows, cols := 1+rng.IntN(11), 1+rng.IntN(6)
		g := &instructions{rng: rng, plan: sliced(t, []plan.Matrix{{Rows: rows, Cols: cols}}, 1+rng.IntN(3))}
		flags, seed := g.flags(isa.Acc, isa.Bias), rng.Uint64()
		fn := []isa.Fn{isa.Copy, isa.Tanh, isa.Logistic, isa.Relu}[rng.IntN(4)]
		head := []uint32{act, 0, isa.Float(2), g.memory(isa.SegAct, rows), isa.Float(2)}
		items := make([][]uint32, 1+rng.IntN(6))
		for i := range items {
			items[i] = []uint32{g.memory(isa.SegAct, rows), g.memory(isa.SegAct, cols)}
		}
		have := one(t, g, seed, func(a *isa.Assembler) {
			a.Do(0, isa.Product, uint8(fn), flags, head, items...)
		})
		want := one(t, g, seed, func(a *isa.Assembler) {
			a.Do(0, isa.Product, 0, flags, head, items...)
			for _, x := range g.plan.Of(0) {
				for _, item := range items {
					if at := item[0] + uint32(x.Row); x.Processor == 0 {
						a.Do(0, isa.Map, uint8(fn), isa.Sync, []uint32{act, uint32(x.Rows), 0, 0}, []uint32{at, at})
					}
				}
			}
		})
		sameBits(t, have, want)
	}
}

// one runs a script of a single processor and returns segment act.
func one(t *testing.T, g *instructions, seed uint64, do func(a *isa.Assembler)) []float32 {
	t.Helper()
	e := newExecutor(t, 1)
	if err := e.SetPlan(g.plan); err != nil {
		t.Fatal(err)
	}
	a := isa.NewAssembler(1)
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
			runs := [][]uint32{{g.memory(isa.SegAct, count*n)}, {g.memory(isa.SegAct, count*n)}}
			head := func(dst, y uint32) []uint32 {
				return []uint32{act, uint32(n), scale, dst, uint32(len(runs) | count<<16), uint32(n), y}
			}
			have := one(t, g, seed, func(a *isa.Assembler) { a.Do(0, isa.Sum, uint8(fn), 0, head(dst, y), runs...) })
			want := one(t, g, seed, func(a *isa.Assembler) {
				a.Do(0, isa.Sum, uint8(isa.Copy), 0, head(sum, 0), runs...)
				a.Do(0, isa.Map, uint8(fn), isa.Sync, []uint32{act, uint32(n), 0, 0}, []uint32{dst, sum, y})
			})
			sameBits(t, have[dst:int(dst)+n], want[dst:int(dst)+n])
		}
	}
}
