package persist

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/gpu/mocks"
	"libvpps/persist/executor"
	"libvpps/persist/isa"
)

// Steps of the group that workers make while the program goes on.

// ranksAhead has the ranks of tests hand batches to workers.
var ranksAhead bool

// early is an executor that claims to return before a launch has run.
type early struct{ executor.Executor }

func (e early) Traits() executor.Traits {
	t := e.Executor.Traits()
	t.Asynchronous = true
	return t
}

// onWorkers runs a test with ranks that hand their batches to workers, on CPUs and on stand-ins of GPUs.
func onWorkers(t *testing.T, name string, test func(t *testing.T)) {
	ranksAhead = true
	defer func() { ranksAhead = false }()
	t.Run(name+" on CPUs", test)
	onGPUs = mocks.NVRTC(t)
	defer func() { onGPUs = nil }()
	t.Run(name+" on GPUs", test)
}

// What holds for ranks that wait for each batch holds here, too.
func TestRanksWhoseWorkersMakeTheSteps(t *testing.T) {
	t.Setenv("VPPS_CACHE_DIR", t.TempDir())
	for name, test := range map[string]func(t *testing.T){
		"train as one":             TestRanksTrainAsOneWithTheirBatchesJoined,
		"pending":                  TestWhatIsPendingTakesPartAndWhatIsNotUpdatedStays,
		"kept nodes":               TestKeptNodesOfARank,
		"checkpoint":               TestAnotherNumberOfRanksGoesOnFromACheckpoint,
		"average":                  TestAverageByCounts,
		"set":                      TestWhatIsSetBecomesThatOfRank0,
		"options":                  TestAJoinedRankFollowsTheOptions,
		"bf16":                     TestGradientsInBF16,
		"NaN":                      TestNaNOnOneRankIsNotCommittedByAny,
		"bf16, NaN":                TestNaNInBF16,
		"infinite loss":            TestALossThatIsNotFiniteWithGradientsThatAre,
		"infer":                    TestRanksInferByThemselves,
		"failing batch":            TestABatchThatFailsOnOneRankFailsOnAll,
		"failing batch, gradients": TestAFailedBatchOfARankLeavesGradientsAsTheyWere,
	} {
		onWorkers(t, name, test)
	}
}

// A program that never waits for a loss gets the same parameters, bit for bit, as one that waits for each.
func TestStepsInFlightGiveTheSameBits(t *testing.T) {
	t.Setenv("VPPS_CACHE_DIR", t.TempDir())
	onWorkers(t, "streams", func(t *testing.T) {
		for _, h := range []how{
			{ranks: 2, rule: isa.SGD, lambda: 0.3, threshold: 0.5}, // the decay's factor is multiplied in on the way
			{ranks: 3, rule: isa.Adam, lambda: 0.01},
		} {
			var numbers [2][]float32
			var losses [3][2][]float32 // of each rank
			for waits := range 2 {
				ranks := newGroup(t, h)
				attach(t, ranks, ParallelOptions{})
				succeed(t, ranks, func(r *rank) error {
					me := r.comm.Rank()
					for step := range 12 - me { // the last steps are made by some
						loss, err := r.stream(sentencesOf(step, me, 2))
						if err != nil {
							return err
						}
						losses[me][waits] = append(losses[me][waits], loss)
						if waits == 1 {
							if _, err = r.handle.SyncLatestLoss(); err != nil {
								return err
							}
						}
					}
					return r.Join()
				})
				requireEqualRanks(t, ranks)
				numbers[waits] = ranks[0].numbers()
			}
			require.Equal(t, numbers[0], numbers[1])
			for k := range h.ranks {
				require.Equal(t, losses[k][1], losses[k][0], "rank %d: losses, InFlight calls later", k)
			}
		}
	})
}

// stream is fb without waiting for the loss. It returns that of InFlight batches before.
func (r *rank) stream(list []sentence) (float32, error) {
	g := r.NewGraph()
	defer g.Close()
	w, loss := batchOf(list...)
	return r.handle.FB(g, w, loss)
}

// Notices go with the sums before them, where devices are connected. A batch fails on all ranks then, and all are told in the
// same call, although only one of them has seen the loss.
func TestNoticesGoWithSums(t *testing.T) {
	t.Setenv("VPPS_CACHE_DIR", t.TempDir())
	onWorkers(t, "notices", func(t *testing.T) {
		noticesWithSums.Store(0)
		slowSums = 5 * time.Millisecond
		defer func() { slowSums = 0 }()
		for _, bf16 := range []bool{false, true} {
			ranks := newGroup(t, how{ranks: 2, rule: isa.Adam, lambda: 0.01})
			attach(t, ranks, ParallelOptions{BF16: bf16})
			told := make([][]int, 2)
			var after [2][]float32
			succeed(t, ranks, func(r *rank) error {
				me := r.comm.Rank()
				for step := range 40 {
					list := sentencesOf(step, me, 1)
					if me == 1 && step == 8 {
						list = append(list, numberless()...)
					}
					loss, err := r.stream(list)
					if err != nil {
						require.ErrorIs(t, err, ErrNumeric)
						told[me] = append(told[me], step)
					} else if step == 39 {
						after[me] = append(after[me], loss)
					}
				}
				_, err := r.handle.SyncLatestLoss()
				return err
			})
			require.Len(t, told[0], 1)
			require.Equal(t, told[0], told[1])
			for me := range after {
				require.Len(t, after[me], 1)
				require.True(t, finite(after[me][0]))
			}
			requireEqualRanks(t, ranks)
		}
		if onGPUs != nil {
			require.Greater(t, noticesWithSums.Load(), int32(2*2*8))
		}
	})
}

