package persist

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"libvpps/persist/isa"
)

// What ranks train, held to one engine with their batches joined.

// Two and three ranks train as one with their batches joined: every rule, tables as a whole or by rows, weight decay,
// clipping, several processors. The last steps are made by those ranks that have batches left.
func TestRanksTrainAsOneWithTheirBatchesJoined(t *testing.T) {
	shard := [3]int{7, 5, 6} // batches of each rank
	for rule := range isa.Rules {
		for _, h := range []how{
			{ranks: 2, rule: rule},
			{ranks: 3, rule: rule, dense: true, lambda: 0.01, threshold: 0.5},
			{ranks: 3, rule: rule, lambda: 0.3, threshold: 1, processors: 3},
		} {
			name := fmt.Sprintf("%s, %+v", isa.RuleTable[rule].Name, h)
			alone := newEngineOf(t, h, 1)
			ranks := newGroup(t, h)
			attach(t, ranks, ParallelOptions{})
			requireEqualRanks(t, ranks)
			losses := make([][]float32, h.ranks)
			succeed(t, ranks, func(r *rank) error {
				me := r.comm.Rank()
				for step := range shard[me] {
					loss, err := r.fb(sentencesOf(step, me, 1+me))
					if err != nil {
						return err
					}
					losses[me] = append(losses[me], loss)
				}
				return r.Join()
			})
			requireEqualRanks(t, ranks)
			for step := range slices.Max(shard[:h.ranks]) {
				var joined []sentence
				sum := float32(0)
				for k := range h.ranks {
					if step < shard[k] {
						joined = append(joined, sentencesOf(step, k, 1+k)...)
						sum += losses[k][step]
					}
				}
				loss, err := alone.fb(joined)
				require.NoError(t, err)
				require.InDelta(t, loss, sum, 1e-4, "%s: step %d", name, step)
			}
			requireClose(t, alone.numbers(), ranks[0].numbers(), name)
			clips, err := ranks[0].handle.Clips()
			require.NoError(t, err)
			want, err := alone.handle.Clips()
			require.NoError(t, err)
			if h.ranks == 2 {
				require.Zero(t, clips)
			} else { // rank 0 has a batch in every step
				require.Equal(t, want, clips, name)
			}
		}
	}
}

// Gradients in bf16: ranks stay the same to the bit, and train as one does but for the rounding. An option or the variable
// asks for it.
func TestGradientsInBF16(t *testing.T) {
	for _, byVariable := range []bool{false, true} {
		for _, h := range []how{{ranks: 2}, {ranks: 3, dense: true, threshold: 0.5}, {ranks: 2, rule: isa.Momentum, lambda: 0.01}} {
			if byVariable {
				t.Setenv("VPPS_COMM_GRADIENTS", "bf16")
			}
			alone := newEngineOf(t, h, 1)
			ranks := newGroup(t, h)
			attach(t, ranks, ParallelOptions{BF16: !byVariable})
			losses := make([][]float32, h.ranks)
			succeed(t, ranks, func(r *rank) error {
				me := r.comm.Rank()
				for step := range 3 + me {
					loss, err := r.fb(sentencesOf(step, me, 2))
					if err != nil {
						return err
					}
					losses[me] = append(losses[me], loss)
				}
				return r.Join()
			})
			requireEqualRanks(t, ranks)
			first := float32(0) // loss
			for step := range 2 + h.ranks {
				var joined []sentence
				sum := float32(0)
				for me := range h.ranks {
					if step < 3+me {
						joined = append(joined, sentencesOf(step, me, 2)...)
						sum += losses[me][step]
					}
				}
				loss, err := alone.fb(joined)
				require.NoError(t, err)
				if step == 0 {
					first = loss
				}
				require.InDelta(t, loss, sum, 0.01*float64(first), "step %d", step)
			}
			start := newEngineOf(t, h, 1).numbers()
			want, have, moved, differs := alone.numbers(), ranks[0].numbers(), 0.0, 0.0
			for i := range want {
				moved += math.Abs(float64(want[i] - start[i]))
				differs += math.Abs(float64(want[i] - have[i]))
			}
			require.Greater(t, differs, 1e-5*moved, "they are rounded: the order of sums alone makes less")
			require.Less(t, differs, 0.01*moved, "of what training has changed")
		}
	}
}

