package script_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/cells"
	"libvpps/bridge/ops"
	"libvpps/persist/finish"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/schedule"
	"libvpps/persist/script"
	"libvpps/persist/verify"
)

// eachBatch calls f with random batches to train with on a CPU.
func eachBatch(t *testing.T, f func(seed uint64, r *script.Request)) {
	for seed := range uint64(150) {
		r := script.Sentences(t, seed, 2+int(seed%7))
		if r == nil {
			continue
		}
		r.Plan.CPU, r.PerShape = true, 1
		otherWords(r, seed)
		if f(seed, r); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// scriptOf is the script of a request with the nodes as instances, which has to be sound.
func scriptOf(t *testing.T, b *script.Builder, r *script.Request, p *cells.Program) *isa.Script {
	t.Helper()
	if r.Cells = p; p != nil {
		p.Loose = 0 // too many would be lowered another way
	}
	s := &isa.Script{Words: wordsOf(t, b, r)}
	if err := verify.Verify(s, r.Plan); err != nil {
		t.Fatal(err)
	}
	return s
}

// A batch trains to the same values whether its nodes are lowered one by one or by instances of templates, with equal
// ones evaluated once or each by itself.
func TestInstancesTrainAlike(t *testing.T) {
	var b script.Builder
	used, learnt, merged := 0, 0, 0
	eachBatch(t, func(seed uint64, r *script.Request) {
		var p cells.Program
		new(cells.Dictionary).Find(r.Graph, 0, uint32(r.Graph.Len()), &p)
		loose := p.Loose
		alone := scriptOf(t, &b, r, nil)
		for _, apart := range []bool{true, false} {
			r.Apart = apart
			s := scriptOf(t, &b, r, &p)
			if script.ByInstances(&b) {
				used++
				learnt += len(p.Instances) - loose
				if !r.Apart {
					merged += script.Merged(&b)
				}
			}
			nearlyAlike(t, seed, r, alone, s, 1e-4)
		}
	})
	if used < 100 || learnt < 500 || merged < 200 {
		t.Errorf("only %d batches were lowered by instances, %d of them learnt; %d nodes were merged", used, learnt, merged)
	}
}

// A batch trains to the same bits whatever templates were learnt: none, those of the whole batch, those of a part of it.
func TestSumsDoNotDependOnTheTemplates(t *testing.T) {
	var b script.Builder
	eachBatch(t, func(seed uint64, r *script.Request) {
		n := uint32(r.Graph.Len())
		alone := scriptOf(t, &b, r, nodeByNode(r.Graph))
		for _, part := range []uint32{n, n / 2, n / 3} {
			var p cells.Program
			var d cells.Dictionary
			d.Find(r.Graph, 0, part, &p)
			d.Find(r.Graph, 0, n, &p)
			nearlyAlike(t, seed, r, alone, scriptOf(t, &b, r, &p), 0)
		}
	})
}

// nodeByNode is a graph with each node an instance of its own.
func nodeByNode(g *bridge.Graph) *cells.Program {
	var d cells.Dictionary
	all, one := &cells.Program{}, cells.Program{}
	for v := range uint32(g.Len()) {
		d.Find(g, v, v+1, &one)
		x := one.Instances[0]
		x.Args, x.Constants = uint32(len(all.Args)), uint32(len(all.Constants))
		all.Instances, all.Args, all.Constants = append(all.Instances, x), append(all.Args, one.Args...), append(all.Constants, one.Constants...)
	}
	return all
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

// sentence records a sentence and returns its loss. Node 0 is a parameter of 8 elements, which are dim 0; dim 1 is a scalar.
type sentence func(f *forest, k uint32) uint32

// fourOf is a request to train with the sum of four sentences on a CPU, each node being an instance of its own. Parameter
// 1 is a table of 5 rows.
func fourOf(t *testing.T, s sentence) *script.Request {
	t.Helper()
	dim, one := bridge.Dim{Nd: 1, Bd: 1, D: [bridge.MaxDims]uint32{8}}, bridge.Dim{Nd: 1, Bd: 1, D: [bridge.MaxDims]uint32{1}}
	return trainingWith(t, []bridge.Dim{dim, one}, func(f *forest) {
		f.add(ops.Parameter, 0, []uint32{0})
		for k := range uint32(4) {
			f.losses = append(f.losses, s(f, k))
		}
		f.add(ops.Sum, 1, nil, f.losses...)
	})
}

// trainingWith is a request to train on a CPU with the last of the nodes that are recorded. Parameter 1 is a table of 5
// rows of 8, others have dim 0; the request has the first two.
func trainingWith(t *testing.T, dims []bridge.Dim, record func(f *forest)) *script.Request {
	t.Helper()
	table := bridge.Dim{Nd: 2, Bd: 1, D: [bridge.MaxDims]uint32{8, 5}}
	f := &forest{}
	f.words.Dims = dims
	record(f)
	f.words.NodeCount = int(f.node)
	g := &bridge.Graph{}
	if err := g.Append(&f.words, func(id uint32) (*bridge.Dim, bool) {
		if id == 1 {
			return &table, true
		}
		return &dims[0], false
	}); err != nil {
		t.Fatal(err)
	}
	size := uint32(dims[0].Size())
	params := []schedule.Param{{Size: size, Row: size, Factor: 1, Matrix: -1, Updated: true}, {Lookup: true, Size: 40, Row: 8, Factor: 1, Matrix: -1, Updated: true}}
	return &script.Request{Graph: g, State: &script.State{}, Params: params, Plan: sliced(t, nil, 2), Node: uint32(g.Len() - 1), Cells: nodeByNode(g), Forward: true, Needed: true, Backward: true, PerShape: 1, Result: script.NoOffset}
}

// A NaN among a node's numbers stays one: no NaN is taken for the mark of what an instance fills in.
func TestNumbersThatAreNone(t *testing.T) {
	for _, nan := range []uint32{0x7fc00000, 0xffc00000, 0x7fc00001, 0xffc00001, 0x7f800001, 0xff800001, 0xffffffff} {
		var b script.Builder
		r := fourOf(t, func(f *forest, k uint32) uint32 {
			return f.add(ops.SquaredNorm, 1, nil, f.add(ops.ConstScalarMultiply, 0, []uint32{nan}, 0))
		})
		words := wordsOf(t, &b, r)
		if !script.ByInstances(&b) || !slices.Contains(words, nan) {
			t.Errorf("the script has no %#x", nan)
		}
	}
}

// numbered are operations with numbers, as sentences in which x is a vector of 8 and dim 2 is a matrix of 4 x 2.
var numbered = map[ops.Code]func(f *forest, x uint32, number func() uint32) uint32{
	ops.SparseInput: func(f *forest, _ uint32, number func() uint32) uint32 {
		at := f.input(3)
		f.input(isa.Float(2))
		return f.add(ops.SparseInput, 0, []uint32{number(), at, 1})
	},
	ops.Constant:              leafOf(ops.Constant, 1),
	ops.RandomNormal:          leafOf(ops.RandomNormal, 2),
	ops.RandomBernoulli:       leafOf(ops.RandomBernoulli, 2),
	ops.RandomUniform:         leafOf(ops.RandomUniform, 2),
	ops.RandomGumbel:          leafOf(ops.RandomGumbel, 2),
	ops.ConstantPlusX:         functionOf(ops.ConstantPlusX, 1),
	ops.ConstantMinusX:        functionOf(ops.ConstantMinusX, 1),
	ops.ConstScalarMultiply:   functionOf(ops.ConstScalarMultiply, 1),
	ops.Dropout:               functionOf(ops.Dropout, 1),
	ops.GaussianNoise:         functionOf(ops.GaussianNoise, 1),
	ops.ExponentialLinearUnit: functionOf(ops.ExponentialLinearUnit, 2),
	ops.SigmoidLinearUnit:     functionOf(ops.SigmoidLinearUnit, 1),
	ops.Round:                 functionOf(ops.Round, 1),
	ops.Ceil:                  functionOf(ops.Ceil, 1),
	ops.Floor:                 functionOf(ops.Floor, 1),
	ops.ScaleGradient:         functionOf(ops.ScaleGradient, 1),
	ops.Argmax:                functionOf(ops.Argmax, 1),
	ops.Hinge: func(f *forest, x uint32, number func() uint32) uint32 {
		return f.add(ops.Hinge, 1, []uint32{number(), f.input(3)}, x)
	},
	ops.HingeDim: func(f *forest, x uint32, number func() uint32) uint32 {
		at := f.input(3)
		f.input(1)
		return f.add(ops.HingeDim, 3, []uint32{number(), 0, at, 2}, f.add(ops.Reshape, 2, nil, x))
	},
	ops.HuberDistance: func(f *forest, x uint32, number func() uint32) uint32 {
		return f.add(ops.HuberDistance, 1, []uint32{number()}, x, 0)
	},
}

// leafOf multiplies x by a leaf with some numbers, functionOf is a function of x with some.
func leafOf(op ops.Code, numbers int) func(f *forest, x uint32, number func() uint32) uint32 {
	leaf := functionOf(op, numbers)
	return func(f *forest, x uint32, number func() uint32) uint32 {
		return f.add(ops.CwiseMultiply, 0, nil, leaf(f, x, number), x)
	}
}

func functionOf(op ops.Code, numbers int) func(f *forest, x uint32, number func() uint32) uint32 {
	return func(f *forest, x uint32, number func() uint32) uint32 {
		var list []uint32
		for range numbers {
			list = append(list, number())
		}
		return f.add(op, 0, list, []uint32{x}[:ops.Table[op].Args]...)
	}
}

// Instances of one template have numbers of their own, on a CPU and in the chains of a GPU: a batch trains as its nodes
// one by one do.
func TestNumbersAreAnInstances(t *testing.T) {
	vector := func(n uint32) bridge.Dim { return bridge.Dim{Nd: 1, Bd: 1, D: [bridge.MaxDims]uint32{n}} }
	dims := []bridge.Dim{vector(8), vector(1), {Nd: 2, Bd: 1, D: [bridge.MaxDims]uint32{4, 2}}, vector(2)}
	for op := range ops.Table {
		has := slices.ContainsFunc(ops.Table[op].Attrs, func(a ops.Attr) bool { return a.Kind == ops.Float })
		if !has || bridge.Composite(ops.Code(op)) {
			continue
		}
		sentence := numbered[ops.Code(op)]
		require.NotNil(t, sentence, ops.Code(op).String())
		for _, cpu := range []bool{true, false} {
			var b script.Builder
			var d cells.Dictionary
			for step := range 5 { // the dictionary learns; each step has other numbers
				n := 100 * step
				number := func() uint32 { n++; return isa.Float(0.25 + float32(n%257)/512) }
				r := trainingWith(t, dims, func(f *forest) {
					f.add(ops.Parameter, 0, []uint32{0})
					for range 4 {
						x := f.add(ops.Tanh, 0, nil, f.add(ops.Lookup, 0, []uint32{1, f.input(3)}))
						f.losses = append(f.losses, f.add(ops.SquaredNorm, 1, nil, sentence(f, x, number)))
					}
					f.add(ops.Sum, 1, nil, f.losses...)
				})
				r.Plan.CPU, r.Seed, r.Tensors, r.Result, r.Params[1].Offset = cpu, 7, true, 0, 0
				r.Update = &finish.Apply{Params: []uint32{0, 1}, State: []uint32{0, 0}, All: []uint32{0, 1}, Rate: 0.1, Threshold: 5}
				var p cells.Program
				d.Find(r.Graph, 0, uint32(r.Graph.Len()), &p)
				nearlyAlike(t, uint64(op), r, scriptOf(t, &b, r, nil), scriptOf(t, &b, r, &p), 1e-5)
				require.True(t, script.ByInstances(&b))
			}
			require.LessOrEqual(t, len(d.Templates), 12, ops.Code(op).String())
		}
	}
}

// What is left of a batch: of equal sentences one and the sum; what draws numbers, and what that goes into, stays as it is,
// and so does an input that differs in one word.
func TestWhatIsMerged(t *testing.T) {
	tests := []struct {
		name     string
		sentence sentence
		merged   int // nodes taken away from a batch of four
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
		}, 9},
		{"no input words, wherever they are said to be", func(f *forest, k uint32) uint32 {
			return f.add(ops.DotProduct, 1, nil, 0, f.add(ops.SparseInput, 0, []uint32{isa.Float(2), 1000 + k, 0}))
		}, 6},
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
			var b script.Builder
			r := fourOf(t, x.sentence)
			if _, err := b.Build(r); err != nil {
				t.Fatal(err)
			}
			if n := script.Merged(&b); n != x.merged {
				t.Errorf("%d nodes of %d were merged, want %d", n, r.Graph.Len(), x.merged)
			}
		})
	}
}

