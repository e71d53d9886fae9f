package plan

import (
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// onH200 is an H200, and the interpreter's registers as NVRTC 13 has them for sm_90.
func onH200() Device {
	return Device{Name: "H200", Processors: 132, Warps: 8, RegistersPer: 255, SetAside: 76, SharedPerBlock: 200 << 10, Copies: 1}
}

func matrices(sizes ...[2]int) (m []Matrix) {
	at := 0
	for i, s := range sizes {
		m = append(m, Matrix{Param: uint32(i), Rows: s[0], Cols: s[1], Offset: uint32(at)})
		at += s[0] * s[1]
	}
	return m
}

// treeLSTM and biLSTM are models of the applications, of hidden size h.
func treeLSTM(h int) []Matrix {
	in, both, self := [2]int{h, h}, [2]int{h, 2 * h}, [2]int{h, h}
	return matrices([2]int{5, h}, in, in, in, both, both, both, self, self)
}

func biLSTM(h int) []Matrix {
	gates := [2]int{4 * h, h}
	return matrices(gates, gates, gates, gates, [2]int{h, 2 * h}, [2]int{9, h})
}

// coveredByBlocks checks that each element of a gradient is formed exactly once.
func coveredByBlocks(t *testing.T, p *Plan, m int) {
	t.Helper()
	x, area := p.Matrices[m], 0
	formed := make([]bool, x.Rows*x.Cols)
	first, blocks := p.AllGradientBlocks()
	for _, b := range blocks[first[m*p.Processors]:first[(m+1)*p.Processors]] {
		area += b.Rows * b.Columns
		for c := b.Column; c < b.Column+b.Columns; c++ {
			for r := b.Row; r < b.Row+b.Rows; r++ {
				formed[c*x.Rows+r] = true
			}
		}
	}
	require.Equal(t, len(formed), area)
	require.False(t, slices.Contains(formed, false))
}

// covered checks that each row of each matrix is held exactly once, and each column of those transposed
// from memory; it counts registers and shared memory anew.
func covered(t *testing.T, p *Plan, all int) {
	t.Helper()
	require.Len(t, p.Matrices, all)
	arrays, held, shared := map[int]int{}, map[[2]int]bool{}, make([]int, p.Processors)
	for m, x := range p.Matrices {
		row, w := 0, p.Where[m]
		coveredByColumns(t, p, m)
		coveredByBlocks(t, p, m)
		for _, part := range p.Of(m) {
			require.Equal(t, row, part.Row)
			row += part.Rows
			if w.Kind != Registers {
				require.LessOrEqual(t, part.Rows, w.Rows)
				require.Equal(t, -1, part.Slot)
			}
			if w.Kind == Shared {
				require.GreaterOrEqual(t, w.At, shared[part.Processor], "two partitions in one place")
				shared[part.Processor] = w.At + w.Rows*x.Cols
			}
			if w.Kind != Registers {
				continue
			}
			require.LessOrEqual(t, part.Rows, p.RowsPerWarp*p.Warps)
			require.False(t, held[[2]int{part.Processor, part.Slot}], "two partitions in one array")
			held[[2]int{part.Processor, part.Slot}] = true
			arrays[part.Slot] = max(arrays[part.Slot], p.RowsPerWarp*((x.Cols+31)/32))
			if w.Columns == 0 {
				require.LessOrEqual(t, Staging(p.RowsPerWarp, x.Cols), p.Staging)
			}
		}
		require.Equal(t, x.Rows, row)
	}
	sum := 0
	for _, n := range arrays {
		sum += n
	}
	require.Equal(t, sum, p.Used)
	for _, floats := range shared {
		require.LessOrEqual(t, 4*floats, p.Resident)
	}
	require.LessOrEqual(t, p.Used+p.Staging+p.SetAside, p.Registers)
}

// coveredByColumns checks that each column of a matrix that is transposed from memory has one processor.
func coveredByColumns(t *testing.T, p *Plan, m int) {
	t.Helper()
	if p.Where[m].Columns == 0 {
		require.Equal(t, Registers, p.Where[m].Kind)
		return
	}
	require.Positive(t, p.Depth)
	seen := make([]int, p.Matrices[m].Cols)
	for q := range p.Processors {
		lo, hi := p.ColumnsOf(m, q)
		for c := lo; c < hi; c++ {
			seen[c]++
		}
	}
	for c, n := range seen {
		require.Equal(t, 1, n, "column %d", c)
	}
}

func TestEveryRowHasOneHolder(t *testing.T) {
	kinds := map[Kind]int{}
	r := rand.New(rand.NewSource(1))
	for range 300 {
		var sizes [][2]int
		for range 1 + r.Intn(12) {
			sizes = append(sizes, [2]int{1 + r.Intn(1500), 1 + r.Intn(1500)})
		}
		d := onH200()
		d.Processors = 1 + r.Intn(d.Processors)
		p, err := RoundRobin(matrices(sizes...), d, 1+r.Intn(8))
		require.NoError(t, err)
		covered(t, p, len(sizes))
		for _, w := range p.Where {
			kinds[w.Kind]++
		}
	}
	require.Len(t, kinds, 3, "all places are used")
}

// The paper's partition size: threads * rpw * ceil(rowmax / 32).
func TestStagingIsThePapersPartition(t *testing.T) {
	require.Equal(t, 256*6*32, 256*Staging(6, 1024))
	require.Equal(t, 3*2, Staging(3, 33))
}

// Paper, §III-A1: rows of 1024 and 192 registers a thread for a partition allow up to six rows a warp. A
// partition of the gradient is beside it here.
func TestAllRowsPerWarpThatFitAreCandidates(t *testing.T) {
	d := Device{Processors: 120, Warps: 8, RegistersPer: 192 + 192 + 63, SetAside: 63, SharedPerBlock: 1 << 20, Copies: 1}
	list, err := Candidates(matrices([2]int{960, 1024}), d)
	require.NoError(t, err)
	var rpw []int
	for _, p := range list {
		rpw = append(rpw, p.RowsPerWarp)
		covered(t, p, 1)
	}
	require.Equal(t, []int{1, 2, 3, 4, 5, 6}, rpw)
}

func TestCandidatesWithoutADifferenceAreLeftOut(t *testing.T) {
	list, err := Candidates(matrices([2]int{64, 64}, [2]int{64, 128}), onH200())
	require.NoError(t, err)
	var rpw []int
	for _, p := range list {
		rpw = append(rpw, p.RowsPerWarp)
	}
	require.Equal(t, []int{1, 2, 3, 4, 8}, rpw) // 8, 4, 3, 2 and 1 partitions of each matrix
}

func TestOneRowAWarpIsTheCandidateWhereNotEverythingFits(t *testing.T) {
	list, err := Candidates(matrices([2]int{4096, 2048}, [2]int{64, 64}), onH200())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, 1, list[0].Outside())
	require.Equal(t, 4096, list[0].Matrices[0].Rows)
	require.Equal(t, Streamed, list[0].Where[0].Kind)
	covered(t, list[0], 2)
}