// bf16 is the number of bfloat16 that is nearest.
func bf16(x float32) float32 {
	b := math.Float32bits(x)
	return math.Float32frombits((b + 0x7fff + b>>16&1) &^ 0xffff)
}

// A step in bf16 is that of the ranks' gradients, times their share and rounded: their sums are rounded again, and nothing
// else is. Ranks have whole gradients, some rows of a table, or all of it where others have rows. One has no batch: it gives
// nothing, and keeps what it has.
func TestAStepInBF16(t *testing.T) {
	for _, average := range []bool{false, true} {
		for _, whole := range []bool{false, true} {
			ranks := newGroup(t, how{ranks: 3})
			o := how{}.trainerOptions()
			o.LearningRate = 1
			for _, r := range ranks {
				require.NoError(t, r.trainer.Set(o))
			}
			attach(t, ranks, ParallelOptions{Average: average, BF16: true})
			share := []float32{1, 1}
			if average {
				share = []float32{0.25, 0.75}
				require.NoError(t, ranks[1].SetCount(3))
			}
			succeed(t, ranks, func(r *rank) error {
				me := r.comm.Rank()
				if me == 1 && whole {
					x := make([]float32, 16)
					for i := range x {
						x[i] = 0.01 * float32(i-5)
					}
					if err := r.WriteParameter(parallelTable, Gradient, 0, x); err != nil {
						return err
					}
				}
				_, err := r.backward(sentencesOf(1, me, 2))
				if me == 2 {
					err = errors.Join(err, r.WriteParameter(parallelW, Gradient, 0, []float32{float32(math.Inf(1)), 1}))
				}
				return err
			})
			want, exact := ranks[0].numbers(), ranks[0].numbers()
			mine, others, kept := ranks[0].gradientNumbers(), ranks[1].gradientNumbers(), ranks[2].gradientNumbers()
			for i := range mine {
				want[i] -= bf16(bf16(share[0]*mine[i]) + bf16(share[1]*others[i]))
				exact[i] -= share[0]*mine[i] + share[1]*others[i]
			}
			succeed(t, ranks, func(r *rank) error {
				if r.comm.Rank() == 2 {
					return r.Join()
				}
				_, err := r.trainer.Update()
				return errors.Join(err, r.Join())
			})
			requireEqualRanks(t, ranks)
			have, rounding := ranks[0].numbers(), 0.0
			for i := range mine {
				require.InDelta(t, want[i], have[i], 1e-6, "average %v, whole %v: number %d", average, whole, i)
				rounding = max(rounding, math.Abs(float64(want[i]-exact[i])))
			}
			require.Greater(t, rounding, 1e-4, "what rounding makes is seen")
			require.Equal(t, kept, ranks[2].gradientNumbers())
		}
	}
}

// Programs of three calls: several backward calls a step, as many as each rank likes, and a rank with none at all.
func TestBackwardAndUpdateOfSeveralRanks(t *testing.T) {
	for rule := range isa.Rules {
		h := how{ranks: 3, rule: rule, lambda: 0.01, threshold: 0.7}
		alone := newEngineOf(t, h, 1)
		ranks := newGroup(t, h)
		attach(t, ranks, ParallelOptions{})
		calls := func(me, step int) int { return (me + step) % 3 }
		succeed(t, ranks, func(r *rank) error {
			me := r.comm.Rank()
			for step := range 5 {
				for k := range calls(me, step) {
					if _, err := r.backward(sentencesOf(step, me+10*k, 2)); err != nil {
						return err
					}
				}
				if _, err := r.trainer.Update(); err != nil {
					return err
				}
			}
			return nil
		})
		requireEqualRanks(t, ranks)
		for step := range 5 {
			for me := range h.ranks {
				for k := range calls(me, step) {
					_, err := alone.backward(sentencesOf(step, me+10*k, 2))
					require.NoError(t, err)
				}
			}
			_, err := alone.trainer.Update()
			require.NoError(t, err)
		}
		requireClose(t, alone.numbers(), ranks[0].numbers(), isa.RuleTable[rule].Name)
	}
}

