package persist

import (
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/comm"
	"libvpps/persist/cpu"
	"libvpps/persist/isa"
)

// Data parallel training: several engines of one process train one model and are held to one engine that trains with their
// batches joined.

// The model of these tests: w {2}, a table of 8 rows {2}, M {3,2}, b {3}. A sentence is a minibatch of two rows of the
// table; its loss is the sum of tanh(M * (w . (row + x)) + b)^2.
const (
	parallelW = iota
	parallelTable
	parallelM
	parallelB
)

// sentence is one loss.
type sentence struct {
	rows [2]uint32
	x    [4]float32
}

// batchOf records sentences, each whatever the others are, and the sum of their losses.
func batchOf(sentences ...sentence) (w *bridge.Words, loss uint32) {
	const (
		dim1 = iota
		dim2
		dim3
		dim3x2
		dim2b
		dim3b
		dim1b
	)
	batched := func(d bridge.Dim) bridge.Dim { d.Bd = 2; return d }
	w = &bridge.Words{Dims: []bridge.Dim{dim(1), dim(2), dim(3), dim(3, 2), batched(dim(2)), batched(dim(3)), batched(dim(1))}}
	add := func(node []uint32) uint32 {
		w.Nodes = append(w.Nodes, node...)
		w.NodeCount++
		return uint32(w.NodeCount - 1)
	}
	pw, pm, pb := add(op(ops.Parameter, dim2, parallelW)), add(op(ops.Parameter, dim3x2, parallelM)), add(op(ops.Parameter, dim3, parallelB))
	sum := op(ops.Sum, dim1, uint32(len(sentences)))
	for _, s := range sentences {
		at := uint32(len(w.Inputs))
		w.Inputs = append(append(w.Inputs, s.rows[:]...), bits(s.x[:]...)...)
		row, x := add(op(ops.Lookup, dim2b, parallelTable, at)), add(op(ops.Input, dim2b, at+2))
		y := add(op(ops.CwiseMultiply, dim2b, add(op(ops.Sum, dim2b, 2, row, x)), pw))
		h := add(op(ops.Tanh, dim3b, add(op(ops.AffineTransform, dim3b, 3, pb, pm, y))))
		l := add(op(ops.SumElements, dim1b, add(op(ops.Square, dim3b, h))))
		sum = append(sum, add(op(ops.SumDimension, dim1, l, 0, 1)))
	}
	return w, add(sum)
}

// sentences are those of a shard's batch.
func sentencesOf(step, rank, n int) (list []sentence) {
	for k := range n {
		z := uint32(7*step + 3*rank + k)
		f := func(m uint32) float32 { return float32(z*m%11)/11 - 0.4 }
		list = append(list, sentence{[2]uint32{z % 6, (z + 1 + uint32(rank)) % 6}, [4]float32{f(3), f(5), f(7), f(2)}}) // rows 6 and 7 are never used
	}
	return list
}

// rank is an engine of a group and its trainer.
type rank struct {
	*Engine
	comm    comm.Communicator
	trainer *Trainer
	handle  *Handle
}

// how is what a test varies.
type how struct {
	ranks      int
	rule       isa.Rule
	dense      bool // tables change as a whole
	lambda     float32
	threshold  float32
	processors int
	patience   time.Duration
	wrap       func(c comm.Communicator) comm.Communicator
}

func (h how) trainerOptions() TrainerOptions {
	o := TrainerOptions{Rule: h.rule, LearningRate: 0.05, Clipping: h.threshold > 0, Threshold: h.threshold, Sparse: !h.dense,
		Momentum: 0.9, Rho: 0.95, Epsilon: 1e-2, Beta1: 0.9, Beta2: 0.999}
	return o
}

