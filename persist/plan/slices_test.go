package plan

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// recursive is a model of so many square matrices, and of a classifier.
func recursive(n, squares int) []Matrix {
	sizes := [][2]int{{5, n}}
	for range squares {
		sizes = append(sizes, [2]int{n, n})
	}
	return matrices(sizes...)
}

func tdRNN() []Matrix { return recursive(512, 3) }
func rvNN() []Matrix  { return recursive(512, 4) }

// sliceable is an H200 whose matrices may be held any number of times.
func sliceable(ctas int) Device {
	d := onH200(ctas)
	d.Copies = 0
	return d
}

// alike checks that all matrices in slices lie as Slices says, each row once a copy, and that nothing else is wrong.
func alike(t *testing.T, p *Plan) {
	t.Helper()
	s := p.Slices
	require.NotNil(t, s)
	require.Equal(t, s.Rows, s.Group*p.Warps*p.RowsPerWarp)
	require.LessOrEqual(t, s.Group*s.Copies, p.Processors)
	for q := range p.Processors {
		if q < s.Group*s.Copies {
			require.Equal(t, q, s.Copy[q]*s.Group+s.Rank[q])
		} else {
			require.Equal(t, []int{-1, -1}, []int{s.Rank[q], s.Copy[q]})
		}
	}
	used, count, slot, left := make(map[[2]int]bool), 0, 0, 0
	arrays := map[int]int{}
	for m, x := range p.Matrices {
		if x.Rows == s.Rows && !s.In[m] {
			require.False(t, slices.Contains(s.In[:m], true), "none but the first is left out")
			left++
		}
		require.False(t, s.In[m] && x.Rows != s.Rows)
		if s.In[m] {
			count++
			require.Equal(t, s.Copies, x.Copies)
		}
		rows, has := map[[2]int]int{}, map[int]bool{}
		for _, part := range p.Of(m) {
			require.Equal(t, m, part.Matrix)
			require.False(t, used[[2]int{part.Processor, part.Slot}], "two partitions in one array")
			used[[2]int{part.Processor, part.Slot}] = true
			require.False(t, has[part.Processor], "a matrix twice on a processor")
			has[part.Processor] = true
			arrays[part.Slot] = max(arrays[part.Slot], p.RowsPerWarp*iterations(x.Cols))
			require.LessOrEqual(t, part.Rows, p.Warps*p.RowsPerWarp)
			for r := part.Row; r < part.Row+part.Rows; r++ {
				rows[[2]int{part.Copy, r}]++
			}
			if s.In[m] {
				lo, hi := Slice(s.Rows, s.Rank[part.Processor], s.Group)
				require.Equal(t, []int{lo, hi - lo, s.Copy[part.Processor], slot}, []int{part.Row, part.Rows, part.Copy, part.Slot})
			}
		}
		if s.In[m] {
			slot++
		}
		require.Len(t, rows, x.Rows*x.Copies)
		for at, n := range rows {
			require.Equal(t, 1, n, "%v", at)
			require.Less(t, at[0], x.Copies)
		}
	}
	require.Positive(t, count)
	require.LessOrEqual(t, left, min(1, count/2))
	sum := 0
	for _, n := range arrays {
		sum += n
	}
	require.Equal(t, sum, p.Used)
	require.LessOrEqual(t, p.Used+p.Staging+p.SetAside, p.Registers)
	require.Zero(t, p.Depth+p.Resident+p.Outside())
}

func TestMatricesOfAsManyRowsLieAlike(t *testing.T) {
	few, once := sliceable(1), sliceable(1)
	few.Processors, once.Copies = 100, 1
	for _, c := range []struct {
		name                string
		matrices            []Matrix
		device              Device
		rpw                 int
		group, copies, used int
	}{
		{"TD-RNN", tdRNN(), sliceable(1), 1, 64, 2, 48},
		{"TD-RNN", tdRNN(), sliceable(1), 2, 32, 4, 96},
		{"RvNN", rvNN(), sliceable(1), 1, 64, 2, 64},
		{"RvNN", rvNN(), sliceable(1), 2, 32, 4, 128},
		{"Tree-LSTM 256", treeLSTM(256), sliceable(1), 1, 32, 4, 88},
		{"two processors an SM", recursive(256, 3), sliceable(2), 1, 32, 8, 24},
		{"fewer processors", tdRNN(), few, 1, 64, 1, 48},
		{"copies are bounded", tdRNN(), once, 2, 32, 1, 96},
		{"two processors to a group", recursive(64, 2), sliceable(1), 4, 2, 66, 24},
		{"the most elements, not the most matrices", matrices([2]int{32, 32}, [2]int{32, 64}, [2]int{32, 32}, [2]int{128, 128}), sliceable(1), 1, 16, 8, 6},
	} {
		t.Run(fmt.Sprintf("%s, %d rows a warp", c.name, c.rpw), func(t *testing.T) {
			p, err := InSlices(c.matrices, c.device, c.rpw)
			require.NoError(t, err)
			alike(t, p)
			require.Equal(t, []int{c.group, c.copies, c.used}, []int{p.Slices.Group, p.Slices.Copies, p.Used})
		})
	}
}