// A batch that fails in flight fails on all ranks, and so do those behind it, whenever each rank is told. All go on together.
func TestABatchThatFailsInFlight(t *testing.T) {
	t.Setenv("VPPS_CACHE_DIR", t.TempDir())
	onWorkers(t, "fails", func(t *testing.T) {
		for late := range 3 { // this rank asks for every loss
			ranks := newGroup(t, how{ranks: 3, rule: isa.Adam, lambda: 0.01})
			attach(t, ranks, ParallelOptions{})
			failed := make([]error, 3)
			succeed(t, ranks, func(r *rank) error {
				me := r.comm.Rank()
				for step := range 8 + InFlight { // all are told
					list := sentencesOf(step, me, 1)
					if me == 1 && step == 4 {
						list = append(list, numberless()...)
					}
					_, err := r.stream(list)
					if err == nil && me == late {
						_, err = r.handle.SyncLatestLoss()
					}
					if err != nil && !errors.Is(err, ErrNumeric) && !errors.Is(err, ErrRank) && !errors.Is(err, ErrState) {
						return err
					}
					failed[me] = errors.Join(failed[me], err)
				}
				_, err := r.handle.SyncLatestLoss()
				return errors.Join(err, r.Join())
			})
			requireEqualRanks(t, ranks)
			require.ErrorContains(t, failed[1], "batch 5: its loss is not finite (NaN): the first value that is not finite")
			for _, k := range []int{0, 2} {
				require.ErrorContains(t, failed[k], "rank 1: batch 5: its loss is not finite (NaN)")
			}
		}
	})
}

// constant is a batch without parameters, whose loss is x.
func constant(x float32) (w *bridge.Words, loss uint32) {
	w = &bridge.Words{Dims: []bridge.Dim{dim(1)}, Inputs: bits(x), NodeCount: 1}
	w.Nodes = op(ops.Input, 0, 0)
	return w, 0
}

// A loss that is not finite fails on all ranks where there is no gradient that could tell.
func TestALossWithoutParametersIsLookedAt(t *testing.T) {
	t.Setenv("VPPS_CACHE_DIR", t.TempDir())
	onWorkers(t, "constant", func(t *testing.T) {
		ranks := newGroup(t, how{ranks: 2, rule: isa.Adam})
		attach(t, ranks, ParallelOptions{})
		train := func(r *rank, x float32) error {
			g := r.NewGraph()
			defer g.Close()
			w, loss := constant(x)
			if _, err := r.handle.FB(g, w, loss); err != nil {
				return err
			}
			_, err := r.handle.SyncLatestLoss()
			return err
		}
		succeed(t, ranks, func(r *rank) error { return train(r, 1) })
		for k, err := range together(ranks, func(r *rank) error {
			return train(r, 1/(1-float32(r.comm.Rank())))
		}) {
			require.ErrorIs(t, err, ErrNumeric, "rank %d", k)
		}
		succeed(t, ranks, func(r *rank) error { return errors.Join(train(r, 2), r.Join()) })
		for _, r := range ranks {
			require.EqualValues(t, 2, r.trainer.steps)
		}
	})
}

// A rank that ends with batches in flight makes their steps. Then the others are told that it is gone.
func TestARankThatEndsWithBatchesInFlight(t *testing.T) {
	t.Setenv("VPPS_CACHE_DIR", t.TempDir())
	onWorkers(t, "ends", func(t *testing.T) {
		ranks := newGroup(t, how{ranks: 3, patience: 5 * time.Second})
		attach(t, ranks, ParallelOptions{})
		errs := together(ranks, func(r *rank) error {
			for step := 0; ; step++ {
				if r.comm.Rank() == 1 && step == 3 {
					r.Close()
					return nil
				}
				if _, err := r.stream(sentencesOf(step, r.comm.Rank(), 1)); err != nil {
					return err
				}
			}
		})
		for _, k := range []int{0, 2} {
			require.ErrorIs(t, errs[k], ErrRank)
			require.ErrorContains(t, errs[k], "batch 4: rank 1 has aborted: its engine was closed, while attached to the group")
			require.EqualValues(t, 3, ranks[k].trainer.steps)
		}
		require.Equal(t, ranks[0].numbers(), ranks[2].numbers())
	})
}
