package script

import (
	"testing"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/plan"
	"libvpps/persist/schedule"
)

// A matrix stands in a product and, much later, by itself. It is known to be read otherwise than by a product: its copy
// has the weight decay.
func TestUsesFarApart(t *testing.T) {
	vector := func(d ...uint32) (x bridge.Dim) {
		x.Nd, x.Bd = uint32(len(d)), 1
		copy(x.D[:], d)
		return x
	}
	g := &bridge.Graph{Dims: []bridge.Dim{vector(2), vector(3, 2), vector(3), vector(1)}, Inputs: make([]uint32, 2)}
	appendNode(g, ops.Input, 0, []uint32{0})
	appendNode(g, ops.Tanh, 0, nil, 0)
	appendNode(g, ops.Parameter, 1, []uint32{0})
	appendNode(g, ops.MatrixMultiply, 2, nil, 2, 1)
	for range 2000 {
		appendNode(g, ops.Tanh, 2, nil, uint32(g.Len()-1))
	}
	n := uint32(g.Len())
	appendNode(g, ops.SumElements, 3, nil, n-1)
	appendNode(g, ops.SumElements, 3, nil, 2)
	appendNode(g, ops.Sum, 3, nil, n, n+1)
	p, err := plan.Sliced([]plan.Matrix{{Rows: 3, Cols: 2}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	p.CPU = true
	r := &Request{Graph: g, State: &State{}, Plan: p, Node: n + 2, Forward: true, Needed: true, Backward: true, Result: NoOffset,
		Params: []schedule.Param{{Size: 6, Row: 6, Factor: 0.5, Updated: true}}}
	var b Builder
	if _, err := b.Build(r); err != nil {
		t.Fatal(err)
	}
	if !b.otherwise[2] {
		t.Error("the matrix seems to be read by the product alone")
	}
}
