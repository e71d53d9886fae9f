package persist

import (
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"libvpps/gpu"
	"libvpps/gpu/mocks"
	"libvpps/persist/comm"
	"libvpps/persist/cuda"
	"libvpps/persist/cuda/standin"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
)

// Ranks whose gradients are summed in the memory of their devices. These are stand-ins, which do everything as late as they
// may, and the communicator works on their memory at once.

// onGPUs has the engines of these tests be on stand-ins, with this compiler.
var onGPUs gpu.Compiler

// engineOnGPU is an engine on one, nil if engines are on the CPU.
func engineOnGPU(t *testing.T) *Engine {
	if onGPUs == nil {
		return nil
	}
	g := &standin.GPU{}
	x, err := cuda.New(g, onGPUs, 5, plan.Settings{}, "0.1.0")
	require.NoError(t, err)
	e := newEngine(x, 1)
	g.Plan = func() *plan.Plan { return e.plan }
	t.Cleanup(func() {
		e.Close()
		require.Zero(t, g.Held(), "everything is given back")
	})
	return e
}

// summing is a communicator that reaches the memory of stand-ins.
type summing struct{ comm.Communicator }

func (summing) Device() int { return 0 }

func (s summing) Sum(ranges []gpu.Range, scale *float32, mine []uint32) ([][]uint32, error) {
	var all []float32
	for _, r := range ranges {
		all = append(all, floatsAt(r.From, r.N)...)
	}
	for i := range all {
		if scale != nil {
			all[i] *= *scale
		}
	}
	if err := s.AllReduce(all); err != nil {
		return nil, err
	}
	for _, r := range ranges {
		all = all[copy(floatsAt(r.To, r.N), all[:r.N]):]
	}
	return s.given(mine)
}

// given is what all ranks give to a sum, nil if one gives nothing.
func (s summing) given(mine []uint32) ([][]uint32, error) {
	time.Sleep(slowSums)
	all, err := s.AllGather(mine)
	if err != nil || slices.ContainsFunc(all, func(w []uint32) bool { return len(w) == 0 }) {
		return nil, err
	}
	noticesWithSums.Add(1)
	return all, nil
}

// slowSums is how much longer sums take: the scripts behind are written meanwhile, and their notices go with the next sum.
var slowSums time.Duration

// noticesWithSums counts sums that notices have gone with, on each rank.
var noticesWithSums atomic.Int32

func (s summing) SumBF16(at uint64, n int, mine []uint32) ([][]uint32, error) {
	given := unsafe.Slice(*(**uint16)(unsafe.Pointer(&at)), n)
	all := make([]float32, n)
	for i, x := range given {
		all[i] = math.Float32frombits(uint32(x) << 16)
	}
	if err := s.Communicator.(comm.OnHost).AllReduceBF16(all); err != nil {
		return nil, err
	}
	for i, x := range all { // rounded
		given[i] = uint16(math.Float32bits(x) >> 16)
	}
	return s.given(mine)
}

// floatsAt is memory of a stand-in.
func floatsAt(at, n uint64) []float32 {
	return unsafe.Slice(*(**float32)(unsafe.Pointer(&at)), n)
}

// All that holds for ranks on CPUs holds here, but for gradients in memory that the program has, too.
func TestRanksOnGPUs(t *testing.T) {
	t.Setenv("VPPS_CACHE_DIR", t.TempDir())
	onGPUs = mocks.NVRTC(t)
	defer func() { onGPUs = nil }()
	for name, test := range map[string]func(t *testing.T){
		"train as one":             TestRanksTrainAsOneWithTheirBatchesJoined,
		"backward and update":      TestBackwardAndUpdateOfSeveralRanks,
		"pending":                  TestWhatIsPendingTakesPartAndWhatIsNotUpdatedStays,
		"rank 0's numbers":         TestBackwardEvaluatesWithTheNumbersOfRank0,
		"kept nodes":               TestKeptNodesOfARank,
		"checkpoint":               TestAnotherNumberOfRanksGoesOnFromACheckpoint,
		"average":                  TestAverageByCounts,
		"bf16":                     TestGradientsInBF16,
		"bf16, one step":           TestAStepInBF16,
		"bf16, NaN":                TestNaNInBF16,
		"one":                      TestAGroupOfOneChangesNothing,
		"set":                      TestWhatIsSetBecomesThatOfRank0,
		"options":                  TestAJoinedRankFollowsTheOptions,
		"NaN":                      TestNaNOnOneRankIsNotCommittedByAny,
		"infinite loss":            TestALossThatIsNotFiniteWithGradientsThatAre,
		"failing batch":            TestABatchThatFailsOnOneRankFailsOnAll,
		"killed":                   aRankIsKilledBeforeTheSum,
		"killed at any point":      TestARankThatIsKilledAtAnyPoint,
		"failing batch, gradients": TestAFailedBatchOfARankLeavesGradientsAsTheyWere,
	} {
		t.Run(name, test)
	}
}

// A rank is killed when gradients are summed: the others have those of their own, and parameters as before the batch.
func aRankIsKilledBeforeTheSum(t *testing.T) {
	left := 6 // attach makes three calls, a step two
	c := &casualty{three: true, victim: 1}
	c.ranks = newGroup(t, how{ranks: 3, rule: isa.Adam, patience: time.Second, wrap: func(c comm.Communicator) comm.Communicator {
		if c.Rank() != 1 {
			return c
		}
		return mortal{c, &left}
	}})
	c.run()
	for k, err := range c.errs {
		require.ErrorIs(t, err, ErrRank)
		require.Equal(t, c.last[k], c.ranks[k].numbers())
		require.NoError(t, c.ranks[k].Detach())
		require.NotZero(t, c.ranks[k].gradientNumbers()[0])
		_, err := c.ranks[k].trainer.Update()
		require.NoError(t, err, "alone")
	}
}

// A rank's engine is on the GPU that its communicator works on.
func TestAnEngineOnAnotherDeviceIsRefused(t *testing.T) {
	ranks := newGroup(t, how{ranks: 2})
	err := ranks[1].Attach(summing{ranks[1].comm}, ParallelOptions{})
	require.ErrorIs(t, err, ErrArgument)
	require.ErrorContains(t, err, "rank 1 of it of cuda:0, but the engine is on cpu")
	require.ErrorContains(t, err, "open it on cuda:0")
}
