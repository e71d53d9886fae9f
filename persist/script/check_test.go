package script_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"libvpps/persist/cpu"
	"libvpps/persist/example"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/script"
)

// checking makes a CPU executor that holds every operand against the tensor table.
func checking(t *testing.T, threads int, p *plan.Plan, memory [isa.Segments][]float32) *cpu.Executor {
	t.Helper()
	t.Setenv("VPPS_CHECK", "1")
	e, err := cpu.New(threads, p.Processors, 5)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	if err := e.SetPlan(p); err != nil {
		t.Fatal(err)
	}
	load(t, e, memory)
	return e
}

func TestACheckingBuildRunsSoundScripts(t *testing.T) {
	example, err := example.OwnExample()
	if err != nil {
		t.Fatal(err)
	}
	if err := checking(t, 2, example.Plan, example.Memory).Launch(example.Script, 1); err != nil {
		t.Error("the example: ", err)
	}
	for seed := range uint64(60) {
		s, p := script.Scheduled(t, seed)
		if err := checking(t, 2, p, liveMemory(s)).Launch(s, 1); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// The first instruction of every kind in a training script, with one address changed.
func TestACheckingBuildFindsADamagedAddress(t *testing.T) {
	good, p := forestScript(t, 2, 4)
	memory := liveMemory(good)
	seen := map[isa.Opcode]bool{}
	for processor := range good.Processors() {
		index := -1
		for in, err := range good.Instructions(processor) {
			if err != nil {
				t.Fatal(err)
			}
			index++
			if in.Items == 0 || seen[in.Op] {
				continue
			}
			seen[in.Op] = true
			for _, beyond := range []uint32{0xFFFFFFF0, 0x00FFFFFF} {
				address := in.Item(in.Items - 1)
				saved := address[0]
				address[0] = beyond
				err = checking(t, 2, p, memory).Launch(good, 1)
				address[0] = saved
				want := fmt.Sprintf("processor %d, instruction %d (%s", processor, index, in.Op)
				if in.Flags&isa.Listed != 0 { // others have the same items
					want = fmt.Sprintf(" (%s", in.Op)
				}
				if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "is in no tensor") {
					t.Errorf("damaged %s: %v; want %q in no tensor", in.String(), err, want)
				}
			}
		}
	}
	for _, op := range []isa.Opcode{isa.Map, isa.Sum, isa.Product, isa.ProductT, isa.Outer, isa.Norm, isa.Update} {
		if !seen[op] {
			t.Errorf("the script has no %s", op)
		}
	}
}

// Hand-made faults and how they are told; processor 1 of two meets each.
func TestFaultsAreNamed(t *testing.T) {
	act := isa.Segs(isa.SegAct, isa.SegAct, isa.SegAct)
	one := isa.Float(1)
	cases := []struct {
		name string
		do   func(a *isa.Assembler)
		want string
	}{
		{"over the end", func(a *isa.Assembler) {
			a.Do(1, isa.Fill, 0, 0, []uint32{act, 4, one}, []uint32{0}, []uint32{5})
		}, "instruction 1 (fill): operand 0 of item 1, act+5..8, leaves tensor 2, act+0, 8 long"},
		{"an input", func(a *isa.Assembler) {
			a.Do(1, isa.Map, uint8(isa.Add), 0, []uint32{act, 8, 0, 0}, []uint32{0, 16, 9})
		}, "instruction 1 (map.add): operand 2 of item 0, act+9..16, leaves tensor 3"},
		{"a column too far", func(a *isa.Assembler) {
			a.Do(1, isa.Gemm, 0, 0, []uint32{act, 2, 2, 2, 1, 2, 1, 2, 1, 7, one, 0}, []uint32{0, 8, 16})
		}, "instruction 1 (gemm): operand 2 of item 0, act+16..24, leaves tensor 4"},
		{"a product's bias", func(a *isa.Assembler) {
			a.Do(1, isa.Product, 0, isa.Bias, []uint32{isa.Segs(isa.SegAct, isa.SegAct, isa.SegParam), 0, one, 30, one}, []uint32{0, 8})
		}, "instruction 1 (product): operand 2 of item 0, param+30..33, leaves tensor 0"},
		{"a segment that does not exist", func(a *isa.Assembler) {
			a.Do(1, isa.Fill, 0, 0, []uint32{9, 4, one}, []uint32{0})
		}, "operand 0 of item 0, segment 9+0..3, is in no tensor"},
		{"a matrix that does not exist", func(a *isa.Assembler) {
			a.Do(1, isa.Product, 0, 0, []uint32{act, 3, one, 0, 0}, []uint32{0, 8})
		}, "instruction 1 (product): not an instruction"},
		{"a source behind its run", func(a *isa.Assembler) {
			a.Do(1, isa.Sum, 0, 0, []uint32{act, 2, one, 0, 2 | 3<<16, 3, 0}, []uint32{16}, []uint32{17}, []uint32{8})
		}, "instruction 1 (sum): operand 1 of item 5, act+23..24, leaves tensor 4"},
		{"more runs than items", func(a *isa.Assembler) {
			a.Do(1, isa.Sum, 0, 0, []uint32{act, 2, one, 0, 2 | 3<<16, 3, 0}, []uint32{16})
		}, "instruction 1 (sum): not an instruction"},
		{"runs of nothing", func(a *isa.Assembler) {
			a.Do(1, isa.Sum, 0, 0, []uint32{act, 2, one, 0, 1, 3, 0}, []uint32{8})
		}, "instruction 1 (sum): not an instruction"},
		{"runs that are too long", func(a *isa.Assembler) {
			a.Do(1, isa.Sum, 0, 0, []uint32{act, 2, one, 0, 1 | (isa.MaxRun+1)<<16, 0, 0}, []uint32{8})
		}, "instruction 1 (sum): not an instruction"},
		{"a result over the end of a slice's tensor", func(a *isa.Assembler) {
			a.Do(1, isa.Sum, 0, 0, []uint32{act, 4, one, 5, 0, 0, 0}, []uint32{20})
		}, "instruction 1 (sum): operand 0 of item 0, act+5..8, leaves tensor 2"},
		{"a derivative's y over the end", func(a *isa.Assembler) {
			a.Do(1, isa.Sum, uint8(isa.TanhB), 0, []uint32{act, 2, one, 0, 0, 0, 31}, []uint32{8})
		}, "instruction 1 (sum): operand 2 of item 0, act+31..32"},
		{"a function that needs two inputs behind a sum", func(a *isa.Assembler) {
			a.Do(1, isa.Sum, uint8(isa.Add), 0, []uint32{act, 2, one, 0, 0, 0, 0}, []uint32{8})
		}, "processor 1, word 3 of its script: not an instruction"},
		{"items beyond the lists", func(a *isa.Assembler) {
			a.DoListed(1, isa.Outer, 0, []uint32{act, 0, one, 0}, []uint32{0, 8})
			a.Streams[1][len(a.Streams[1])-1] += 0x10000000
		}, "processor 1, word 3 of its script: its items are words 268435468 to 268435470 of the script, but the lists are words 12 to 14"},
		{"a listed product's operand", func(a *isa.Assembler) {
			a.DoListed(1, isa.Product, 0, []uint32{act, 0, one, 0, 0}, []uint32{0, 8}, []uint32{6, 8})
		}, "instruction 1 (product): operand 0 of item 1, act+6..9, leaves tensor 2"},
		{"items in a list where none may be", func(a *isa.Assembler) {
			a.Do(1, isa.Fill, 0, isa.Listed, []uint32{act, 4, one}, []uint32{0})
		}, "processor 1, word 3 of its script: not an instruction"},
		{"a chain's slot over the end", func(a *isa.Assembler) {
			a.Chain(1, 0, 4, []uint32{uint32(isa.SegAct) | isa.ChainRead, uint32(isa.SegAct) | isa.ChainWritten, uint32(isa.SegParam)}, []uint32{isa.ChainOp(isa.Tanh, 2, 0, 0, 0, false), 0, 0, isa.ChainOp(isa.Add, 1, 0, 2, 0, false), 0, 0}, []uint32{0, 8, 9999}, []uint32{4, 14, 9999})
		}, "instruction 1 (chain): operand 1 of item 1, act+14..17, leaves tensor 3"},
		{"a chain's slot without a value", func(a *isa.Assembler) {
			a.Chain(1, 0, 4, []uint32{uint32(isa.SegAct), uint32(isa.SegAct) | isa.ChainWritten}, []uint32{isa.ChainOp(isa.Tanh, 1, 0, 0, 0, false), 0, 0}, []uint32{0, 8})
		}, "instruction 1 (chain): not an instruction"},
		{"a chain's function that does not exist", func(a *isa.Assembler) {
			a.Chain(1, 0, 4, []uint32{uint32(isa.SegAct) | isa.ChainRead}, []uint32{isa.ChainOp(isa.Fns, 0, 0, 0, 0, false), 0, 0}, []uint32{0})
		}, "instruction 1 (chain): not an instruction"},
		{"a chain of more operations than words", func(a *isa.Assembler) {
			a.Chain(1, 0, 4, []uint32{uint32(isa.SegAct) | isa.ChainRead}, []uint32{isa.ChainOp(isa.Copy, 0, 0, 0, 0, false), 0, 0}, []uint32{0})
			a.Streams[1][len(a.Streams[1])-6] = 0x55555556
		}, "processor 1, word 3 of its script: not an instruction"},
		{"a chain that adds", func(a *isa.Assembler) {
			a.Chain(1, isa.Acc, 4, []uint32{uint32(isa.SegAct) | isa.ChainRead}, []uint32{isa.ChainOp(isa.Copy, 0, 0, 0, 0, false), 0, 0}, []uint32{0})
		}, "instruction 1 (chain): not an instruction"},
		{"a label beyond its rows", func(a *isa.Assembler) {
			a.Do(1, isa.Row, uint8(isa.NegLogPick), 0, []uint32{act, 8, 1, 0, 1}, []uint32{0, 16, 8, 8})
		}, "instruction 1 (row.neg_log_pick): not an instruction"},
		{"more axes than there are", func(a *isa.Assembler) {
			a.Do(1, isa.Strided, uint8(isa.Copy), 0, []uint32{act, 6, 0, 0}, []uint32{0, 8})
		}, "processor 1, word 3 of its script: not an instruction"},
		{"a result that is too long", func(a *isa.Assembler) {
			a.Do(1, isa.Strided, uint8(isa.Copy), 0, []uint32{act, 2, 0, 0, 3, 4, 1, 3, 1, 0}, []uint32{0, 16})
		}, "instruction 1 (strided.copy): operand 0 of item 0, act+0..11, leaves tensor 2"},
		{"a lost signal", func(a *isa.Assembler) { a.Wait(1, 1, 3) }, "instruction 1 (wait): barrier 1 has 0 of 3 signals after 0.05 s: a signal is lost"},
	}
	p, err := plan.Sliced([]plan.Matrix{{Name: "W", Rows: 4, Cols: 8}}, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("VPPS_CHECK", "1")
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := isa.NewAssembler(2)
			for _, x := range [][3]uint32{{uint32(isa.SegParam), 0, 32}, {uint32(isa.SegGrad), 0, 32}, {uint32(isa.SegAct), 0, 8}, {uint32(isa.SegAct), 8, 8}, {uint32(isa.SegAct), 16, 8}} {
				a.Tensor(isa.Segment(x[0]), 0, x[1], x[2])
			}
			a.Signal(1, 0)
			a.Wait(0, 0, 1)
			c.do(a)
			e, err := cpu.New(2, 2, 0.05)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			if err := e.SetPlan(p); err != nil {
				t.Fatal(err)
			}
			err = e.Launch(a.Script(), 1)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "processor 1, ") {
				t.Errorf("error %v; want processor 1, %q", err, c.want)
			}
		})
	}
}

