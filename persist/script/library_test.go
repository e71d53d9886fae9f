package script_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/verify"
)

// few is a GPU that has hardly any registers for weights.
var few = plan.Device{Name: "a tiny GPU", Processors: 5, Warps: 1, RegistersPer: 255, SetAside: 80, Weights: 1, SharedPerBlock: 64<<10 + 32, Partials: 150, Copies: 1}

// library finds itself, or not.
func library(items int, err error) *plan.Library {
	return plan.NewLibrary(plan.Settings{Library: items}, func() (string, error) { return "a library", err })
}

// forestOn is the script of a Tree-LSTM, hidden size 20, for the tiny GPU.
func forestOn(t *testing.T, l *plan.Library) (*isa.Script, *plan.Plan) {
	t.Helper()
	g, params, matrices := newForest(t, 6, 20)
	p, err := plan.RoundRobin(matrices, few, 1)
	if err != nil {
		t.Fatal(err)
	}
	for m, x := range p.Matrices { // in another order
		params[x.Param].Matrix = int32(m)
	}
	p.Library = l
	return trainingScript(t, g, params, p), p
}

// stream is the instructions of one part of a processor's stream.
func stream(t *testing.T, s *isa.Script, processor int, part isa.Part) (list []isa.Instruction) {
	t.Helper()
	at := s.Words[isa.HeadWords+processor*isa.ProcWords+isa.ProcStart]
	if part == isa.Second {
		at = s.Words[isa.HeadWords+processor*isa.ProcWords+isa.ProcOwn]
	}
	for words := s.Words[at:]; ; {
		in, err := isa.Decode(words, s.Words)
		if err != nil {
			t.Fatal(err)
		}
		if in.Op == isa.Halt {
			return list
		}
		list, words = append(list, in), words[len(in.Words):]
	}
}

// pairs lists, for each matrix, the operands of its outer products: addresses of dy, segment and address of x.
func pairs(t *testing.T, s *isa.Script, p *plan.Plan) map[int][]string {
	t.Helper()
	type products struct {
		matrix  int
		segment isa.Segment
	}
	all, first := map[int][]string{}, map[products]int{} // every holder has the same
	for q := range p.Processors {
		for _, in := range stream(t, s, q, isa.Whole) {
			if in.Op != isa.Outer {
				continue
			}
			k := products{int(in.Field("matrix")), in.Segment(2)}
			if holder, ok := first[k]; ok && holder != q {
				continue
			}
			first[k] = q
			for i := range in.Items {
				x := in.Item(i)
				all[k.matrix] = append(all[k.matrix], fmt.Sprint(x[0], " ", k.segment, " ", x[1]))
			}
		}
	}
	for _, list := range all {
		slices.Sort(list)
	}
	return all
}

// What the library multiplies are the operands of the outer products that the kernel would have formed, each once and
// each pair in the same column; who has no gradient in blocks keeps its outer products.
func TestOperandsAreCollectedOnce(t *testing.T) {
	whole, p := forestOn(t, nil)
	want := pairs(t, whole, p)
	s, _ := forestOn(t, library(1, nil))
	if err := verify.Verify(s, p); err != nil {
		t.Fatal(err)
	}
	type column struct {
		segment isa.Segment
		at      uint32
	}
	copied := map[uint32]column{} // by where to
	for q := range p.Processors {
		for _, in := range stream(t, s, q, isa.First) {
			if in.Op != isa.Map || isa.Fn(in.Fn) != isa.Copy || in.Segment(0) != isa.SegAct {
				continue
			}
			for i := range in.Items {
				x := in.Item(i)
				if _, twice := copied[x[0]]; twice {
					t.Errorf("act+%d is written twice", x[0])
				}
				copied[x[0]] = column{in.Segment(1), x[1]}
			}
		}
	}
	blocks := 0
	for m := range p.Matrices {
		if p.Residence(m).Unit > 0 {
			blocks++
		}
	}
	if len(s.Library) != blocks || blocks < 2 || blocks == len(p.Matrices) {
		t.Fatalf("%d gradients of %d matrices are the library's, %d are formed in blocks", len(s.Library), len(p.Matrices), blocks)
	}
	for i := range s.Library {
		g := &s.Library[i]
		x := p.Matrices[g.Matrix]
		if g.Rows != x.Rows || g.Cols != x.Cols || g.Segment != isa.SegGrad || g.G != x.Offset || g.Acc || g.Scale != 1 {
			t.Errorf("%v is not the gradient of %v", g, x)
		}
		var have []string
		for k := range g.Items {
			dy, x := copied[g.DY+uint32(k*g.Rows)], copied[g.X+uint32(k*g.Cols)]
			if dy.segment != isa.SegAct {
				t.Errorf("%v: column %d is of %v", g, k, dy.segment)
			}
			have = append(have, fmt.Sprint(dy.at, " ", x.segment, " ", x.at))
		}
		slices.Sort(have)
		if !slices.Equal(have, want[g.Matrix]) {
			t.Errorf("%v: operands are\n%v, not\n%v", g, have, want[g.Matrix])
		}
		delete(want, g.Matrix)
	}
	if have := pairs(t, s, p); len(have) != len(want) {
		t.Errorf("outer products of %d matrices, not of %d", len(have), len(want))
	}
}

