package script_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"libvpps/persist/cpu"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
)

// productCase is a matrix, so many pairs of vectors and where all lies.
type productCase struct {
	rows, cols, count, processors int
	w, x, dy                      []float32
}

func newProductCase(rng *rand.Rand, rows, cols, count, processors int) *productCase {
	random := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(rng.NormFloat64())
		}
		return v
	}
	return &productCase{rows, cols, count, processors, random(rows * cols), random(count * cols), random(count * rows)}
}

// run executes what do assembles and reads n floats of segment act: behind x and dy, which begin at 1 and at second.
func (c *productCase) run(t *testing.T, e *cpu.Executor, n int, do func(a *isa.Assembler, second, result uint32)) []float32 {
	t.Helper()
	second := 1 + len(c.x)
	result := second + len(c.dy)
	if err := e.Grow(isa.SegAct, uint64(result+n)); err != nil {
		t.Fatal(err)
	}
	have := make([]float32, n)
	for at, v := range map[int][]float32{1: c.x, second: c.dy, result: have} {
		if err := e.Write(isa.SegAct, uint64(at), v); err != nil {
			t.Fatal(err)
		}
	}
	a := isa.NewAssembler(c.processors)
	do(a, uint32(second), uint32(result))
	if err := e.Launch(a.Script(), 1); err != nil {
		t.Fatal(err)
	}
	if err := e.Read(isa.SegAct, uint64(result), have); err != nil {
		t.Fatal(err)
	}
	return have
}

// pairs are items: where the k-th vectors of two lists lie that begin at a and b.
func (c *productCase) pairs(a uint32, na int, b uint32, nb int) [][]uint32 {
	items := make([][]uint32, c.count)
	for k := range items {
		items[k] = []uint32{a + uint32(k*na), b + uint32(k*nb)}
	}
	return items
}

// nearSum compares with a sum of so many products of numbers of about 1.
func (c *productCase) nearSum(t *testing.T, name string, have float32, want float64, terms int) {
	t.Helper()
	if math.Abs(float64(have)-want) > 1e-6*float64(terms+5) {
		t.Fatalf("%dx%d, %d pairs, %d processors: %s is %v, want %v", c.rows, c.cols, c.count, c.processors, name, have, want)
	}
}

var actSegments = isa.Segs(isa.SegAct, isa.SegAct, isa.SegAct)

// product: y = W x + b/2 for each x, the same bits whether each is an instruction's only one or all are one's.
func (c *productCase) product(t *testing.T, e *cpu.Executor) {
	flat := func(apart bool) []float32 {
		return c.run(t, e, c.count*c.rows, func(a *isa.Assembler, second, result uint32) {
			items := c.pairs(result, c.rows, 1, c.cols)
			head := []uint32{actSegments, 0, isa.Float(1), second, isa.Float(0.5)} // the first dy serves as bias
			for p := range c.processors {
				if !apart {
					a.Do(p, isa.Product, 0, isa.Bias, head, items...)
					continue
				}
				for _, item := range items {
					a.Do(p, isa.Product, 0, isa.Bias, head, item)
				}
			}
		})
	}
	all, apart := flat(false), flat(true)
	for k := range c.count {
		for r := range c.rows {
			sum := 0.5 * float64(c.dy[r])
			for j := range c.cols {
				sum += float64(c.w[j*c.rows+r]) * float64(c.x[k*c.cols+j])
			}
			c.nearSum(t, "an element of W x + b/2", all[k*c.rows+r], sum, c.cols)
		}
	}
	sameBits(t, apart, all)
}

// transposed: each processor's rows' share of W^T dy.
func (c *productCase) transposed(t *testing.T, e *cpu.Executor) {
	have := c.run(t, e, c.processors*c.count*c.cols, func(a *isa.Assembler, second, result uint32) {
		for p := range c.processors {
			a.Do(p, isa.ProductT, 0, 0, []uint32{actSegments, 0, isa.Float(1), uint32(c.count * c.cols)},
				c.pairs(result, c.cols, second, c.rows)...)
		}
	})
	for p, rank := 0, 0; p < c.processors; p++ {
		lo, hi := plan.Slice(c.rows, p, c.processors)
		if lo == hi { // no holder
			continue
		}
		for i, v := range have[rank*c.count*c.cols:][:c.count*c.cols] {
			sum := 0.0
			for r := lo; r < hi; r++ {
				sum += float64(c.w[i%c.cols*c.rows+r]) * float64(c.dy[i/c.cols*c.rows+r])
			}
			c.nearSum(t, "an element of W^T dy", v, sum, hi-lo)
		}
		rank++
	}
}

// outer: the sum of dy x^T, once written and once added.
func (c *productCase) outer(t *testing.T, e *cpu.Executor) {
	have := c.run(t, e, c.rows*c.cols, func(a *isa.Assembler, second, result uint32) {
		for p := range c.processors {
			for _, flags := range []uint32{0, isa.Acc} {
				a.Do(p, isa.Outer, 0, flags, []uint32{actSegments, 0, isa.Float(0.5), result}, c.pairs(second, c.rows, 1, c.cols)...)
			}
		}
	})
	for i, v := range have {
		sum := 0.0
		for k := range c.count {
			sum += float64(c.dy[k*c.rows+i%c.rows]) * float64(c.x[k*c.cols+i/c.rows])
		}
		c.nearSum(t, "an element of the sum of dy x^T", v, sum, c.count)
	}
}

// Products with matrices of sizes that fill the CPU's blocks, panels and pieces, and that do not, with one vector and with
// as many as make packing worth it, are what they are in float64.
func TestProductsOfAllSizes(t *testing.T) {
	sizes := [][2]int{{1, 1}, {5, 128}, {16, 16}, {17, 3}, {31, 40}, {33, 65}, {50, 70}, {130, 20}, {300, 260}, {600, 40}, {40, 600}, {1100, 70}}
	for _, processors := range []int{1, 2} {
		e := newExecutor(t, processors)
		for _, size := range sizes {
			for _, count := range []int{1, 2, 7, 26, 70, 131} {
				rng := rand.New(rand.NewPCG(uint64(size[0]), uint64(count)))
				c := newProductCase(rng, size[0], size[1], count, processors)
				p, err := plan.Sliced([]plan.Matrix{{Name: "W", Rows: c.rows, Cols: c.cols}}, processors)
				if err != nil {
					t.Fatal(err)
				}
				if err := e.SetPlan(p); err != nil {
					t.Fatal(err)
				}
				if err := e.Write(isa.SegParam, 0, slices.Clone(c.w)); err != nil {
					t.Fatal(err)
				}
				c.product(t, e)
				c.transposed(t, e)
				c.outer(t, e)
			}
		}
	}
}
