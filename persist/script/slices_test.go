package script_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"libvpps/bridge"
	"libvpps/persist/plan"
	"libvpps/persist/script"
)

// networks are the batches that slices are tried on.
var networks = []struct {
	name  string
	graph func(tb testing.TB, batch int, hidden uint32) (*bridge.Graph, []script.Param, []plan.Matrix)
}{{"triangles", newTriangles}, {"phrases", newPhrases}, {"pyramids", newPyramids}, {"forest", newForest}}

// inSlices is a plan of processors that hold rows of a network's matrices of so many rows: copies groups of so many
// processors. The other matrices are on one processor behind them.
func inSlices(matrices []plan.Matrix, rows, group, copies int) *plan.Plan {
	n := group*copies + 1
	p := &plan.Plan{Processors: n, RowsPerWarp: 1, Warps: 8, First: []int{0}, Matrices: append([]plan.Matrix{}, matrices...)}
	s := &plan.Slices{Rows: rows, Group: group, Copies: copies}
	for q := range n {
		s.Rank, s.Copy = append(s.Rank, q%group), append(s.Copy, q/group)
	}
	s.Rank[n-1], s.Copy[n-1] = -1, -1
	for m := range p.Matrices {
		x := &p.Matrices[m]
		x.Copies = 1
		s.In = append(s.In, x.Rows == rows)
		if !s.In[m] {
			p.Partitions = append(p.Partitions, plan.Partition{Matrix: m, Processor: n - 1, Rows: x.Rows})
		}
		for q := 0; s.In[m] && q < n-1; q++ {
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
func trained(t *testing.T, s *script.Script, p *plan.Plan) (after []float32) {
	t.Helper()
	if err := script.Verify(s, p); err != nil {
		t.Fatal(err)
	}
	e := newExecutor(t, 1)
	if err := e.SetPlan(p); err != nil {
		t.Fatal(err)
	}
	memory := liveMemory(s)
	rng := rand.New(rand.NewPCG(3, 3))
	for _, seg := range []script.Segment{script.SegParam, script.SegTable} {
		for i := range memory[seg] {
			memory[seg][i] = 0.4*rng.Float32() - 0.2
		}
	}
	for seg, values := range memory {
		if err := e.Write(script.Segment(seg), 0, values); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Launch(s, 1); err != nil {
		t.Fatal(err)
	}
	for _, seg := range []script.Segment{script.SegParam, script.SegTable} {
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
				p := inSlices(matrices, hidden, 4, 2)
				s := trainingScript(t, g, params, p)
				have := trained(t, s, p)
				for i := range want {
					if math.Abs(float64(have[i]-want[i])) > 1e-5 {
						t.Fatalf("element %d is %g in slices and %g without", i, have[i], want[i])
					}
				}
				if now, was := s.Words[script.HeadBarriers], before.Words[script.HeadBarriers]; now >= was {
					t.Errorf("%d barriers, without slices %d", now, was)
				}
			})
		}
	}
}