// A gradient of a backward counts in the rank's next fb. A parameter that is not updated keeps its own rank's gradient.
func TestWhatIsPendingTakesPartAndWhatIsNotUpdatedStays(t *testing.T) {
	h := how{ranks: 2, threshold: 0.5}
	alone := newEngineOf(t, h, 1)
	ranks := newGroup(t, h)
	for _, r := range append([]*rank{alone}, ranks...) {
		require.NoError(t, r.SetUpdated(parallelM, false))
	}
	attach(t, ranks, ParallelOptions{})
	succeed(t, ranks, func(r *rank) error {
		me := r.comm.Rank()
		for step := range 2 {
			if me == 1 {
				if _, err := r.backward(sentencesOf(step, 5, 2)); err != nil {
					return err
				}
			}
			if _, err := r.fb(sentencesOf(step, me, 1)); err != nil {
				return err
			}
		}
		return nil
	})
	requireEqualRanks(t, ranks)
	for step := range 2 {
		_, err := alone.backward(sentencesOf(step, 5, 2))
		require.NoError(t, err)
		_, err = alone.fb(append(sentencesOf(step, 0, 1), sentencesOf(step, 1, 1)...))
		require.NoError(t, err)
	}
	requireClose(t, alone.numbers(), ranks[0].numbers(), "values")
	sum, want := ranks[0].gradientNumbers(), alone.gradientNumbers()
	for i, v := range ranks[1].gradientNumbers() {
		sum[i] += v
	}
	requireClose(t, want, sum, "gradients of what is not updated")
	require.NotZero(t, want[2+16])
}

// A graph that was evaluated before rank 0's numbers came is evaluated again.
func TestBackwardEvaluatesWithTheNumbersOfRank0(t *testing.T) {
	ranks := newGroup(t, how{ranks: 2})
	attach(t, ranks, ParallelOptions{})
	succeed(t, ranks, func(r *rank) error {
		if err := r.WriteParameter(parallelW, Values, 0, []float32{1 + float32(r.comm.Rank()), 1}); err != nil {
			return err
		}
		g := r.NewGraph()
		defer g.Close()
		w, loss := batchOf(sentencesOf(0, 0, 2)...)
		return errors.Join(g.Forward(w, loss, true), g.Backward(nil, loss, false))
	})
	require.Equal(t, ranks[0].gradientNumbers(), ranks[1].gradientNumbers())
}

