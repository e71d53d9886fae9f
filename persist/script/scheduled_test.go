package script

import (
	"math/rand/v2"
	"testing"

	"libvpps/bridge"
	"libvpps/persist/finish"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/reference"
	"libvpps/persist/schedule"
	"libvpps/persist/verify"
)

// Scripts as the scheduler makes them for random graphs, with one signal or wait taken away or
// swapped with its neighbour. Whether it was needed is decided here by brute force: which
// instructions touch the same element comes from their footprints, what comes before what from
// the closure over all orders; the verifier must say the same.

// scheduled builds the script of a random graph: one fb, or forward only.
func scheduled(t *testing.T, seed uint64) (*isa.Script, *plan.Plan) {
	t.Helper()
	r := requested(t, seed)
	var b Builder
	built, err := b.Build(r)
	if err != nil {
		t.Fatal(err)
	}
	return &built.Script, r.Plan
}

// requested is the request of a random graph: one fb, or forward only.
func requested(t *testing.T, seed uint64) *Request { return requestedWith(t, seed, 0) }

// requestedWith is such a request of a graph that has several products by one parameter after every so many nodes.
func requestedWith(t *testing.T, seed uint64, layers int) *Request {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 12))
	g, err := reference.Random(seed+5000, reference.Options{Nodes: 5 + rng.IntN(10), Layers: layers})
	if err != nil {
		t.Fatal(err)
	}
	var spelled bridge.Expanded
	spelled.Extend(g.Graph)
	r := &Request{Apart: true, Graph: &spelled.Graph, State: &State{}, Node: spelled.At[g.Loss], Forward: true, Result: NoOffset, Tensors: true}
	var matrices []plan.Matrix
	at := [2]uint32{}
	for id, p := range g.Params {
		table := 0
		if p.Lookup {
			table = 1
		}
		q := schedule.Param{Lookup: p.Lookup, Offset: at[table], Size: uint32(p.Dim.Size()), Row: uint32(p.Dim.Size()), Factor: 1, Matrix: -1, Updated: true}
		if p.Lookup {
			q.Row /= p.Dim.D[p.Dim.Nd-1]
		} else if p.Dim.Nd == 2 {
			q.Matrix = int32(len(matrices))
			matrices = append(matrices, plan.Matrix{Param: uint32(id), Rows: p.Dim.Rows(), Cols: p.Dim.Cols(), Offset: q.Offset})
		}
		q.Column = min(p.Dim.D[0], q.Row)
		at[table] += q.Size
		r.Params = append(r.Params, q)
	}
	if r.Plan, err = plan.Sliced(matrices, 1+rng.IntN(5)); seed%4 == 2 {
		d := plan.Device{Processors: 20, Warps: 1, RegistersPer: 255, SetAside: 60, SharedPerBlock: 64 << 10, Copies: rng.IntN(2)}
		r.Plan, err = plan.RoundRobin(matrices, d, 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range r.Plan.Matrices {
		r.Params[m.Param].Matrix = int32(i)
	}
	r.Plan.CPU = seed%2 == 0
	if rng.IntN(4) > 0 {
		r.Needed, r.Backward, r.Result = true, true, 0
		r.Update = &finish.Apply{Rule: isa.Rule(rng.IntN(int(isa.Rules))), Dense: rng.IntN(2) == 0, Rate: 0.1, P: 0.9, Q: 0.9, R: 0.1, Threshold: 5}
		state := uint32(0)
		for id := range r.Params {
			r.Update.Params = append(r.Update.Params, uint32(id))
			r.Update.State = append(r.Update.State, state)
			state += r.Params[id].Size * uint32(isa.RuleTable[r.Update.Rule].States)
		}
		r.Update.All = r.Update.Params
	} else {
		r.Copy = true
	}
	return r
}

// step is an instruction of a schedule; its number stays with it when it is moved.
type step struct {
	isa.Instruction
	number int
}

// disassembly is a script taken apart.
type disassembly struct {
	script *isa.Script
	steps  [][]step // by processor, without halt
	count  int

	// What the steps have in common, by number.
	conflicts []conflict
	defined   [][]int // a read of memory that is not live-in, then the steps that write it
}

// conflict is two steps of which one writes what the other touches. Strictly: a is the product
// that reads its registers, so it comes before b.
type conflict struct {
	a, b     int
	strictly bool
}

func takeApart(t *testing.T, s *isa.Script, p *plan.Plan) *disassembly {
	t.Helper()
	d := &disassembly{script: s}
	type access struct {
		step            int
		write, resident bool
	}
	type element struct {
		segment isa.Segment
		at      uint64
	}
	accesses := map[element][]access{}
	var foot verify.Footprint
	for i := range s.Processors() {
		var steps []step
		for in, err := range s.Instructions(i) {
			if err != nil {
				t.Fatal(err)
			}
			steps = append(steps, step{*in, d.count})
			ranges, err := foot.Of(in, p, i)
			if err != nil {
				t.Fatal(err)
			}
			for k := range ranges {
				r := &ranges[k]
				each(r, func(at uint64) {
					e := element{r.Segment, at}
					accesses[e] = append(accesses[e], access{d.count, r.Write, r.Matrix > 0})
				})
			}
			d.count++
		}
		d.steps = append(d.steps, steps)
	}
	live := map[element]bool{}
	for w := s.Words[s.Words[isa.HeadTensors]:s.Words[isa.HeadTensorEnd]]; len(w) > 0; w = w[isa.TensorWords:] {
		for k := range w[2] {
			live[element{isa.Segment(w[0] & 0xff), uint64(w[1] + k)}] = w[0]>>8&isa.LiveIn != 0
		}
	}
	seen, definedBy := map[conflict]bool{}, map[int]map[int]bool{}
	for e, list := range accesses {
		for _, x := range list {
			if !x.write && !live[e] && definedBy[x.step] == nil {
				definedBy[x.step] = map[int]bool{}
				for _, y := range list {
					if y.write && y.step != x.step {
						definedBy[x.step][y.step] = true
					}
				}
			}
			for _, y := range list {
				if !y.write || x.step == y.step {
					continue
				}
				c := conflict{x.step, y.step, x.resident}
				if !seen[c] {
					seen[c] = true
					d.conflicts = append(d.conflicts, c)
				}
			}
		}
	}
	for read, writers := range definedBy {
		list := []int{read}
		for w := range writers {
			list = append(list, w)
		}
		d.defined = append(d.defined, list)
	}
	return d
}

// each visits the elements of a range.
func each(r *verify.Range, visit func(at uint64)) {
	var walk func(axis int, at uint64)
	walk = func(axis int, at uint64) {
		if axis == r.Rank {
			visit(at)
			return
		}
		for i := range r.Axes[axis].Size {
			walk(axis+1, at+i*r.Axes[axis].Stride)
		}
	}
	walk(0, r.Offset)
}

// sound decides by brute force. A processor's work falls into stretches inside which nothing is
// ordered; signals, waits and syncs end them.
func (d *disassembly) sound() bool {
	stretch := make([]int, d.count) // of a step
	after := make([]int, d.count)   // of a wait or clip: the stretch that it begins
	signals := map[uint32][]int{}   // by barrier: stretches that come before it is signalled
	waits := map[uint32][]step{}    // by barrier
	var follows [][2]int            // stretches in order
	n := 0
	for _, steps := range d.steps {
		next := func() {
			follows = append(follows, [2]int{n, n + 1})
			n++
		}
		for _, s := range steps {
			if s.Flags&isa.Sync != 0 || s.Op == isa.Signal || s.Op == isa.Wait || s.Op == isa.Clip {
				next()
			}
			stretch[s.number], after[s.number] = n, n
			switch s.Op {
			case isa.Signal:
				signals[s.Field("barrier")] = append(signals[s.Field("barrier")], n-1)
			case isa.Wait:
				waits[s.Field("barrier")] = append(waits[s.Field("barrier")], s)
			case isa.Clip:
				next()
			}
		}
		n++
	}
	before := make([][]bool, n)
	for i := range before {
		before[i] = make([]bool, n)
	}
	for _, f := range follows {
		before[f[0]][f[1]] = true
	}
	for barrier, list := range waits {
		for _, w := range list {
			if w.Field("expected") != uint32(len(signals[barrier])) {
				return false // it is released too early, or never
			}
			for _, s := range signals[barrier] {
				before[s][after[w.number]] = true
			}
		}
	}
	reference.Closure(before)
	for i := range n {
		if before[i][i] {
			return false // a deadlock
		}
	}
	for _, c := range d.conflicts {
		a, b := stretch[c.a], stretch[c.b]
		if !before[a][b] && (c.strictly || !before[b][a]) {
			return false
		}
	}
	for _, list := range d.defined {
		ok := false
		for _, w := range list[1:] {
			ok = ok || before[stretch[w]][stretch[list[0]]]
		}
		if !ok {
			return false
		}
	}
	return true
}

// put makes a script of the steps, each processor's in a stream of its own.
func (d *disassembly) put() *isa.Script {
	old := d.script.Words
	w := append([]uint32(nil), old[:old[isa.HeadListEnd]]...)
	for i, steps := range d.steps {
		w[isa.HeadWords+i*isa.ProcWords+isa.ProcStart] = uint32(len(w))
		for _, s := range steps {
			w = append(w, s.Words...)
		}
		w = append(w, uint32(isa.Halt))
	}
	for len(w)%isa.BarrierStride != 0 {
		w = append(w, uint32(isa.Halt))
	}
	for _, at := range []int{isa.HeadCounters, isa.HeadInputs, isa.HeadDevice, isa.HeadTensors, isa.HeadTensorEnd} {
		w[at] += uint32(len(w)) - old[isa.HeadCounters]
	}
	return &isa.Script{Words: append(w, old[old[isa.HeadCounters]:]...)}
}

// damages calls try with every script that lacks one signal or wait, or has it on the other
// side of a neighbour. A signal is taken away together with its count, too, so that nobody
// waits for it.
func (d *disassembly) damages(try func(what string)) {
	for i, steps := range d.steps {
		for k, s := range steps {
			if s.Op != isa.Signal && s.Op != isa.Wait {
				continue
			}
			d.steps[i] = append(append([]step(nil), steps[:k]...), steps[k+1:]...)
			try(s.Op.String() + " dropped")
			if s.Op == isa.Signal {
				d.count1(s.Field("barrier"), -1)
				try("signal dropped and not counted")
				d.count1(s.Field("barrier"), +1)
			}
			for _, other := range []int{k - 1, k + 1} {
				if other >= 0 && other < len(steps) {
					d.steps[i] = append([]step(nil), steps...)
					d.steps[i][k], d.steps[i][other] = steps[other], s
					try(s.Op.String() + " swapped")
				}
			}
			d.steps[i] = steps
		}
	}
}

// count1 changes what the waits at a barrier expect.
func (d *disassembly) count1(barrier uint32, by int) {
	for _, steps := range d.steps {
		for k := range steps {
			if s := &steps[k]; s.Op == isa.Wait && s.Field("barrier") == barrier {
				s.Words[3] = uint32(int(s.Words[3]) + by)
			}
		}
	}
}

func TestNeededSignalsAndWaitsOfTheSchedulerAreFound(t *testing.T) {
	scripts := uint64(Fewer(1000))
	needed, total := map[string]int{}, map[string]int{}
	for seed := range scripts {
		s, p := scheduled(t, seed)
		if err := verify.Verify(s, p); err != nil {
			t.Fatalf("script %d: %v\n%s", seed, err, isa.Disassemble(s))
		}
		d := takeApart(t, s, p)
		if !d.sound() {
			t.Fatalf("script %d: brute force rejects what the verifier accepts\n%s", seed, isa.Disassemble(s))
		}
		d.damages(func(what string) {
			damaged := d.put()
			sound, err := d.sound(), verify.Verify(damaged, p)
			if sound != (err == nil) {
				t.Fatalf("script %d, %s: sound is %v, the verifier says %v\n%s\nit was\n%s", seed, what, sound, err, isa.Disassemble(damaged), isa.Disassemble(s))
			}
			total[what]++
			if !sound {
				needed[what]++
			}
		})
	}
	for what, n := range total {
		t.Logf("%s: %d of %d were needed, and all of those rejected", what, needed[what], n)
		if needed[what] < n/20 || needed[what] == 0 {
			t.Errorf("%s: hardly ever unsound: the test shows little", what)
		}
	}
}
