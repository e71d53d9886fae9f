package script_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/plan"
	"libvpps/persist/script"
)

// The function of a product stands behind its sums if nobody else reads the product; else it has an instruction of its own.
func TestFunctionsStandBehindProducts(t *testing.T) {
	const (
		vector = iota
		one
		matrix
	)
	tests := []struct {
		name   string
		record func(f *forest, w, x uint32) []uint32 // returns losses
		keep   bool                                  // the value of the first product is asked for
		behind []script.Fn                           // of the products, in order
	}{
		{"tanh", func(f *forest, w, x uint32) []uint32 {
			return []uint32{f.add(ops.SquaredNorm, one, nil, f.add(ops.Tanh, vector, nil, f.add(ops.MatrixMultiply, vector, nil, w, x)))}
		}, false, []script.Fn{script.Tanh}},
		{"of an affine transform of two products", func(f *forest, w, x uint32) []uint32 {
			y := f.add(ops.AffineTransform, vector, nil, x, w, x, w, x)
			return []uint32{f.add(ops.SquaredNorm, one, nil, f.add(ops.LogisticSigmoid, vector, nil, y))}
		}, false, []script.Fn{script.Copy, script.Logistic}},
		{"one that needs what it is of", func(f *forest, w, x uint32) []uint32 {
			return []uint32{f.add(ops.SquaredNorm, one, nil, f.add(ops.Abs, vector, nil, f.add(ops.MatrixMultiply, vector, nil, w, x)))}
		}, false, []script.Fn{script.Copy}},
		{"a product that two read", func(f *forest, w, x uint32) []uint32 {
			y := f.add(ops.MatrixMultiply, vector, nil, w, x)
			return []uint32{f.add(ops.SquaredNorm, one, nil, f.add(ops.Rectify, vector, nil, y)), f.add(ops.SquaredNorm, one, nil, y)}
		}, false, []script.Fn{script.Copy}},
		{"a product whose value is asked for", func(f *forest, w, x uint32) []uint32 {
			return []uint32{f.add(ops.SquaredNorm, one, nil, f.add(ops.Tanh, vector, nil, f.add(ops.MatrixMultiply, vector, nil, w, x)))}
		}, true, []script.Fn{script.Copy}},
		{"a reader that nobody needs", func(f *forest, w, x uint32) []uint32 {
			y := f.add(ops.MatrixMultiply, vector, nil, w, x)
			f.add(ops.Square, vector, nil, y)
			return []uint32{f.add(ops.SquaredNorm, one, nil, f.add(ops.Rectify, vector, nil, y))}
		}, false, []script.Fn{script.Relu}},
	}
	for _, x := range tests {
		t.Run(x.name, func(t *testing.T) {
			dim := func(d ...uint32) bridge.Dim {
				x := bridge.Dim{Nd: uint32(len(d)), Bd: 1}
				copy(x.D[:], d)
				return x
			}
			f := &forest{}
			f.words.Dims = []bridge.Dim{dim(8), dim(1), dim(8, 8)}
			w, v := f.add(ops.Parameter, matrix, []uint32{0}), f.add(ops.Parameter, vector, []uint32{1})
			f.add(ops.Sum, one, nil, x.record(f, w, v)...)
			f.words.NodeCount = int(f.node)
			g := &bridge.Graph{}
			if err := g.Append(&f.words, func(id uint32) (*bridge.Dim, bool) {
				return []*bridge.Dim{&f.words.Dims[matrix], &f.words.Dims[vector]}[id], false
			}); err != nil {
				t.Fatal(err)
			}
			params := []script.Param{{Size: 64, Row: 64, Factor: 1, Updated: true}, {Offset: 64, Size: 8, Row: 8, Factor: 1, Matrix: -1, Updated: true}}
			p := sliced(t, []plan.Matrix{{Rows: 8, Cols: 8}}, 1)
			r := &script.Request{Graph: g, State: &script.State{}, Params: params, Plan: p, Node: uint32(g.Len() - 1), Forward: true, Needed: true, Backward: true, Result: script.NoOffset, Tensors: true}
			if x.keep {
				r.Keep = []uint32{2}
			}
			var b script.Builder
			built, err := b.Build(r)
			if err != nil {
				t.Fatal(err)
			}
			var behind []script.Fn
			for in, err := range built.Script.Instructions(0) {
				if err != nil {
					t.Fatal(err)
				}
				if in.Op == script.Product {
					behind = append(behind, script.Fn(in.Fn))
				}
			}
			if !slices.Equal(behind, x.behind) {
				t.Errorf("behind the products stand %v, want %v", behind, x.behind)
			}
			if err := script.Verify(&built.Script, p); err != nil {
				t.Error(err)
			}
		})
	}
}

// A product with a function gives what a product and then the function give, bit for bit.
func TestAFunctionBehindAProduct(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	act := script.Segs(script.SegAct, script.SegAct, script.SegAct)
	for range 60 {
		g := newInstructions(t, rng)
		rows, cols, _, matrices := g.alike()
		flags, seed, rank := g.flags(script.Acc, script.Bias), rng.Uint64(), rng.Uint32N(3)
		fn := []script.Fn{script.Copy, script.Tanh, script.Logistic, script.Relu}[rng.IntN(4)]
		head := []uint32{act, matrices & 0xff, script.Float(2), g.memory(script.SegAct, rows), script.Float(2)}
		items := make([][]uint32, 1+rng.IntN(6))
		for i := range items {
			items[i] = []uint32{g.memory(script.SegAct, rows), g.memory(script.SegAct, cols)}
		}
		have := one(t, g, seed, rank, func(a *script.Assembler) {
			a.Do(0, script.Product, uint8(fn), flags, head, items...)
		})
		want := one(t, g, seed, rank, func(a *script.Assembler) {
			a.Do(0, script.Product, 0, flags, head, items...)
			for _, x := range g.plan.Of(int(head[1])) {
				for _, item := range items {
					if at := item[0] + uint32(x.Row); x.Processor == 0 {
						a.Do(0, script.Map, uint8(fn), script.Sync, []uint32{act, uint32(x.Rows), 0, 0}, []uint32{at, at})
					}
				}
			}
		})
		sameBits(t, have, want)
	}
}
