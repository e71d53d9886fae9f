package script_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge/cells"
	"libvpps/bridge/ops"
	"libvpps/persist/finish"
	"libvpps/persist/plan"
	"libvpps/persist/script"
)

// batchOf is a request to train with a batch of recurrent sentences, of which dictionary d knows the patterns. Batches differ
// in how many sets of classes their losses are restricted to, and in which states are read a second time.
func batchOf(t *testing.T, d *cells.Dictionary, seed uint64, cpu bool) *script.Request {
	rng := rand.New(rand.NewPCG(seed, 1))
	sets, again := 1+rng.IntN(2)*rng.IntN(25), rng.IntN(3)
	g, params, matrices := newBatch(t, 4, 8, simpleCells, func(f *forest, words int) {
		x, h := uint32(0), uint32(9)
		read := [][]uint32{{}, {}, {}}
		for range words {
			x = f.add(ops.Lookup, dimH, []uint32{13, f.input(rng.Uint32N(vocabulary))})
			sum := f.add(ops.AffineTransform, dimH, nil, 9, 1, x, 2, h)
			h = f.add(ops.Tanh, dimH, nil, sum)
			read[1], read[2] = append(read[1], x), append(read[2], sum)
			set := rng.Uint32N(uint32(sets))
			at := f.input(set % 5)
			f.input((set + 1 + set/5) % 5)
			y := f.add(ops.RestrictedLogSoftmax, dimC, []uint32{at, 2}, f.add(ops.MatrixMultiply, dimC, nil, 0, h))
			f.losses = append(f.losses, f.add(ops.PickElement, dim1, []uint32{0, at, 1}, y))
		}
		for _, v := range read[again] {
			f.losses = append(f.losses, f.add(ops.SquaredNorm, dim1, nil, v))
		}
	})
	p, err := plan.RoundRobin(matrices, plan.Device{Processors: 4, Warps: 8, RegistersPer: 255, SetAside: 80, SharedPerBlock: 200 << 10}, 1)
	if cpu {
		p, err = sliced(t, matrices, 2), nil
	}
	require.NoError(t, err)
	numberMatrices(params, p)
	n := uint32(g.Len())
	r := &script.Request{Graph: g, Params: params, Plan: p, Node: n - 1, Forward: true, Needed: true, Backward: true, Result: script.NoOffset, Cells: &cells.Program{}}
	for range 2 {
		d.Find(g, 0, n, r.Cells)
	}
	return r
}

// callsOf are ways to ask for a batch. Each returns the words of all its scripts, and whether these are of instances.
var callsOf = map[string]func(t *testing.T, b *script.Builder, r *script.Request) (words []uint32, byInstances bool){
	"fb": func(t *testing.T, b *script.Builder, r *script.Request) ([]uint32, bool) {
		r.Update = &finish.Apply{Params: []uint32{1}, All: []uint32{1}}
		built, err := b.Build(r)
		require.NoError(t, err)
		return slices.Clone(built.Script.Words), built.ByInstances
	},
	"forward and backward": func(t *testing.T, b *script.Builder, r *script.Request) ([]uint32, bool) {
		r.Needed, r.Backward, r.Copy = false, false, true
		built, err := b.Build(r)
		require.NoError(t, err)
		words := slices.Clone(built.Script.Words)
		r.State.Done, r.Base, r.Forward, r.Backward = r.Graph.Len(), built.Used, false, true
		built, err = b.Build(r)
		require.NoError(t, err)
		return append(words, built.Script.Words...), built.ByInstances
	},
	"forward, backward and update in two scripts": func(t *testing.T, b *script.Builder, r *script.Request) ([]uint32, bool) {
		r.Needed, r.Split = false, true
		built, err := b.Build(r)
		require.NoError(t, err)
		words := slices.Clone(built.Script.Words)
		second, err := b.Second(nil)
		require.NoError(t, err)
		return append(words, second.Script.Words...), built.ByInstances
	},
}

// A script depends on its request alone, not on what its builder built before.
func TestBuildersRememberNothing(t *testing.T) {
	for _, cpu := range []bool{true, false} {
		var d cells.Dictionary
		var batches []*script.Request
		for seed := range uint64(40) {
			batches = append(batches, batchOf(t, &d, seed, cpu))
		}
		for name, call := range callsOf {
			build := func(b *script.Builder, k int) ([]uint32, bool) {
				r := *batches[k]
				r.State, r.Plan = &script.State{}, batches[0].Plan
				return call(t, b, &r)
			}
			var alone [][]uint32
			var byInstances []bool
			for k := range batches {
				words, by := build(&script.Builder{}, k)
				alone, byInstances = append(alone, words), append(byInstances, by)
			}
			require.Contains(t, byInstances, true, name)
			require.Contains(t, byInstances, false, name)
			for seed := range uint64(3) {
				var b script.Builder
				for _, k := range rand.New(rand.NewPCG(seed, 2)).Perm(len(batches)) {
					words, _ := build(&b, k)
					require.True(t, slices.Equal(alone[k], words), "%s, cpu: %v, batch %d", name, cpu, k)
				}
			}
		}
	}
}
