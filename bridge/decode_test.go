package bridge_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/reference"
)

// The dims of the graphs below, by number.
var dims = []bridge.Dim{
	{Nd: 1, Bd: 1, D: [7]uint32{3}},    // 0
	{Nd: 2, Bd: 1, D: [7]uint32{4, 3}}, // 1
	{Nd: 1, Bd: 1, D: [7]uint32{4}},    // 2
	{Nd: 1, Bd: 1, D: [7]uint32{1}},    // 3
	{Nd: 1, Bd: 2, D: [7]uint32{3}},    // 4
	{Nd: 1, Bd: 3, D: [7]uint32{3}},    // 5
	{Nd: 1, Bd: 2, D: [7]uint32{1}},    // 6
}

// parameters: 0 is a matrix {4,3}, 1 a table of five rows {3}.
func parameters(id uint32) (*bridge.Dim, bool) {
	switch id {
	case 0:
		return &dims[1], false
	case 1:
		return &bridge.Dim{Nd: 2, Bd: 1, D: [7]uint32{3, 5}}, true
	}
	return nil, false
}

// words joins nodes; each is its op, dim and the words that follow.
func words(nodes ...[]uint32) bridge.Words {
	w := bridge.Words{NodeCount: len(nodes), Dims: dims, Inputs: make([]uint32, 8)}
	for _, n := range nodes {
		w.Nodes = append(w.Nodes, n...)
	}
	return w
}

func node(op ops.Code, dim uint32, rest ...uint32) []uint32 {
	return append([]uint32{uint32(op) | dim<<8}, rest...)
}

var (
	x3   = node(ops.Input, 0, 0)
	x3x2 = node(ops.Input, 4, 0)
	w43  = node(ops.Parameter, 1, 0)
	row  = node(ops.Lookup, 0, 1, 0)
)

