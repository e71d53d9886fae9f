package script

import (
	"math"
	"slices"
	"testing"

	"libvpps/bridge"
	"libvpps/bridge/cells"
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/schedule"
)

// counted is the work of a phase that was counted, of cluster items and of products.
func counted(w *Work, p isa.Phase) (items, products float64) {
	for _, o := range w.Owned() {
		for op, c := range o.Costs[p] {
			switch isa.Opcode(op) {
			case isa.Product, isa.ProductT, isa.Outer:
				products += c
			default:
				items += c
			}
		}
	}
	return items, products
}

// written is what there is of a phase in the latest script.
func written(b *Builder, p isa.Phase) (items, products float64) {
	for i := range b.Items {
		it := &b.Items[i]
		if b.PhaseOf(b.Clusters[b.Find(it.Cluster)].Level) == p {
			items += float64(b.ItemCost(it))
		}
	}
	for _, m := range b.Products {
		level := m.Level
		if level == schedule.AtTheEnd {
			level = b.OuterLevel
		}
		if b.PhaseOf(level) == p {
			products += b.ProductCost(m.Sig)
		}
	}
	return items, products
}

// All items but the report of the loss, the gradient that all begins with, and the sums of parameters' gradients are some
// node's, however they were lowered.
func TestTheWorkIsWhatTheScriptHas(t *testing.T) {
	ways := map[string]int{}
	for seed := range uint64(300) {
		var r *Request
		switch seed % 3 {
		case 0:
			r = requested(t, seed)
		case 1:
			r = sentences(t, seed, 2+int(seed%7))
		default:
			r = sentences(t, seed, 40)
		}
		if r == nil || r.State.Done > 0 {
			continue
		}
		r.Plan.CPU = true // nothing is fused
		var p cells.Program
		if r.Backward && seed%2 == 0 {
			new(cells.Dictionary).Find(r.Graph, 0, uint32(r.Graph.Len()), &p)
			p.Loose, r.Cells = 0, &p
		}
		r.Work = &Work{}
		var b Builder
		if _, err := b.Build(r); err != nil {
			continue // of requests some are bad
		}
		switch {
		case b.schedulable():
			ways["by instances"]++
		case b.Wide.On:
			ways["wide"]++
		default:
			ways["in one go"]++
		}
		for _, phase := range []isa.Phase{isa.InForward, isa.InBackward, isa.InGradients} {
			have, haveProducts := counted(r.Work, phase)
			want, wantProducts := written(&b, phase)
			if math.Abs(haveProducts-wantProducts) > 1e-9*wantProducts {
				t.Errorf("seed %d, %v: products of %v, the script has %v", seed, phase, haveProducts, wantProducts)
			}
			if phase == isa.InGradients {
				continue // sums are nobody's
			}
			rounding := 0.0
			if b.Wide.On {
				rounding = 0.1 * want
			}
			if have > want+rounding || have < want-2-rounding {
				t.Errorf("seed %d, %v: work of %v, the script has %v (%v)", seed, phase, have, want, ways)
			}
		}
	}
	for _, way := range []string{"by instances", "in one go"} {
		if ways[way] < 20 {
			t.Errorf("only %d scripts were lowered %s: %v", ways[way], way, ways)
		}
	}
}

