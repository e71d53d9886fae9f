package persist

// Slow batches: the log names calls of fb that took much longer than most.

import (
	"slices"

	"libvpps/log"
)

const (
	slowWindow = 64         // calls of which the median is taken
	slowFirst  = 16         // calls before any is called slow
	slowTimes  = 5          // medians that a slow call takes at least
	slowLeast  = 10_000_000 // ns that it takes at least
	slowApart  = 1e9        // ns from one line to the next
)

// slow has the durations of the last calls of fb, in ns, and the nodes of their graphs.
type slow struct {
	times, nodes [slowWindow]uint64
	calls        int
	told         uint64 // when the last line was written
}

// note takes a call of fb, which handed over a batch or failed: its duration, and how much of this it waited.
func (s *slow) note(batch uint64, nodes int, ns, waited uint64) {
	n := min(s.calls, slowWindow)
	if s.calls >= slowFirst && ns >= slowLeast && now()-s.told >= slowApart {
		if median := middle(s.times[:n]); ns >= slowTimes*median {
			s.told = now()
			log.Infof("slow batch", "number %d: fb took %.1f ms, %.1f ms of these waiting for earlier batches; the median of %d is %.1f ms. The graph has %d nodes, the median is %d",
				batch, float64(ns)/1e6, float64(waited)/1e6, n, float64(median)/1e6, nodes, middle(s.nodes[:n]))
		}
	}
	s.times[s.calls%slowWindow], s.nodes[s.calls%slowWindow] = ns, uint64(nodes)
	s.calls++
}

// middle is the median.
func middle(of []uint64) uint64 {
	sorted := slices.Clone(of)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}