// A template may have more outputs than a word has bits.
func TestManyOutputs(t *testing.T) {
	var b script.Builder
	var known cells.Dictionary
	dim, one := bridge.Dim{Nd: 1, Bd: 1, D: [bridge.MaxDims]uint32{8}}, bridge.Dim{Nd: 1, Bd: 1, D: [bridge.MaxDims]uint32{1}}
	r := trainingWith(t, []bridge.Dim{dim, one}, func(f *forest) {
		f.add(ops.Parameter, 0, []uint32{0})
		var read []uint32
		for range 4 { // chains of different nodes, all of which are read
			x := uint32(0)
			for k := range uint32(70) {
				x = f.add(ops.StridedSelect, 0, []uint32{0, 8, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1 + k}, x)
				read = append(read, x)
			}
		}
		f.add(ops.SquaredNorm, 1, nil, f.add(ops.Sum, 0, nil, read...))
	})
	r.Tensors, r.Result = true, 0
	alone := scriptOf(t, &b, r, nil)
	var p cells.Program
	for range 8 { // until it knows the chains
		known.Find(r.Graph, 0, uint32(r.Graph.Len()), &p)
	}
	require.Less(t, len(p.Instances), 10)
	nearlyAlike(t, 0, r, alone, scriptOf(t, &b, r, &p), 0)
	require.True(t, script.ByInstances(&b))
}

