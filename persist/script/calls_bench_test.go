package script_test

import (
	"fmt"
	"testing"
	"time"

	"libvpps/bridge/cells"
	"libvpps/persist/finish"
	"libvpps/persist/plan"
	"libvpps/persist/script"
)

// BenchmarkCalls is how long the host takes for the scripts of DyNet's forward and backward, and for those of a step that is
// foreseen: the first, and both.
func BenchmarkCalls(b *testing.B) {
	for _, batch := range []int{1, 4, 16} {
		g, params, matrices := newForest(b, batch, 256)
		p, err := plan.RoundRobin(matrices, plan.Device{Processors: 132, Warps: 8, RegistersPer: 255, SetAside: 80, SharedPerBlock: 200 << 10}, 1)
		if err != nil {
			b.Fatal(err)
		}
		numberMatrices(params, p)
		for _, instances := range []bool{false, true} {
			b.Run(fmt.Sprintf("batch%d/instances=%v", batch, instances), func(b *testing.B) {
				var builder script.Builder
				var s script.State
				var d cells.Dictionary
				var program cells.Program
				var forward, backward, first, whole time.Duration
				ids := make([]uint32, len(params))
				for i := range ids {
					ids[i] = uint32(i)
				}
				for b.Loop() {
					s.Truncate(0)
					t := time.Now()
					r := script.Request{Graph: g, State: &s, Params: params, Plan: p, Node: uint32(g.Len() - 1), Forward: true, Copy: true, Result: script.NoOffset}
					if instances {
						d.Find(g, 0, uint32(g.Len()), &program)
						r.Cells = &program
					}
					built, err := builder.Build(&r)
					if err != nil {
						b.Fatal(err)
					}
					s.Done = g.Len()
					forward += time.Since(t)
					t = time.Now()
					r = script.Request{Graph: g, State: &s, Params: params, Plan: p, Node: uint32(g.Len() - 1), Backward: true, Copy: true, Base: built.Used, Result: script.NoOffset}
					if instances {
						r.Cells = &program
					}
					if _, err := builder.Build(&r); err != nil {
						b.Fatal(err)
					}
					backward += time.Since(t)
					s.Truncate(0)
					t = time.Now()
					r = script.Request{Graph: g, State: &s, Params: params, Plan: p, Node: uint32(g.Len() - 1), Forward: true, Backward: true, Split: true,
						Update: &finish.Apply{Params: ids, All: ids, Rate: 0.1, Threshold: 5}}
					if instances {
						d.Find(g, 0, uint32(g.Len()), &program)
						r.Cells = &program
					}
					if _, err := builder.Build(&r); err != nil {
						b.Fatal(err)
					}
					first += time.Since(t)
					if _, err := builder.Second(nil); err != nil {
						b.Fatal(err)
					}
					whole += time.Since(t)
				}
				b.ReportMetric(float64(forward.Microseconds())/float64(b.N), "us-forward")
				b.ReportMetric(float64(backward.Microseconds())/float64(b.N), "us-backward")
				b.ReportMetric(float64(first.Microseconds())/float64(b.N), "us-first")
				b.ReportMetric(float64(whole.Microseconds())/float64(b.N), "us-whole")
			})
		}
	}
}
