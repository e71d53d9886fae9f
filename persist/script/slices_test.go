package script_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"libvpps/bridge"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/script"
	"libvpps/persist/verify"
)

// networks are the batches that slices are tried on.
var networks = []struct {
	name  string
	graph func(tb testing.TB, batch int, hidden uint32) (*bridge.Graph, []script.Param, []plan.Matrix)
}{{"triangles", newTriangles}, {"phrases", newPhrases}, {"pyramids", newPyramids}, {"forest", newForest}}

// inSlices is a plan of processors that hold rows of a network's matrices of so many rows: copies groups of so many
// processors. There are others beside them, the last of which has the other matrices.
func inSlices(matrices []plan.Matrix, rows, group, copies, beside int) *plan.Plan {
	n := group*copies + beside
	p := &plan.Plan{Processors: n, RowsPerWarp: 1, Warps: 8, First: []int{0}, Matrices: append([]plan.Matrix{}, matrices...)}
	s := &plan.Slices{Rows: rows, Group: group, Copies: copies}
	for q := range n {
		if q < group*copies {
			s.Rank, s.Copy = append(s.Rank, q%group), append(s.Copy, q/group)
		} else {
			s.Rank, s.Copy = append(s.Rank, -1), append(s.Copy, -1)
		}
	}
	for m := range p.Matrices {
		x := &p.Matrices[m]
		x.Copies = 1
		s.In = append(s.In, x.Rows == rows)
		if !s.In[m] {
			p.Partitions = append(p.Partitions, plan.Partition{Matrix: m, Processor: n - 1, Rows: x.Rows})
		}
		for q := 0; s.In[m] && q < group*copies; q++ {
			x.Copies = copies
			lo, hi := plan.Slice(rows, s.Rank[q], group)
			p.Partitions = append(p.Partitions, plan.Partition{Matrix: m, Processor: q, Row: lo, Rows: hi - lo, Copy: s.Copy[q]})
		}
		p.First = append(p.First, len(p.Partitions))
	}
	p.Slices = s
	return p
}

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

// A batch trains alike with matrices in slices and without, and takes fewer levels; lowered by parts, too.
func TestSlicesTrainAlike(t *testing.T) {
	defer script.PartNodes(script.PartNodes(50))
	const hidden = 24
	for _, network := range networks {
		for _, batch := range []int{1, 4} {
			t.Run(fmt.Sprintf("%s%d", network.name, batch), func(t *testing.T) {
				g, params, matrices := network.graph(t, batch, hidden)
				whole, err := plan.Sliced(matrices, 3)
				if err != nil {
					t.Fatal(err)
				}
				before := trainingScript(t, g, params, whole)
				want := trained(t, before, whole)
				p := inSlices(matrices, hidden, 4, 2, 1)
				s := trainingScript(t, g, params, p)
				have := trained(t, s, p)
				for i := range want {
					if math.Abs(float64(have[i]-want[i])) > 1e-5 {
						t.Fatalf("element %d is %g in slices and %g without", i, have[i], want[i])
					}
				}
				if now, was := s.Words[isa.HeadBarriers], before.Words[isa.HeadBarriers]; now >= was {
					t.Errorf("%d barriers, without slices %d", now, was)
				}
			})
		}
	}
}

// sharing is one fb of a time-delay network in slices, with processors that share a stream.
func sharing(t *testing.T) (*isa.Script, *plan.Plan) {
	g, params, matrices := newTriangles(t, 2, 24)
	p := inSlices(matrices, 24, 4, 2, 4)
	return trainingScript(t, g, params, p), p
}

// entryOf is the entry of a processor in the processor table.
func entryOf(s *isa.Script, processor int) []uint32 {
	return s.Words[isa.HeadWords+processor*isa.ProcWords:][:isa.ProcWords]
}

// The processors of a group share what they do alike; it is what each would have in a stream of its own.
func TestGroupsShareAStream(t *testing.T) {
	s, p := sharing(t)
	for q := range 8 {
		entry, first := entryOf(s, q), entryOf(s, q/4*4)
		if entry[isa.ProcOwn] == 0 || entry[isa.ProcStart] != first[isa.ProcStart] {
			t.Errorf("processor %d: %d, the first of its group: %d", q, entry, first)
		}
	}
	for q := 8; q < s.Processors(); q++ {
		if own := entryOf(s, q)[isa.ProcOwn]; own != 0 {
			t.Errorf("processor %d, which is in no group, goes on at word %d", q, own)
		}
	}
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
	for want, damage := range map[string]func(entry []uint32){
		"pieces long, not 7":           func(entry []uint32) { entry[isa.ProcPieces] = 7 },
		"processor 1: it goes on at":   func(entry []uint32) { entry[isa.ProcOwn] = entry[isa.ProcStart] },
		"not between its first":        func(entry []uint32) { entry[isa.ProcOwn] = s.Words[isa.HeadCounters] },
		"processor 1: it goes on at w": func(entry []uint32) { entry[isa.ProcOwn] = 0 },
	} {
		damaged := &isa.Script{Words: slices.Clone(s.Words)}
		damage(entryOf(damaged, 1))
		if err := verify.Verify(damaged, p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	index := 1 // the first Halt counts
	for in, err := range s.Instructions(1) {
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
	if want := fmt.Sprintf("processor 1, instruction %d (update", index); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v; want %q", err, want)
	}
}
