package script_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/finish"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/schedule"
	"libvpps/persist/script"
	"libvpps/persist/verify"
)

// Parameters of cells, and their dims.
const (
	cellLeft = iota
	cellRight
	cellBias
	cellLeaf
	cellParams
)

// newCells is a request to train with sentences of random cells, functions of one or two products, of which some have
// other readers, too.
func newCells(t *testing.T, rng *rand.Rand, sentences int, p *plan.Plan) *script.Request {
	t.Helper()
	f := &forest{}
	f.words.Dims = []bridge.Dim{dimOf(8), dimOf(1), dimOf(8, 8)}
	var params [cellParams]uint32
	for id := range params {
		params[id] = f.add(ops.Parameter, []uint32{matrixDim, matrixDim, vectorDim, vectorDim}[id], []uint32{uint32(id)})
	}
	for range sentences {
		f.losses = append(f.losses, chainOfCells(f, rng, params))
	}
	f.add(ops.Sum, oneDim, nil, f.losses...)
	f.words.NodeCount = int(f.node)
	g := &bridge.Graph{}
	require.NoError(t, g.Append(&f.words, func(id uint32) (*bridge.Dim, bool) {
		return &f.words.Dims[[]int{matrixDim, matrixDim, vectorDim, vectorDim}[id]], false
	}))
	r := &script.Request{Apart: true, Graph: g, Plan: p, Node: uint32(g.Len() - 1), Forward: true, Needed: true, Backward: true, Result: 0, Tensors: true,
		Update: &finish.Apply{Rate: 0.1, Threshold: 5}}
	at := uint32(0)
	for id := range uint32(cellParams) {
		size, matrix := uint32(64), int32(id)
		if id >= cellBias {
			size, matrix = 8, -1
		}
		r.Params = append(r.Params, schedule.Param{Offset: at, Size: size, Row: size, Factor: 1, Matrix: matrix, Updated: true})
		at += size
		r.Update.Params = append(r.Update.Params, id)
		r.Update.State = append(r.Update.State, 0)
	}
	r.Update.All = r.Update.Params
	return r
}

// chainOfCells adds a sentence and returns its loss.
func chainOfCells(f *forest, rng *rand.Rand, params [cellParams]uint32) uint32 {
	values := []uint32{params[cellLeaf], f.add(ops.Negate, vectorDim, nil, params[cellLeaf])}
	any := func() uint32 { return values[max(0, len(values)-4)+rng.IntN(min(4, len(values)))] }
	for range 1 + rng.IntN(12) {
		var y uint32
		switch rng.IntN(8) {
		case 7: // no product at all
			y = f.add(ops.AffineTransform, vectorDim, nil, params[cellBias])
		case 0, 1:
			y = f.add(ops.MatrixMultiply, vectorDim, nil, params[rng.IntN(2)], any())
		case 2, 3:
			y = f.add(ops.AffineTransform, vectorDim, nil, params[cellBias], params[cellLeft], any())
		default:
			y = f.add(ops.AffineTransform, vectorDim, nil, params[cellBias], params[cellLeft], any(), params[cellRight], any())
		}
		h := f.add([]ops.Code{ops.Tanh, ops.LogisticSigmoid, ops.Rectify}[rng.IntN(3)], vectorDim, nil, y)
		if rng.IntN(8) == 0 {
			h = f.add(ops.CwiseMultiply, vectorDim, nil, h, any())
		}
		values = append(values, h)
	}
	return f.add(ops.SquaredNorm, oneDim, nil, f.add(ops.Sum, vectorDim, nil, values[max(0, len(values)-2):]...))
}