// A gradient that comes back late is waited for, however many come back before.
func TestManyGradientsComeBack(t *testing.T) {
	var b script.Builder
	var known cells.Dictionary
	vector := func(axes ...uint32) bridge.Dim {
		d := bridge.Dim{Nd: uint32(len(axes)), Bd: 1}
		copy(d.D[:], axes)
		return d
	}
	r := trainingWith(t, []bridge.Dim{vector(8, 8), vector(8), vector(1)}, func(f *forest) {
		w := f.add(ops.Parameter, 0, []uint32{0})
		var losses []uint32
		for k := range uint32(4) { // chains of different nodes, all of which are read, the last ones by products
			x := f.add(ops.Lookup, 1, []uint32{1, f.input(k)})
			var read []uint32
			for k := range uint32(80) {
				x = f.add(ops.StridedSelect, 1, []uint32{0, 8, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1 + k}, x)
				read = append(read, x)
			}
			for k := range read[70:] {
				for range 3 {
					read[70+k] = f.add(ops.MatrixMultiply, 1, nil, w, read[70+k])
				}
			}
			losses = append(losses, f.add(ops.SquaredNorm, 2, nil, f.add(ops.Sum, 1, nil, read...)))
		}
		f.add(ops.Sum, 2, nil, losses...)
	})
	r.Plan, r.Tensors, r.Result, r.Params[0].Matrix = sliced(t, []plan.Matrix{{Rows: 8, Cols: 8}}, 8), true, 0, 0
	r.Plan.CPU = false
	alone := scriptOf(t, &b, r, nil)
	var p cells.Program
	for range 8 { // until it knows the chains
		known.Find(r.Graph, 0, uint32(r.Graph.Len()), &p)
	}
	require.Less(t, len(p.Instances), r.Graph.Len()/2)
	nearlyAlike(t, 0, r, alone, scriptOf(t, &b, r, &p), 1e-5)
	require.True(t, script.ByInstances(&b))
}

