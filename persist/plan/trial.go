package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A plan's first batches are not measured: its code is loaded and the device's caches fill. Of as many
// as are, the median counts.
const (
	trialWarmup  = 2
	trialBatches = 9
)

// Trial chooses among plans by the time that real batches take (paper §III-A1): each plan runs some, in
// turn, then the best one stays. Batches differ, so what counts is the time of a graph node.
type Trial struct {
	Plans   []*Plan
	at      int // the plan whose turn it is
	batches int // of it so far
	times   [][]float64
}

// NewTrial begins with the first of the plans, of which there is at least one.
func NewTrial(plans []*Plan) *Trial {
	return &Trial{Plans: plans, times: make([][]float64, len(plans))}
}

// Over reports whether all plans were measured.
func (t *Trial) Over() bool { return t.at == len(t.Plans) }

// Present is the plan to run the next batches with, once it is over the best one.
func (t *Trial) Present() *Plan {
	if t.Over() {
		return t.Plans[t.best()]
	}
	return t.Plans[t.at]
}

// Add takes what a batch has taken, in nanoseconds of a graph node. Batches of another plan than the
// present one do not count.
func (t *Trial) Add(p *Plan, ns float64) {
	if t.Over() || p != t.Present() {
		return
	}
	if t.batches++; t.batches > trialWarmup {
		t.times[t.at] = append(t.times[t.at], ns)
	}
	if t.batches == trialWarmup+trialBatches {
		t.at, t.batches = t.at+1, 0
	}
}

// Skip leaves the present plan out, which cannot be used; if it was the best, the next best is.
func (t *Trial) Skip() {
	if t.Over() {
		t.times[t.best()] = nil
		return
	}
	t.times[t.at] = nil
	t.at, t.batches = t.at+1, 0
}

// Failed reports whether no plan is left to use.
func (t *Trial) Failed() bool { return t.Over() && len(t.times[t.best()]) == 0 }

// best is the plan of the least median, the first of equals.
func (t *Trial) best() int {
	best := 0
	for i := range t.times {
		if t.median(i) < t.median(best) {
			best = i
		}
	}
	return best
}

// median is infinite for a plan without times.
func (t *Trial) median(i int) float64 {
	if len(t.times[i]) == 0 {
		return math.Inf(1)
	}
	sorted := slices.Sorted(slices.Values(t.times[i]))
	return sorted[len(sorted)/2]
}

// Report tells of all plans: rows a warp, processors on an SM, whether in slices, median.
func (t *Trial) Report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "measured nanoseconds of a graph node, medians of %d batches, by rows a warp x processors an SM:", trialBatches)
	for i, p := range t.Plans {
		name := fmt.Sprintf("%dx%d", p.RowsPerWarp, p.CTAs)
		if p.Slices != nil {
			name += " in slices"
		}
		switch {
		case len(t.times[i]) == trialBatches:
			fmt.Fprintf(&b, " %s %.2f", name, t.median(i))
		case i < t.at:
			fmt.Fprintf(&b, " %s unusable", name)
		default:
			fmt.Fprintf(&b, " %s to be measured", name)
		}
	}
	return b.String()
}
