package plan

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func plansOf(t *testing.T, rpw ...int) (list []*Plan) {
	t.Helper()
	for _, n := range rpw {
		p, err := RoundRobin(treeLSTM(64), onH200(), n)
		require.NoError(t, err)
		list = append(list, p)
	}
	return list
}

// measure runs batches until the trial is over; one in four takes ten times as long as it should, and the first
// ones under a plan are slow.
func measure(trial *Trial, ns map[int]float64) (batches int) {
	under, before := 0, (*Plan)(nil)
	for ; !trial.Over(); batches++ {
		p := trial.Present()
		if p != before {
			under, before = 0, p
		}
		x := ns[p.RowsPerWarp]
		if under < 2 {
			x = 0 // would win
		} else if under%4 == 0 {
			x *= 10
		}
		under++
		trial.Add(p, 1000, x)
	}
	return batches
}

func TestATrialTakesTheFastestPlan(t *testing.T) {
	trial := NewTrial(plansOf(t, 1, 2, 4))
	require.Equal(t, 1, trial.Present().RowsPerWarp)
	require.Contains(t, trial.Report(), "1 to be measured 2 to be measured")
	require.Equal(t, 3*17, measure(trial, map[int]float64{1: 30, 2: 10, 4: 20}))
	require.Equal(t, 2, trial.Present().RowsPerWarp)
	require.Contains(t, trial.Report(), "1 30.00 2 10.00 4 20.00")
	trial.Add(trial.Plans[2], 1000, 1) // late: nothing changes
	require.Equal(t, 2, trial.Present().RowsPerWarp)
}

func TestABatchOfAnotherPlanDoesNotCount(t *testing.T) {
	trial := NewTrial(plansOf(t, 1, 2))
	for range 100 {
		trial.Add(trial.Plans[1], 1000, 1)
	}
	require.Equal(t, trial.Plans[0], trial.Present())
	require.Equal(t, 2*17, measure(trial, map[int]float64{1: 3, 2: 3}))
	require.Equal(t, trial.Plans[0], trial.Present(), "the first of equals")
}

func TestAPlanThatCannotBeUsedIsSkipped(t *testing.T) {
	trial := NewTrial(plansOf(t, 1, 2, 4))
	trial.Skip()
	require.Equal(t, 2, trial.Present().RowsPerWarp)
	measure(trial, map[int]float64{2: 10, 4: 20})
	require.Contains(t, trial.Report(), "1 unusable 2 10.00")
	require.Equal(t, 2, trial.Present().RowsPerWarp)
	trial.Skip()
	require.Equal(t, 4, trial.Present().RowsPerWarp)
	require.False(t, trial.Failed())
	trial.Skip()
	require.True(t, trial.Failed())
}

// The second plan is a tenth faster for any batch, but the first gets long sentences, whose nodes take less time each.
func TestATrialComparesPlansByTheSameBatches(t *testing.T) {
	trial := NewTrial(plansOf(t, 1, 2))
	rng := rand.New(rand.NewPCG(1, 2))
	for !trial.Over() {
		p, words := trial.Present(), 4+rng.IntN(16)
		factor := 0.9
		if p.RowsPerWarp == 1 {
			words, factor = words+16, 1
		}
		us := factor * (100 + 10*float64(words) + 0.5*float64(words*words)) * (0.99 + 0.02*rng.Float64())
		trial.Add(p, 10*words*words, us)
	}
	require.Equal(t, 2, trial.Present().RowsPerWarp)
}
