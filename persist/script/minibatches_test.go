package script

import (
	"testing"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/finish"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/schedule"
	"libvpps/persist/verify"
)

// minibatches is the request of a language model over a large vocabulary: steps of an affine transform, a function and the
// error, of one tensor for all sentences.
func minibatches(t testing.TB, vocabulary, hidden, batch uint32, steps int) *Request {
	t.Helper()
	return languageModel(t, vocabulary, hidden, batch, steps)
}

// languageModel is the request of minibatches, of so many steps each, one after the other. Their words differ.
func languageModel(t testing.TB, vocabulary, hidden, batch uint32, steps ...int) *Request {
	t.Helper()
	g := &bridge.Graph{Dims: []bridge.Dim{
		{D: [7]uint32{vocabulary, hidden}, Nd: 2, Bd: 1}, {D: [7]uint32{vocabulary}, Nd: 1, Bd: 1},
		{D: [7]uint32{hidden, hidden}, Nd: 2, Bd: 1}, {D: [7]uint32{hidden}, Nd: 1, Bd: 1},
		{D: [7]uint32{hidden}, Nd: 1, Bd: batch}, {D: [7]uint32{vocabulary}, Nd: 1, Bd: batch}, {D: [7]uint32{1}, Nd: 1, Bd: batch},
		{D: [7]uint32{1}, Nd: 1, Bd: 1}}}
	add := func(op ops.Code, dim uint32, attrs []uint32, args ...uint32) uint32 {
		appendNode(g, op, dim, attrs, args...)
		return uint32(g.Len() - 1)
	}
	words := func() (at uint32) {
		at = uint32(len(g.Inputs))
		for k := range batch {
			g.Inputs = append(g.Inputs, (at+k)*7919%vocabulary)
		}
		return at
	}
	scores, bias, inner, innerBias := add(ops.Parameter, 0, []uint32{0}), add(ops.Parameter, 1, []uint32{1}), add(ops.Parameter, 2, []uint32{2}), add(ops.Parameter, 3, []uint32{3})
	var losses []uint32
	for _, n := range steps {
		h := add(ops.Lookup, 4, []uint32{4, words()})
		for range n {
			x := add(ops.AffineTransform, 4, nil, innerBias, inner, h)
			h = add(ops.CwiseMultiply, 4, nil, add(ops.Tanh, 4, nil, x), add(ops.LogisticSigmoid, 4, nil, x))
			y := add(ops.AffineTransform, 5, nil, bias, scores, h)
			losses = append(losses, add(ops.PickNegLogSoftmax, 6, []uint32{words()}, y))
		}
	}
	loss := add(ops.SumDimension, 7, []uint32{0, 1}, add(ops.Sum, 6, nil, losses...))
	r := &Request{Graph: g, State: &State{}, Node: loss, Forward: true, Backward: true, Needed: true, Tensors: true}
	sizes := []uint32{vocabulary * hidden, vocabulary, hidden * hidden, hidden}
	at := uint32(0)
	for _, n := range sizes {
		r.Params = append(r.Params, schedule.Param{Offset: at, Size: n, Row: n, Factor: 1, Matrix: -1, Updated: true, Column: n})
		at += (n + 3) &^ 3
	}
	r.Params = append(r.Params, schedule.Param{Lookup: true, Size: vocabulary * hidden, Row: hidden, Factor: 1, Matrix: -1, Updated: true, Column: hidden})
	r.Params[0].Matrix, r.Params[2].Matrix = 0, 1
	var err error
	r.Plan, err = plan.RoundRobin([]plan.Matrix{{Rows: int(vocabulary), Cols: int(hidden), Param: 0}, {Rows: int(hidden), Cols: int(hidden), Param: 2, Offset: r.Params[2].Offset}},
		plan.Device{Processors: 132, Warps: 8, RegistersPer: 255, SetAside: 100, SharedPerBlock: 200 << 10, Copies: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	r.Update = &finish.Apply{Rule: isa.SGD, Rate: 0.1, Threshold: 5, Params: []uint32{0, 1, 2, 3, 4}, State: make([]uint32, 5), All: []uint32{0, 1, 2, 3, 4}}
	return r
}

// No operation on a minibatch is one processor's work: the costliest cluster of a language model takes a
// small part of what one processor had to do for its level.
func TestMinibatchesAreManyProcessorsWork(t *testing.T) {
	r := minibatches(t, 10000, 64, 32, 5)
	var b Builder
	built, err := b.Build(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := verify.Verify(&built.Script, r.Plan); err != nil {
		t.Error(err)
	}
	perLevel := map[int32][]int32{}
	for _, c := range b.emitter.ByLevel {
		x := &b.Clusters[c]
		perLevel[x.Level] = append(perLevel[x.Level], x.Cost)
		// In units of 256 elements: a row of the vocabulary, of which several threads have parts.
		if most := int32(4*10000/256 + clusterCost); x.Cost > most {
			t.Errorf("a cluster of level %d costs %d, more than %d", x.Level, x.Cost, most)
		}
	}
	busy := 0
	for _, costs := range perLevel {
		total, most := 0, 0
		for _, c := range costs {
			total, most = total+int(c), max(most, int(c))
		}
		if total > 1000 {
			busy++
			if most > total/16 {
				t.Errorf("of a level's cost %d one cluster has %d", total, most)
			}
		}
	}
	if busy < 5 {
		t.Errorf("only %d levels have much work", busy)
	}
}

// Functions of a minibatch have a piece for each 512 elements: 64 batch elements of a layer are as many processors' work.
func TestElementsOfMinibatchesAreManyProcessorsWork(t *testing.T) {
	r := minibatches(t, 100, 512, 64, 3)
	var b Builder
	if _, err := b.Build(r); err != nil {
		t.Fatal(err)
	}
	pieces := map[int32]int{} // by level
	for _, c := range b.emitter.ByLevel {
		for _, it := range b.AppendItemsOf(nil, c) {
			if op := isa.Opcode(b.SignatureOf(&it)[0]); op == isa.Chain || op == isa.Map {
				pieces[b.Clusters[c].Level]++
				break
			}
		}
	}
	divided := 0
	for _, n := range pieces {
		if n >= 64 {
			divided++
		}
	}
	if divided < 6 { // three steps, forward and back
		t.Errorf("in %d levels functions of 64 batch elements of 512 are as many processors' work, want 6: by level %v", divided, pieces)
	}
}

// Small nodes between large ones are divided as these are. The graph normalizes columns several times: means and deviations
// are small. All of it is as many processors' work as there are batch elements.
func TestSmallNodesBetweenLargeOnesAreDivided(t *testing.T) {
	for _, batch := range []uint32{16, 64} { // of the smaller one a row is no node that is divided by itself
		levels := normalized(t, batch)
		for level, x := range levels {
			if x.cost > batch && x.clusters < int(batch) {
				t.Errorf("level %d has work of %d in %d clusters, want %d", level, x.cost, x.clusters, batch)
			}
		}
		if len(levels) > 29 {
			t.Errorf("%d batch elements have %d levels, want no more than 29", batch, len(levels))
		}
	}
}

type levelWork struct {
	clusters int
	cost     uint32
}

// normalized is what the levels of such a graph have.
func normalized(t *testing.T, batch uint32) map[int32]levelWork {
	t.Helper()
	r := minibatches(t, 100, 8192, batch, 1)
	g := r.Graph
	columns, row := uint32(len(g.Dims)), uint32(len(g.Dims))+1
	g.Dims = append(g.Dims, bridge.Dim{D: [7]uint32{256, 32}, Nd: 2, Bd: batch}, bridge.Dim{D: [7]uint32{1, 32}, Nd: 2, Bd: batch})
	add := func(op ops.Code, dim uint32, attrs []uint32, args ...uint32) uint32 {
		appendNode(g, op, dim, attrs, args...)
		return uint32(g.Len() - 1)
	}
	words := g.AttrsOf(4)[1]
	x := add(ops.Reshape, columns, nil, add(ops.Lookup, 4, []uint32{4, words}))
	for range 3 {
		centred := add(ops.CwiseSum, columns, nil, x, add(ops.Negate, row, nil, add(ops.MomentDimension, row, []uint32{1, 1, 0, 0}, x)))
		deviation := add(ops.Sqrt, row, nil, add(ops.MomentDimension, row, []uint32{1, 2, 0, 0}, centred))
		x = add(ops.Tanh, columns, nil, add(ops.CwiseQuotient, columns, nil, centred, deviation))
	}
	r.Node = add(ops.SumDimension, 7, []uint32{0, 1}, add(ops.SumElements, 6, nil, x))
	var b Builder
	built, err := b.Build(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := verify.Verify(&built.Script, r.Plan); err != nil {
		t.Error(err)
	}
	levels := map[int32]levelWork{}
	for _, c := range b.emitter.ByLevel {
		x := levels[b.Clusters[c].Level]
		levels[b.Clusters[c].Level] = levelWork{x.clusters + 1, x.cost + uint32(b.Clusters[c].Cost)}
	}
	return levels
}

// Picks add to parts of their argument's gradient. So that has as much work as they have, not a picture's for each of them:
// its batch elements are divided, as the values are.
func TestPicksAreTheirPartsWork(t *testing.T) {
	const windows, filters, batch = 28, 100, 16
	g := &bridge.Graph{Dims: []bridge.Dim{dimOf(batch, filters*windows), dimOf(batch, filters), dimOf(1, 1), dimOf(1, filters*windows)}, Inputs: make([]uint32, windows*filters*batch)}
	add := func(op ops.Code, dim uint32, attrs []uint32, args ...uint32) uint32 {
		appendNode(g, op, dim, attrs, args...)
		return uint32(g.Len() - 1)
	}
	x := add(ops.Tanh, 0, nil, add(ops.Sum, 0, nil, add(ops.Input, 0, []uint32{0}), add(ops.Parameter, 3, []uint32{1})))
	y := add(ops.PickRange, 1, []uint32{0, filters, 0}, x)
	for k := uint32(1); k < windows; k++ {
		y = add(ops.Max, 1, nil, y, add(ops.PickRange, 1, []uint32{k * filters, (k + 1) * filters, 0}, x))
	}
	r := languageModel(t, filters*windows, 64, 1, 1)
	r.Graph, r.Node = g, add(ops.SquaredNorm, 2, nil, y)
	var b Builder
	if _, err := b.Build(r); err != nil {
		t.Fatal(err)
	}
	if b.Clusters[b.gcluster[x]].IsPrivate() {
		t.Errorf("the gradient of what %d picks read is divided by elements", windows)
	}
}

// Matrices are multiplied by many columns on all processors, forward and transposed, in pieces of a few tiles: 2,048 of the
// scores', of both steps, are 16 for each processor.
func TestManyColumnsAreAllProcessorsWork(t *testing.T) {
	r := minibatches(t, 1000, 136, 1024, 2)
	var b Builder
	built, err := b.Build(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := verify.Verify(&built.Script, r.Plan); err != nil {
		t.Error(err)
	}
	pieces := map[int32]int{} // by level
	for _, c := range b.emitter.ByLevel {
		for _, it := range b.AppendItemsOf(nil, c) {
			w := b.SignatureOf(&it)
			if isa.Opcode(w[0]) != isa.Gemm || isa.Segment(w[2]>>4&15) != isa.SegParam {
				continue
			}
			pieces[b.Clusters[c].Level]++
			if w[3]*w[4] > 16*schedule.Tile*schedule.Tile {
				t.Errorf("a piece of %d rows and %d columns", w[3], w[4])
			}
		}
	}
	if len(pieces) != 6 {
		t.Errorf("products in pieces in %d levels, want 6", len(pieces))
	}
	for level, n := range pieces {
		if n < 64 {
			t.Errorf("%d pieces in level %d", n, level)
		}
	}
}

// A large parameter's gradient is summed in a few pieces for each processor, not in as many as it has runs of a few
// elements: writing those took the host longer than the device took for the batch.
func TestALargeParameterHasFewPieces(t *testing.T) {
	for _, rows := range []uint32{100, 10000} {
		r := minibatches(t, rows, 64, 4, 2)
		r.Needed, r.Copy, r.Result, r.Update = false, true, NoOffset, nil
		var b Builder
		if _, err := b.Build(r); err != nil {
			t.Fatal(err)
		}
		pieces := 0
		for _, c := range b.emitter.ByLevel {
			if b.Clusters[c].Level > b.Ends[isa.InBackward] {
				pieces++
			}
		}
		if most := 3 * 4 * r.Plan.Processors; pieces > most || pieces < r.Plan.Processors/2 {
			t.Errorf("%d rows: gradients are summed in %d pieces, at most %d are wanted", rows, pieces, most)
		}
	}
}

// timesColumns is the request of a product of a matrix of the plan with so many columns.
func timesColumns(t testing.TB, columns uint32) *Request {
	t.Helper()
	r := languageModel(t, 1000, 64, 1, 1, 1)
	g := &bridge.Graph{Dims: []bridge.Dim{dimOf(1, 64, 64), dimOf(1, 64, columns), dimOf(1, 1)}, Inputs: make([]uint32, 64*columns)}
	appendNode(g, ops.Parameter, 0, []uint32{2})
	appendNode(g, ops.Input, 1, []uint32{0})
	appendNode(g, ops.MatrixMultiply, 1, nil, 0, 1)
	appendNode(g, ops.SquaredNorm, 2, nil, 2)
	r.Graph, r.Node = g, 3
	return r
}

// twoHeads is the request of several cells that know nothing of each other. Two products read a cell's value: that of the
// scores at once, and one with a layer before the scores. The order of these is given. A norm after all cells reads the
// value, too. No two operations of a cell are alike, so it is one template.
func twoHeads(t testing.TB, deepFirst bool) *Request {
	t.Helper()
	const vocabulary, hidden = 70, 16
	r := languageModel(t, vocabulary, hidden, 1, 1)
	g := &bridge.Graph{Dims: r.Graph.Dims}
	add := func(op ops.Code, dim uint32, attrs []uint32, args ...uint32) uint32 {
		appendNode(g, op, dim, attrs, args...)
		return uint32(g.Len() - 1)
	}
	word := func() uint32 {
		g.Inputs = append(g.Inputs, uint32(len(g.Inputs))*7919%vocabulary)
		return uint32(len(g.Inputs) - 1)
	}
	scores, bias, inner, innerBias := add(ops.Parameter, 0, []uint32{0}), add(ops.Parameter, 1, []uint32{1}), add(ops.Parameter, 2, []uint32{2}), add(ops.Parameter, 3, []uint32{3})
	var losses, cells []uint32
	shallow := func(h uint32) {
		y := add(ops.AffineTransform, 5, nil, bias, scores, h)
		losses = append(losses, add(ops.PickNegLogSoftmax, 7, []uint32{word()}, y))
	}
	deep := func(h uint32) {
		x := add(ops.LogisticSigmoid, 4, nil, add(ops.MatrixMultiply, 4, nil, inner, h))
		y := add(ops.MatrixMultiply, 5, nil, scores, x)
		losses = append(losses, add(ops.Hinge, 7, []uint32{isa.Float(1), word()}, y))
	}
	for range 6 {
		x := add(ops.AffineTransform, 4, nil, innerBias, inner, add(ops.Lookup, 4, []uint32{4, word()}))
		h := add(ops.CwiseMultiply, 4, nil, add(ops.Tanh, 4, nil, x), x)
		if deepFirst {
			deep(h)
			shallow(h)
		} else {
			shallow(h)
			deep(h)
		}
		cells = append(cells, h)
	}
	for _, h := range cells {
		losses = append(losses, add(ops.SquaredNorm, 7, nil, h))
	}
	r.Graph, r.Node = g, add(ops.Sum, 7, nil, losses...)
	return r
}
