package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A plan's first batches are not measured: its code is loaded and the device's caches fill.
const (
	trialWarmup  = 2
	trialBatches = 15
)

// Trial chooses among plans by the time that real batches take (paper §III-A1): each plan runs some, in
// turn, then the best one stays. Batches differ: a node of a short sentence takes several times as long as one of a long
// sentence. So for each plan a line is laid through the times by the number of nodes, and what counts is what it says of
// the batches of all plans.
type Trial struct {
	Plans   []*Plan
	at      int // the plan whose turn it is
	batches int // of it so far
	times   [][]batchTime
}

// batchTime is the time of a batch in microseconds, with the number of its graph's nodes.
type batchTime struct{ nodes, us float64 }

// NewTrial begins with the first of the plans, of which there is at least one.
func NewTrial(plans []*Plan) *Trial {
	return &Trial{Plans: plans, times: make([][]batchTime, len(plans))}
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

// Add notes the time of a batch in microseconds, with the number of its graph's nodes. Batches of another plan than the present one
// do not count.
func (t *Trial) Add(p *Plan, nodes int, us float64) {
	if t.Over() || p != t.Present() {
		return
	}
	if t.batches++; t.batches > trialWarmup {
		t.times[t.at] = append(t.times[t.at], batchTime{float64(nodes), us})
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

// best is the plan that takes the least time, the first of equals.
func (t *Trial) best() int {
	best := 0
	for i := range t.times {
		if t.nodeNS(i) < t.nodeNS(best) {
			best = i
		}
	}
	return best
}

// nodeNS is the nanoseconds of a graph node that all batches would take with plan i; infinite without times.
func (t *Trial) nodeNS(i int) float64 {
	if len(t.times[i]) == 0 {
		return math.Inf(1)
	}
	base, slope := line(t.times[i])
	us, nodes := 0.0, 0.0
	for _, times := range t.times {
		for _, x := range times {
			us, nodes = us+base+slope*x.nodes, nodes+x.nodes
		}
	}
	return 1e3 * us / nodes
}

// line is base + slope * nodes, the line through times by the medians of the slopes of all pairs and of what these leave
// (Theil and Sen): a quarter of them may be anything.
func line(times []batchTime) (base, slope float64) {
	var slopes []float64
	for i, x := range times {
		for _, y := range times[:i] {
			if x.nodes != y.nodes {
				slopes = append(slopes, (x.us-y.us)/(x.nodes-y.nodes))
			}
		}
	}
	if len(slopes) > 0 {
		slope = max(0, median(slopes))
	}
	rest := make([]float64, len(times))
	for i, x := range times {
		rest[i] = x.us - slope*x.nodes
	}
	return median(rest), slope
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// Report tells of all plans: rows a warp, nanoseconds of a node.
func (t *Trial) Report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "measured nanoseconds of a graph node, lines through %d batches, by rows a warp:", trialBatches)
	for i, p := range t.Plans {
		switch {
		case len(t.times[i]) == trialBatches:
			fmt.Fprintf(&b, " %d %.2f", p.RowsPerWarp, t.nodeNS(i))
		case i < t.at:
			fmt.Fprintf(&b, " %d unusable", p.RowsPerWarp)
		default:
			fmt.Fprintf(&b, " %d to be measured", p.RowsPerWarp)
		}
	}
	return b.String()
}
