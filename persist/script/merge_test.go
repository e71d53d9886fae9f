package script_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/script"
	"libvpps/persist/verify"
)

// A batch of sentences that have words in common is trained to the same values whether equal nodes are evaluated once or
// each by itself, up to rounding, with any number of goroutines, and its script is sound.
func TestMergedBatchesTrainAlike(t *testing.T) {
	defer script.PartNodes(script.PartNodes(5))
	var b script.Builder
	merged := 0
	for seed := range uint64(120) {
		r := script.Sentences(t, seed, 2+int(seed%7))
		if r == nil || r.Plan.Slices != nil {
			continue
		}
		r.Plan.CPU = true
		otherWords(r, seed)
		apart := &isa.Script{Words: wordsOf(t, &b, r, 1)}
		r.Apart = false
		once := &isa.Script{Words: wordsOf(t, &b, r, 1)}
		if !slices.Equal(wordsOf(t, &b, r, 4), once.Words) {
			t.Errorf("seed %d: four goroutines make another script than one", seed)
		}
		if script.Merged(&b) > 0 {
			merged++
		} else if !slices.Equal(apart.Words, once.Words) {
			t.Errorf("seed %d: nothing is merged, but the script is another one", seed)
		}
		if err := verify.Verify(once, r.Plan); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		nearlyAlike(t, seed, r, apart, once)
	}
	if merged < 40 {
		t.Errorf("only %d batches were merged", merged)
	}
}

// otherWords has some lookups of a batch read another row than the same one of the first sentence.
func otherWords(r *script.Request, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 99))
	for v := range r.Node {
		if op := r.Graph.Op[v]; (op == ops.Lookup || op == ops.ConstLookup) && rng.IntN(2) == 0 {
			a := r.Graph.AttrsOf(v)
			p := &r.Params[a[0]]
			a[1] = uint32(len(r.Graph.Inputs))
			for range r.Graph.DimOf(v).Bd {
				r.Graph.Inputs = append(r.Graph.Inputs, rng.Uint32N(p.Size/p.Row))
			}
		}
	}
}

// nearlyAlike runs two scripts and compares parameters, tables, the rule's memory and what they report.
func nearlyAlike(t *testing.T, seed uint64, r *script.Request, x, y *isa.Script) {
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
			same := math.Float32bits(a[i]) == math.Float32bits(b[i])
			if d := math.Abs(float64(a[i]) - float64(b[i])); !same && !(d <= 1e-4*max(1, math.Abs(float64(a[i])))) {
				t.Errorf("seed %d: %v+%d is %v and %v", seed, seg, i, a[i], b[i])
				break
			}
		}
	}
}

