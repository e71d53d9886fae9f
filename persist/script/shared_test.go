package script_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/schedule"
	"libvpps/persist/verify"
)

// trained is what parameters and tables are after one update.
func trained(t *testing.T, s *isa.Script, p *plan.Plan) (after []float32) {
	t.Helper()
	if err := verify.Verify(s, p); err != nil {
		t.Fatal(err)
	}
	e := newExecutor(t, 1)
	if err := e.SetPlan(p); err != nil {
		t.Fatal(err)
	}
	memory := liveMemory(s)
	rng := rand.New(rand.NewPCG(3, 3))
	for _, seg := range []isa.Segment{isa.SegParam, isa.SegTable} {
		for i := range memory[seg] {
			memory[seg][i] = 0.4*rng.Float32() - 0.2
		}
	}
	load(t, e, memory)
	if err := e.Launch(s, 1); err != nil {
		t.Fatal(err)
	}
	for _, seg := range []isa.Segment{isa.SegParam, isa.SegTable} {
		have := make([]float32, len(memory[seg]))
		if err := e.Read(seg, 0, have); err != nil {
			t.Fatal(err)
		}
		after = append(after, have...)
	}
	return after
}

// shares is a plan of a batch's matrices whose larger classes share a stream each.
func shares(t *testing.T, params []schedule.Param, matrices []plan.Matrix) *plan.Plan {
	t.Helper()
	d := plan.Device{Processors: 110, Warps: 1, RegistersPer: 255, SetAside: 60, SharedPerBlock: 64 << 10, Columns: 8, Copies: 1}
	p, err := plan.RoundRobin(matrices, d, 4)
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Matrices {
		params[p.Matrices[i].Param].Matrix = int32(i)
	}
	return p
}

// sharing is one fb of a time-delay network, with processors that share a stream.
func sharing(t *testing.T) (*isa.Script, *plan.Plan) {
	g, params, matrices := newTriangles(t, 2, 32)
	p := shares(t, params, matrices)
	return trainingScript(t, g, params, p), p
}

// entryOf is the entry of a processor in the processor table.
func entryOf(s *isa.Script, processor int) []uint32 {
	return s.Words[isa.HeadWords+processor*isa.ProcWords:][:isa.ProcWords]
}

// The instructions that processors share are what each would have in a stream of its own.
func TestSharedStreamsAreThoseOfEach(t *testing.T) {
	s, p := sharing(t)
	apart := rewritten(t, s, func(in *isa.Instruction) [][]uint32 { return [][]uint32{in.Words} })
	for q := range apart.Processors() {
		copy(entryOf(apart, q)[isa.ProcRank:], entryOf(s, q)[isa.ProcRank:isa.ProcOwn])
	}
	if len(s.Words)*5/4 > len(apart.Words) {
		t.Errorf("%d words, with streams of their own %d", len(s.Words), len(apart.Words))
	}
	want, have := trained(t, apart, p), trained(t, s, p)
	for i := range want {
		if math.Float32bits(want[i]) != math.Float32bits(have[i]) {
			t.Fatalf("element %d is %g, with streams of their own %g", i, have[i], want[i])
		}
	}
}

// What a processor goes on with is checked like what it begins with.
func TestWhereAProcessorGoesOnIsChecked(t *testing.T) {
	s, p := sharing(t)
	q := 0
	for entryOf(s, q)[isa.ProcOwn] == 0 {
		q++
	}
	processor := fmt.Sprintf("processor %d", q)
	for want, damage := range map[string]func(entry []uint32){
		"pieces long, not 7":            func(entry []uint32) { entry[isa.ProcPieces] = 7 },
		processor + ": it goes on at":   func(entry []uint32) { entry[isa.ProcOwn] = entry[isa.ProcStart] },
		"not between its first":         func(entry []uint32) { entry[isa.ProcOwn] = s.Words[isa.HeadCounters] },
		processor + ": it goes on at w": func(entry []uint32) { entry[isa.ProcOwn] = 0 },
	} {
		damaged := &isa.Script{Words: slices.Clone(s.Words)}
		damage(entryOf(damaged, q))
		if err := verify.Verify(damaged, p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	index := 1 // the first Halt counts
	for in, err := range s.Instructions(q) {
		if err != nil {
			t.Fatal(err)
		}
		if in.Op == isa.Update {
			in.Item(0)[0] = 0xFFFFFFF0
			break
		}
		index++
	}
	memory := liveMemory(s)
	err := checking(t, 1, p, memory).Launch(s, 1)
	if want := fmt.Sprintf("%s, instruction %d (update", processor, index); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v; want %q", err, want)
	}
}
