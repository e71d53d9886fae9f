package script_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/reference"
	"libvpps/persist/schedule"
	"libvpps/persist/script"
	"libvpps/persist/verify"
)

// Divided work gives the results of work that is not, and the verifier finds nothing that a piece reads too early.
func TestWideWorkGivesTheSameResults(t *testing.T) {
	var b script.Builder
	differ, shared, columns, last := 0, 0, 0, uint64(script.Few(3000))
	for seed := range last {
		r := script.Requested(t, seed)
		if r.Plan.Processors == 1 {
			continue
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		whole := &isa.Script{Words: wordsOf(t, &b, r)}
		r.State = &script.State{}
		r.Wide = schedule.Wideness{Batched: 1 + rng.IntN(20), Single: 1 + rng.IntN(20), Piece: 1 + rng.IntN(4), Terms: 1 + rng.IntN(3), Columns: 2 + rng.IntN(3)}
		wide := &isa.Script{Words: wordsOf(t, &b, r)}
		if len(wide.Words) != len(whole.Words) {
			differ++
		}
		if script.Shared(&b) > 0 {
			shared++
		}
		if script.DividedByColumns(&b) > 0 {
			columns++
		}
		if err := verify.Verify(wide, r.Plan); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		relativelyAlike(t, seed, r, whole, wide, 1e-5) // an affine transform adds its products as they get ready
	}
	if differ < int(last)/20 {
		t.Errorf("only %d of %d graphs had wide work", differ, last)
	}
	if shared < int(last)/40 {
		t.Errorf("only %d of %d graphs had items that pieces share", shared, last)
	}
	if columns < int(last)/200 {
		t.Errorf("only %d of %d graphs were divided by columns", columns, last)
	}
}

// The gradient of a batch element may be made of those of several picked ones, which other pieces form.
func TestPiecesWaitForPickedBatchElements(t *testing.T) {
	dims := []bridge.Dim{{Nd: 1, Bd: 1, D: [bridge.MaxDims]uint32{4}}, {Nd: 2, Bd: 2, D: [bridge.MaxDims]uint32{3, 2}},
		{Nd: 1, Bd: 2, D: [bridge.MaxDims]uint32{2}}, {Nd: 1, Bd: 2, D: [bridge.MaxDims]uint32{3}},
		{Nd: 1, Bd: 2, D: [bridge.MaxDims]uint32{1}}, {Nd: 1, Bd: 1, D: [bridge.MaxDims]uint32{1}}}
	r := trainingWith(t, dims, func(f *forest) {
		at := f.input(isa.Float(0.5))
		for k := range 11 {
			f.input(isa.Float(float32(k)))
		}
		x := f.add(ops.Reshape, 2, nil, f.add(ops.Parameter, 0, []uint32{0}))
		y := f.add(ops.MatrixMultiply, 3, nil, f.add(ops.Input, 1, []uint32{at}), x)
		picked := f.input(0)
		f.input(0) // the same one again
		f.add(ops.MomentDimension, 5, []uint32{0, 1, 1, 0}, f.add(ops.SumElements, 4, nil, f.add(ops.PickBatchElements, 3, []uint32{picked, 2}, y)))
	})
	r.Plan, r.Cells, r.Tensors = sliced(t, nil, 3), nil, true
	r.Wide = schedule.Wideness{Batched: 3, Single: 14, Piece: 3, Terms: 1}
	var b script.Builder
	for _, backward := range []bool{false, true} { // by calls of their own: then products have no cluster
		r.Forward, r.Needed, r.Backward, r.Copy = !backward, false, backward, true
		built, err := b.Build(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := verify.Verify(&built.Script, r.Plan); err != nil {
			t.Error(err)
		}
		r.State.Done, r.Base = int(r.Node)+1, 1024
	}
}

// Long rows, wide sums and other divided work train as an evaluator in double precision does: the loss and the parameters after an
// update, with the plan of a GPU and with that of a single processor.
func TestDividedWorkTrainsAsTheReferenceDoes(t *testing.T) {
	requests := script.LargeOperations(t)
	requests["long rows"], requests["short rows"] = script.Minibatches(t, 3000, 24, 6, 3), script.Minibatches(t, 70, 40, 40, 2)
	requests["recurrent"], requests["long sums"] = script.Recurrent(t, 2100, 20, 12, 2, 3), script.LongSums(t)
	for name, r := range requests {
		for _, processors := range []int{132, 1} {
			if processors == 1 {
				p, err := plan.Sliced(r.Plan.Matrices, 1)
				if err != nil {
					t.Fatal(err)
				}
				p.CPU = true
				r.Plan = p
			}
			trainsAsReference(t, fmt.Sprintf("%s, %d processors", name, processors), r)
		}
	}
}

func trainsAsReference(t *testing.T, name string, r *script.Request) {
	t.Helper()
	r.Tensors, r.Result = true, 0
	r.Update.Threshold, r.Update.Rate = 1e30, 0.5
	var b script.Builder
	s := &isa.Script{Words: wordsOf(t, &b, r)}
	memory := liveMemory(s)
	values := func(id uint32) (v []float64, seg isa.Segment) {
		p := &r.Params[id]
		if seg = isa.SegParam; p.Lookup {
			seg = isa.SegTable
		}
		for _, x := range memory[seg][p.Offset:][:p.Size] {
			v = append(v, float64(x))
		}
		return v, seg
	}
	around := &reference.Surroundings{Params: func(id uint32) []float64 {
		v, _ := values(id)
		for i := range v {
			v[i] *= float64(r.Params[id].Factor)
		}
		return v
	}}
	want, err := reference.Evaluate(r.Graph, around, r.Node)
	if err != nil {
		t.Fatal(err)
	}
	d, err := reference.Differentiate(r.Graph, around, r.Node, want)
	if err != nil {
		t.Fatal(err)
	}
	e := checking(t, 2, r.Plan, memory)
	if err := e.Launch(s, 1); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if have := float64(e.Shared(isa.SegResult)[0]); math.Abs(have-want[r.Node][0]) > 1e-5*math.Abs(want[r.Node][0]) {
		t.Errorf("%s: the loss is %g, want %g", name, have, want[r.Node][0])
	}
	gradients := map[uint32][]float64{} // by parameter, of all its nodes
	for node := range r.Node {
		if r.Graph.Op[node] != ops.Parameter {
			continue
		}
		id := r.Graph.AttrsOf(node)[0]
		if gradients[id] == nil {
			gradients[id] = make([]float64, len(d.Nodes[node]))
		}
		for i, x := range d.Nodes[node] {
			gradients[id][i] += x
		}
	}
	for id, gradient := range gradients {
		old, seg := values(id)
		for i, x := range e.Shared(seg)[r.Params[id].Offset:][:len(old)] {
			if step := 0.5 * gradient[i]; math.Abs(float64(x)-(old[i]-step)) > 1e-5*(1+math.Abs(step)) {
				t.Errorf("%s: element %d of parameter %d is %g, want %g", name, i, id, x, old[i]-step)
				break
			}
		}
	}
}
