package persist

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"libvpps/bridge/ops"
	"libvpps/persist/comm"
	"libvpps/persist/isa"
)

// What ranks do about one that fails, differs, or is gone.

// What differs is named on every rank, and no rank has changed.
func TestRanksThatDifferAreRefused(t *testing.T) {
	for want, change := range map[string]func(r *rank) error{
		`rank 1 differs from rank 0: it has parameter 4: parameter "x" {2} of collection 0, rank 0 has trainer`: func(r *rank) error {
			_, err := r.NewParameter(0, "x", dim(2), false, nil)
			return err
		},
		`it has collection 0: weight decay 0.5, rank 0 has collection 0: weight decay 0`: func(r *rank) error { return r.SetLambda(0, 0.5) },
		`it has nothing, rank 0 has trainer 0: sgd of parameters [0 1 2 3]`:              func(r *rank) error { r.trainer.Close(); return nil },
		`parameter 2: parameter "M" {3,2} of collection 0, not updated`:                  func(r *rank) error { return r.SetUpdated(parallelM, false) },
	} {
		ranks := newGroup(t, how{ranks: 2})
		require.NoError(t, change(ranks[1]))
		before := [][]float32{ranks[0].numbers(), ranks[1].numbers()}
		for k, err := range together(ranks, func(r *rank) error { return r.Attach(r.comm, ParallelOptions{}) }) {
			require.ErrorIs(t, err, ErrRank)
			require.ErrorContains(t, err, want)
			require.Equal(t, before[k], ranks[k].numbers())
			_, err = ranks[k].trainer.Updates()
			require.NoError(t, err, "it trains alone")
		}
	}
	other := newGroup(t, how{ranks: 2})
	other[1].Engine = newEngineOf(t, how{processors: 3}, 1).Engine
	for _, err := range together(other, func(r *rank) error { return r.Attach(r.comm, ParallelOptions{}) }) {
		require.ErrorContains(t, err, "it has device: 3 virtual processors, rank 0 has device: 1 virtual processors")
	}
	ranks := newGroup(t, how{ranks: 2})
	for _, err := range together(ranks, func(r *rank) error { return r.Attach(r.comm, ParallelOptions{Average: r.comm.Rank() == 1}) }) {
		require.ErrorContains(t, err, "it has gradients: averaged, rank 0 has gradients: summed")
	}
	ranks = newGroup(t, how{ranks: 2})
	for _, err := range together(ranks, func(r *rank) error { return r.Attach(r.comm, ParallelOptions{BF16: r.comm.Rank() == 1}) }) {
		require.ErrorContains(t, err, "it has gradients: summed in bf16, rank 0 has gradients: summed")
	}
	ranks = newGroup(t, how{ranks: 2})
	attach(t, ranks, ParallelOptions{})
	require.ErrorIs(t, ranks[0].Attach(ranks[0].comm, ParallelOptions{}), ErrState)
	o := how{}.trainerOptions()
	o.LearningRate = 0.5
	require.NoError(t, ranks[1].trainer.Set(o))
	before := ranks[0].numbers()
	for _, err := range together(ranks, func(r *rank) error { _, err := r.fb(sentencesOf(0, 0, 1)); return err }) {
		require.ErrorIs(t, err, ErrRank)
		require.ErrorContains(t, err, "LearningRate:0.5")
	}
	require.Equal(t, before, ranks[1].numbers())
	require.Zero(t, len(slices.DeleteFunc(ranks[1].gradientNumbers(), func(x float32) bool { return x == 0 })))
	require.NoError(t, ranks[0].trainer.Set(o))
	succeed(t, ranks, func(r *rank) error { _, err := r.fb(sentencesOf(0, 0, 1)); return err })
	requireEqualRanks(t, ranks)
}

var errDead = errors.New("killed")

// numberless is a sentence whose loss is not finite.
func numberless() []sentence {
	inf := float32(math.Inf(1))
	return []sentence{{x: [4]float32{inf, -inf, inf, 1}}}
}