// What is before the cut is all that needs the matrices, what is behind it waits for nothing before it.
func TestAScriptIsCutBeforeTheNorm(t *testing.T) {
	s, p := forestOn(t, library(1, nil))
	signalled := map[uint32]bool{}
	norms := 0
	for q := range p.Processors {
		for _, in := range stream(t, s, q, isa.First) {
			switch in.Op {
			case isa.Norm, isa.Clip, isa.Update:
				t.Errorf("processor %d: %v before the cut", q, in.Op)
			case isa.Signal:
				signalled[in.Field("barrier")] = true
			}
		}
	}
	for q := range p.Processors {
		for _, in := range stream(t, s, q, isa.Second) {
			switch in.Op {
			case isa.Product, isa.ProductT, isa.Outer:
				t.Errorf("processor %d: %v behind the cut", q, in.Op)
			case isa.Norm:
				norms++
			case isa.Wait:
				if b := in.Field("barrier"); signalled[b] {
					t.Errorf("processor %d waits for barrier %d behind the cut, which is signalled before it", q, b)
				}
			}
		}
	}
	if norms == 0 {
		t.Error("there is no norm behind the cut")
	}
	if text := isa.Disassemble(s); strings.Count(text, "between its parts: gemm matrix=") != len(s.Library) {
		t.Errorf("the text does not tell of the library's products:\n%s", text)
	}
}

// Few items, no library and plans that need none: the script is that of a library without all this.
func TestWithoutALibraryAScriptIsNotCut(t *testing.T) {
	want, _ := forestOn(t, nil)
	for name, l := range map[string]*plan.Library{"few items": library(1<<20, nil), "not found": library(1, errors.New("none")), "not wanted": library(plan.NoLibrary, nil)} {
		have, _ := forestOn(t, l)
		if len(have.Library) > 0 || !slices.Equal(have.Words, want.Words) {
			t.Errorf("%s: the script is another one", name)
		}
	}
	g, params, matrices := newForest(t, 6, 20)
	p, err := plan.Sliced(matrices, 3)
	if err != nil {
		t.Fatal(err)
	}
	fits := trainingScript(t, g, params, p)
	p.Library = library(1, nil)
	if have := trainingScript(t, g, params, p); len(have.Library) > 0 || !slices.Equal(have.Words, fits.Words) {
		t.Error("a plan without gradients in blocks: the script is another one")
	}
}

// An instruction behind the cut that stops is named as the whole stream counts it.
func TestAStopBehindTheCutIsNamed(t *testing.T) {
	s, _ := forestOn(t, library(1, nil))
	words := s.Words[isa.HeadWords:][:isa.ProcWords]
	first := len(stream(t, s, 0, isa.First))
	stop := isa.Stop{isa.StopCode: isa.NoInstruction, isa.StopWord: words[isa.ProcPieces] * isa.MaxWords}
	err := stop.Error(s.Words, 1)
	want := fmt.Sprintf("processor 0, instruction %d (%s", first+1, stream(t, s, 0, isa.Second)[0].Op)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v; want %q", err, want)
	}
}
