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

// large is one operation of large operands: x, and y if the second dim has axes. The value is of the last dim.
type large struct {
	op      ops.Code
	attrs   []uint32
	x, y, z bridge.Dim
	summed  bool // the loss is of all of it
}

func dimOf(batch uint32, axes ...uint32) (d bridge.Dim) {
	d.Nd, d.Bd = uint32(len(axes)), batch
	copy(d.D[:], axes)
	return d
}

const distinct = 64 // from this input word on, they are apart

// trainedBy is the request of a step whose loss is the first element of an operation's value, or the sum of its squares. Its
// input words are 0 and 1 in turn.
func trainedBy(t testing.TB, o large) *Request {
	t.Helper()
	g := &bridge.Graph{Dims: []bridge.Dim{o.x, o.y, o.z, dimOf(1, uint32(o.x.Size())), dimOf(1, uint32(o.y.Size())), o.z, dimOf(1, 1)}, Inputs: make([]uint32, 4096)}
	g.Dims[5].Bd = 1
	for k := range g.Inputs {
		g.Inputs[k] = uint32(k % 2)
		if k >= distinct {
			g.Inputs[k] = uint32(37 * (k - distinct) % 1024)
		}
	}
	add := func(op ops.Code, dim uint32, attrs []uint32, args ...uint32) uint32 {
		appendNode(g, op, dim, attrs, args...)
		return uint32(g.Len() - 1)
	}
	r := &Request{Graph: g, State: &State{}, Forward: true, Backward: true, Needed: true, Tensors: true, Result: NoOffset}
	var args []uint32
	for k, d := range []bridge.Dim{o.x, o.y} {
		if n := uint32(d.Size()); d.Nd > 0 {
			r.Params = append(r.Params, schedule.Param{Offset: uint32(k*(o.x.Size()+3)) &^ 3, Size: n, Row: n, Factor: 1, Matrix: -1, Updated: true, Column: n})
			args = append(args, add(ops.Reshape, uint32(k), nil, add(ops.Parameter, 3+uint32(k), []uint32{uint32(k)})))
		}
	}
	y := add(o.op, 2, o.attrs, args...)
	if o.summed {
		g.Dims = append(g.Dims, dimOf(o.z.Bd, 1))
		r.Node = add(ops.SumDimension, 6, []uint32{0, 1}, add(ops.SquaredNorm, uint32(len(g.Dims))-1, nil, y))
	} else {
		r.Node = firstOf(g, add, y)
	}
	var err error
	r.Plan, err = plan.RoundRobin(nil, plan.Device{Processors: 132, Warps: 8, RegistersPer: 255, SetAside: 100, SharedPerBlock: 200 << 10, Copies: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// firstOf adds nodes for the first element of y, whose dim but for the batch is number 5. Number 6 is a scalar's.
func firstOf(g *bridge.Graph, add func(op ops.Code, dim uint32, attrs []uint32, args ...uint32) uint32, y uint32) uint32 {
	if g.DimOf(y).Bd > 1 {
		y = add(ops.PickBatchElements, 5, []uint32{0, 1}, y)
	}
	part := g.Dims[5]
	for axis := range part.Nd {
		if part.D[axis] > 1 {
			part.D[axis] = 1
			g.Dims = append(g.Dims, part)
			y = add(ops.PickRange, uint32(len(g.Dims))-1, []uint32{0, 1, axis}, y)
		}
	}
	return add(ops.Reshape, 6, nil, y)
}

// No operation is one processor's work, at large shapes and few batch elements: what one has to do of a level takes little
// longer than its share, or less than 20 us. Not so are inverses, determinants, sparsemax and constrained_softmax, lines
// of max_dim, k-max pooling and cumulative sums, and softmaxes but the one with the negative logarithm: one processor
// has a line.
func TestOperationsAreManyProcessorsWork(t *testing.T) {
	none, one, matrix, few, tall := bridge.Dim{}, dimOf(1, 1), dimOf(1, 1024, 2048), dimOf(2, 1000, 1000), dimOf(1, 1000000, 2)
	for name, o := range map[string]large{
		"tanh":                          {ops.Tanh, nil, matrix, none, matrix, false},
		"tanh, few":                     {ops.Tanh, nil, few, none, few, false},
		"a product, few":                {ops.CwiseMultiply, nil, few, few, few, false},
		"plus a column":                 {ops.CwiseSum, nil, matrix, dimOf(1, 1024), matrix, false},
		"plus a row of two":             {ops.CwiseSum, nil, tall, dimOf(1, 1, 2), tall, false},
		"times a number of each":        {ops.CwiseMultiply, nil, few, dimOf(2, 1), few, false},
		"a sum":                         {ops.SumElements, nil, matrix, none, one, false},
		"a sum of each":                 {ops.SumElements, nil, few, none, dimOf(2, 1), false},
		"a norm":                        {ops.L2Norm, nil, matrix, none, one, false},
		"a distance":                    {ops.SquaredEuclideanDistance, nil, matrix, matrix, one, false},
		"a moment":                      {ops.MomentDimension, []uint32{3, 2, 0, 0}, matrix, none, one, false},
		"sums of two columns":           {ops.SumDimension, []uint32{1, 0}, tall, none, dimOf(1, 2), false},
		"a sum over the batch":          {ops.SumDimension, []uint32{0, 1}, dimOf(65536, 4, 4), none, dimOf(1, 4, 4), false},
		"a transposition":               {ops.Transpose, []uint32{0x01}, tall, none, dimOf(1, 2, 1000000), false},
		"a dropout":                     {ops.Dropout, []uint32{isa.Float(0.5)}, few, none, few, false},
		"a softmax of rows, few":        {ops.Softmax, []uint32{1}, few, none, few, false},
		"the largest of rows, few":      {ops.MaxDimension, []uint32{1}, few, none, dimOf(2, 1000), false},
		"the three largest of each row": {ops.KMaxPooling, []uint32{3, 1}, matrix, none, dimOf(1, 1024, 3), false},
		"sums along rows, few":          {ops.CumulativeSum, []uint32{1}, few, none, few, false},
		"an error of many classes":      {ops.PickNegLogSoftmax, []uint32{0}, dimOf(1, 100000), none, one, false},
		"errors of many classes":        {ops.PickNegLogSoftmax, []uint32{0}, dimOf(4, 100000), none, dimOf(4, 1), false},
		"every second row":              {ops.StridedSelect, []uint32{0, 1024, 2, 0, 2048, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1}, matrix, none, dimOf(1, 512, 2048), false},
		"64 columns":                    {ops.SelectCols, []uint32{distinct, 64}, matrix, none, dimOf(1, 1024, 64), false},
		"batch elements, twice each":    {ops.PickBatchElements, []uint32{0, 4}, few, none, dimOf(4, 1000, 1000), false},
		"a row times two columns":       {ops.MatrixMultiply, nil, dimOf(1, 1, 1000000), tall, dimOf(1, 1, 2), false},
		"two rows times a vector":       {ops.MatrixMultiply, nil, dimOf(1, 2, 1000000), dimOf(1, 1000000), dimOf(1, 2), false},
		"two columns times a vector":    {ops.MatrixMultiply, nil, tall, dimOf(1, 2), dimOf(1, 1000000), false},
		"64 rows times 64 columns":      {ops.MatrixMultiply, nil, dimOf(1, 64, 32768), dimOf(1, 32768, 64), dimOf(1, 64, 64), false},
		"windows times 16 filters":      {ops.MatrixMultiply, nil, dimOf(1, 65536, 36), dimOf(1, 36, 16), dimOf(1, 65536, 16), false},
		"windows of each, 100 filters":  {ops.MatrixMultiply, nil, dimOf(64, 26, 640), dimOf(1, 640, 100), dimOf(64, 26, 100), false},
		"products of 4 by 4":            {ops.MatrixMultiply, nil, dimOf(65536, 4, 4), dimOf(65536, 4), dimOf(65536, 4), false},
		"products with one of 4 by 4":   {ops.MatrixMultiply, nil, dimOf(65536, 4, 4), dimOf(1, 4, 4), dimOf(65536, 4, 4), false},
		"errors of many labels":         {ops.PickNegLogSoftmax, []uint32{distinct}, dimOf(3000, 1024), none, dimOf(3000, 1), false},
		"hinge losses of many labels":   {ops.Hinge, []uint32{isa.Float(1), distinct}, dimOf(3000, 1024), none, dimOf(3000, 1), false},
		"an element of each":            {ops.PickElement, []uint32{0, distinct, 3000}, dimOf(3000, 1024), none, dimOf(3000, 1), false},
		"two matrices as one":           {ops.Concatenate, []uint32{0}, few, few, dimOf(2, 2000, 1000), false},
		"batches behind one another":    {ops.ConcatenateToBatch, nil, few, few, dimOf(4, 1000, 1000), false},
	} {
		r := trainedBy(t, o)
		var b Builder
		built, err := b.Build(r)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := verify.Verify(&built.Script, r.Plan); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		total, most := map[int32]int{}, map[int32]int{}
		for _, c := range b.emitter.ByLevel {
			x := &b.Clusters[c]
			total[x.Level] += int(x.Cost)
			most[x.Level] = max(most[x.Level], int(x.Cost))
		}
		for level, cost := range most {
			if share := 80 + 3*total[level]/r.Plan.Processors; cost > share { // 80 are 20 us
				t.Errorf("%s: one processor has %d of level %d's cost %d, and at most %d is wanted", name, cost, level, total[level], share)
			}
		}
		if words := len(built.Script.Words) - len(r.Graph.Inputs); words > 150000 || o.x.Bd == 3000 && words > 24000 {
			t.Errorf("%s: a script of %d words", name, words)
		}
	}
}

// largeInputs is the request of several cells, each the dot product of a parameter and the product of two large inputs.
func largeInputs(t testing.TB) *Request {
	t.Helper()
	const n = 20000
	g := &bridge.Graph{Dims: []bridge.Dim{dimOf(1, n), dimOf(1, 1)}, Inputs: make([]uint32, 8*n)}
	for k := range g.Inputs {
		g.Inputs[k] = isa.Float(float32(k%11) - 4.5)
	}
	add := func(op ops.Code, dim uint32, attrs []uint32, args ...uint32) uint32 {
		appendNode(g, op, dim, attrs, args...)
		return uint32(g.Len() - 1)
	}
	p := add(ops.Parameter, 0, []uint32{0})
	var losses []uint32
	for k := range uint32(4) {
		x, y := add(ops.Input, 0, []uint32{2 * k * n}), add(ops.Input, 0, []uint32{(2*k + 1) * n})
		losses = append(losses, add(ops.DotProduct, 1, nil, p, add(ops.CwiseMultiply, 0, nil, x, y)))
	}
	r := &Request{Graph: g, State: &State{}, Forward: true, Backward: true, Needed: true, Tensors: true, Result: NoOffset, Node: add(ops.Sum, 1, nil, losses...)}
	r.Params = []schedule.Param{{Size: n, Row: n, Factor: 1, Matrix: -1, Updated: true, Column: n}}
	r.Update = &finish.Apply{Rule: isa.SGD, Rate: 0.1, Threshold: 1e30, Params: []uint32{0}, State: []uint32{0}, All: []uint32{0}}
	var err error
	if r.Plan, err = plan.RoundRobin(nil, plan.Device{Processors: 132, Warps: 8, RegistersPer: 255, SetAside: 100, SharedPerBlock: 200 << 10, Copies: 1}, 1); err != nil {
		t.Fatal(err)
	}
	return r
}