// The tensor table of a graph that is evaluated anew does not have what its later nodes were before: other values may be there.
func TestValuesOutOfDate(t *testing.T) {
	var b script.Builder
	dim, one := bridge.Dim{Nd: 1, Bd: 1, D: [bridge.MaxDims]uint32{8}}, bridge.Dim{Nd: 1, Bd: 1, D: [bridge.MaxDims]uint32{1}}
	r := trainingWith(t, []bridge.Dim{dim, one}, func(f *forest) {
		x := f.add(ops.Tanh, 0, nil, f.add(ops.Parameter, 0, []uint32{0}))
		f.add(ops.SquaredNorm, 1, nil, f.add(ops.Tanh, 0, nil, x))
	})
	r.Needed, r.Backward, r.Copy, r.Tensors = false, false, true, true
	_, err := b.Build(r)
	require.NoError(t, err)
	r.State.Done, r.Node, r.Base = 0, 1, r.State.Value[2]+4
	r.Cells = nil
	built, err := b.Build(r)
	require.NoError(t, err)
	require.NoError(t, verify.Verify(&built.Script, r.Plan))
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

// A template is lowered anew if other parameters than before are copied, however many it reads.
func TestOtherParametersAreCopied(t *testing.T) {
	var b script.Builder
	var known cells.Dictionary
	dims := []bridge.Dim{{Nd: 1, Bd: 1, D: [bridge.MaxDims]uint32{8}}, {Nd: 1, Bd: 1, D: [bridge.MaxDims]uint32{1}}}
	ids := []uint32{0, 2, 3}
	var nodes []uint32 // of parameters
	r := trainingWith(t, dims, func(f *forest) {
		for _, id := range ids {
			nodes = append(nodes, f.add(ops.Parameter, 0, []uint32{id}))
		}
		var losses []uint32
		for k := range uint32(8) {
			x := f.add(ops.Lookup, 0, []uint32{1, f.input(k % 5)})
			for n := range 30 { // 120 parameters are read, numbers 0 and 64 are others
				read := []uint32{x, nodes[1], nodes[1], nodes[1], nodes[1]}
				if n%16 == 0 {
					read[1] = nodes[n/16*2]
				}
				x = f.add(ops.Tanh, 0, nil, f.add(ops.Sum, 0, nil, read...))
			}
			losses = append(losses, f.add(ops.SquaredNorm, 1, nil, x))
		}
		f.add(ops.Sum, 1, nil, losses...)
	})
	r.Tensors, r.Result = true, 0
	for _, id := range ids[1:] {
		p := r.Params[0]
		p.Offset = id * p.Size
		r.Params = append(r.Params, p)
	}
	var p cells.Program
	for range 8 { // until it knows the chains
		known.Find(r.Graph, 0, uint32(r.Graph.Len()), &p)
	}
	for _, kept := range []uint32{nodes[0], nodes[2]} {
		r.Keep = []uint32{kept}
		alone := scriptOf(t, new(script.Builder), r, nil)
		nearlyAlike(t, 0, r, alone, scriptOf(t, &b, r, &p), 1e-5)
		require.True(t, script.ByInstances(&b))
	}
}

// The gradients of windows that overlap are added one after the other, also where the windows were formed by an earlier call.
func TestGradientsOfOverlappingWindows(t *testing.T) {
	dim := func(axes ...uint32) bridge.Dim {
		d := bridge.Dim{Nd: uint32(len(axes)), Bd: 1}
		copy(d.D[:], axes)
		return d
	}
	r := trainingWith(t, []bridge.Dim{dim(5, 1), dim(1), dim(2, 1, 1, 1), dim(4, 1, 1)}, func(f *forest) {
		x := f.add(ops.Parameter, 0, []uint32{0})
		filter := f.add(ops.Constant, 2, []uint32{isa.Float(1)})
		f.add(ops.SquaredNorm, 1, nil, f.add(ops.Conv2D, 3, []uint32{1, 1, 1}, x, filter))
	})
	expanded := &bridge.Expanded{}
	expanded.Extend(r.Graph)
	r.Graph, r.Node, r.Cells = &expanded.Graph, uint32(expanded.Len()-1), nodeByNode(&expanded.Graph)
	p, err := plan.RoundRobin(nil, plan.Device{Processors: 3, Warps: 2, RegistersPer: 255, SetAside: 92, SharedPerBlock: 200 << 10}, 1)
	require.NoError(t, err)
	r.Plan, r.Update, r.Tensors, r.Copy, r.Needed = p, nil, true, true, false
	var b script.Builder
	r.Backward, r.Result = false, script.NoOffset
	forward, err := b.Build(r)
	require.NoError(t, err)
	require.NoError(t, verify.Verify(&forward.Script, p))
	r.State.Done, r.Base = r.Graph.Len(), forward.Used
	r.Forward, r.Backward = false, true
	backward, err := b.Build(r)
	require.NoError(t, err)
	require.True(t, backward.ByInstances)
	require.NoError(t, verify.Verify(&backward.Script, p))
}

// Every operation that reads input words says how many.
func TestInputWordsOfAllOperations(t *testing.T) {
	for op := range ops.Table {
		n := &cells.Node{Op: ops.Code(op), Dim: bridge.Dim{Bd: 1}}
		reads := false
		for _, a := range ops.Table[op].Attrs {
			n.Attrs = append(n.Attrs, 1)
			reads = reads || a.Kind == ops.Offset
		}
		if got := script.InputWords(n); (got > 0) != reads {
			t.Errorf("%v reads %d input words", n.Op, got)
		}
	}
}