// newEngineOf makes the model, with values that depend on the seed.
func newEngineOf(t *testing.T, h how, seed float32) *rank {
	t.Helper()
	r := &rank{Engine: engineOnGPU(t)}
	if r.Engine == nil {
		x, err := cpu.New(1, max(h.processors, 1), 10)
		require.NoError(t, err)
		r.Engine = newEngine(x, 1)
		if ranksAhead {
			r.exec = early{x}
		}
	}
	r.verify = !ranksAhead
	t.Cleanup(r.Close)
	c, err := r.NewCollection(h.lambda)
	require.NoError(t, err)
	var ids []uint32
	for k, p := range []struct {
		name   string
		dim    bridge.Dim
		lookup bool
	}{{"w", dim(2), false}, {"table", dim(2, 8), true}, {"M", dim(3, 2), false}, {"b", dim(3), false}} {
		values := make([]float32, p.dim.Size())
		for i := range values {
			values[i] = 0.1 + float32((5*i+3*k)%7)*0.1*seed // EG's are above 0
		}
		id, err := r.NewParameter(c, p.name, p.dim, p.lookup, values)
		require.NoError(t, err)
		ids = append(ids, id)
	}
	r.trainer, err = r.NewTrainer(h.trainerOptions(), ids)
	require.NoError(t, err)
	r.handle, err = r.NewHandle(ids, r.trainer)
	require.NoError(t, err)
	return r
}

// newGroup makes as many engines, of which rank 0's values count.
func newGroup(t *testing.T, h how) []*rank {
	t.Helper()
	if h.patience == 0 {
		h.patience = 20 * time.Second
	}
	group, err := comm.NewLocal(h.ranks, h.patience)
	require.NoError(t, err)
	all := make([]*rank, h.ranks)
	for k := range all {
		all[k] = newEngineOf(t, h, 1+float32(k))
		all[k].comm = group[k]
		if h.wrap != nil {
			all[k].comm = h.wrap(group[k])
		}
		if onGPUs != nil {
			all[k].comm = summing{all[k].comm}
		}
	}
	return all
}

// together runs do on all ranks side by side.
func together(ranks []*rank, do func(r *rank) error) []error {
	errs := make([]error, len(ranks))
	var done sync.WaitGroup
	for k, r := range ranks {
		done.Go(func() { errs[k] = do(r) })
	}
	done.Wait()
	return errs
}

func succeed(t *testing.T, ranks []*rank, do func(r *rank) error) {
	t.Helper()
	for k, err := range together(ranks, do) {
		require.NoError(t, err, "rank %d", k)
	}
}

func attach(t *testing.T, ranks []*rank, o ParallelOptions) {
	t.Helper()
	succeed(t, ranks, func(r *rank) error { return r.Attach(r.comm, o) })
}

// fb trains one batch and returns its loss.
func (r *rank) fb(sentences []sentence) (float32, error) {
	g := r.NewGraph()
	defer g.Close()
	w, loss := batchOf(sentences...)
	if _, err := r.handle.FB(g, w, loss); err != nil {
		return 0, err
	}
	return r.handle.SyncLatestLoss()
}

// backward is the first of two calls, and Update the second.
func (r *rank) backward(sentences []sentence) (float32, error) {
	g := r.NewGraph()
	defer g.Close()
	w, loss := batchOf(sentences...)
	if err := g.Backward(w, loss, false); err != nil {
		return 0, err
	}
	var value [1]float32
	return value[0], g.Value(nil, loss, value[:])
}

// numbers are all that ranks have in common: values, states, factors and counts of updates.
func (r *rank) numbers() (all []float32) {
	all = make([]float32, r.commonFloats())
	if err := r.eachCommon(all, r.download); err != nil {
		panic(err)
	}
	for _, c := range r.collections {
		all = append(all, c.Factor)
	}
	for _, t := range r.trainers {
		all = append(all, float32(t.steps))
	}
	return all
}

// gradients are all pending ones.
func (r *rank) gradientNumbers() (all []float32) {
	for id := range r.params {
		v := make([]float32, r.params[id].Size)
		if err := r.ReadParameter(uint32(id), Gradient, 0, v); err != nil {
			panic(err)
		}
		all = append(all, v...)
	}
	return all
}

// requireEqualRanks: every rank has the same bits.
func requireEqualRanks(t *testing.T, ranks []*rank) {
	t.Helper()
	for k, r := range ranks[1:] {
		require.Equal(t, ranks[0].numbers(), r.numbers(), "rank %d", k+1)
	}
}

func requireClose(t *testing.T, want, have []float32, what string) {
	t.Helper()
	require.Len(t, have, len(want))
	for i := range want {
		require.InDelta(t, want[i], have[i], 2e-5*(1+math.Abs(float64(want[i]))), "%s: number %d", what, i)
	}
}