func TestAppend(t *testing.T) {
	minus := math.Float32bits(-1)
	cases := []struct {
		name string
		w    bridge.Words
		want string // the error; empty: the graph is good
	}{
		{"nothing", words(), ""},
		{"leaves", words(x3, x3x2, w43, row), ""},
		{"a product", words(x3, w43, node(ops.MatrixMultiply, 2, 1, 0)), ""},
		{"an affine transform", words(node(ops.Input, 2, 0), w43, x3, node(ops.AffineTransform, 2, 3, 0, 1, 2)), ""},
		{"a batched loss", words(x3x2, node(ops.PickNegLogSoftmax, 6, 0, 6)), ""},

		{"an unknown operation", words(x3, node(ops.Code(200), 0, 0)), "node 1 (operation 200): unknown operation"},
		{"operation 0", words(x3, node(ops.Invalid, 0, 0)), "node 1: unknown operation"},
		{"a dim that does not exist", words(node(ops.Input, 99, 0)), "node 0 (InputNode): dim 99 of 7"},
		{"an argument that is no node", words(x3, node(ops.Tanh, 0, 7)), "node 1 (Tanh): argument 7 is not an earlier node"},
		{"its own argument", words(x3, node(ops.Tanh, 0, 1)), "node 1 (Tanh): argument 1 is not an earlier node"},
		{"words cut short", words(x3, node(ops.CwiseSum, 0, 0)), "node 1 (CwiseSum): the words end inside it"},
		{"words cut at a count", words(x3, node(ops.Sum, 0)), "node 1 (Sum): the words end inside it"},
		{"a huge count", words(x3, node(ops.Sum, 0, math.MaxUint32)), "node 1 (Sum): the words end inside it"},
		{"too few words", bridge.Words{NodeCount: 2, Nodes: x3, Dims: dims, Inputs: make([]uint32, 8)}, "node 1: the words end before it"},
		{"too many words", bridge.Words{NodeCount: 1, Nodes: append(x3[:2:2], 0), Dims: dims, Inputs: make([]uint32, 8)}, "1 words behind the last of 1 nodes"},
		{"too many nodes", bridge.Words{NodeCount: bridge.MaxNodes + 1}, "a graph has at most"},
		{"a negative count", bridge.Words{NodeCount: -1}, "-1 more nodes"},

		{"inputs beyond the words", words(node(ops.Input, 0, 6)), "node 0 (InputNode): input words 6..9 of 8"},
		{"inputs at a huge offset", words(node(ops.Input, 0, math.MaxUint32)), "input words 4294967295..4294967298 of 8"},
		{"sparse inputs beyond the words", words(node(ops.SparseInput, 0, 0, 0, 5)), "node 0 (SparseInputNode): input words 0..10 of 8"},
		{"labels beyond the words", words(x3x2, node(ops.PickNegLogSoftmax, 6, 0, 7)), "node 1 (PickNegLogSoftmax): input words 7..9 of 8"},
		{"a restriction beyond the words", words(x3, node(ops.RestrictedLogSoftmax, 0, 0, 7, 2)), "node 1 (RestrictedLogSoftmax): input words 7..9 of 8"},
		{"rows beyond the words", words(node(ops.Lookup, 4, 1, 7)), "node 0 (LookupNode): input words 7..9 of 8"},
		{"no such parameter", words(node(ops.Parameter, 1, 9)), "node 0 (ParameterNode): there is no parameter 9"},
		{"one whose number ends like another's", words(w43, w43, node(ops.Parameter, 1, 64)), "node 2 (ParameterNode): there is no parameter 64"},
		{"a parameter of two shapes", words(w43, node(ops.Parameter, 0, 0)), "node 1 (ParameterNode): dim {3}, but parameter 0 is {4,3}"},
		{"a parameter, then as a table", words(w43, node(ops.Lookup, 1, 0, 0)), "node 1 (LookupNode): parameter 0 is no lookup table"},
		{"a parameter transposed", bridge.Words{NodeCount: 1, Nodes: node(ops.Parameter, 0, 0), Dims: []bridge.Dim{{Nd: 2, Bd: 1, D: [7]uint32{3, 4}}}}, "node 0 (ParameterNode): dim {3,4}, but parameter 0 is {4,3}"},
		{"a parameter with another axis of 1", bridge.Words{NodeCount: 1, Nodes: node(ops.Parameter, 0, 0), Dims: []bridge.Dim{{Nd: 3, Bd: 1, D: [7]uint32{4, 3, 1}}}}, ""},
		{"a parameter of another shape", words(node(ops.Parameter, 0, 0)), "node 0 (ParameterNode): dim {3}, but parameter 0 is {4,3}"},
		{"a lookup in a matrix", words(node(ops.Lookup, 0, 0, 0)), "node 0 (LookupNode): parameter 0 is no lookup table"},
		{"a row of another length", words(node(ops.Lookup, 2, 1, 0)), "node 0 (LookupNode): dim {4}, but a row of parameter 1 is {3}"},

		{"a product that does not fit", words(x3, w43, node(ops.MatrixMultiply, 2, 0, 1)), "node 2 (MatrixMultiply): the left columns must be the right rows; got {3} {4,3}"},
		{"a result of another shape", words(x3, w43, node(ops.MatrixMultiply, 0, 1, 0)), "node 2 (MatrixMultiply): the node's dim must be {4}, not {3}"},
		{"batches that do not fit", words(x3x2, node(ops.Input, 5, 0), node(ops.CwiseSum, 5, 0, 1)), "node 2 (CwiseSum): batch sizes must be equal or 1; got {3X2} {3X3}"},
		{"an even affine transform", words(x3, w43, node(ops.AffineTransform, 2, 2, 0, 1)), "node 2 (AffineTransform): needs an odd number of arguments"},
		{"a sum of nothing", words(node(ops.Sum, 0, 0)), "node 0 (Sum): needs at least one argument"},
		{"an axis out of range", words(x3, node(ops.Softmax, 0, 0, 1)), "node 1 (Softmax): needs a vector or matrix, and one of its axes"},
		{"a restriction to no row", words(x3, node(ops.RestrictedLogSoftmax, 0, 0, 7, 0)), "node 1 (RestrictedLogSoftmax): needs at least one row"},
		{"a batched restriction", words(x3x2, node(ops.RestrictedLogSoftmax, 4, 0, 7, 1)), "node 1 (RestrictedLogSoftmax): needs a vector without a batch"},
		{"a range out of range", words(x3, node(ops.PickRange, 0, 0, 1, 4, 0)), "node 1 (PickRange): needs start < end <= the size of the axis"},
		{"a negative margin", words(x3, node(ops.Hinge, 3, 0, minus, 0)), "node 1 (Hinge): the margin must not be negative"},
		{"a parameter with a batch", words(node(ops.Parameter, 4, 0)), "node 0 (ParameterNode): a parameter has no batch"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var g bridge.Graph
			err := g.Append(&c.w, parameters)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v; want %q", err, c.want)
			case c.want != "" && (g.Len() != 0 || len(g.Args) != 0 || len(g.Attrs) != 0 || len(g.Dims) != 0):
				t.Errorf("something of the refused graph is left: %+v", g)
			}
		})
	}
}

func TestBadDims(t *testing.T) {
	for _, c := range []struct {
		dim  bridge.Dim
		want string
	}{
		{bridge.Dim{Nd: 8, Bd: 1}, "8 dimensions: at most 7"},
		{bridge.Dim{Nd: 1, Bd: 0, D: [7]uint32{1}}, "batch size 0"},
		{bridge.Dim{Nd: 1, Bd: 1}, "a dimension of 0"},
		{bridge.Dim{Nd: 2, Bd: 1, D: [7]uint32{1 << 16, 1 << 15}}, "elements"},
		{bridge.Dim{Nd: 0, Bd: 1 << 31}, "elements"},
		{bridge.Dim{Nd: 7, Bd: 1 << 31, D: [7]uint32{1 << 31, 1 << 31, 1 << 31, 1 << 31, 1 << 31, 1 << 31, 1 << 31}}, "elements"},
	} {
		var g bridge.Graph
		err := g.Append(&bridge.Words{Dims: []bridge.Dim{c.dim}}, parameters)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(g.Dims) != 0 {
			t.Errorf("%v: error %v; want %q", c.dim, err, c.want)
		}
	}
}

