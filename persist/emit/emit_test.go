package emit_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/persist/emit"
	"libvpps/persist/finish"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/schedule"
	"libvpps/persist/verify"
)

// vector is the length of all vectors, and how far they are apart.
const vector = 4

// written is where an item that writes a vector was put.
type written struct{ level, cluster, sub int32 }

// made is a schedule with what its script has to do. The first vectors are there before it.
type made struct {
	schedule.Schedule
	tensors  []uint32
	by       map[uint32]written // by address of the vector
	items    []string           // as a script has them
	products []string           // those of the matrix, as each processor has them
}

func at(k int) uint32 { return uint32(vector * (k + 1)) }

// next is where a new vector is.
func (s *made) next() uint32 {
	to := s.tensors[len(s.tensors)-2] + vector
	s.tensors = append(s.tensors, uint32(isa.SegAct), to, vector)
	return to
}

// put puts an item into a cluster that forms a new vector of another one.
func (s *made) put(x written, fn isa.Fn, from uint32) (to uint32) {
	to = s.next()
	s.Map1(x.cluster, x.sub, fn, 0, 1, vector, schedule.At(isa.SegAct, to), schedule.At(isa.SegAct, from))
	s.by[to] = x
	s.items = append(s.items, fmt.Sprint(isa.FnTable[fn].Name, to, from))
	return to
}

// multiply puts a product with the only matrix into a level: a new vector of another one.
func (s *made) multiply(level int32, scale float32, from uint32) (to uint32) {
	to = s.next()
	sig := s.Sigs.Short(6, 4, schedule.FirstWord(isa.Product, uint8(isa.Copy), 0), uint32(isa.SegAct)|uint32(isa.SegAct)<<4, 0, isa.Float(scale), 0, isa.Float(1))
	s.AddProduct(level, sig, to, from)
	s.products = append(s.products, fmt.Sprint(isa.Float(scale), to, from))
	return to
}

// begin is a schedule without items for so many processors, each of which has some rows of a matrix. It has so many vectors.
func begin(t *testing.T, processors, vectors int) *made {
	t.Helper()
	s := &made{by: map[uint32]written{}, tensors: []uint32{uint32(isa.SegParam) | isa.LiveIn<<8, 0, vector * vector}}
	p, err := plan.Sliced([]plan.Matrix{{Rows: vector, Cols: vector}}, processors)
	require.NoError(t, err)
	p.CPU, p.RowsPerWarp = true, 0 // operations stay single
	s.Plan = p
	s.Clear()
	for k := range vectors {
		s.tensors = append(s.tensors, uint32(isa.SegAct)|isa.LiveIn<<8, at(k), vector)
	}
	return s
}

// random is a schedule of levels with products, and with clusters of items in several orders, which read what is there before.
func random(t *testing.T, seed uint64) *made {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	s := begin(t, 1+rng.IntN(vector), 3)
	known := []uint32{at(0), at(1), at(2)}
	for level := range int32(1 + rng.IntN(5)) {
		var formed []uint32
		for range rng.IntN(8) {
			formed = append(formed, s.multiply(level, float32(rng.IntN(2)), known[rng.IntN(len(known))]))
		}
		for range rng.IntN(6) {
			x, there := written{level: level, cluster: s.NewCluster(level)}, slices.Clone(known)
			for x.sub = range int32(1 + rng.IntN(3)) {
				var now []uint32
				for range 1 + rng.IntN(2+38*rng.IntN(2)) {
					now = append(now, s.put(x, []isa.Fn{isa.Copy, isa.Tanh}[rng.IntN(2)], there[rng.IntN(len(there))]))
				}
				there = append(there, now...)
			}
			formed = append(formed, there[len(known):]...)
		}
		known = append(known, formed...)
	}
	return s
}

// emitted is the script of a schedule.
func emitted(t *testing.T, e *emit.Emitter, s *made) *isa.Script {
	t.Helper()
	var h plan.Holders
	h.Update(s.Plan)
	s.OuterLevel = s.MaxLevel
	for k := range s.Ends {
		s.Ends[k] = s.MaxLevel
	}
	words := e.Emit(emit.Task{Schedule: &s.Schedule, Holders: &h, Closing: &finish.Closing{}, Tensors: s.tensors})
	x := &isa.Script{Words: slices.Clone(words)}
	require.NoError(t, verify.Verify(x, s.Plan))
	require.NotContains(t, isa.Disassemble(x), "damaged")
	return x
}