// Each operation has the instructions that do its work: its value, what it gives back, and a matrix's gradient.
func TestOperationsHaveTheirInstructions(t *testing.T) {
	dims := []bridge.Dim{{Nd: 2, Bd: 1, D: [bridge.MaxDims]uint32{3, 2}}, {Nd: 1, Bd: 1, D: [bridge.MaxDims]uint32{2}}, {Nd: 1, Bd: 1, D: [bridge.MaxDims]uint32{3}},
		{Nd: 1, Bd: 1, D: [bridge.MaxDims]uint32{1}}}
	g := &bridge.Graph{Dims: dims}
	appendNode(g, ops.Parameter, 0, []uint32{0})
	appendNode(g, ops.Parameter, 1, []uint32{1})
	var losses []uint32
	for range 4 {
		n := uint32(g.Len())
		appendNode(g, ops.Exp, 1, nil, 1)
		appendNode(g, ops.MatrixMultiply, 2, nil, 0, n)
		appendNode(g, ops.Square, 2, nil, n+1)
		appendNode(g, ops.SumElements, 3, nil, n+2)
		appendNode(g, ops.SquaredNorm, 3, nil, n)
		losses = append(losses, n+3, n+4)
	}
	appendNode(g, ops.Sum, 3, nil, losses...)
	last := uint32(g.Len() - 1)
	want := map[ops.Code]map[isa.Phase][]isa.Opcode{
		ops.Exp:            {isa.InForward: {isa.Map}, isa.InBackward: {isa.Map}},
		ops.MatrixMultiply: {isa.InForward: {isa.Product}, isa.InBackward: {isa.ProductT}, isa.InGradients: {isa.Outer}},
		ops.Square:         {isa.InForward: {isa.Map}, isa.InBackward: {isa.Map}},
		ops.SumElements:    {isa.InForward: {isa.Strided}, isa.InBackward: {isa.Strided}},
		ops.SquaredNorm:    {isa.InForward: {isa.Strided}, isa.InBackward: {isa.Strided}},
		ops.Sum:            {isa.InForward: {isa.Sum, isa.Fill}, isa.InBackward: {isa.Fill}}, // its gradient, 1
	}
	for _, instances := range []bool{false, true} {
		p, err := plan.Sliced([]plan.Matrix{{Rows: 3, Cols: 2}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		p.CPU = true
		var b Builder
		r := &Request{Graph: g, State: &State{}, Plan: p, Node: last, Apart: true, Forward: true, Needed: true, Backward: true, Result: NoOffset, Work: &Work{},
			Params: []schedule.Param{{Size: 6, Row: 6, Factor: 1, Updated: true}, {Offset: 6, Size: 2, Row: 2, Factor: 1, Matrix: -1, Updated: true}}}
		if instances {
			r.Cells = &cells.Program{}
			new(cells.Dictionary).Find(g, 0, last+1, r.Cells)
		}
		if _, err := b.Build(r); err != nil || b.schedulable() != instances {
			t.Fatal(err)
		}
		for _, o := range r.Work.Owned() {
			for phase := range isa.Phases {
				for op, cost := range o.Costs[phase] {
					if cost > 0 && !slices.Contains(want[o.Op][phase], isa.Opcode(op)) {
						t.Errorf("instances %v: %v has %v in %v", instances, o.Op, isa.Opcode(op), phase)
					}
				}
				for _, op := range want[o.Op][phase][:min(1, len(want[o.Op][phase]))] {
					if o.Costs[phase][op] == 0 && op != isa.Fill {
						t.Errorf("instances %v: %v has no %v in %v", instances, o.Op, op, phase)
					}
				}
			}
		}
	}
}

// Who asks no more has nothing counted.
func TestWhoAsksNoMoreHasNothingCounted(t *testing.T) {
	var b Builder
	for seed, built := uint64(1), 0; built < 5; seed++ {
		r := sentences(t, seed, 3)
		if r == nil {
			continue
		}
		w := &Work{}
		for k, asked := range []*Work{w, nil, w} {
			r.Work = asked
			r.State.Truncate(0)
			if _, err := b.Build(r); err != nil {
				t.Fatal(err)
			}
			if (b.tally == nil) != (asked == nil) {
				t.Errorf("request %d: there is a tally: %v", k, b.tally != nil)
			}
		}
		nodes := uint64(0)
		for _, o := range w.Owned() {
			nodes += o.Nodes
		}
		if want := 2 * uint64(r.Node+1); nodes != want {
			t.Errorf("seed %d: %d nodes were counted, want %d", seed, nodes, want)
		}
		built++
	}
}