// NaN on one rank is an error on all, and nobody applies the batch. All go on after it.
func TestNaNOnOneRankIsNotCommittedByAny(t *testing.T) { nanOnOneRank(t, ParallelOptions{}) }

// So it is where gradients are rounded on their way.
func TestNaNInBF16(t *testing.T) { nanOnOneRank(t, ParallelOptions{BF16: true}) }

func nanOnOneRank(t *testing.T, o ParallelOptions) {
	for _, three := range []bool{false, true} {
		ranks := newGroup(t, how{ranks: 3, rule: isa.Adam, lambda: 0.01})
		attach(t, ranks, o)
		succeed(t, ranks, func(r *rank) error { _, err := r.fb(sentencesOf(0, r.comm.Rank(), 1)); return err })
		before := ranks[0].numbers()
		errs := together(ranks, func(r *rank) error {
			if r.comm.Rank() == 2 {
				_, err := r.fb(sentencesOf(1, 2, 1))
				if err == nil {
					return errDead
				}
				return r.Join()
			}
			list := sentencesOf(1, r.comm.Rank(), 1)
			if three {
				if _, err := r.backward(list); err != nil {
					return err
				}
				if r.comm.Rank() == 1 {
					if err := r.WriteParameter(parallelTable, Gradient, 4, []float32{float32(math.NaN()), 0}); err != nil {
						return err
					}
				}
				_, err := r.trainer.Update()
				if !slices.ContainsFunc(r.gradientNumbers(), func(x float32) bool { return x != 0 && x == x }) {
					return errors.New("the gradients are gone")
				}
				if err := errors.Join(r.ScaleParameter(parallelTable, Gradient, 0), r.Join()); err != nil {
					return err
				}
				return err
			}
			if r.comm.Rank() == 1 {
				list = append(list, numberless()...)
			}
			_, err := r.fb(list)
			return errors.Join(err, r.Join())
		})
		require.NoError(t, errs[2])
		for k, err := range errs[:2] {
			require.ErrorIs(t, err, ErrNumeric)
			if three {
				require.ErrorContains(t, err, `rank 1: the gradient of parameter "table", row 2 is not finite`)
			} else if k == 1 {
				require.ErrorContains(t, err, "batch 2: its loss is not finite (NaN): the first value that is not finite")
			} else {
				require.ErrorContains(t, err, "rank 1: batch 2: its loss is not finite")
			}
		}
		requireEqualRanks(t, ranks)
		require.Equal(t, before, ranks[0].numbers())
	}
}

// A loss that is not finite does not count either, though all its gradients are: the sums are made NaN.
func TestALossThatIsNotFiniteWithGradientsThatAre(t *testing.T) {
	for _, half := range []bool{false, true} {
		ranks := newGroup(t, how{ranks: 2})
		attach(t, ranks, ParallelOptions{BF16: half})
		before := ranks[0].numbers()
		for k, err := range together(ranks, func(r *rank) error {
			w, loss := batchOf(sentencesOf(0, r.comm.Rank(), 2)...)
			if r.comm.Rank() == 1 {
				w.Nodes = append(append(w.Nodes, op(ops.Input, 0, uint32(len(w.Inputs)))...), op(ops.Sum, 0, 2, loss, loss+1)...)
				w.Inputs = append(w.Inputs, bits(float32(math.Inf(1)))...)
				w.NodeCount += 2
				loss += 2
			}
			g := r.NewGraph()
			defer g.Close()
			_, err := r.handle.FB(g, w, loss)
			return errors.Join(err, r.Join())
		}) {
			require.ErrorIs(t, err, ErrNumeric, "rank %d", k)
			require.ErrorContains(t, err, "batch 1: its loss is not finite (+Inf)")
		}
		requireEqualRanks(t, ranks)
		require.Equal(t, before, ranks[0].numbers())
		succeed(t, ranks, func(r *rank) error { _, err := r.fb(sentencesOf(0, r.comm.Rank(), 2)); return err })
		requireEqualRanks(t, ranks)
		require.NotEqual(t, before, ranks[0].numbers())
	}
}