// productsOf is the products of a processor.
func productsOf(t *testing.T, s *isa.Script, p int) (list []string, listed bool) {
	t.Helper()
	for in, err := range s.Instructions(p) {
		require.NoError(t, err)
		for i := range in.Items {
			if in.Op == isa.Product {
				list = append(list, fmt.Sprint(in.Field("scale"), in.Item(i)[0], in.Item(i)[1]))
				listed = listed || in.Flags&isa.Listed != 0
			}
		}
	}
	return list, listed
}

// A script has each item once, and each product once with each holder. A processor has whole clusters, level by level, and a
// cluster's items in their order. What may be one instruction is one, and threads meet between orders only.
func TestScriptsHaveTheItemsOfTheirSchedules(t *testing.T) {
	var e emit.Emitter
	for seed := range uint64(200) {
		s := random(t, seed)
		x := emitted(t, &e, s)
		var items []string
		processor := map[int32]int{}
		for p := range x.Processors() {
			products, _ := productsOf(t, x, p)
			require.ElementsMatch(t, s.products, products, "seed %d", seed)
			last, signatures := written{level: -1}, map[string]bool{}
			for in := range x.Instructions(p) {
				if in.Op != isa.Map {
					continue
				}
				first := s.by[in.Item(0)[0]]
				same := first.level == last.level && first.sub == last.sub
				require.True(t, same || first.level > last.level || first.level == last.level && first.sub > last.sub, "seed %d", seed)
				if last.level >= 0 {
					require.Equal(t, !same, in.Flags&isa.Sync != 0, "seed %d", seed)
				}
				this := fmt.Sprint(in.FnName(), first.level, first.sub)
				require.False(t, signatures[this], "seed %d: a second instruction for %s", seed, this)
				last, signatures[this] = first, true
				for i := range in.Items {
					w := in.Item(i)
					items = append(items, fmt.Sprint(in.FnName(), w[0], w[1]))
					c := s.by[w[0]].cluster
					if q, ok := processor[c]; ok {
						require.Equal(t, q, p, "seed %d: cluster %d", seed, c)
					}
					processor[c] = p
				}
			}
		}
		require.ElementsMatch(t, s.items, items, "seed %d", seed)
	}
}

// An emitter's memory leaves no trace: a schedule has the same script again, whatever came between.
func TestScriptsDoNotDependOnThoseBefore(t *testing.T) {
	var e emit.Emitter
	for seed := range uint64(50) {
		alone := emitted(t, new(emit.Emitter), random(t, seed))
		require.Equal(t, alone.Words, emitted(t, &e, random(t, seed)).Words, "seed %d", seed)
	}
}

// A cluster goes to the processor with the least work so far: no two differ by more than one cluster's.
func TestClustersAreSharedEvenly(t *testing.T) {
	s := begin(t, 3, 1)
	for n := range 20 {
		x := written{cluster: s.NewCluster(0)}
		for range 1 + n*7%11 {
			s.put(x, isa.Copy, at(0))
		}
	}
	x := emitted(t, new(emit.Emitter), s)
	var items []int
	for p := range x.Processors() {
		n := 0
		for in, err := range x.Instructions(p) {
			require.NoError(t, err)
			n += in.Items
		}
		items = append(items, n)
	}
	require.LessOrEqual(t, slices.Max(items)-slices.Min(items), 11, "%v", items)
}

// Many items of a product are in a list that the script has once, few with each instruction.
func TestItemsOfProductsAreListedOnce(t *testing.T) {
	for _, x := range []struct {
		items  int    // of each of two scales
		listed uint32 // words
	}{{4, 0}, {5, 20}, {600, 2400}} {
		s := begin(t, 3, 1)
		for k := range 2 * x.items {
			s.multiply(0, float32(1+k/x.items), at(0))
		}
		script := emitted(t, new(emit.Emitter), s)
		require.Equal(t, x.listed, script.Words[isa.HeadListEnd]-script.Words[isa.HeadLists])
		for p := range script.Processors() {
			products, listed := productsOf(t, script, p)
			require.Equal(t, s.products, products, "processor %d", p)
			require.Equal(t, x.listed > 0, listed)
		}
	}
}