// cheapest is the plan taken.
func cheapest(t *testing.T, m []Matrix) *Plan {
	t.Helper()
	all, err := Candidates(m, onH200())
	require.NoError(t, err)
	return Cheapest(all)[0]
}

// Measured on an H200 with a Tree-LSTM of 256: four rows a warp are better than two, two than one.
func TestTheCostModelOrdersPlansAsMeasured(t *testing.T) {
	var cost [5]float64
	for rpw := 1; rpw <= 4; rpw++ {
		p, err := RoundRobin(treeLSTM(256), onH200(), rpw)
		require.NoError(t, err)
		cost[rpw] = p.Cost()
	}
	require.Less(t, cost[4], cost[2])
	require.Less(t, cost[2], cost[1])
	require.Equal(t, 4, cheapest(t, treeLSTM(256)).RowsPerWarp)
}

func TestTheCostModelChooses(t *testing.T) {
	many := make([][2]int, 200)
	for i := range many {
		many[i] = [2]int{64, 64}
	}
	for _, c := range []struct {
		name string
		m    []Matrix
		rpw  int
	}{
		{"Tree-LSTM 128", treeLSTM(128), 4},
		{"Tree-LSTM 512: more do not fit", treeLSTM(512), 2},
		{"BiLSTM 256", biLSTM(256), 4},
		{"RvNN 512", matrices([2]int{512, 512}, [2]int{512, 512}, [2]int{512, 512}, [2]int{512, 512}, [2]int{5, 512}), 4},
		{"more small matrices than SMs", matrices(many...), 8},
		{"no matrix", nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := cheapest(t, c.m)
			require.Equal(t, c.rpw, p.RowsPerWarp)
			require.Equal(t, p.Name(), cheapest(t, c.m).Name(), "the same every time")
		})
	}
}

func TestSettings(t *testing.T) {
	s, err := ParseSettings("")
	require.NoError(t, err)
	require.Equal(t, Settings{}, s)
	s, err = ParseSettings("processors=64,rpw=3")
	require.NoError(t, err)
	require.Equal(t, Settings{RowsPerWarp: 3, Processors: 64}, s)
	s, err = ParseSettings("registers=64,shared=80,partials=1")
	require.NoError(t, err)
	require.Equal(t, Settings{Registers: 64, Shared: 80, Partials: 1}, s)
	for text, says := range map[string]string{"slices=1": `"slices" is unknown`, "rows=2": `"rows" is unknown`, "tensor=1": `"tensor" is unknown`, "columns=128": `"columns" is unknown`, "profile=2": `profile is "2": give a number up to 1`, "rpw": `rpw is ""`, "rpw=x": `rpw is "x"`, "rpw=-1": "up to 32",
		"rpw=33": "up to 32", "ctas=1": `"ctas" is unknown`, "library=0": `"library" is unknown`, "rpw=2 copies=1": `rpw is "2 copies`} {
		_, err := ParseSettings(text)
		require.ErrorContains(t, err, says)
	}
}

// A model of 4 x 1024 x 1024, just what the registers hold, has neither columns nor shared memory of its own; with
// a matrix more it has, and the report says what that costs.
func TestOnlyAModelThatDoesNotFitReadsMemory(t *testing.T) {
	square := [2]int{1024, 1024}
	p, err := RoundRobin(matrices(square, square, square, square), onH200(), 1)
	require.NoError(t, err)
	covered(t, p, 4)
	require.Zero(t, p.Depth+p.Resident)
	require.NotContains(t, p.Report(), "reads")
	p, err = RoundRobin(matrices(square, square, square, square, square, [2]int{4096, 4096}), onH200(), 1)
	require.NoError(t, err)
	covered(t, p, 6)
	for _, want := range []string{
		"4096 x 4096  in 128 partitions in memory, streamed; a product reads 65536 KB for up to 32 vectors; a transposed one, by 32 columns a processor, reads 65536 KB for as many\n",
		"1024 x 1024  in 128 partitions in registers; a transposed one, by 8 columns a processor, reads 4096 KB for as many\n",
		"1024 x 1024  in 128 partitions in shared memory; a transposed one, by 8 columns a processor, reads 4096 KB for as many\n",
	} {
		require.Contains(t, p.Report(), want)
	}
}