// A program that has gradients and copies of parameters in memory sees there what it would see alone.
func TestSharedGradientsAndExposedParameters(t *testing.T) {
	h := how{ranks: 2, rule: isa.Adagrad}
	alone := newEngineOf(t, h, 1)
	ranks := newGroup(t, h)
	attach(t, ranks, ParallelOptions{})
	mine := func(r *rank) (shared [2][]float32) {
		for k, id := range []uint32{parallelM, parallelTable} {
			memory, err := r.GradientMemory(id, true)
			require.NoError(t, err)
			shared[k] = unsafe.Slice((*float32)(memory), r.params[id].Size)
			_, err = r.Expose(id, Values)
			require.NoError(t, err)
		}
		_, err := r.Expose(parallelW, Gradient)
		require.NoError(t, err)
		return shared
	}
	memory := map[*rank][2][]float32{alone: mine(alone), ranks[0]: mine(ranks[0]), ranks[1]: mine(ranks[1])}
	step := func(r *rank, shards ...int) error {
		for _, k := range shards {
			if _, err := r.backward(sentencesOf(0, 3*k, 1)); err != nil {
				return err
			}
		}
		memory[r][0][5] += 0.25 * float32(len(shards))
		if _, err := r.trainer.Update(); err != nil {
			return err
		}
		for _, gradient := range memory[r] {
			if slices.ContainsFunc(gradient, func(x float32) bool { return x != 0 }) {
				return errors.New("a gradient is left")
			}
		}
		return nil
	}
	succeed(t, ranks, func(r *rank) error { return step(r, r.comm.Rank()) })
	require.NoError(t, step(alone, 0, 1))
	requireEqualRanks(t, ranks)
	requireClose(t, alone.numbers(), ranks[0].numbers(), "values")
	for _, r := range ranks { // a failed step leaves its own gradients, and zeros elsewhere
		_, err := r.backward(sentencesOf(1, 3*r.comm.Rank(), 1))
		require.NoError(t, err)
	}
	memory[ranks[1]][0][0] = float32(math.Inf(1))
	own := append(slices.Clone(memory[ranks[0]][0]), memory[ranks[0]][1]...)
	for _, err := range together(ranks, func(r *rank) error { _, err := r.trainer.Update(); return err }) {
		require.ErrorIs(t, err, ErrNumeric)
		require.ErrorContains(t, err, `rank 1: the gradient of parameter "M" is not finite`)
	}
	require.Equal(t, own, append(slices.Clone(memory[ranks[0]][0]), memory[ranks[0]][1]...))
	requireEqualRanks(t, ranks)
}

// Values that fb keeps are there after it.
func TestKeptNodesOfARank(t *testing.T) {
	h := how{ranks: 2}
	alone := newEngineOf(t, h, 1)
	ranks := newGroup(t, h)
	attach(t, ranks, ParallelOptions{})
	kept := func(r *rank) (v [2]float32, err error) {
		g := r.NewGraph()
		defer g.Close()
		w, loss := batchOf(sentencesOf(0, 0, 2)...)
		if err := r.handle.Keep(g, []uint32{loss - 1}); err != nil {
			return v, err
		}
		if _, err := r.handle.FB(g, w, loss); err != nil {
			return v, err
		}
		return v, errors.Join(g.Value(nil, loss-1, v[:1]), r.ReadParameter(parallelW, Values, 0, v[1:]))
	}
	want, err := kept(alone)
	require.NoError(t, err)
	succeed(t, ranks, func(r *rank) error {
		have, err := kept(r)
		if err == nil && have[0] != want[0] {
			return fmt.Errorf("%g, alone it is %g", have[0], want[0])
		}
		return err
	})
}

// A checkpoint knows no ranks: training goes on with another number of them, which all have what rank 0 has loaded.
func TestAnotherNumberOfRanksGoesOnFromACheckpoint(t *testing.T) {
	h := how{ranks: 2, rule: isa.Adam, lambda: 0.01, threshold: 0.5}
	file := filepath.Join(t.TempDir(), "checkpoint")
	contents := func(r *rank) *Contents {
		return &Contents{IDs: r.trainer.ids, Trainers: []*Trainer{r.trainer}, Handles: []*Handle{r.handle}}
	}
	train := func(r *rank, n, from, to int) error {
		for step := from; step < to; step++ {
			var list []sentence // the shards of six, dealt out to n ranks
			for k := r.comm.Rank(); k < 6; k += n {
				list = append(list, sentencesOf(step, k, 1)...)
			}
			if _, err := r.fb(list); err != nil {
				return err
			}
		}
		return nil
	}
	two := newGroup(t, h)
	attach(t, two, ParallelOptions{})
	succeed(t, two, func(r *rank) error { return train(r, 2, 0, 3) })
	require.NoError(t, two[0].SaveCheckpoint(file, contents(two[0])))
	succeed(t, two, func(r *rank) error { return train(r, 2, 3, 6) })
	h.ranks = 3
	three := newGroup(t, h)
	attach(t, three, ParallelOptions{})
	succeed(t, three, func(r *rank) error {
		c, err := OpenCheckpoint(file)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.Load(r.Engine, contents(r)); err != nil {
			return err
		}
		return train(r, 3, 3, 6)
	})
	requireEqualRanks(t, three)
	requireClose(t, two[0].numbers(), three[0].numbers(), "values")
}