// on is the processors that hold matrix m.
func on(p *Plan, m int) (list []int) {
	for _, x := range p.Of(m) {
		list = append(list, x.Processor)
	}
	return list
}

func TestOtherMatricesAreBesideTheGroups(t *testing.T) {
	m := append(tdRNN(), Matrix{Name: "narrow", Rows: 12, Cols: 64})
	p, err := InSlices(m, sliceable(1), 1)
	require.NoError(t, err)
	alike(t, p)
	require.Equal(t, 48, p.Used, "in arrays that are there")
	require.Equal(t, 5, p.Matrices[0].Rows)
	require.ElementsMatch(t, []int{128, 129, 130, 131}, on(p, 0), "as many copies as there are processors")
	require.Equal(t, 2, p.Matrices[4].Copies, "of two partitions each")
	require.ElementsMatch(t, []int{128, 129, 130, 131}, on(p, 4))

	few := sliceable(1)
	few.Copies = 1
	p, err = InSlices(tdRNN(), few, 2)
	require.NoError(t, err)
	require.Equal(t, []int{32}, on(p, 0), "copies are bounded")
	p, err = InSlices(recursive(512, 3), Device{Processors: 110, Warps: 8, RegistersPer: 255, SetAside: 76, SharedPerBlock: 200 << 10}, 1)
	require.NoError(t, err)
	require.Len(t, on(p, 0), besideMost, "not all of 46 processors")
}

// Where no processors are left over, others are in a further array of all; where that does not fit, there is
// one copy less of what lies in slices.
func TestWhereNoProcessorIsLeftOver(t *testing.T) {
	d := sliceable(1)
	d.Processors = 128
	p, err := InSlices(tdRNN(), d, 2)
	require.NoError(t, err)
	alike(t, p)
	require.Equal(t, 4, p.Slices.Copies)
	require.Equal(t, 3*32+32, p.Used)
	require.Equal(t, []int{0, 1, 2, 3}, on(p, 0))
	for _, x := range p.Of(0) {
		require.Equal(t, 3, x.Slot)
	}

	d.RegistersPer = 205
	p, err = InSlices(tdRNN(), d, 2)
	require.NoError(t, err)
	alike(t, p)
	require.Equal(t, []int{3, 3 * 32}, []int{p.Slices.Copies, p.Used})
	require.Equal(t, []int{96, 97, 98, 99}, on(p, 0))

	d.Processors = 32
	_, err = InSlices(tdRNN(), d, 2)
	require.EqualError(t, err, "slices of 16 rows do not fit into the registers beside the other matrices")

	// A matrix of more partitions than processors are left over is on all.
	p, err = InSlices(append(tdRNN(), Matrix{Name: "tall", Rows: 100, Cols: 32}), sliceable(1), 2)
	require.NoError(t, err)
	alike(t, p)
	require.Less(t, on(p, 4)[0], 128)
	require.Equal(t, 3*32+2, p.Used)
}

// Where all do not fit, the first of three is beside the groups.
func TestTheFirstMatrixIsLeftOut(t *testing.T) {
	p, err := InSlices(tdRNN(), sliceable(1), 4)
	require.NoError(t, err)
	alike(t, p)
	require.Equal(t, []bool{false, false, true, true}, p.Slices.In)
	require.Equal(t, []int{16, 7, 2 * 64}, []int{p.Slices.Group, p.Slices.Copies, p.Used})
	for m := range 2 {
		for _, q := range on(p, m) {
			require.GreaterOrEqual(t, q, 112)
		}
	}
	require.LessOrEqual(t, p.Staging, 16, "of a gradient that is formed in pieces")
}

func TestGradientsAreFormedInPieces(t *testing.T) {
	for _, x := range []struct{ rpw, cols, copies, pieces int }{{4, 512, 1, 4}, {4, 512, 2, 2}, {4, 512, 4, 1}, {1, 512, 1, 1}, {8, 512, 1, 8}, {4, 96, 1, 1}, {32, 32, 1, 1}} {
		require.Equal(t, x.pieces, GradientPieces(x.rpw, x.cols, x.copies), "%+v", x)
	}
}

