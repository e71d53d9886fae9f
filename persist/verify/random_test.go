package verify

import (
	"math/rand/v2"
	"testing"

	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/reference"
)

// A random program: copies on several processors with barriers between them.
// Whether it is sound is decided here by brute force, over the graph of everything that
// orders two operations, and must be what Verify says.

type opKind int

const (
	opCopy opKind = iota
	opSignal
	opWait
)

// op is one operation of a program.
type op struct {
	kind     opKind
	from, to int // copy: element ranges of n
	n        int
	barrier  int
}

type program struct {
	ops      [][]op // by processor
	barriers int
	size     int
}

const chunk = 8 // elements of a tensor

// randomProgram makes a sound program: copies in levels, separated by barriers.
func randomProgram(rng *rand.Rand) *program {
	procs, levels := 2+rng.IntN(3), 2+rng.IntN(3)
	p := &program{ops: make([][]op, procs), size: 10 * chunk}
	written := map[int]int{} // chunk: the level that wrote it
	for l := range levels {
		used := map[int]bool{} // chunks in use in this level
		for i := range procs {
			for range rng.IntN(3) {
				p.addCopy(rng, i, l, written, used)
			}
		}
		p.barrier(rng)
		for c := range used {
			if written[c] == 0 {
				written[c] = l + 1
			}
		}
	}
	return p
}

// addCopy appends a copy from memory that earlier levels wrote (chunk 0 and 1 are there
// from the start) to a chunk that nobody else uses in this level.
func (p *program) addCopy(rng *rand.Rand, proc, level int, written map[int]int, used map[int]bool) {
	to := 2 + rng.IntN(p.size/chunk-2)
	if used[to] {
		return
	}
	from := rng.IntN(p.size / chunk)
	if used[from] && from != to || from > 1 && (written[from] == 0 || from == to) {
		return
	}
	if from <= 1 {
		from = rng.IntN(2)
	}
	used[to], used[from] = true, from > 1
	p.ops[proc] = append(p.ops[proc], op{kind: opCopy, from: from * chunk, to: to * chunk, n: chunk})
}

// barrier appends a barrier that all processors pass, in one of two forms.
func (p *program) barrier(rng *rand.Rand) {
	if rng.IntN(2) == 0 { // all signal one barrier and wait for it
		for i := range p.ops {
			p.ops[i] = append(p.ops[i], op{kind: opSignal, barrier: p.barriers}, op{kind: opWait, barrier: p.barriers})
		}
		p.barriers++
		return
	}
	for i := range p.ops { // gather at processor 0, then release
		if i > 0 {
			p.ops[i] = append(p.ops[i], op{kind: opSignal, barrier: p.barriers}, op{kind: opWait, barrier: p.barriers + 1})
		}
	}
	p.ops[0] = append(p.ops[0], op{kind: opWait, barrier: p.barriers}, op{kind: opSignal, barrier: p.barriers + 1})
	p.barriers += 2
}

// script assembles the program; every wait expects all signals to its barrier.
func (p *program) script() *isa.Script {
	a := isa.NewAssembler(len(p.ops))
	for c := 0; c < p.size; c += chunk {
		flags := uint32(0)
		if c < 2*chunk {
			flags = isa.LiveIn
		}
		a.Tensor(isa.SegAct, flags, uint32(c), chunk)
	}
	total := make([]uint32, p.barriers)
	for _, ops := range p.ops {
		for _, o := range ops {
			if o.kind == opSignal {
				total[o.barrier]++
			}
		}
	}
	for i, ops := range p.ops {
		for _, o := range ops {
			switch o.kind {
			case opSignal:
				a.Signal(i, uint32(o.barrier))
			case opWait:
				a.Wait(i, uint32(o.barrier), total[o.barrier])
			case opCopy:
				a.Do(i, isa.Map, uint8(isa.Copy), isa.Sync, []uint32{isa.Segs(isa.SegAct, isa.SegAct), uint32(o.n), 0, 0}, []uint32{uint32(o.to), uint32(o.from)})
			}
		}
	}
	a.Barriers = p.barriers
	return a.Script()
}

