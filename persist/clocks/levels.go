package clocks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"libvpps/persist/isa"
)

// Levels: what they wait for. Processors signal the end of each, and the last one to do so is what the others wait for.

// Level is levels that are alike: their last processors had done the same since they waited.
type Level struct {
	Done       string  // that, as far as its last eight instructions
	Count      uint64  // how many levels, of all launches
	Processors uint64  // that had work there, added up
	NS         float64 // nanoseconds from the end of the level before
}

// levels is the levels of all launches, by what their last processors did.
type levels struct {
	byDone map[uint64]*Level
	ends   []levelEnd // of one launch, by barrier
	full   bool       // a processor had more levels than are noted, perhaps
}

type levelEnd struct{ processors, at, done uint64 }

// add adds the levels of a launch. The first one begins with the launch.
func (l *levels) add(records []uint64) {
	l.ends = l.ends[:0]
	before := ^uint64(0)
	for r := records; len(r) > 0; r = r[isa.ClockWords:] {
		if r[isa.ClockEnd] == 0 {
			continue
		}
		before, l.full = min(before, r[isa.ClockBegin]), l.full || r[isa.ClockNoted] == isa.MostLevels
		for x := r[isa.ClockLevels:][:isa.LevelWords*r[isa.ClockNoted]]; len(x) > 0; x = x[isa.LevelWords:] {
			barrier := int(x[isa.LevelBarrier])
			for len(l.ends) <= barrier {
				l.ends = append(l.ends, levelEnd{})
			}
			e := &l.ends[barrier]
			e.processors++
			if x[isa.LevelSignalled] > e.at {
				e.at, e.done = x[isa.LevelSignalled], x[isa.LevelDone]
			}
		}
	}
	slices.SortFunc(l.ends, func(x, y levelEnd) int { return cmp.Compare(x.at, y.at) })
	for _, e := range l.ends {
		if e.processors == 0 {
			continue
		}
		x := l.byDone[e.done]
		if x == nil {
			if l.byDone == nil {
				l.byDone = map[uint64]*Level{}
			}
			x = &Level{Done: doneOf(e.done)}
			l.byDone[e.done] = x
		}
		x.Count, x.Processors = x.Count+1, x.Processors+e.processors
		x.NS += float64(e.at - min(before, e.at))
		before = e.at
	}
}

// doneOf is the names of opcodes, a byte each, the last one lowest.
func doneOf(opcodes uint64) string {
	var names []string
	for ; opcodes != 0; opcodes >>= 8 {
		names = append(names, isa.Opcode(opcodes&255).String())
	}
	slices.Reverse(names)
	return strings.Join(names, " ")
}

// Levels is what levels waited for, what took longest first.
func (s *Sum) Levels() []Level {
	var list []Level
	for _, x := range s.levels.byDone {
		list = append(list, *x)
	}
	slices.SortFunc(list, func(x, y Level) int {
		return cmp.Or(cmp.Compare(y.NS, x.NS), cmp.Compare(x.Done, y.Done))
	})
	return list
}

// mostKinds is how many kinds of levels people are told of.
const mostKinds = 16

// LevelProfile is Levels for people; nothing if there are none.
func (s *Sum) LevelProfile() string {
	list := s.Levels()
	if len(list) == 0 {
		return ""
	}
	total := 0.0
	for _, x := range list {
		total += x.NS
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%7s %12s %13s %11s %11s  %s\n", "share", "seconds", "levels", "us of each", "processors", "what the last processor of a level did there")
	for _, x := range list[:min(len(list), mostKinds)] {
		each := float64(x.Count)
		fmt.Fprintf(&b, "%6.1f%% %12.4f %13d %11.2f %11.0f  %s\n", 100*x.NS/max(total, 1), x.NS/1e9, x.Count, x.NS/1e3/each, float64(x.Processors)/each, x.Done)
	}
	if s.levels.full {
		fmt.Fprintf(&b, "of each processor the first %d levels of a launch are noted\n", isa.MostLevels)
	}
	return b.String()
}