// Gradients averaged by the counts of examples are those of the mean of all examples' losses.
func TestAverageByCounts(t *testing.T) {
	h := how{ranks: 3}
	alone := newEngineOf(t, h, 1)
	ranks := newGroup(t, h)
	attach(t, ranks, ParallelOptions{Average: true})
	succeed(t, ranks, func(r *rank) error {
		n := 1 + 2*r.comm.Rank()
		if err := r.SetCount(float32(n)); err != nil {
			return err
		}
		for step := range 3 { // rank 2 has the last one to itself
			if step == 2 && n < 5 {
				break
			}
			for k := range n { // each example's share of the rank's mean
				if _, err := r.backward(sentencesOf(step, n+k, 1)); err != nil {
					return err
				}
			}
			for id := range r.params {
				if err := r.ScaleParameter(uint32(id), Gradient, 1/float32(n)); err != nil {
					return err
				}
			}
			if _, err := r.trainer.Update(); err != nil {
				return err
			}
		}
		return r.Join()
	})
	requireEqualRanks(t, ranks)
	for step := range 3 {
		total := 0
		for _, n := range []int{1, 3, 5} {
			if step == 2 && n < 5 {
				continue
			}
			total += n
			for k := range n {
				_, err := alone.backward(sentencesOf(step, n+k, 1))
				require.NoError(t, err)
			}
		}
		for id := range alone.params {
			require.NoError(t, alone.ScaleParameter(uint32(id), Gradient, 1/float32(total)))
		}
		_, err := alone.trainer.Update()
		require.NoError(t, err)
	}
	requireClose(t, alone.numbers(), ranks[0].numbers(), "values")
	for _, bad := range []float32{-1, float32(math.NaN()), float32(math.Inf(1))} {
		require.ErrorIs(t, ranks[0].SetCount(bad), ErrArgument)
	}
	for _, err := range together(ranks, func(r *rank) error {
		if err := r.SetCount(0); err != nil {
			return err
		}
		_, err := r.fb(sentencesOf(0, 0, 1))
		return err
	}) {
		require.ErrorIs(t, err, ErrArgument)
		require.ErrorContains(t, err, "no examples")
	}
	requireEqualRanks(t, ranks)
}

// A group of one is no group: the bits, and the calls in flight, are those of an engine that was never attached.
func TestAGroupOfOneChangesNothing(t *testing.T) {
	for _, half := range []bool{false, true} {
		aGroupOfOne(t, ParallelOptions{Average: true, BF16: half})
	}
}

func aGroupOfOne(t *testing.T, o ParallelOptions) {
	h := how{ranks: 1, rule: isa.Adam, lambda: 0.01, threshold: 0.5, processors: 2}
	alone, one := newEngineOf(t, h, 1), newGroup(t, h)
	attach(t, one, o)
	require.NoError(t, one[0].SetCount(3))
	for step := range 6 {
		want, err := alone.fb(sentencesOf(step, 0, 3))
		require.NoError(t, err)
		have, err := one[0].fb(sentencesOf(step, 0, 3))
		require.NoError(t, err)
		require.Equal(t, want, have)
		global, err := one[0].handle.GlobalLoss()
		require.NoError(t, err)
		require.Equal(t, want, global)
	}
	require.Equal(t, alone.numbers(), one[0].numbers())
	require.NoError(t, one[0].Join())
	require.NoError(t, one[0].Detach())
}