// A refused call leaves the nodes, dims and inputs of the calls before it as they were,
// and the next call goes on from there.
func TestARefusedCallChangesNothing(t *testing.T) {
	var g bridge.Graph
	good := words(x3, w43, node(ops.MatrixMultiply, 2, 1, 0))
	if err := g.Append(&good, parameters); err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprint(g.Op, g.Dim, g.Args, g.ArgStart, g.Attrs, g.AttrStart, g.Dims, g.Inputs)
	for _, bad := range [][]uint32{node(ops.Tanh, 2, 9), node(ops.Code(250), 2, 0), node(ops.Tanh, 0, 2)} {
		w := bridge.Words{Nodes: append(node(ops.Tanh, 2, 2), bad...), NodeCount: 2, Dims: dims[:1], Inputs: make([]uint32, 20)}
		if err := g.Append(&w, parameters); err == nil || !strings.Contains(err.Error(), "node 4") {
			t.Errorf("error %v; want one that names node 4", err)
		}
		if after := fmt.Sprint(g.Op, g.Dim, g.Args, g.ArgStart, g.Attrs, g.AttrStart, g.Dims, g.Inputs); after != before {
			t.Fatalf("the graph was\n%s\nand is\n%s", before, after)
		}
	}
	more := bridge.Words{Nodes: node(ops.Tanh, 2, 2), NodeCount: 1, Inputs: good.Inputs}
	if err := g.Append(&more, parameters); err != nil {
		t.Error(err)
	}
}

func TestInputsMustNotShrinkUnderEarlierNodes(t *testing.T) {
	var g bridge.Graph
	w := words(x3, node(ops.Input, 0, 5))
	if err := g.Append(&w, parameters); err != nil {
		t.Fatal(err)
	}
	short := bridge.Words{Inputs: make([]uint32, 5)}
	if err := g.Append(&short, parameters); err == nil || !strings.Contains(err.Error(), "5 input words, but the nodes before it read 8") {
		t.Errorf("error %v", err)
	}
	g.Truncate(1) // the node that read the last words is gone
	if err := g.Append(&short, parameters); err != nil {
		t.Error(err)
	}
}

// Random graphs are accepted whole and node by node, with equal results.
func TestRandomGraphsAreAccepted(t *testing.T) {
	for seed := range uint64(200) {
		r, err := reference.Random(seed, reference.Options{Random: true, Nodes: 40})
		if err != nil {
			t.Fatal(err)
		}
		var g bridge.Graph
		if err := g.Append(&r.Words, r.Parameter); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if a, b := fmt.Sprint(g.Op, g.Dim, g.Args, g.Attrs), fmt.Sprint(r.Graph.Op, r.Graph.Dim, r.Graph.Args, r.Graph.Attrs); a != b {
			t.Fatalf("seed %d: whole\n%s\nnode by node\n%s", seed, a, b)
		}
	}
}

// A Tree-LSTM's nodes are mostly of these kinds.
func BenchmarkAppend(b *testing.B) {
	w := words(x3, w43, node(ops.Input, 2, 0))
	for i := uint32(3); i < 600; {
		for _, n := range [][]uint32{node(ops.AffineTransform, 2, 3, 2, 1, 0), node(ops.Tanh, 2, i), node(ops.CwiseMultiply, 2, i, i+1), node(ops.CwiseSum, 2, i, i+2)} {
			w.Nodes = append(w.Nodes, n...)
			w.NodeCount++
			i++
		}
	}
	var g bridge.Graph
	for b.Loop() {
		g.Reset()
		if err := g.Append(&w, parameters); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*w.NodeCount), "ns/node")
}

// What was accepted does not count for other dims of the same numbers, whoever has put them there.
func TestAcceptedShapesAreOfTheirDims(t *testing.T) {
	var g bridge.Graph
	good := words(x3, w43, node(ops.MatrixMultiply, 2, 1, 0))
	if err := g.Append(&good, parameters); err != nil {
		t.Fatal(err)
	}
	bad := good
	bad.Dims = append([]bridge.Dim(nil), dims...)
	bad.Dims[2].D[0] = 5
	g.Reset()
	if err := g.Append(&bad, parameters); err == nil || !strings.Contains(err.Error(), "node 2 (MatrixMultiply): the node's dim must be {4}, not {5}") {
		t.Errorf("error %v", err)
	}
	g.Reset()
	g.Dims = append(g.Dims, dims...) // as a graph that goes on with another's
	more := words(x3, w43, node(ops.MatrixMultiply, 2, 1, 0))
	more.Dims = bad.Dims[2:3]
	if err := g.Append(&more, parameters); err != nil {
		t.Error(err)
	}
}