// Scripts whose products form what they read are sound, do not depend on goroutines, and leave what those leave in which
// one processor forms it before, up to rounding: terms are added in the order in which they get ready.
func TestProductsThatFormTheirVectors(t *testing.T) {
	defer script.PartNodes(script.PartNodes(6))
	formed, backward := 0, 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 21))
		d := plan.Device{Processors: 40, Warps: 1 + rng.IntN(2), RegistersPer: 255, SetAside: 60, SharedPerBlock: 64 << 10, Columns: []int{1, 2, 4}[rng.IntN(3)], Copies: rng.IntN(3)}
		p, err := plan.RoundRobin([]plan.Matrix{{Rows: 8, Cols: 8}, {Param: 1, Rows: 8, Cols: 8, Offset: 64}}, d, 1+rng.IntN(3))
		require.NoError(t, err)
		if !p.SharesRows() { // too few processors
			continue
		}
		r := newCells(t, rng, 1+int(seed%5), p)
		var b script.Builder
		was := script.FormingNodes(1 << 16)
		have := &isa.Script{Words: wordsOf(t, &b, r, 1)}
		require.True(t, slices.Equal(have.Words, wordsOf(t, &b, r, 4)), "seed %d: four goroutines make another script", seed)
		require.NoError(t, verify.Verify(have, p), "seed %d", seed)
		script.FormingNodes(0)
		want := &isa.Script{Words: wordsOf(t, &b, r, 1)}
		script.FormingNodes(was)
		formed += withFunction(behindAll(t, have, isa.Product))
		backward += withFunction(behindAll(t, have, isa.ProductT))
		compareWithin(t, seed, r, want, have, 2e-5)
	}
	require.Greater(t, formed, 500)
	require.Greater(t, backward, 500)
}

// withFunction counts the functions that are not copy.
func withFunction(list []isa.Fn) (n int) {
	for _, fn := range list {
		if fn != isa.Copy {
			n++
		}
	}
	return n
}

// Where products form their vectors, processors that hold as much of one matrix share a stream until the gradients of
// parameters, with what comes before: the classes share out the embeddings, and each processor copies its elements of its
// class's. What that leaves is what a CPU's processors do.
func TestHoldersOfRowsShareAStream(t *testing.T) {
	g, params, matrices := newTriangles(t, 2, 32)
	p := shares(t, params, matrices)
	require.Equal(t, 3*32+2*4, len(p.Partitions))
	s := trainingScript(t, g, params, p)
	require.NoError(t, verify.Verify(s, p))
	left := entryOf(s, p.Of(1)[0].Processor)
	for i, x := range p.Of(1) {
		entry := entryOf(s, x.Processor)
		require.NotZero(t, entry[isa.ProcOwn])
		require.Equal(t, left[isa.ProcStart], entry[isa.ProcStart])
		if i > 0 {
			require.NotEqual(t, left[isa.ProcOwn], entry[isa.ProcOwn])
		}
	}
	copies := map[int]int{}
	for q := range s.Processors() {
		for in, err := range s.Instructions(q) {
			require.NoError(t, err)
			if in.Op == isa.Map && in.Flags&isa.Own != 0 {
				copies[q] += in.Items
			}
		}
	}
	require.Len(t, copies, 3*32)
	embeddings := 0
	for m := 1; m <= 3; m++ { // each a class's
		first := copies[p.Of(m)[0].Processor]
		require.Greater(t, first, 5)
		embeddings += first
		for i, x := range p.Of(m) {
			require.Equal(t, first, copies[x.Processor])
			require.Equal(t, []uint32{uint32(i), 32}, entryOf(s, x.Processor)[isa.ProcRank:][:2])
		}
	}
	words := 0
	for _, op := range g.Op {
		if op == ops.Lookup {
			words++
		}
	}
	require.Equal(t, words, embeddings)
	whole, err := plan.Sliced(matrices, 3)
	require.NoError(t, err)
	for i := range matrices {
		params[matrices[i].Param].Matrix = int32(i)
	}
	want, have := trained(t, trainingScript(t, g, params, whole), whole), trained(t, s, p)
	for i := range want {
		require.InDelta(t, want[i], have[i], 1e-5, "element %d", i)
	}
}
