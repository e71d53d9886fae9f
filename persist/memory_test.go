package persist

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge/ops"
	"libvpps/persist/isa"
)

// Memory: of destroyed parameters, of large ones, and what a caller's sizes may take.

func TestMemoryOfDestroyedParametersIsUsedAgain(t *testing.T) {
	for device, open := range map[string]func(t *testing.T) *model{
		"CPU": func(t *testing.T) *model { return newModel(t, 0) },
		"GPU": func(t *testing.T) *model { m, _ := onGPU(t); return m },
	} {
		t.Run(device, func(t *testing.T) {
			m := open(t)
			used := func() [2]uint64 { return [2]uint64{m.used[isa.SegParam], m.used[isa.SegTable]} }
			var after [2]uint64
			for k := range 20 {
				var ids []uint32
				for i := range uint32(6) {
					var values []float32
					if i%2 == 0 {
						values = []float32{float32(k), 2, 3, 4, 5, 6}
					}
					id, err := m.NewParameter(0, "p", dim(2, 3), i%3 == 0, values)
					require.NoError(t, err)
					ids = append(ids, id)
					want := make([]float32, 6)
					copy(want, values)
					require.Equal(t, want, m.read(id, Values))
					require.Equal(t, make([]float32, 6), m.read(id, Gradient))
					require.NoError(t, m.WriteParameter(id, Values, 0, []float32{9, 9, 9, 9, 9, 9}))
					require.NoError(t, m.WriteParameter(id, Gradient, 0, []float32{7, 7, 7, 7, 7, 7}))
				}
				require.Equal(t, []float32{1, 2}, m.read(paramW, Values))
				if k == 0 {
					after = used()
				}
				require.Equal(t, after, used())
				for i := range ids {
					require.NoError(t, m.DestroyParameter(ids[(i+k)%len(ids)]))
				}
			}
		})
	}
}

func TestAGraphThatMentionsADestroyedParameterIsRefused(t *testing.T) {
	m := newModel(t, 0)
	require.NoError(t, m.graph.Forward(product(3, 4), 3, true))
	other := m.NewGraph()
	require.NoError(t, other.Forward(words(true, []uint32{1}, op(ops.Lookup, dim2, paramTable, 0)), 0, true))
	require.NoError(t, m.DestroyParameter(paramW))
	_, err := m.NewParameter(0, "another", dim(2), false, []float32{5, 6})
	require.NoError(t, err)
	require.ErrorContains(t, m.graph.Forward(nil, 3, true), "parameter 0 was destroyed")
	require.NoError(t, other.Forward(nil, 0, true))
}

// Free runs are never next to one another, and what is taken is free once.
func TestSpans(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	free := spans{{0, 1000}}
	taken := map[uint64]uint64{}
	for range 3000 {
		if n := 1 + r.Uint64N(40); r.IntN(2) == 0 {
			if at, ok := free.take(n); ok {
				taken[at] = n
			}
		} else {
			for at, n := range taken {
				free.give(at, n)
				delete(taken, at)
				break
			}
		}
		total := uint64(0)
		for i, f := range free {
			require.NotZero(t, f.n)
			total += f.n
			if i > 0 {
				require.Greater(t, f.at, free[i-1].at+free[i-1].n)
			}
		}
		for _, n := range taken {
			total += n
		}
		require.EqualValues(t, 1000, total)
	}
	for at, n := range taken {
		free.give(at, n)
	}
	require.Equal(t, spans{{0, 1000}}, free)
}

// Large parameters are made, scaled and copied without Go memory of their size.
func TestLargeParametersTakeNoGoMemory(t *testing.T) {
	const size = 1 << 26 // 256 MiB
	m := newModel(t, 0)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	id, err := m.NewParameter(0, "large", dim(64, size/64), true, nil)
	require.NoError(t, err)
	require.NoError(t, m.WriteParameter(id, Values, size-2, []float32{3, 4}))
	require.NoError(t, m.ScaleParameter(id, Values, 2))
	require.NoError(t, m.WriteParameter(id, Gradient, 65, []float32{5})) // all of it is defined then
	require.NoError(t, m.ScaleParameter(id, Gradient, 3))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
	v := make([]float32, 2)
	require.NoError(t, m.ReadParameter(id, Values, size-2, v))
	require.Equal(t, []float32{6, 8}, v)
	require.NoError(t, m.ReadParameter(id, Gradient, 64, v))
	require.Equal(t, []float32{0, 15}, v)
}

// A gradient that is pending is brought back, and its copy freed, if the batch that adds to it fails.
func TestAPendingGradientSurvivesAFailedBatch(t *testing.T) {
	m := newModel(t, 0)
	h := m.handle()
	require.NoError(t, m.WriteParameter(paramW, Gradient, 0, []float32{1, 2}))
	w, loss := beyondActivations()
	for range 3 {
		_, err := h.FB(m.graph, w, loss)
		require.ErrorIs(t, err, ErrMemory)
		require.Equal(t, []float32{1, 2}, m.read(paramW, Gradient))
	}
}

func TestRoomIsAskedForOnceAndBounded(t *testing.T) {
	var r room
	require.NoError(t, r.start())
	require.NoError(t, r.prove(startRoom+1, "more"))
	require.NoError(t, r.prove(1, "a little"))
	err := r.prove(math.MaxInt64, "too much")
	require.ErrorIs(t, err, ErrMemory)
	require.ErrorContains(t, err, "too much")
	require.EqualValues(t, startRoom+1, r.proven)
}