func TestTheGlobalLossIsTheRanksSum(t *testing.T) {
	ranks := newGroup(t, how{ranks: 3})
	attach(t, ranks, ParallelOptions{})
	for _, err := range together(ranks, func(r *rank) error { _, err := r.handle.GlobalLoss(); return err }) {
		require.ErrorIs(t, err, ErrState)
	}
	own, global := make([]float32, 3), make([]float32, 3)
	succeed(t, ranks, func(r *rank) (err error) {
		me := r.comm.Rank()
		if me == 2 {
			return r.Join()
		}
		if own[me], err = r.fb(sentencesOf(0, me, 2)); err != nil {
			return err
		}
		if global[me], err = r.handle.GlobalLoss(); err != nil {
			return err
		}
		return r.Join()
	})
	require.InDelta(t, own[0]+own[1], global[0], 1e-6)
	require.Equal(t, global[0], global[1])
}

// What is set on all ranks is rank 0's from the next call of the group on: values, states, counts, and checkpoints.
func TestWhatIsSetBecomesThatOfRank0(t *testing.T) {
	ranks := newGroup(t, how{ranks: 2, rule: isa.Adam})
	attach(t, ranks, ParallelOptions{})
	set := map[string]func(r *rank, x float32) error{
		"values": func(r *rank, x float32) error { return r.WriteParameter(parallelW, Values, 0, []float32{x, 1}) },
		"scaled": func(r *rank, x float32) error { return r.ScaleParameter(parallelTable, Values, x) },
		"state": func(r *rank, x float32) error {
			return r.trainer.WriteState(parallelB, slices.Repeat([]float32{x}, 6))
		},
		"updates": func(r *rank, x float32) error { return r.trainer.SetUpdates(uint64(10 * x)) },
		"factor":  func(r *rank, x float32) error { return r.SetFactor(0, x/4) },
		"parameter": func(r *rank, x float32) error {
			id, err := r.NewParameter(0, "more", dim(2), false, []float32{x, x})
			if err == nil {
				err = r.trainer.Add([]uint32{id})
			}
			return err
		},
	}
	for name, f := range set {
		succeed(t, ranks, func(r *rank) error {
			if err := f(r, 1.5+float32(r.comm.Rank())); err != nil {
				return err
			}
			_, err := r.fb(sentencesOf(1, r.comm.Rank(), 1))
			return err
		})
		requireEqualRanks(t, ranks)
		succeed(t, ranks, func(r *rank) error { // by backward, whose graph is evaluated anew
			if err := f(r, 1.5+float32(r.comm.Rank())); err != nil && name != "parameter" {
				return err
			}
			if _, err := r.backward(sentencesOf(1, r.comm.Rank(), 1)); err != nil {
				return err
			}
			_, err := r.trainer.Update()
			return err
		})
		requireEqualRanks(t, ranks)
	}
	for _, err := range together(ranks, func(r *rank) error {
		if r.comm.Rank() == 1 {
			if err := r.SetLambda(0, 0); err != nil {
				return err
			}
		}
		_, err := r.fb(sentencesOf(1, 0, 1))
		return err
	}) {
		require.ErrorIs(t, err, ErrRank)
		require.ErrorContains(t, err, "rank 0 is training a batch, rank 1 is setting parameters or trainers")
	}
}

// A rank that has joined follows the options of those who train, and has its own again.
func TestAJoinedRankFollowsTheOptions(t *testing.T) {
	ranks := newGroup(t, how{ranks: 2, rule: isa.Momentum})
	attach(t, ranks, ParallelOptions{})
	own := ranks[1].trainer.options
	succeed(t, ranks, func(r *rank) error {
		if r.comm.Rank() == 0 {
			for step := range 4 {
				o := own
				o.LearningRate /= float32(1 + step)
				if err := r.trainer.Set(o); err != nil {
					return err
				}
				if _, err := r.fb(sentencesOf(step, 0, 2)); err != nil {
					return err
				}
			}
		} else if _, err := r.backward(sentencesOf(9, 9, 1)); err != nil { // is not given, and stays
			return err
		}
		return r.Join()
	})
	requireEqualRanks(t, ranks)
	require.Equal(t, own, ranks[1].trainer.options)
	require.NotZero(t, ranks[1].gradientNumbers()[0])
}