// A processor that gives up ends those that have work left, within an instruction.
func TestAStopEndsProcessorsAtWork(t *testing.T) {
	const n, instructions = 1 << 18, 200000 // of some 50 µs or more each: far more than the wait
	a := isa.NewAssembler(2)
	a.Wait(0, 0, 1)
	for range instructions {
		a.Do(1, isa.Map, uint8(isa.Tanh), 0, []uint32{isa.Segs(isa.SegAct, isa.SegAct), n, 0, 0}, []uint32{n, 0})
	}
	a.Do(1, isa.Fill, 0, 0, []uint32{isa.Segs(isa.SegGrad), 1, isa.Float(1)}, []uint32{0})
	p, err := plan.Sliced(nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	e, err := cpu.New(2, 2, 0.05)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.SetPlan(p); err != nil {
		t.Fatal(err)
	}
	err = e.Launch(a.Script(), 1)
	if err == nil || !strings.Contains(err.Error(), "processor 0, instruction 0 (wait): barrier 0 has 0 of 1 signals") {
		t.Errorf("error %v", err)
	}
	end := make([]float32, 1)
	if err := e.Read(isa.SegGrad, 0, end); err != nil || end[0] != 0 {
		t.Errorf("processor 1 went on to its end (error %v)", err)
	}
}

// What a script reads of recycled memory before it writes it is NaN; what earlier launches left
// stays.
func TestACheckingBuildRefillsRecycledMemory(t *testing.T) {
	a := isa.NewAssembler(1)
	a.Tensor(isa.SegGrad, 0, 0, 24)
	for i, flags := range []uint32{0, isa.LiveIn, 0} {
		a.Tensor(isa.SegAct, flags, uint32(8*i), 8)
	}
	a.Do(0, isa.Map, uint8(isa.Copy), 0, []uint32{isa.Segs(isa.SegGrad, isa.SegAct), 8, 0, 0}, []uint32{0, 0}, []uint32{8, 8}, []uint32{16, 16})
	p, err := plan.Sliced(nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	var memory [isa.Segments][]float32
	for range 24 {
		memory[isa.SegAct] = append(memory[isa.SegAct], 3)
	}
	e := checking(t, 1, p, memory)
	if err := e.Launch(a.Script(), 1); err != nil {
		t.Fatal(err)
	}
	have := make([]float32, 24)
	if err := e.Read(isa.SegGrad, 0, have); err != nil {
		t.Fatal(err)
	}
	for i, v := range have {
		if stale := i/8 != 1; stale != math.IsNaN(float64(v)) || !stale && v != 3 {
			t.Errorf("element %d is %g", i, v)
		}
	}
}