// What is left of a batch: of equal sentences one and the sum; what draws numbers, and what that goes into, stays as it is,
// and so does an input that differs in one word.
func TestWhatIsMerged(t *testing.T) {
	defer script.PartNodes(script.PartNodes(1))
	dim := bridge.Dim{Nd: 1, Bd: 1, D: [bridge.MaxDims]uint32{8}}
	one := bridge.Dim{Nd: 1, Bd: 1, D: [bridge.MaxDims]uint32{1}}
	tests := []struct {
		name     string
		sentence func(f *forest, k uint32) uint32 // records one and returns its loss; node 0 is a parameter
		merged   int                              // nodes taken away from a batch of four
	}{
		{"equal sentences", func(f *forest, k uint32) uint32 {
			x := f.add(ops.Lookup, 0, []uint32{1, f.input(3)})
			return f.add(ops.DotProduct, 1, nil, 0, f.add(ops.Tanh, 0, nil, x))
		}, 9},
		{"other words", func(f *forest, k uint32) uint32 {
			x := f.add(ops.Lookup, 0, []uint32{1, f.input(k)})
			return f.add(ops.DotProduct, 1, nil, 0, f.add(ops.Tanh, 0, nil, x))
		}, 0},
		{"two words", func(f *forest, k uint32) uint32 {
			x := f.add(ops.Lookup, 0, []uint32{1, f.input(k % 2)})
			return f.add(ops.DotProduct, 1, nil, 0, f.add(ops.Tanh, 0, nil, x))
		}, 6},
		{"dropout", func(f *forest, k uint32) uint32 {
			x := f.add(ops.Lookup, 0, []uint32{1, f.input(3)})
			return f.add(ops.DotProduct, 1, nil, 0, f.add(ops.Dropout, 0, []uint32{isa.Float(0.5)}, f.add(ops.Tanh, 0, nil, x)))
		}, 6},
		{"other constants", func(f *forest, k uint32) uint32 {
			x := f.add(ops.ConstScalarMultiply, 0, []uint32{isa.Float(float32(k))}, 0)
			return f.add(ops.SquaredNorm, 1, nil, x)
		}, 0},
		{"equal inputs", func(f *forest, k uint32) uint32 {
			at := f.input(7)
			for range 7 {
				f.input(8)
			}
			return f.add(ops.DotProduct, 1, nil, 0, f.add(ops.Input, 0, []uint32{at}))
		}, 6},
		{"an input that differs in its last word", func(f *forest, k uint32) uint32 {
			at := f.input(7)
			for i := range uint32(7) {
				f.input(i / 6 * k)
			}
			return f.add(ops.DotProduct, 1, nil, 0, f.add(ops.Input, 0, []uint32{at}))
		}, 0},
		{"behind what passes no gradient back", func(f *forest, k uint32) uint32 {
			x := f.add(ops.NoBackprop, 0, nil, f.add(ops.Lookup, 0, []uint32{1, f.input(3)}))
			return f.add(ops.DotProduct, 1, nil, 0, x)
		}, 0},
		{"operands in another order", func(f *forest, k uint32) uint32 {
			x := f.add(ops.Tanh, 0, nil, 0)
			if k%2 == 0 {
				return f.add(ops.SquaredEuclideanDistance, 1, nil, x, 0)
			}
			return f.add(ops.SquaredEuclideanDistance, 1, nil, 0, x)
		}, 5},
	}
	for _, x := range tests {
		t.Run(x.name, func(t *testing.T) {
			f := &forest{}
			f.words.Dims = []bridge.Dim{dim, one}
			f.add(ops.Parameter, 0, []uint32{0})
			for k := range uint32(4) {
				f.losses = append(f.losses, x.sentence(f, k))
			}
			f.add(ops.Sum, 1, nil, f.losses...)
			f.words.NodeCount = int(f.node)
			table := bridge.Dim{Nd: 2, Bd: 1, D: [bridge.MaxDims]uint32{8, 5}}
			g := &bridge.Graph{}
			if err := g.Append(&f.words, func(id uint32) (*bridge.Dim, bool) { return []*bridge.Dim{&dim, &table}[id], id == 1 }); err != nil {
				t.Fatal(err)
			}
			params := []script.Param{{Size: 8, Row: 8, Factor: 1, Matrix: -1, Updated: true}, {Lookup: true, Size: 40, Row: 8, Factor: 1, Matrix: -1, Updated: true}}
			var b script.Builder
			r := &script.Request{Graph: g, State: &script.State{}, Params: params, Plan: sliced(t, nil, 2), Node: uint32(g.Len() - 1), Forward: true, Needed: true, Backward: true, Result: script.NoOffset}
			if _, err := b.Build(r); err != nil {
				t.Fatal(err)
			}
			if n := script.Merged(&b); n != x.merged {
				t.Errorf("%d nodes of %d were merged, want %d", n, g.Len(), x.merged)
			}
		})
	}
}

// An error names the node by the number that the program knows.
func TestMergedGraphsNameTheProgramsNodes(t *testing.T) {
	defer script.PartNodes(script.PartNodes(1))
	dim := bridge.Dim{Nd: 1, Bd: 1, D: [bridge.MaxDims]uint32{8}}
	one := bridge.Dim{Nd: 1, Bd: 1, D: [bridge.MaxDims]uint32{1}}
	f := &forest{}
	f.words.Dims = []bridge.Dim{dim, one}
	for _, row := range []uint32{3, 3, 3, 3, 9} {
		x := f.add(ops.Lookup, 0, []uint32{0, f.input(row)})
		f.losses = append(f.losses, f.add(ops.SquaredNorm, 1, nil, f.add(ops.Tanh, 0, nil, x)))
	}
	f.add(ops.Sum, 1, nil, f.losses...)
	f.words.NodeCount = int(f.node)
	table := bridge.Dim{Nd: 2, Bd: 1, D: [bridge.MaxDims]uint32{8, 5}}
	g := &bridge.Graph{}
	if err := g.Append(&f.words, func(uint32) (*bridge.Dim, bool) { return &table, true }); err != nil {
		t.Fatal(err)
	}
	params := []script.Param{{Lookup: true, Size: 40, Row: 8, Factor: 1, Matrix: -1, Updated: true}}
	var b script.Builder
	_, err := b.Build(&script.Request{Graph: g, State: &script.State{}, Params: params, Plan: sliced(t, nil, 2), Node: uint32(g.Len() - 1), Forward: true, Needed: true, Backward: true, Result: script.NoOffset})
	if want := "node 12 (LookupNode): row 9 of a table of 5 rows"; err == nil || fmt.Sprint(err) != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

// sliced is a plan as the CPU's are.
func sliced(t *testing.T, matrices []plan.Matrix, processors int) *plan.Plan {
	t.Helper()
	p, err := plan.Sliced(matrices, processors)
	if err != nil {
		t.Fatal(err)
	}
	p.CPU = true
	return p
}
