package script_test

import (
	"math"
	"slices"
	"testing"

	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/schedule"
	"libvpps/persist/verify"
)

// A training script for many processors leaves the same bits, whether the items of a product are in a
// list for all holders of the matrix or with each holder's instruction.
func TestListedItemsAreThoseOfEachHolder(t *testing.T) {
	for _, copies := range []int{1, 4} {
		listed, p := manyProcessorsScript(t, copies)
		if err := verify.Verify(listed, p); err != nil {
			t.Fatal(err)
		}
		inline, moved := inlined(t, listed)
		if err := verify.Verify(inline, p); err != nil {
			t.Fatal(err)
		}
		for op, n := range moved {
			if n == 0 {
				t.Errorf("%d copies: no %s is listed", copies, op)
			}
		}
		if n := len(listed.Words); n*5/4 > len(inline.Words) {
			t.Errorf("%d copies: %d words with lists, %d without", copies, n, len(inline.Words))
		}
		memory := liveMemory(listed)
		want, have := leftBy(t, inline, p, memory), leftBy(t, listed, p, memory)
		for s := range want {
			for i := range want[s] {
				if math.Float32bits(want[s][i]) != math.Float32bits(have[s][i]) {
					t.Fatalf("%d copies: %s+%d is %g, with lists %g", copies, isa.Segment(s), i, want[s][i], have[s][i])
				}
			}
		}
	}
}

// manyProcessorsScript is one fb of a Tree-LSTM, hidden size 64, on as many processors as a GPU has.
func manyProcessorsScript(t *testing.T, copies int) (*isa.Script, *plan.Plan) {
	g, params, matrices := newForest(t, 12, 64)
	p := onGPU(t, params, matrices, copies)
	return trainingScript(t, g, params, p), p
}

// onGPU is the plan of a GPU with 132 processors, one row a warp, and tells the parameters their matrices.
func onGPU(t *testing.T, params []schedule.Param, matrices []plan.Matrix, copies int) *plan.Plan {
	t.Helper()
	p, err := plan.RoundRobin(matrices, plan.Device{Processors: 132, Warps: 8, RegistersPer: 255, SetAside: 95, SharedPerBlock: 200 << 10, Copies: copies}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range params {
		params[i].Matrix = -1
	}
	for i, m := range p.Matrices {
		params[m.Param].Matrix = int32(i)
	}
	return p
}

// inlined is the script without lists, and how many instructions had one.
func inlined(t *testing.T, s *isa.Script) (*isa.Script, map[isa.Opcode]int) {
	moved := map[isa.Opcode]int{isa.Product: 0, isa.ProductT: 0, isa.Outer: 0}
	inline := rewritten(t, s, func(in *isa.Instruction) [][]uint32 {
		words := slices.Clone(in.Words)
		if in.Flags&isa.Listed != 0 {
			moved[in.Op]++
			words = words[:len(words)-1]
			for i := range in.Items {
				words = append(words, in.Item(i)...)
			}
			words[0] &^= isa.Listed << 16
			words[1] = uint32(len(words)) | uint32(in.Items)<<16
		}
		return [][]uint32{words}
	})
	return inline, moved
}

// rewritten is a script with the same lists, whose instructions are what f makes of those of s.
func rewritten(t *testing.T, s *isa.Script, f func(*isa.Instruction) [][]uint32) *isa.Script {
	a := isa.NewAssembler(s.Processors())
	a.Barriers = int(s.Words[isa.HeadBarriers])
	a.Lists = s.Words[s.Words[isa.HeadLists]:s.Words[isa.HeadListEnd]]
	a.Inputs = s.Words[s.Words[isa.HeadInputs]:s.Words[isa.HeadDevice]]
	a.Tensors = s.Words[s.Words[isa.HeadTensors]:s.Words[isa.HeadTensorEnd]]
	for p := range a.Streams {
		for in, err := range s.Instructions(p) {
			if err != nil {
				t.Fatal(err)
			}
			for _, words := range f(in) {
				a.Streams[p] = append(a.Streams[p], words...)
			}
		}
	}
	return a.Script()
}

// leftBy is what a script leaves in memory.
func leftBy(t *testing.T, s *isa.Script, p *plan.Plan, memory [isa.Segments][]float32) (after [isa.Segments][]float32) {
	e := checking(t, 2, p, memory)
	if err := e.Launch(&isa.Script{Words: slices.Clone(s.Words)}, 1); err != nil {
		t.Fatal(err)
	}
	for i := range after {
		after[i] = make([]float32, len(memory[i]))
		if err := e.Read(isa.Segment(i), 0, after[i]); err != nil {
			t.Fatal(err)
		}
	}
	return after
}
