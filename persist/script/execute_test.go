package script_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"libvpps/persist/cpu"
	"libvpps/persist/example"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/script"
	"libvpps/persist/verify"
)

func newExecutor(t *testing.T, threads int) *cpu.Executor {
	t.Helper()
	e, err := cpu.New(threads, 2, 10)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// load makes room for what memory has of each segment and writes it.
func load(t *testing.T, e *cpu.Executor, memory [isa.Segments][]float32) {
	t.Helper()
	for s, values := range memory {
		err := e.Grow(isa.Segment(s), uint64(len(values)))
		if err == nil {
			err = e.Write(isa.Segment(s), 0, values)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The hand-written two-processor script gives the float64 results, and the same bits on
// one thread and on two.
func TestOwnExampleRuns(t *testing.T) {
	example, err := example.OwnExample()
	if err != nil {
		t.Fatal(err)
	}
	var first []float32
	for _, threads := range []int{1, 2} {
		e := newExecutor(t, threads)
		if err := e.SetPlan(example.Plan); err != nil {
			t.Fatal(err)
		}
		load(t, e, example.Memory)
		if err := e.Launch(example.Script, 1); err != nil {
			t.Fatal(err)
		}
		var all []float32
		for _, x := range example.Expected {
			have := make([]float32, len(x.Values))
			if err := e.Read(x.Segment, uint64(x.Offset), have); err != nil {
				t.Fatal(err)
			}
			for i, want := range x.Values {
				if math.Abs(float64(have[i])-want) > 1e-5 {
					t.Errorf("%d threads: %s[%d] is %g, want %g", threads, x.Name, i, have[i], want)
				}
			}
			all = append(all, have...)
		}
		if first == nil {
			first = all
		}
		for i := range all {
			if math.Float32bits(all[i]) != math.Float32bits(first[i]) {
				t.Errorf("result %d: %x on one thread, %x on %d", i, first[i], all[i], threads)
			}
		}
	}
}

// onMatrix adds an instruction with items of its own or with listed ones.
func (g *instructions) onMatrix(a *isa.Assembler, op isa.Opcode, flags uint32, head []uint32, items ...[]uint32) {
	g.onMatrixWith(a, op, isa.Copy, flags, head, items...)
}

func (g *instructions) onMatrixWith(a *isa.Assembler, op isa.Opcode, fn isa.Fn, flags uint32, head []uint32, items ...[]uint32) {
	if g.rng.IntN(2) == 0 {
		a.Do(0, op, uint8(fn), flags, head, items...)
		return
	}
	a.Lists = append(a.Lists, make([]uint32, g.rng.IntN(4))...) // so that lists begin anywhere
	at := len(a.Streams[0])
	a.DoListed(0, op, flags, head, items...)
	a.Streams[0][at] |= uint32(fn) << 8
}

// memoryWords is the size of each segment in the test below.
const memoryWords = 1 << 14

// instructions makes random instructions over memory that is handed out without overlap.
type instructions struct {
	rng  *rand.Rand
	next [isa.Segments]uint32
	plan *plan.Plan
}

func newInstructions(t *testing.T, rng *rand.Rand) *instructions {
	t.Helper()
	g := &instructions{rng: rng}
	var matrices []plan.Matrix
	for range 2 {
		m := plan.Matrix{Name: "W", Rows: 1 + rng.IntN(40), Cols: 1 + rng.IntN(20), Offset: g.next[isa.SegParam]}
		g.next[isa.SegParam] += uint32(m.Rows * m.Cols)
		matrices = append(matrices, m)
	}
	p, err := plan.Sliced(matrices, 1+rng.IntN(3))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range matrices {
		w := plan.Residence{Kind: plan.Kind(rng.IntN(3)), First: rng.IntN(p.Processors)}
		if w.Kind != plan.Registers || rng.IntN(2) == 0 {
			w.Columns = (m.Cols + p.Processors - 1) / p.Processors
		}
		p.Where = append(p.Where, w)
	}
	g.plan = p
	return g
}

// memory hands out n elements of a segment.
func (g *instructions) memory(s isa.Segment, n int) uint32 {
	at := g.next[s] + g.rng.Uint32N(3)
	g.next[s] = at + uint32(n)
	return at
}

// segments chooses one for each slot.
func (g *instructions) segments(slots int) []isa.Segment {
	list := make([]isa.Segment, slots)
	for i := range list {
		list[i] = isa.Segment(g.rng.IntN(int(isa.SegInput)))
	}
	return list
}

// flags: each of the given ones, or not.
func (g *instructions) flags(list ...uint32) uint32 {
	f := uint32(0)
	for _, x := range list {
		f |= x * g.rng.Uint32N(2)
	}
	return f
}

// vectors makes items of so many words, each a vector of size elements in its slot's segment.
func (g *instructions) vectors(segs []isa.Segment, size int) [][]uint32 {
	items := make([][]uint32, 1+g.rng.IntN(5))
	for i := range items {
		for _, s := range segs {
			items[i] = append(items[i], g.memory(s, size))
		}
	}
	return items
}

// sizes maps an opcode to a random instruction of it.
var sizes = map[isa.Opcode]func(g *instructions, a *isa.Assembler){
	isa.Fill: func(g *instructions, a *isa.Assembler) {
		n, segs := 1+g.rng.IntN(50), g.segments(1)
		a.Do(0, isa.Fill, 0, 0, []uint32{isa.Segs(segs...), uint32(n), isa.Float(2)}, g.vectors(segs, n)...)
	},
	isa.Map: func(g *instructions, a *isa.Assembler) {
		fn := g.rng.IntN(int(isa.Fns))
		n, segs := 1+g.rng.IntN(50), g.segments(1+isa.FnTable[fn].Arity)
		a.Do(0, isa.Map, uint8(fn), g.flags(isa.Acc), []uint32{isa.Segs(segs...), uint32(n), isa.Float(2), isa.Float(2)}, g.vectors(segs, n)...)
	},
	isa.Random: func(g *instructions, a *isa.Assembler) {
		fn := g.rng.IntN(int(isa.RandomFns))
		n, segs := 1+g.rng.IntN(50), g.segments(isa.RandomTable[fn].Words-1)
		items := g.vectors(segs, n)
		for i := range items {
			items[i] = append(items[i], uint32(i))
		}
		a.Do(0, isa.Random, uint8(fn), g.flags(isa.Acc), []uint32{isa.Segs(segs...), uint32(n), isa.Float(0.5), isa.Float(0.7), 1, 2, 3, g.rng.Uint32N(100)}, items...)
	},
	isa.Sum: func(g *instructions, a *isa.Assembler) {
		n, segs := 1+g.rng.IntN(90), g.segments(3)
		each, apart := 1+g.rng.IntN(5), n+g.rng.IntN(3)
		items := g.vectors(segs[1:2], n)
		runs := g.rng.IntN(1 + min(3, len(items)))
		for i := range runs {
			items[i][0] = g.memory(segs[1], each*apart)
		}
		fn := []isa.Fn{isa.Copy, isa.Tanh, isa.Logistic, isa.Relu, isa.TanhB, isa.LogisticB, isa.ReluB}[g.rng.IntN(7)]
		a.Do(0, isa.Sum, uint8(fn), g.flags(isa.Acc), []uint32{isa.Segs(segs...), uint32(n), isa.Float(2), g.memory(segs[0], n), uint32(runs | each<<16), uint32(apart), g.memory(segs[2], n)}, items...)
	},
	isa.Strided: strided,
	isa.Chain:   func(g *instructions, a *isa.Assembler) { g.chain().do(a, 0) },
	isa.Product: func(g *instructions, a *isa.Assembler) {
		m := g.rng.IntN(len(g.plan.Matrices))
		rows, cols, segs := g.plan.Matrices[m].Rows, g.plan.Matrices[m].Cols, g.segments(3)
		items, flags := make([][]uint32, 1+g.rng.IntN(6)), g.flags(isa.Acc, isa.Bias)
		fn := []isa.Fn{isa.Copy, isa.Tanh, isa.Logistic, isa.Relu}[g.rng.IntN(4)]
		for i := range items {
			items[i] = []uint32{g.memory(segs[0], rows), g.memory(segs[1], cols)}
		}
		g.onMatrixWith(a, isa.Product, fn, flags, []uint32{isa.Segs(segs...), uint32(m), isa.Float(2), g.memory(segs[2], rows), isa.Float(1)}, items...)
	},
	isa.ProductT: func(g *instructions, a *isa.Assembler) {
		m := g.rng.IntN(len(g.plan.Matrices))
		rows, cols, segs := g.plan.Matrices[m].Rows, g.plan.Matrices[m].Cols, g.segments(2)
		items := make([][]uint32, 1+g.rng.IntN(6))
		for i := range items {
			items[i] = []uint32{g.memory(segs[0], 3*cols), g.memory(segs[1], rows)}
		}
		g.onMatrix(a, isa.ProductT, g.flags(isa.Acc), []uint32{isa.Segs(segs...), uint32(m), isa.Float(2), uint32(cols)}, items...)
	},
	isa.Outer: func(g *instructions, a *isa.Assembler) {
		m := g.rng.IntN(len(g.plan.Matrices))
		rows, cols, segs := g.plan.Matrices[m].Rows, g.plan.Matrices[m].Cols, g.segments(3)
		items := make([][]uint32, 1+g.rng.IntN(6))
		for i := range items {
			items[i] = []uint32{g.memory(segs[1], rows), g.memory(segs[2], cols)}
		}
		g.onMatrix(a, isa.Outer, g.flags(isa.Acc), []uint32{isa.Segs(segs...), uint32(m), isa.Float(2), g.memory(segs[0], rows*cols)}, items...)
	},
	isa.Gemm: func(g *instructions, a *isa.Assembler) {
		m, n, k := 1+g.rng.IntN(6), 1+g.rng.IntN(6), 1+g.rng.IntN(6)
		segs := g.segments(4)
		items := make([][]uint32, 1+g.rng.IntN(3))
		for i := range items {
			items[i] = []uint32{g.memory(segs[0], 2*m*n), g.memory(segs[1], 2*m*k), g.memory(segs[2], 2*k*n)}
		}
		w := func(x int) uint32 { return uint32(x) }
		a.Do(0, isa.Gemm, 0, g.flags(isa.Acc, isa.Bias), []uint32{isa.Segs(segs...), w(m), w(n), w(k), 1, w(m), w(k), 1, 2, w(2 * k), isa.Float(2), g.memory(segs[3], m)}, items...)
	},
	isa.Row: func(g *instructions, a *isa.Assembler) {
		fn := g.rng.IntN(int(isa.RowFns))
		info := isa.RowTable[fn]
		n, stride, m := 1+g.rng.IntN(40), 1+g.rng.IntN(3), 1+g.rng.IntN(4)
		if isa.RowFn(fn) == isa.Invert {
			n, stride = m*m, 1
		}
		lines := 1 + g.rng.IntN(stride)
		if g.rng.IntN(2) == 0 {
			lines = stride * (1 + g.rng.IntN(4))
		}
		if isa.RowFn(fn) == isa.Invert {
			lines = 1
		}
		words := info.Words
		if info.Label {
			words--
		}
		segs := g.segments(words)
		each := info.Label && info.Parts == 0 && isa.RowFn(fn) != isa.Invert && g.rng.IntN(2) == 0 // line has its label
		items := make([][]uint32, 1+g.rng.IntN(3))
		for i := range items {
			for w, s := range segs {
				size := lines
				if (info.Rows|info.Parts)>>w&1 != 0 {
					size = n * stride * ((lines + stride - 1) / stride)
				}
				items[i] = append(items[i], g.memory(s, size))
			}
			if isa.RowFn(fn) == isa.Invert {
				items[i] = append(items[i], uint32(m-1))
			} else if each {
				items[i] = append(items[i], uint32(len(a.Inputs)))
				for range lines {
					a.Inputs = append(a.Inputs, g.rng.Uint32N(uint32(n)))
				}
			} else if info.Label {
				items[i] = append(items[i], g.rng.Uint32N(uint32(n)))
			}
		}
		if each {
			segs = append(segs, isa.SegInput)
		}
		a.Do(0, isa.Row, uint8(fn), g.flags(isa.Acc), []uint32{isa.Segs(segs...), uint32(n), uint32(stride), isa.Float(1), uint32(lines)}, items...)
	},
	isa.Norm: func(g *instructions, a *isa.Assembler) {
		segs := g.segments(2)
		items := make([][]uint32, 1+g.rng.IntN(4))
		for i := range items {
			n := 1 + g.rng.IntN(70)
			items[i] = []uint32{g.memory(segs[1], n), uint32(n)}
		}
		a.Do(0, isa.Norm, 0, g.flags(isa.Acc), []uint32{isa.Segs(segs...), g.memory(segs[0], 2)}, items...)
	},
	isa.Clip: clip,
	isa.Update: func(g *instructions, a *isa.Assembler) {
		clip(g, a) // it decides whether updates are committed
		segs := g.segments(3)
		fn := g.rng.IntN(int(isa.Rules))
		rule := &isa.RuleTable[fn]
		items := make([][]uint32, 1+g.rng.IntN(4))
		for i := range items {
			n := 1 + g.rng.IntN(40)
			items[i] = []uint32{g.memory(segs[0], n), g.memory(segs[1], n), uint32(n)}
			for range rule.States {
				items[i] = append(items[i], g.memory(segs[2], n))
			}
			if rule.Normalises {
				items[i] = append(items[i], 1+g.rng.Uint32N(uint32(n)))
			}
		}
		half := isa.Float(0.5)
		a.Do(0, isa.Update, uint8(fn), g.flags(isa.NoGrad), []uint32{isa.Segs(segs...), half, half, half, half}, items...)
	},
}

func clip(g *instructions, a *isa.Assembler) {
	segs, n := g.segments(3), 1+g.rng.IntN(8)
	a.Do(0, isa.Clip, 0, g.flags(isa.Last|isa.Loss), []uint32{isa.Segs(segs...), g.memory(segs[1], 2*n), uint32(n), isa.Float(5), g.memory(segs[0], 4), g.memory(segs[2], 1)})
}

func strided(g *instructions, a *isa.Assembler) {
	fn := g.rng.IntN(int(isa.Fns))
	kept, reduced := g.rng.IntN(4), g.rng.IntN(3)
	slots := 1 + isa.FnTable[fn].Arity
	segs := g.segments(slots)
	var axes []uint32
	for range kept + reduced {
		axes = append(axes, 1+g.rng.Uint32N(4))
	}
	strides, size := []uint32{}, 1
	for _, s := range axes[:kept] { // the result: dense, then maybe spread
		strides = append(strides, uint32(size))
		size *= int(s)
	}
	for range reduced {
		strides = append(strides, 0)
	}
	length := []int{size}
	for range slots - 1 {
		last := uint32(0)
		for k := range kept + reduced {
			s := g.rng.Uint32N(5)
			strides = append(strides, s)
			last += s * (axes[k] - 1)
		}
		length = append(length, int(last)+1)
	}
	items := make([][]uint32, 1+g.rng.IntN(3))
	for i := range items {
		for slot, s := range segs {
			items[i] = append(items[i], g.memory(s, length[slot]))
		}
	}
	head := append([]uint32{isa.Segs(segs...), uint32(kept | reduced<<8), isa.Float(2), isa.Float(2)}, axes...)
	a.Do(0, isa.Strided, uint8(fn), g.flags(isa.Acc), append(head, strides...), items...)
}

// touched says for each element of each segment whether it is read and written.
type touched struct {
	reads, writes [isa.Segments][memoryWords]bool
}

func footprintOf(t *testing.T, s *isa.Script, p *plan.Plan) *touched {
	t.Helper()
	var set touched
	var f verify.Footprint
	for in, err := range s.Instructions(0) {
		if err != nil {
			t.Fatal(err)
		}
		ranges, err := f.Of(in, p, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range ranges {
			r := &ranges[i]
			for k := range r.Count() {
				at, rest := r.Offset, k
				for _, a := range r.Axes[:r.Rank] {
					at += rest % a.Size * a.Stride
					rest /= a.Size
				}
				set.reads[r.Segment][at] = set.reads[r.Segment][at] || r.Read
				set.writes[r.Segment][at] = set.writes[r.Segment][at] || r.Write
			}
		}
	}
	return &set
}

// firstOf is the text of the first instruction.
func firstOf(s *isa.Script) string {
	for in := range s.Instructions(0) {
		return in.String()
	}
	return "halt"
}

// The kernel touches exactly what the footprint says: what is not read may hold the
// sentinel without changing a bit of the results, all that is written is, nothing else is.
func TestFootprintIsWhatTheKernelTouches(t *testing.T) {
	e := newExecutor(t, 1)
	rng := rand.New(rand.NewPCG(5, 6))
	for op, make := range sizes {
		for range script.Fewer(150) {
			g := newInstructions(t, rng)
			a := isa.NewAssembler(1)
			make(g, a)
			s := a.Script()
			set := footprintOf(t, s, g.plan)
			if err := e.SetPlan(g.plan); err != nil {
				t.Fatal(err)
			}
			var before [isa.Segments][]float32
			plain := runOn(t, e, s, rng.Uint64(), nil, &before)
			poisoned := runOn(t, e, s, 0, set, &before)
			if t.Failed() {
				return
			}
			compare(t, op, set, &before, plain, poisoned)
			if t.Failed() {
				t.Fatal(firstOf(s))
			}
		}
	}
}

// runOn fills the memory (from before, if there is some, with the sentinel in all that
// set does not read), runs the script and returns the memory.
func runOn(t *testing.T, e *cpu.Executor, s *isa.Script, seed uint64, set *touched, before *[isa.Segments][]float32) (after [isa.Segments][]float32) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	for seg := range isa.SegInput {
		mem := e.Shared(seg)[:memoryWords]
		if set == nil {
			for i := range mem {
				mem[i] = 0.1 + 0.8*rng.Float32()
			}
			before[seg] = append([]float32(nil), mem...)
		} else {
			copy(mem, before[seg])
			for i := range mem {
				if !set.reads[seg][i] {
					mem[i] = math.Float32frombits(isa.Sentinel)
				}
			}
		}
	}
	if err := e.Launch(s, 1); err != nil {
		t.Fatal(err)
	}
	for seg := range isa.SegInput {
		after[seg] = append([]float32(nil), e.Shared(seg)[:memoryWords]...)
	}
	return after
}

func compare(t *testing.T, op isa.Opcode, set *touched, before *[isa.Segments][]float32, plain, poisoned [isa.Segments][]float32) {
	t.Helper()
	bits := math.Float32bits
	for seg := range isa.SegInput {
		for i := range plain[seg] {
			a, b := bits(plain[seg][i]), bits(poisoned[seg][i])
			switch {
			case set.writes[seg][i] && b == isa.Sentinel:
				t.Errorf("%s did not write %s+%d, which its footprint says", op, seg, i)
			case set.writes[seg][i] && a != b:
				t.Errorf("%s reads more than its footprint says: %s+%d is %g, but %g where the rest is undefined", op, seg, i, plain[seg][i], poisoned[seg][i])
			case !set.writes[seg][i] && a != bits(before[seg][i]):
				t.Errorf("%s wrote %s+%d, which its footprint does not say", op, seg, i)
			}
			if t.Failed() {
				return
			}
		}
	}
}

// The norm of millions of elements is as exact as that of few: what is small beside the sum so far is not lost.
func TestTheNormOfMillions(t *testing.T) {
	const n = 1<<23 + 3
	e := newExecutor(t, 1)
	p, err := plan.Sliced(nil, 1)
	if err == nil {
		err = e.SetPlan(p)
	}
	if err != nil {
		t.Fatal(err)
	}
	values := make([]float32, n)
	for i := range values {
		values[i] = 0.1
	}
	for s, n := range map[isa.Segment]uint64{isa.SegGrad: n, isa.SegAct: 4} {
		if err := e.Grow(s, n); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Write(isa.SegGrad, 0, values); err != nil {
		t.Fatal(err)
	}
	a := isa.NewAssembler(1)
	a.Do(0, isa.Norm, 0, 0, []uint32{isa.Segs(isa.SegAct, isa.SegGrad), 0}, []uint32{0, n})
	if err := e.Launch(a.Script(), 1); err != nil {
		t.Fatal(err)
	}
	have := make([]float32, 1)
	if err := e.Read(isa.SegAct, 0, have); err != nil {
		t.Fatal(err)
	}
	want := n * float64(values[0]) * float64(values[0])
	if math.Abs(float64(have[0])/want-1) > 2e-6 {
		t.Errorf("the norm's square is %v, want %v", have[0], want)
	}
}

// Of a norm whose square is beyond a float's range the norm is told and clipped by, unless it is beyond that itself.
func TestANormWhoseSquareOverflows(t *testing.T) {
	repeat := func(x float32, n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = x
		}
		return v
	}
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		dense, rows []float32 // what the two processors' norms are of; the second adds that of the rows to its own
		finite      bool
	}{
		{[]float32{3, -4}, []float32{12}, true},
		{[]float32{1e20, -1e20}, []float32{1}, true},
		{[]float32{1}, []float32{1e20, -1e20}, true},
		{repeat(1e19, 3000), repeat(-1e19, 7), true}, // no square overflows, nor the rows' sum
		{[]float32{1.5e19}, []float32{1.5e19}, true}, // nor does any sum but that of both
		{repeat(2e38, 2), []float32{1e-30}, true},
		{repeat(3e38, 2), []float32{1}, false}, // the norm is 4.2e38
		{[]float32{1, inf}, []float32{1}, false},
		{[]float32{1}, []float32{-inf, 1e20}, false},
		{[]float32{1e20, float32(math.NaN())}, []float32{1}, false},
	} {
		e := newExecutor(t, 1)
		p, err := plan.Sliced(nil, 1)
		if err == nil {
			err = e.SetPlan(p)
		}
		if err != nil {
			t.Fatal(err)
		}
		for s, values := range map[isa.Segment][]float32{isa.SegGrad: c.dense, isa.SegTGrad: c.rows} {
			if err := e.Write(s, 0, values); err != nil {
				t.Fatal(err)
			}
		}
		a := isa.NewAssembler(1)
		half := uint32(len(c.dense) / 2)
		a.Do(0, isa.Norm, 0, 0, []uint32{isa.Segs(isa.SegAct, isa.SegGrad), 0}, []uint32{0, half})
		a.Do(0, isa.Norm, 0, isa.Sync, []uint32{isa.Segs(isa.SegAct, isa.SegGrad), 2}, []uint32{half, uint32(len(c.dense)) - half})
		a.Do(0, isa.Norm, 0, isa.Sync|isa.Acc, []uint32{isa.Segs(isa.SegAct, isa.SegTGrad), 2}, []uint32{0, uint32(len(c.rows))})
		a.Do(0, isa.Clip, 0, isa.Sync|isa.Last, []uint32{isa.Segs(isa.SegResult, isa.SegAct), 0, 2, isa.Float(5), 0, 0})
		if err := e.Launch(a.Script(), 1); err != nil {
			t.Fatal(err)
		}
		square := 0.0
		for _, x := range append(append([]float32{}, c.dense...), c.rows...) {
			square += float64(x) * float64(x)
		}
		want := math.Sqrt(square)
		have := make([]float32, 4) // norm, scale, finite, clipped
		if err := e.Read(isa.SegResult, 0, have); err != nil {
			t.Fatal(err)
		}
		if (have[2] == 1) != c.finite {
			t.Errorf("the norm %g of %d and %d values: %v", want, len(c.dense), len(c.rows), have)
		}
		if c.finite && (math.Abs(float64(have[0])/want-1) > 1e-6 || math.Abs(float64(have[1])*want/5-1) > 1e-6 || have[3] != 1) {
			t.Errorf("the norm is %g, want %g: %v", have[0], want, have)
		}
	}
}

// A power takes as many steps as its exponent has bits.
func TestAPowerOfManyFactors(t *testing.T) {
	e := newExecutor(t, 1)
	p, err := plan.Sliced(nil, 1)
	if err == nil {
		err = e.SetPlan(p)
	}
	if err != nil {
		t.Fatal(err)
	}
	values := []float32{1, -1, 0.5, 2, 0, 1 + 1.0/(1<<23), -3, 1.25}
	n := uint32(len(values))
	if err := e.Write(isa.SegAct, 0, values); err != nil {
		t.Fatal(err)
	}
	for _, order := range []uint32{0, 1, 2, 3, 4, 5, 9, 30, 1<<24 + 2, 4e9, math.MaxUint32} {
		a := isa.NewAssembler(1)
		q := isa.Float(float32(order))
		a.Do(0, isa.Map, uint8(isa.Moment), 0, []uint32{isa.Segs(isa.SegAct, isa.SegAct), n, isa.Float(1), q}, []uint32{n, 0})
		a.Do(0, isa.Map, uint8(isa.MomentB), 0, []uint32{isa.Segs(isa.SegAct, isa.SegAct, isa.SegAct), n, isa.Float(1), q}, []uint32{2 * n, 3 * n, 0})
		if err := e.Write(isa.SegAct, uint64(3*n), []float32{1, 1, 1, 1, 1, 1, 1, 1}); err != nil {
			t.Fatal(err)
		}
		if err := e.Launch(a.Script(), 1); err != nil {
			t.Fatal(err)
		}
		have := make([]float32, 2*n)
		if err := e.Read(isa.SegAct, uint64(n), have); err != nil {
			t.Fatal(err)
		}
		r := float64(float32(order))
		for i, x := range values {
			slope := 0.0
			if order > 0 {
				slope = r * math.Pow(float64(x), r-1)
			}
			if order > 1<<24 {
				slope = r * math.Pow(float64(x), r) / float64(x) // a float has no odd exponents there
			}
			for k, want := range []float64{math.Pow(float64(x), r), slope} {
				got := have[uint32(k)*n+uint32(i)]
				if order > 1<<24 && k == 1 && (x < 0 || x == 0) {
					continue
				}
				close := math.Abs(float64(got)-want) <= 1e-5*math.Abs(want) || order > 1<<24 && math.Abs(float64(got)/want-1) < 0.01
				if !close && float32(want) != got && math.Abs(want) > 1e-37 {
					t.Errorf("%g^%d, derivative %d: %g, want %g", x, order, k, got, want)
				}
			}
		}
	}
}
