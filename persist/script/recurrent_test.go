package script

import (
	"testing"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/finish"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/schedule"
)

// recurrent is the request of an LSTM language model in a minibatch.
func recurrent(t testing.TB, vocabulary, hidden, batch uint32, layers, steps int) *Request {
	t.Helper()
	g := &bridge.Graph{Dims: []bridge.Dim{
		{D: [7]uint32{vocabulary, hidden}, Nd: 2, Bd: 1}, {D: [7]uint32{vocabulary}, Nd: 1, Bd: 1},
		{D: [7]uint32{4 * hidden, hidden}, Nd: 2, Bd: 1}, {D: [7]uint32{4 * hidden}, Nd: 1, Bd: 1},
		{D: [7]uint32{hidden}, Nd: 1, Bd: batch}, {D: [7]uint32{vocabulary}, Nd: 1, Bd: batch}, {D: [7]uint32{1}, Nd: 1, Bd: batch},
		{D: [7]uint32{1}, Nd: 1, Bd: 1}, {D: [7]uint32{4 * hidden}, Nd: 1, Bd: batch}}}
	g.Inputs = make([]uint32, batch)
	add := func(op ops.Code, dim uint32, attrs []uint32, args ...uint32) uint32 {
		appendNode(g, op, dim, attrs, args...)
		return uint32(g.Len() - 1)
	}
	r := &Request{State: &State{}, Forward: true, Backward: true, Needed: true}
	var matrices []plan.Matrix
	at := uint32(0)
	param := func(dim uint32) uint32 {
		d, id := &g.Dims[dim], uint32(len(r.Params))
		n := uint32(d.Size())
		p := schedule.Param{Offset: at, Size: n, Row: n, Factor: 1, Matrix: -1, Updated: true, Column: n}
		if d.Nd == 2 {
			p.Matrix = int32(len(matrices))
			matrices = append(matrices, plan.Matrix{Rows: d.Rows(), Cols: d.Cols(), Param: id, Offset: at})
		}
		at += (n + 3) &^ 3
		r.Params = append(r.Params, p)
		return add(ops.Parameter, dim, []uint32{id})
	}
	scores, bias := param(0), param(1)
	type layer struct{ wx, wh, b, h, c uint32 }
	var all []layer
	for range layers {
		all = append(all, layer{wx: param(2), wh: param(2), b: param(3)})
	}
	table := uint32(len(r.Params))
	r.Params = append(r.Params, schedule.Param{Lookup: true, Size: vocabulary * hidden, Row: hidden, Factor: 1, Matrix: -1, Updated: true, Column: hidden})
	for k := range all {
		all[k].h, all[k].c = add(ops.Constant, 4, []uint32{0}), add(ops.Constant, 4, []uint32{0})
	}
	var losses []uint32
	for range steps {
		x := add(ops.Lookup, 4, []uint32{table, 0})
		for k := range all {
			l := &all[k]
			gates := add(ops.VanillaLSTMGates, 8, []uint32{isa.Float(1), 0}, x, l.h, l.wx, l.wh, l.b)
			l.c = add(ops.VanillaLSTMC, 4, nil, l.c, gates)
			l.h = add(ops.VanillaLSTMH, 4, nil, l.c, gates)
			x = l.h
		}
		losses = append(losses, add(ops.PickNegLogSoftmax, 6, []uint32{0}, add(ops.AffineTransform, 5, nil, bias, scores, x)))
	}
	loss := add(ops.SumDimension, 7, []uint32{0, 1}, add(ops.Sum, 6, nil, losses...))
	var spelled bridge.Expanded
	spelled.Extend(g)
	r.Graph, r.Node = &spelled.Graph, spelled.At[loss]
	var err error
	if r.Plan, err = plan.RoundRobin(matrices, plan.Device{Processors: 132, Warps: 8, RegistersPer: 255, SetAside: 100, SharedPerBlock: 200 << 10, Copies: 1}, 2); err != nil {
		t.Fatal(err)
	}
	r.Update = &finish.Apply{Rule: isa.SGD, Rate: 0.1, Threshold: 5}
	for id := range uint32(len(r.Params)) {
		r.Update.Params, r.Update.State = append(r.Update.Params, id), append(r.Update.State, 0)
	}
	r.Update.All = r.Update.Params
	return r
}

// How long the host takes to write the script of a language model in a minibatch.
func BenchmarkMinibatches(b *testing.B) {
	r := recurrent(b, 10000, 256, 32, 2, 20)
	var x Builder
	for range b.N {
		r.State = &State{}
		if _, err := x.Build(r); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(x.Items)), "items")
	b.ReportMetric(float64(len(x.out.Script.Words)), "words")
}