// A batch that one rank cannot train is an error on all, by name.
func TestABatchThatFailsOnOneRankFailsOnAll(t *testing.T) {
	ranks := newGroup(t, how{ranks: 2})
	attach(t, ranks, ParallelOptions{})
	before := ranks[0].numbers()
	errs := together(ranks, func(r *rank) error {
		if r.comm.Rank() == 1 {
			g := r.NewGraph()
			defer g.Close()
			w, loss := batchOf(sentencesOf(0, 0, 1)...)
			_, err := r.handle.FB(g, w, loss-1+5)
			return err
		}
		_, err := r.fb(sentencesOf(0, 0, 1))
		return err
	})
	require.ErrorIs(t, errs[1], ErrArgument)
	require.ErrorIs(t, errs[0], ErrRank)
	require.ErrorContains(t, errs[0], "rank 1: "+errs[1].Error())
	requireEqualRanks(t, ranks)
	require.Equal(t, before, ranks[0].numbers())
	succeed(t, ranks, func(r *rank) error { _, err := r.fb(sentencesOf(0, 0, 1)); return err })
	requireEqualRanks(t, ranks)
}

func TestAGraphOfAnotherEngineFailsOnAll(t *testing.T) {
	ranks := newGroup(t, how{ranks: 2})
	attach(t, ranks, ParallelOptions{})
	// An engine makes a graph only between its batches, and rank 0's batch waits for rank 1.
	graphs := []*Graph{ranks[0].NewGraph(), ranks[0].NewGraph()}
	errs := together(ranks, func(r *rank) error {
		w, loss := batchOf(sentencesOf(0, 0, 1)...)
		_, err := r.handle.FB(graphs[r.comm.Rank()], w, loss)
		return err
	})
	require.ErrorIs(t, errs[1], ErrArgument)
	require.ErrorContains(t, errs[0], "rank 1: the graph is of another engine than the handle")
}

// mortal is a communicator whose rank is gone from its n-th call on.
type mortal struct {
	comm.Communicator
	left *int
}

func (m mortal) alive() bool {
	*m.left--
	return *m.left >= 0
}

func (m mortal) AllReduce(x []float32) error {
	if !m.alive() {
		return errDead
	}
	return m.Communicator.AllReduce(x)
}

func (m mortal) AllReduceBF16(x []float32) error {
	if !m.alive() {
		return errDead
	}
	return m.Communicator.(comm.OnHost).AllReduceBF16(x)
}

func (m mortal) Broadcast(x []float32, from int) error {
	if !m.alive() {
		return errDead
	}
	return m.Communicator.Broadcast(x, from)
}

func (m mortal) AllGather(mine []uint32) ([][]uint32, error) {
	if !m.alive() {
		return nil, errDead
	}
	return m.Communicator.AllGather(mine)
}

func (m mortal) Abort(error) {} // the dead do not tell

// casualty is a group of which one rank is killed.
type casualty struct {
	three  bool // backward and update, not fb
	bf16   bool // gradients are exchanged so
	victim int
	point  int // before this call of the group
	ranks  []*rank
	last   [3][]float32 // each rank's numbers before the batch
	errs   []error
}

// run trains until the group ends.
func (c *casualty) run() {
	c.errs = together(c.ranks, func(r *rank) error {
		me := r.comm.Rank()
		c.last[me] = r.numbers()
		if err := r.Attach(r.comm, ParallelOptions{BF16: c.bf16}); err != nil {
			return err
		}
		for step := 0; ; step++ {
			c.last[me] = r.numbers()
			if !c.three {
				if _, err := r.fb(sentencesOf(step, me, 1)); err != nil {
					return err
				}
				continue
			}
			if _, err := r.backward(sentencesOf(step, me, 1)); err != nil {
				return err
			}
			if _, err := r.trainer.Update(); err != nil {
				return err
			}
		}
	})
}