// sound decides by brute force: node numbers are operations in order of processors.
func (p *program) sound() bool {
	var all []op
	var before []int // the operation before it on its processor, or -1
	for _, ops := range p.ops {
		for k, o := range ops {
			prev := len(all) - 1
			if k == 0 {
				prev = -1
			}
			all, before = append(all, o), append(before, prev)
		}
	}
	n := len(all)
	reach := make([][]bool, n) // reach[a][b]: a comes before b
	for i := range reach {
		reach[i] = make([]bool, n)
	}
	for i, o := range all {
		if before[i] >= 0 {
			reach[before[i]][i] = true
		}
		for j, w := range all {
			if o.kind == opSignal && w.kind == opWait && o.barrier == w.barrier {
				reach[i][j] = true
			}
		}
	}
	reference.Closure(reach)
	for i := range n {
		if reach[i][i] {
			return false // a deadlock
		}
	}
	return p.conflictsOrdered(all, reach)
}

func (p *program) conflictsOrdered(all []op, reach [][]bool) bool {
	for r, o := range all {
		if o.kind != opCopy {
			continue
		}
		defined := o.from < 2*chunk
		for w, x := range all {
			if w == r || x.kind != opCopy {
				continue
			}
			if x.to == o.to && !reach[w][r] && !reach[r][w] {
				return false
			}
			if x.to != o.from {
				continue
			}
			defined = defined || reach[w][r]
			if !reach[w][r] && !reach[r][w] {
				return false
			}
		}
		if !defined {
			return false
		}
	}
	return true
}

// damaged returns every program that differs in one signal or wait: dropped, moved
// behind the next operation, or of another barrier.
func (p *program) damaged(rng *rand.Rand) []*program {
	var list []*program
	for i, ops := range p.ops {
		for k, o := range ops {
			if o.kind == opCopy {
				continue
			}
			dropped := p.clone()
			dropped.ops[i] = append(dropped.ops[i][:k], dropped.ops[i][k+1:]...)
			list = append(list, dropped)
			if k+1 < len(ops) {
				swapped := p.clone()
				swapped.ops[i][k], swapped.ops[i][k+1] = swapped.ops[i][k+1], swapped.ops[i][k]
				list = append(list, swapped)
			}
			other := p.clone()
			other.ops[i][k].barrier = rng.IntN(p.barriers)
			list = append(list, other)
		}
	}
	return list
}

func (p *program) clone() *program {
	d := &program{barriers: p.barriers, size: p.size}
	for _, ops := range p.ops {
		d.ops = append(d.ops, append([]op(nil), ops...))
	}
	return d
}

func TestVerifyAgreesWithBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	rejected, total := 0, 0
	for n := range few(1000) {
		p := randomProgram(rng)
		pl, err := plan.Sliced(nil, len(p.ops))
		if err != nil {
			t.Fatal(err)
		}
		if !p.sound() {
			t.Fatalf("program %d: brute force rejects what the generator made: %+v", n, p.ops)
		}
		if err := Verify(p.script(), pl); err != nil {
			t.Fatalf("program %d: %v\n%s", n, err, isa.Disassemble(p.script()))
		}
		for _, d := range p.damaged(rng) {
			sound, err := d.sound(), Verify(d.script(), pl)
			if sound != (err == nil) {
				t.Fatalf("program %d: sound is %v, the verifier says %v\n%s", n, sound, err, isa.Disassemble(d.script()))
			}
			total++
			if !sound {
				rejected++
			}
		}
	}
	if rejected < 1000 {
		t.Errorf("only %d of %d damaged programs were unsound: the test shows little", rejected, total)
	}
	t.Logf("%d of %d damaged programs were unsound, all rejected", rejected, total)
}

// Accesses per second over vectors of 256, as in a recurrent model.
func BenchmarkVerify(b *testing.B) {
	const procs, steps, n = 8, 500, 256
	a := isa.NewAssembler(procs)
	a.Tensor(isa.SegAct, isa.LiveIn, 0, n)
	for s := range steps {
		a.Tensor(isa.SegAct, 0, uint32(n*(1+s)), n)
	}
	for s := range uint32(steps) {
		for i := range procs {
			const part = n / procs
			first := part * uint32(i)
			a.Do(i, isa.Map, uint8(isa.Mul), isa.Sync, []uint32{act, part, isa.Float(1), 0}, []uint32{n*(1+s) + first, n*s + first, first})
			a.Signal(i, s)
			a.Wait(i, s, procs)
		}
	}
	s := a.Script()
	pl, err := plan.Sliced(nil, procs)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := Verify(s, pl); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*steps*n*3/b.Elapsed().Seconds()/1e6, "Maccesses/s")
}
