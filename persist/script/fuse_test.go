package script_test

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/schedule"
	"libvpps/persist/verify"
)

// The cells of a Tree-LSTM become chains, which leave the same bits as their operations one by one.
func TestCellsAreFused(t *testing.T) {
	fused, p := manyProcessorsScript(t, 1)
	if err := verify.Verify(fused, p); err != nil {
		t.Fatal(err)
	}
	single, chains, maps := unfused(t, fused)
	if chains == 0 || maps < 4*chains {
		t.Errorf("%d chains of %d operations: less than 4 each", chains, maps)
	}
	memory := liveMemory(fused)
	want, have := leftBy(t, single, p, memory), leftBy(t, fused, p, memory)
	requireSameBits(t, want, have)
}

func requireSameBits(t *testing.T, single, fused [isa.Segments][]float32) {
	t.Helper()
	for s := range single {
		for i := range single[s] {
			if math.Float32bits(single[s][i]) != math.Float32bits(fused[s][i]) {
				t.Fatalf("%s+%d is %g one by one, fused %g", isa.Segment(s), i, single[s][i], fused[s][i])
			}
		}
	}
}

// A plan that wants operations single has no chains, and the same results.
func TestCellsStaySingle(t *testing.T) {
	g, params, matrices := newForest(t, 24, 16)
	p := onGPU(t, params, matrices, 1)
	scripts := [2]*isa.Script{}
	for k, single := range []bool{false, true} {
		p.CPU = single
		scripts[k] = trainingScript(t, g, params, p)
		if err := verify.Verify(scripts[k], p); err != nil {
			t.Fatal(err)
		}
	}
	if _, chains, _ := unfused(t, scripts[0]); chains == 0 {
		t.Error("no chains")
	}
	if _, chains, _ := unfused(t, scripts[1]); chains > 0 {
		t.Errorf("%d chains", chains)
	}
	memory := liveMemory(scripts[0])
	requireSameBits(t, leftBy(t, scripts[1], p, memory), leftBy(t, scripts[0], p, memory))
}

// unfused is the script with maps in place of chains, how many chains there were, and how many maps.
func unfused(t *testing.T, s *isa.Script) (_ *isa.Script, chains, maps int) {
	single := rewritten(t, s, func(in *isa.Instruction) [][]uint32 {
		if in.Op != isa.Chain {
			return [][]uint32{slices.Clone(in.Words)}
		}
		chains++
		out := operations(in)
		maps += len(out)
		return out
	})
	return single, chains, maps
}

// operations are a chain's as maps.
func operations(in *isa.Instruction) (maps [][]uint32) {
	words := in.Words[4+(int(in.Fn)+3)/4:]
	for range in.Field("operations") {
		op, a := words[0], isa.NewAssembler(1)
		fn, flags := isa.Fn(op), uint32(isa.Sync)
		if op>>28 != 0 {
			flags |= isa.Acc
		}
		var segments []isa.Segment
		items := make([][]uint32, in.Items)
		for k := range 1 + isa.FnTable[fn].Arity {
			slot := int(op >> (8 + 5*k) & 31)
			segments = append(segments, in.Segment(slot))
			for i := range items {
				items[i] = append(items[i], in.Item(i)[slot])
			}
		}
		a.Do(0, isa.Map, uint8(fn), flags, []uint32{isa.Segs(segments...), in.Field("n"), words[1], words[2]}, items...)
		maps = append(maps, a.Streams[0])
		words = words[3:]
	}
	return maps
}

// Slices of one vector that overlap without being the same are not in one chain where one is written: the verifier refuses
// such a chain. Nor is its gradient all written where only their lengths add up to its own.
func TestOverlappingSlices(t *testing.T) {
	for _, from := range [][]uint32{{0, 2, 4}, {0, 2}} {
		dim := func(n uint32) bridge.Dim { return bridge.Dim{D: [7]uint32{n}, Nd: 1, Bd: 1} }
		f := &forest{}
		f.words.Dims = []bridge.Dim{dim(8), dim(4), dim(1)}
		params := []schedule.Param{{Size: 8, Row: 8, Factor: 1, Matrix: -1, Updated: true}}
		x := f.add(ops.Square, 0, nil, f.add(ops.Parameter, 0, []uint32{0}))
		slice := func(from uint32) uint32 { return f.add(ops.PickRange, 1, []uint32{from, from + 4, 0}, x) }
		y := slice(from[0])
		for _, at := range from[1:] {
			y = f.add(ops.CwiseMultiply, 1, nil, y, slice(at))
		}
		f.add(ops.SumElements, 2, nil, y)
		f.words.NodeCount = int(f.node)
		g := &bridge.Graph{}
		err := g.Append(&f.words, func(uint32) (*bridge.Dim, bool) { return &f.words.Dims[0], false })
		require.NoError(t, err)
		p, err := plan.Sliced(nil, 1)
		require.NoError(t, err)
		require.NoError(t, verify.Verify(trainingScript(t, g, params, p), p), "slices from %v on", from)
	}
}

