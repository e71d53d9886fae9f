package persist

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/persist/cpu"
	"libvpps/persist/plan"
	"libvpps/persist/reference"
)

// likeGPU is a CPU executor whose matrices lie as on a GPU.
type likeGPU struct {
	*cpu.Executor
	device plan.Device
}

func (g likeGPU) Plan(matrices []plan.Matrix) (*plan.Plan, error) {
	return plan.RoundRobin(matrices, g.device, 1)
}

// On the second no matrix of the tests has all partial results, and few have room in registers or shared
// memory.
var gpus = []plan.Device{
	{Name: "a GPU", Processors: 132, Warps: 8, RegistersPer: 255, SetAside: 95, SharedPerBlock: 200 << 10, Copies: 1},
	{Name: "a tiny GPU", Processors: 5, Warps: 1, RegistersPer: 255, SetAside: 80, Weights: 1, SharedPerBlock: 64<<10 + 32, Partials: 4, Copies: 1},
}

// trained is what a random graph leaves after a backward and an fb: gradients of the parameters,
// then their values; and where its matrices were.
func trained(t *testing.T, g *reference.RandomGraph, d plan.Device, threads int) (gradients, values [][]float32, p *plan.Plan) {
	t.Helper()
	x, err := cpu.New(threads, d.Processors, 10)
	require.NoError(t, err)
	return trainedBy(t, newEngine(likeGPU{x, d}, 1), g)
}

// trainedBy is what a random graph leaves on an engine, which is closed.
func trainedBy(t *testing.T, e *Engine, g *reference.RandomGraph) (gradients, values [][]float32, p *plan.Plan) {
	t.Helper()
	defer e.Close()
	e.verify = true
	c, err := e.NewCollection(0)
	require.NoError(t, err)
	var ids []uint32
	for _, p := range g.Params {
		v := make([]float32, len(p.Values))
		for i, x := range p.Values {
			v[i] = float32(x)
		}
		id, err := e.NewParameter(c, "p", p.Dim, p.Lookup, v)
		require.NoError(t, err)
		ids = append(ids, id)
	}
	h, err := e.NewHandle(ids, nil)
	require.NoError(t, err)
	read := func(part Part) (all [][]float32) {
		for id, p := range g.Params {
			v := make([]float32, len(p.Values))
			require.NoError(t, e.ReadParameter(uint32(id), part, 0, v))
			all = append(all, v)
		}
		return all
	}
	graph := e.NewGraph()
	require.NoError(t, graph.Backward(&g.Words, g.Loss, false))
	gradients = read(Gradient)
	_, err = h.FB(graph, nil, g.Loss)
	require.NoError(t, err)
	return gradients, read(Values), e.plan
}

// A script for a GPU's processors, with partitions handed out as there, runs on one thread and on
// two with the same bits, those that it gives if several processors hold the same rows, and gives
// the reference's gradients, wherever matrices live.
func TestAScriptForAGPURunsOnAnyNumberOfThreads(t *testing.T) {
	for _, device := range gpus {
		t.Run(device.Name, func(t *testing.T) {
			kinds := map[plan.Kind]int{}
			for seed := range uint64(25) {
				g, err := reference.Random(seed+3000, reference.Options{Nodes: 30})
				require.NoError(t, err)
				gradients, values, p := trained(t, g, device, 1)
				again, after, _ := trained(t, g, device, 2)
				require.Equal(t, gradients, again, "seed %d", seed)
				require.Equal(t, values, after, "seed %d", seed)
				for copies := 2; copies <= 4; copies += 2 {
					several := device
					several.Copies = copies
					again, after, _ = trained(t, g, several, 1)
					require.Equal(t, gradients, again, "seed %d, %d copies", seed, copies)
					require.Equal(t, values, after, "seed %d, %d copies", seed, copies)
				}
				for _, w := range p.Where {
					kinds[w.Kind]++
				}
				d, err := reference.Differentiate(g.Graph, g.Surroundings(), g.Loss, g.Values)
				require.NoError(t, err)
				for id, want := range d.Params {
					for i, w := range want {
						require.InDelta(t, w, gradients[id][i], 1e-4*(1+math.Abs(w)), "seed %d, parameter %d, element %d", seed, id, i)
					}
				}
			}
			if device.Partials > 0 {
				require.Len(t, kinds, 3, "registers, shared memory and memory are all used")
			}
			t.Log(kinds)
		})
	}
}