func TestWhatCannotLieInSlices(t *testing.T) {
	small, columns, tables := sliceable(1), sliceable(1), sliceable(1)
	small.Processors, columns.Partials, tables.Processors = 31, 1, 1200
	for _, c := range []struct {
		name string
		m    []Matrix
		d    Device
		rpw  int
		says string
	}{
		{"no matrix", nil, sliceable(1), 1, "0 rows cannot be slices of 8 on 2 to 132 processors"},
		{"rows that do not divide", recursive(500, 3), sliceable(1), 1, "500 rows cannot be slices of 8"},
		{"one processor", recursive(64, 3), sliceable(1), 8, "64 rows cannot be slices of 64 on 2"},
		{"more processors than there are", tdRNN(), small, 2, "512 rows cannot be slices of 16 on 2 to 31 processors"},
		{"registers", rvNN(), sliceable(1), 4, "slices of 32 rows do not fit"},
		{"registers of two an SM", recursive(512, 5), sliceable(2), 1, "slices of 8 rows do not fit"},
		{"the table of partitions", tdRNN(), tables, 1, "slices of 8 rows do not fit"},
		{"by columns", tdRNN(), columns, 1, "slices of 8 rows do not fit"},
		{"no rows", tdRNN(), sliceable(1), 0, "0 rows per warp: at least one of each"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := InSlices(c.m, c.d, c.rpw)
			require.ErrorContains(t, err, c.says)
			require.Nil(t, p)
		})
	}
}

func TestAnySlicesAreSound(t *testing.T) {
	found, groups := 0, map[bool]int{}
	r := rand.New(rand.NewSource(1))
	for range 600 {
		rows := 8 * (1 + r.Intn(100))
		var sizes [][2]int
		for range 1 + r.Intn(6) {
			sizes = append(sizes, [2]int{rows, 1 + r.Intn(600)})
		}
		for range r.Intn(5) {
			sizes = append(sizes, [2]int{1 + r.Intn(300), 1 + r.Intn(300)})
		}
		d := sliceable(1 + r.Intn(2))
		d.Processors, d.Copies = 1+r.Intn(d.Processors), r.Intn(4)
		p, err := InSlices(matrices(sizes...), d, 1+r.Intn(4))
		if err != nil {
			continue
		}
		alike(t, p)
		found++
		for m := range p.Matrices {
			if !p.Slices.In[m] {
				groups[on(p, m)[0] < p.Slices.Group*p.Slices.Copies]++
			}
		}
	}
	require.Greater(t, found, 60)
	require.Greater(t, groups[true], 10)
	require.Greater(t, groups[false], 10)
}

func TestEveryNumberOfRowsThatFitsIsACandidate(t *testing.T) {
	d := sliceable(1)
	d.Slices = true
	list, err := Candidates(recursive(256, 3), d)
	require.NoError(t, err)
	var rpw []int
	for _, p := range list {
		if p.Slices != nil {
			rpw = append(rpw, p.RowsPerWarp)
			alike(t, p)
		}
	}
	require.Equal(t, []int{1, 2, 4, 8}, rpw)
}

func TestSlicesAreCandidatesIfAskedFor(t *testing.T) {
	for _, x := range []struct {
		name        string
		m           []Matrix
		rpw, copies int
	}{{"TD-RNN", tdRNN(), 4, 7}, {"RvNN", rvNN(), 2, 4}} {
		m, name, d := x.m, x.name, sliceable(1)
		list, err := Candidates(m, d)
		require.NoError(t, err)
		for _, p := range list {
			require.Nil(t, p.Slices, name)
		}
		d.Slices = true
		list, err = Candidates(m, d)
		require.NoError(t, err)
		require.Nil(t, list[0].Slices, name)
		list = slices.DeleteFunc(Cheapest(list), func(p *Plan) bool { return p.Slices == nil })
		require.Equal(t, []int{x.rpw, x.copies}, []int{list[0].RowsPerWarp, list[0].Slices.Copies}, "%s: as measured", name)
	}
}

func TestReportsTellSlices(t *testing.T) {
	p, err := InSlices(tdRNN(), sliceable(1), 2)
	require.NoError(t, err)
	require.Contains(t, p.Report(), "3 matrices of 512 rows lie in slices: 32 processors to a copy, 4 copies\n")
	require.Contains(t, p.Report(), "5 x 512   in 1 partitions, 4 copies, in registers, not in slices: from processor 128 on\n")
	require.Contains(t, p.Report(), "512 x 512   in 32 partitions, 4 copies, in registers\n")
	require.Equal(t, "2 rows a warp, 1 processors an SM, 96 registers a thread for weights, in slices, 4 copies", p.Name())
	whole, err := RoundRobin(tdRNN(), sliceable(1), 2)
	require.NoError(t, err)
	require.NotContains(t, whole.Report()+whole.Name(), "slices")
	require.Regexp(t, `a warp: 2 [\d.]+, in slices: 2 [\d.]+$`, Predictions([]*Plan{whole, p}))

	trial := NewTrial([]*Plan{whole, p})
	for !trial.Over() {
		us := map[bool]float64{false: 30, true: 20}[trial.Present().Slices != nil]
		trial.Add(trial.Present(), 1000, us)
	}
	require.Contains(t, trial.Report(), "2x1 30.00 2x1 in slices 20.00")
	require.Same(t, p, trial.Present())
}