// The gradient of scores that are picked one by one: each pick's is put where it belongs, all at a time. Those of elements that
// are picked again come after, and zeros are filled in before if nobody picks an element.
func TestPicksOfDifferentElementsAreOneInstruction(t *testing.T) {
	for _, x := range []struct {
		picks        []uint32
		fills, moves int
	}{
		{[]uint32{0, 1, 2, 3, 4, 5}, 0, 1},
		{[]uint32{0, 1, 2, 3, 5}, 1, 1},
		{[]uint32{0, 1, 2, 1, 3, 4, 5}, 1, 2},
	} {
		dim := func(n uint32) bridge.Dim { return bridge.Dim{D: [7]uint32{n}, Nd: 1, Bd: 1} }
		f := &forest{}
		f.words.Dims = []bridge.Dim{dim(6), dim(1)}
		params := []schedule.Param{{Size: 6, Row: 6, Factor: 1, Matrix: -1, Updated: true}}
		scores := f.add(ops.Square, 0, nil, f.add(ops.Parameter, 0, []uint32{0}))
		var all []uint32
		for _, index := range x.picks {
			all = append(all, f.add(ops.Square, 1, nil, f.add(ops.PickElement, 1, []uint32{0, f.input(index), 1}, scores)))
		}
		f.add(ops.Sum, 1, nil, all...)
		f.words.NodeCount = int(f.node)
		g := &bridge.Graph{}
		require.NoError(t, g.Append(&f.words, func(uint32) (*bridge.Dim, bool) { return &f.words.Dims[0], false }))
		p, err := plan.Sliced(nil, 1)
		require.NoError(t, err)
		p.CPU = true // no chains
		s := trainingScript(t, g, params, p)
		require.NoError(t, verify.Verify(s, p))
		text := isa.Disassemble(s)
		count := func(pattern string) int { return len(regexp.MustCompile(pattern).FindAllString(text, -1)) }
		require.Equal(t, x.fills, count(`fill .*n=6 `), "%v", x.picks)
		require.Equal(t, x.moves, count(`map\.copy .*n=1 p=0 q=0 \(act`), "%v\n%s", x.picks, text)
	}
}

// The gradient of what is added to each column is a sum of vectors, the columns' gradients. A row's elements lie apart.
func TestOnlyColumnsAreVectorsOfASum(t *testing.T) {
	for _, x := range []struct {
		added, to bridge.Dim
		vectors   int
	}{
		{bridge.Dim{D: [7]uint32{20}, Nd: 1, Bd: 1}, bridge.Dim{D: [7]uint32{20, 3}, Nd: 2, Bd: 1}, 3},
		{bridge.Dim{D: [7]uint32{20, 1}, Nd: 2, Bd: 1}, bridge.Dim{D: [7]uint32{20, 3}, Nd: 2, Bd: 2}, 6},
		{bridge.Dim{D: [7]uint32{1, 20}, Nd: 2, Bd: 1}, bridge.Dim{D: [7]uint32{3, 20}, Nd: 2, Bd: 1}, 0},
	} {
		f := &forest{}
		f.words.Dims = []bridge.Dim{x.added, x.to, {D: [7]uint32{1}, Nd: 1, Bd: x.to.Bd}, {D: [7]uint32{1}, Nd: 1, Bd: 1}}
		for range x.to.Size() {
			f.input(0)
		}
		params := []schedule.Param{{Size: 20, Row: 20, Factor: 1, Matrix: -1, Updated: true}}
		sum := f.add(ops.CwiseSum, 1, nil, f.add(ops.Input, 1, []uint32{0}), f.add(ops.Parameter, 0, []uint32{0}))
		f.add(ops.SumElements, 2, nil, f.add(ops.Square, 1, nil, sum))
		if x.to.Bd > 1 {
			f.add(ops.SumDimension, 3, []uint32{0, 1}, f.node-1)
		}
		f.words.NodeCount = int(f.node)
		g := &bridge.Graph{}
		require.NoError(t, g.Append(&f.words, func(uint32) (*bridge.Dim, bool) { return &f.words.Dims[0], false }))
		p, err := plan.Sliced(nil, 1)
		require.NoError(t, err)
		s := trainingScript(t, g, params, p)
		require.NoError(t, verify.Verify(s, p))
		runs := regexp.MustCompile(`sum .* n=20 .*dst=grad\+0 runs=(\d+) `).FindStringSubmatch(isa.Disassemble(s))
		if x.vectors == 0 {
			require.Nil(t, runs)
			continue
		}
		require.NotNil(t, runs)
		require.Equal(t, strconv.Itoa(x.vectors<<16|1), runs[1])
	}
}
