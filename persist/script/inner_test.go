package script

import (
	"math/rand/v2"
	"testing"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/finish"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/schedule"
	"libvpps/persist/verify"
)

// longSums is the request of a convolution: windows times a filter, plus a bias, and the square of a matrix of one row
// times a function of that. The gradients of all three parameters are small sums of many terms.
func longSums(t testing.TB) *Request {
	t.Helper()
	const positions, window, filters, batch = 40, 24, 12, 160
	dim := func(batch uint32, d ...uint32) (x bridge.Dim) {
		x.Nd, x.Bd = uint32(len(d)), batch
		copy(x.D[:], d)
		return x
	}
	g := &bridge.Graph{Dims: []bridge.Dim{dim(1, 6, 4, filters), dim(1, positions), dim(1, 1, positions), dim(1, window, filters),
		dim(batch, positions, window), dim(batch, positions, filters), dim(batch, 1, filters), dim(batch, 1), dim(1, 1)}}
	rng := rand.New(rand.NewPCG(1, 2))
	for range positions * window * batch {
		g.Inputs = append(g.Inputs, isa.Float(rng.Float32()/8))
	}
	add := func(op ops.Code, dim uint32, attrs []uint32, args ...uint32) uint32 {
		appendNode(g, op, dim, attrs, args...)
		return uint32(g.Len() - 1)
	}
	r := &Request{Graph: g, State: &State{}, Forward: true, Backward: true, Needed: true}
	at := uint32(0)
	for id := range uint32(3) {
		n := uint32(g.Dims[id].Size())
		r.Params = append(r.Params, schedule.Param{Offset: at, Size: n, Row: n, Factor: 1, Matrix: -1, Updated: true, Column: n})
		at += (n + 3) &^ 3
		add(ops.Parameter, id, []uint32{id})
	}
	r.Params[2].Matrix = 0
	r.Params[2].Factor = 0.5 // which whoever multiplies has to know
	y := add(ops.MatrixMultiply, 5, nil, add(ops.Input, 4, []uint32{0}), add(ops.Reshape, 3, nil, 0))
	s := add(ops.MatrixMultiply, 6, nil, 2, add(ops.Tanh, 5, nil, add(ops.AddVectorToAllColumns, 5, nil, y, 1)))
	r.Node = add(ops.SumDimension, 8, []uint32{0, 1}, add(ops.SquaredNorm, 7, nil, s))
	var err error
	r.Plan, err = plan.RoundRobin([]plan.Matrix{{Rows: 1, Cols: positions, Param: 2, Offset: r.Params[2].Offset}},
		plan.Device{Processors: 132, Warps: 8, RegistersPer: 255, SetAside: 100, SharedPerBlock: 200 << 10, Copies: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	r.Update = &finish.Apply{Rule: isa.SGD, Rate: 0.1, Threshold: 5, Params: []uint32{0, 1, 2}, State: make([]uint32, 3), All: []uint32{0, 1, 2}}
	return r
}

// Several processors leave partial results of each gradient, and all of them multiply by the matrix of one row.
func TestLongSumsAreManyProcessorsWork(t *testing.T) {
	r := longSums(t)
	r.Tensors = true
	var b Builder
	built, err := b.Build(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := verify.Verify(&built.Script, r.Plan); err != nil {
		t.Error(err)
	}
	partial := 0
	for _, u := range b.uses {
		if u.kind == usePartial {
			partial++
		}
	}
	if partial != 3 {
		t.Errorf("%d gradients are left as partial results, want 3", partial)
	}
	if n := len(b.Products) + len(b.Outers); n > 0 {
		t.Errorf("the holder of the matrix has %d items", n)
	}
	cost, most := map[int32]int32{}, map[int32]int32{}
	for _, c := range b.emitter.ByLevel {
		x := &b.Clusters[c]
		cost[x.Level], most[x.Level] = cost[x.Level]+x.Cost, max(most[x.Level], x.Cost)
	}
	for level, n := range cost {
		if n >= 100 && most[level] > n/8 {
			t.Errorf("of the cost %d of level %d one cluster has %d", n, level, most[level])
		}
	}
}

// A graph that outlives the call may be differentiated later, as if the matrix had always been its holders'.
func TestMatricesOfGraphsThatStayAreTheirHolders(t *testing.T) {
	r := longSums(t)
	r.Copy, r.Needed = true, false
	var b Builder
	if _, err := b.Build(r); err != nil {
		t.Fatal(err)
	}
	if len(b.Products) == 0 || len(b.Outers) == 0 {
		t.Error("the holder of the matrix has nothing to do")
	}
}

// On one processor nothing is divided.
func TestOneProcessorSumsInOneGo(t *testing.T) {
	r := longSums(t)
	p, err := plan.Sliced(r.Plan.Matrices, 1)
	if err != nil {
		t.Fatal(err)
	}
	p.CPU, r.Plan = true, p
	var b Builder
	if _, err := b.Build(r); err != nil {
		t.Fatal(err)
	}
	for _, u := range b.uses {
		if u.kind == usePartial {
			t.Fatal("a gradient is left as partial results")
		}
	}
}
