package script_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/cells"
	"libvpps/bridge/ops"
	"libvpps/persist/finish"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/schedule"
	"libvpps/persist/script"
)

// onProcessors counts barriers and instructions of a graph's script under a plan for 132 processors.
func onProcessors(t *testing.T, g *bridge.Graph, params []schedule.Param, matrices []plan.Matrix, instances bool) (barriers int, count map[isa.Opcode]int) {
	p, err := plan.RoundRobin(matrices, plan.Device{Processors: 132, Warps: 8, RegistersPer: 255, SetAside: 80, SharedPerBlock: 200 << 10}, 1)
	require.NoError(t, err)
	for i := range params {
		params[i].Matrix = -1
	}
	for i, m := range p.Matrices {
		params[m.Param].Matrix = int32(i)
	}
	ids := make([]uint32, len(params))
	for i := range ids {
		ids[i] = uint32(i)
	}
	r := script.Request{Apart: true, Graph: g, State: &script.State{}, Params: params, Plan: p, Node: uint32(g.Len() - 1), Forward: true, Needed: true,
		Backward: true, Update: &finish.Apply{Params: ids, All: ids, Rate: 0.1, Threshold: 5}}
	if instances {
		var dictionary cells.Dictionary
		r.Cells = &cells.Program{}
		for range 5 { // until it knows the patterns
			dictionary.Find(g, 0, uint32(g.Len()), r.Cells)
		}
	}
	var b script.Builder
	built, err := b.Build(&r)
	require.NoError(t, err)
	require.Equal(t, instances, built.ByInstances)
	count = map[isa.Opcode]int{}
	for q := range 132 {
		for in, err := range built.Script.Instructions(q) {
			require.NoError(t, err)
			count[in.Op]++
		}
	}
	return int(built.Script.Words[isa.HeadBarriers]), count
}

// newSentences is newForest for a tagger with a simple recurrent network, whose new state is a function of two products: with
// the word, and with the state before, in either order.
func newSentences(statesFirst bool) func(tb testing.TB, batch int, hidden uint32) (*bridge.Graph, []schedule.Param, []plan.Matrix) {
	return func(tb testing.TB, batch int, hidden uint32) (*bridge.Graph, []schedule.Param, []plan.Matrix) {
		return newBatch(tb, batch, hidden, []uint32{dimCH, dimHH, dimHH, dimHH, dimH2H, dimH2H, dimH2H, dimHH, dimHH, dimH, dimH, dimH, dimH},
			func(f *forest, words int) {
				word := func() uint32 { return f.add(ops.Lookup, dimH, []uint32{13, f.input(uint32(f.rng.Intn(vocabulary)))}) }
				h := word()
				for range words {
					sum := []uint32{9, 1, word(), 2, h}
					if statesFirst {
						sum = []uint32{9, 2, h, 1, sum[2]}
					}
					h = f.add(ops.Tanh, dimH, nil, f.add(ops.AffineTransform, dimH, nil, sum...))
					y := f.add(ops.MatrixMultiply, dimC, nil, 0, h)
					f.losses = append(f.losses, f.add(ops.PickNegLogSoftmax, dim1, []uint32{f.input(uint32(f.rng.Intn(5)))}, y))
				}
			})
	}
}

func TestInstancesAreAsDeepAsNodes(t *testing.T) {
	for name, x := range map[string]struct {
		graph func(tb testing.TB, batch int, hidden uint32) (*bridge.Graph, []schedule.Param, []plan.Matrix)
		batch int
	}{"trees": {newForest, 1}, "two trees": {newForest, 2}, "phrases": {newPhrases, 1}, "four phrases": {newPhrases, 4}, "triangles": {newTriangles, 1},
		"64 trees": {newForest, 64}, "a sentence": {newSentences(false), 1}, "16 sentences": {newSentences(false), 16},
		"16 sentences, states before words": {newSentences(true), 16}} {
		t.Run(name, func(t *testing.T) {
			g, params, matrices := x.graph(t, x.batch, 256)
			deep, nodes := onProcessors(t, g, params, matrices, false)
			got, count := onProcessors(t, g, params, matrices, true)
			require.LessOrEqual(t, got, deep+1, "barriers")
			elementwise := func(c map[isa.Opcode]int) int { return c[isa.Map] + c[isa.Chain] }
			require.LessOrEqual(t, elementwise(count), elementwise(nodes)+x.batch*20, "element-wise instructions")
			require.LessOrEqual(t, count[isa.Sum], nodes[isa.Sum], "sums")
		})
	}
}