// A rank is killed before each of the calls that it makes: the others name it in time, and their parameters are those of
// before the batch. All these groups train at the same time, since most of it is waiting.
func TestARankThatIsKilledAtAnyPoint(t *testing.T) {
	patience := 2 * time.Second
	if onGPUs != nil { // stand-ins are slower, and nobody else may be late
		patience *= 4
	}
	var all []*casualty
	for _, three := range []bool{false, true} {
		for victim := range 3 {
			for point := range 8 { // attach makes three calls, each step two
				left := point
				c := &casualty{three: three, bf16: victim == 1, victim: victim, point: point}
				c.ranks = newGroup(t, how{ranks: 3, rule: isa.Adam, lambda: 0.01, patience: patience, wrap: func(c comm.Communicator) comm.Communicator {
					if c.Rank() != victim {
						return c
					}
					return mortal{c, &left}
				}})
				all = append(all, c)
			}
		}
	}
	began := time.Now()
	var done sync.WaitGroup
	for _, c := range all {
		done.Go(c.run)
	}
	done.Wait()
	require.Less(t, time.Since(began), 20*patience)
	for _, c := range all {
		for k, err := range c.errs {
			what := fmt.Sprintf("three calls: %v, victim %d before its call %d: rank %d", c.three, c.victim, c.point, k)
			require.Equal(t, c.last[k], c.ranks[k].numbers(), what)
			require.ErrorIs(t, err, ErrRank, what)
			if k == c.victim {
				require.ErrorContains(t, err, "killed", what)
			} else {
				require.ErrorContains(t, err, fmt.Sprintf("rank %d did not arrive within %v", c.victim, patience), what)
			}
		}
	}
}

// An engine that is closed, or whose device is lost, is an error on the others at once.
func TestARankThatEndsIsNamedAtOnce(t *testing.T) {
	ranks := newGroup(t, how{ranks: 2, patience: time.Hour})
	attach(t, ranks, ParallelOptions{})
	errs := together(ranks, func(r *rank) error {
		if r.comm.Rank() == 1 {
			time.Sleep(10 * time.Millisecond)
			r.Close()
			return nil
		}
		_, err := r.fb(sentencesOf(0, 0, 1))
		return err
	})
	require.ErrorIs(t, errs[0], ErrRank)
	require.ErrorContains(t, errs[0], "rank 1 has aborted: its engine was closed, while attached to the group")
	require.NoError(t, ranks[0].Detach())
	_, err := ranks[0].fb(sentencesOf(0, 0, 1))
	require.NoError(t, err, "alone")
}

// Gradients that a batch adds to, of parameters that its trainer does not have, are as before a failed batch, too.
func TestAFailedBatchOfARankLeavesGradientsAsTheyWere(t *testing.T) {
	ranks := newGroup(t, how{ranks: 2})
	for _, r := range ranks {
		some, err := r.NewHandle([]uint32{parallelW}, nil)
		require.NoError(t, err)
		r.handle = some
	}
	attach(t, ranks, ParallelOptions{})
	fail := func(r *rank) error {
		list := sentencesOf(0, 0, 1)
		if r.comm.Rank() == 0 {
			list = append(list, numberless()...)
		}
		_, err := r.fb(list)
		return err
	}
	for step := range 3 {
		before := [][]float32{ranks[0].gradientNumbers(), ranks[1].gradientNumbers()}
		if step > 0 {
			require.NotZero(t, before[1][2+16], "without a failure they are collected")
		}
		for k, err := range together(ranks, fail) {
			require.ErrorIs(t, err, ErrNumeric)
			require.Equal(t, before[k], ranks[k].gradientNumbers())
		}
		succeed(t, ranks, func(r *rank) error { _, err := r.fb(sentencesOf(step, r.comm.Rank(), 1)); return err })
		requireEqualRanks(t, ranks)
	}
}
