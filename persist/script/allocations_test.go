package script_test

import (
	"testing"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/plan"
	"libvpps/persist/schedule"
	"libvpps/persist/script"
)

// Building a script takes no memory for a node, once a batch of its size was built before: twice as
// many steps of a network that picks, joins, broadcasts and reduces take no more allocations.
func TestNodesTakeNoAllocations(t *testing.T) {
	allocations := func(steps int, work *script.Work) float64 {
		g, params, p := network(t, steps)
		var b script.Builder
		var s script.State
		build := func() {
			s.Truncate(0)
			_, err := b.Build(&script.Request{Apart: true, Graph: g, State: &s, Params: params, Plan: p, Node: uint32(g.Len() - 1), Forward: true, Needed: true, Backward: true, Work: work})
			if err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			build()
		}
		return testing.AllocsPerRun(10, build)
	}
	for _, work := range []*script.Work{nil, {}} { // nobody asks whose work it is, or somebody does
		few, many := allocations(50, work), allocations(100, work)
		if many > few+4 {
			t.Errorf("100 steps take %v allocations, 50 steps %v, with %v", many, few, work)
		}
	}
}

// network records steps of gates cut from one vector, attention over joined states and a distance.
func network(t *testing.T, steps int) (*bridge.Graph, []schedule.Param, *plan.Plan) {
	const h = 8
	const (
		vector = iota
		gates
		matrix
		scalar
		pair
		square
	)
	f := &forest{}
	f.words.Dims = []bridge.Dim{dimOf(h), dimOf(4 * h), dimOf(4*h, h), dimOf(1), dimOf(h, 2), dimOf(2, h)}
	params := []schedule.Param{{Size: 4 * h * h, Row: 4 * h * h, Factor: 1, Updated: true}, {Offset: 4 * h * h, Size: h, Row: h, Factor: 1, Matrix: -1, Updated: true}}
	w, x := f.add(ops.Parameter, matrix, []uint32{0}), f.add(ops.Parameter, vector, []uint32{1})
	for range steps {
		y := f.add(ops.MatrixMultiply, gates, nil, w, x)
		part := func(k uint32) uint32 { return f.add(ops.PickRange, vector, []uint32{k * h, (k + 1) * h, 0}, y) }
		i, o, u := f.add(ops.LogisticSigmoid, vector, nil, part(0)), part(1), part(3)
		both := f.add(ops.Concatenate, pair, []uint32{1}, i, o)
		rows := f.add(ops.Softmax, pair, []uint32{0}, both)
		turned := f.add(ops.Transpose, square, []uint32{1}, rows)
		sum := f.add(ops.SumElements, scalar, nil, turned)
		x = f.add(ops.CwiseMultiply, vector, nil, u, sum)
		one := f.add(ops.PickElement, scalar, []uint32{0, f.input(3), 1}, x)
		f.losses = append(f.losses, f.add(ops.DotProduct, scalar, nil, x, i), f.add(ops.SquaredEuclideanDistance, scalar, nil, o, u), one)
	}
	f.add(ops.Sum, scalar, nil, f.losses...)
	f.words.NodeCount = int(f.node)
	g := &bridge.Graph{}
	dims := []bridge.Dim{dimOf(4*h, h), dimOf(h)}
	if err := g.Append(&f.words, func(id uint32) (*bridge.Dim, bool) { return &dims[id], false }); err != nil {
		t.Fatal(err)
	}
	p, err := plan.Sliced([]plan.Matrix{{Rows: 4 * h, Cols: h}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return g, params, p
}
