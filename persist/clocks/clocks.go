// Package clocks sums over launches what processors with clocks (VPPS_PROFILE=1) leave of each:
// where their time went, and what they read of the parameters.
package clocks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"libvpps/persist/isa"
)

// Part is a part of a processor's time in a launch. The first are script's phases.
type Part int

const (
	Start     Part = iota // until the first instruction: taking matrices into registers
	Forward               // values
	Backward              // gradients of nodes
	Gradients             // gradients of parameters
	Update                // norm, clipping, update
	Fetch                 // between instructions: fetching and decoding the script
	Waiting               // for other processors
	Idle                  // of the launch, before its begin and after its end
	Busy                  // all parts but the last two
	Parts
)

// Time is nanoseconds, summed over launches: of the processors' mean, and of that processor of
// each launch which has most.
type Time struct{ Mean, Max float64 }

// Cell is the instructions of one phase and opcode, and their time.
type Cell struct {
	Count uint64
	Time
}

// Sum is what launches took.
type Sum struct {
	Launches   uint64
	Processors int // of the last
	Parts      [Parts]Time
	Cells      [isa.Phases][isa.Opcodes]Cell

	// Bytes of matrices that were taken into registers; of parameters that updates read; and that
	// other instructions read, again for each use.
	Loaded, Updated, Streamed uint64

	levels levels
}

// Add adds a launch: its processors' records, one after another. Records of processors that did not
// end are left out.
func (s *Sum) Add(records []uint64) {
	l := launchOf(records)
	if l.processors == 0 {
		return
	}
	s.Launches++
	s.Processors = l.processors
	var sum [Parts]float64
	var most [Parts]float64
	for r := records; len(r) > 0; r = r[isa.ClockWords:] {
		if r[isa.ClockEnd] == 0 {
			continue
		}
		parts := l.partsOf(r)
		for i, x := range parts {
			sum[i] += x
			most[i] = max(most[i], x)
		}
		s.Loaded += 4 * r[isa.ClockLoaded]
		s.Updated += 4 * r[isa.ClockUpdated]
		s.Streamed += 4 * r[isa.ClockStreamed]
	}
	for i := range s.Parts {
		s.Parts[i].Mean += sum[i] / float64(l.processors)
		s.Parts[i].Max += most[i]
	}
	s.addCells(records, &l)
	s.levels.add(records)
}

func (s *Sum) addCells(records []uint64, l *launch) {
	for p := range s.Cells {
		for op := range s.Cells[p] {
			c := &s.Cells[p][op]
			at := isa.ClockCellOf(isa.Phase(p), isa.Opcode(op))
			var ticks, most uint64
			for r := records; len(r) > 0; r = r[isa.ClockWords:] {
				c.Count += r[at-isa.ClockCells+isa.ClockCounts]
				ticks += r[at]
				most = max(most, r[at])
			}
			c.Mean += float64(ticks) * l.tick / float64(l.processors)
			c.Max += float64(most) * l.tick
		}
	}
}

// launch is what a launch's records have in common.
type launch struct {
	processors int
	tick, ns   float64 // nanoseconds of a tick, and from the first begin to the last end
}

func launchOf(records []uint64) (l launch) {
	begin, end := ^uint64(0), uint64(0)
	var ns, ticks float64
	for r := records; len(r) > 0; r = r[isa.ClockWords:] {
		if r[isa.ClockEnd] == 0 {
			continue
		}
		l.processors++
		begin, end = min(begin, r[isa.ClockBegin]), max(end, r[isa.ClockEnd])
		ns += float64(r[isa.ClockEnd] - r[isa.ClockBegin])
		ticks += float64(r[isa.ClockTicks])
	}
	if l.processors > 0 {
		l.ns = float64(end - begin)
		l.tick = ns / max(ticks, 1)
	}
	return l
}

// partsOf divides the launch as one processor spent it.
func (l *launch) partsOf(r []uint64) (parts [Parts]float64) {
	for p := range isa.Phases {
		for op := range isa.Opcode(isa.Opcodes) {
			part := Part(p)
			if op == isa.Wait {
				part = Waiting
			}
			parts[part] += float64(r[isa.ClockCellOf(p, op)]) * l.tick
		}
	}
	parts[Fetch] = float64(r[isa.ClockFetch]) * l.tick
	for i := range Waiting {
		parts[Busy] += parts[i]
	}
	parts[Idle] = max(l.ns-parts[Busy]-parts[Waiting], 0)
	return parts
}

// Table is the sum as CSV: a row for each phase and opcode that took time.
func (s *Sum) Table() string {
	var b strings.Builder
	b.WriteString("phase,operation,instructions,mean_ns,max_ns\n")
	for p := range s.Cells {
		for op, c := range s.Cells[p] {
			if c.Max == 0 {
				continue
			}
			fmt.Fprintf(&b, "%v,%s,%d,%.0f,%.0f\n", isa.Phase(p), operation(isa.Opcode(op)), c.Count, c.Mean, c.Max)
		}
	}
	return b.String()
}

// operation is an opcode's name. What precedes the first instruction is counted for halt.
func operation(op isa.Opcode) string {
	if op == isa.Halt {
		return "load"
	}
	return op.String()
}

// Row is the time of one kind of instruction in one phase, or of what processors did else.
type Row struct {
	Phase, Name string // Phase: "" of no phase
	Count       uint64 // instructions, 0 if there are none
	NS          float64
}

// Rows are all that took time, phase by phase.
func (s *Sum) Rows() []Row {
	var rows []Row
	for p := range s.Cells {
		for op, c := range s.Cells[p] {
			if c.Mean > 0 {
				rows = append(rows, Row{isa.Phase(p).String(), operation(isa.Opcode(op)), c.Count, c.Mean})
			}
		}
	}
	return append(rows, Row{"", "between instructions", 0, s.Parts[Fetch].Mean}, Row{"", "idle", 0, s.Parts[Idle].Mean})
}

// Profile is the sum for people: what each kind of instruction in each phase took of the processors' time, the largest
// share first, and what they did else.
func (s *Sum) Profile() string {
	rows := s.Rows()
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(b.NS, a.NS) })
	total := 0.0
	for _, r := range rows {
		total += r.NS
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%7s %12s %13s %11s  %-10s %s\n", "share", "seconds", "instructions", "us of each", "phase", "operation")
	for _, r := range rows {
		count, each := "", ""
		if r.Count > 0 {
			count, each = fmt.Sprint(r.Count), fmt.Sprintf("%.2f", r.NS/1e3*float64(s.Processors)/float64(r.Count))
		}
		fmt.Fprintf(&b, "%6.1f%% %12.4f %13s %11s  %-10s %s\n", 100*r.NS/max(total, 1), r.NS/1e9, count, each, r.Phase, r.Name)
	}
	fmt.Fprintf(&b, "seconds are the mean of %d processors; wait is for other processors, load takes matrices into registers\n", s.Processors)
	return b.String()
}
