package plan

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Partitions that share rows cover a matrix once a copy, its gradient once altogether, and no processor has two of
// a copy.
func TestPartitionsShareRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	shared := 0
	for range 300 {
		d := Device{Processors: 1 + rng.IntN(40), Warps: 1 + rng.IntN(8), RegistersPer: 255, SetAside: 60, SharedPerBlock: 200 << 10, Copies: rng.IntN(3), Columns: 1 + rng.IntN(64)}
		var list []Matrix
		for range 1 + rng.IntN(4) {
			list = append(list, Matrix{Name: "W", Rows: 1 + rng.IntN(100), Cols: d.Columns*rng.IntN(4) + 1 + rng.IntN(2)*(d.Columns-1)})
		}
		p, err := RoundRobin(list, d, 1+rng.IntN(4))
		require.NoError(t, err)
		for m, x := range p.Matrices {
			if x.Across > 1 {
				require.Equal(t, d.Columns*x.Across, x.Cols)
				require.Zero(t, p.Depth, "nothing is read from memory")
				shared++
			}
			held, formed := make([]int, x.Rows*x.Cols), make([]int, x.Rows*x.Cols)
			has := map[[2]int]bool{}
			for _, part := range p.Of(m) {
				at := [2]int{part.Processor, part.Copy}
				require.False(t, x.Across > 1 && has[at], "two partitions of a copy on processor %d", part.Processor)
				has[at] = true
				count(held, x, Block{part.Row, part.Rows, part.Column, x.ColumnsEach()})
				count(formed, x, p.OuterBlock(&part))
			}
			for i := range held {
				require.Equal(t, max(1, x.Copies), held[i], "%d x %d, element %d", x.Rows, x.Cols, i)
				require.Equal(t, 1, formed[i], "%d x %d, gradient of element %d", x.Rows, x.Cols, i)
			}
		}
	}
	require.Greater(t, shared, 100)
}

// count adds one to every element of a block.
func count(elements []int, m Matrix, b Block) {
	for c := b.Column; c < b.Column+b.Columns; c++ {
		for r := b.Row; r < b.Row+b.Rows; r++ {
			elements[c*m.Rows+r]++
		}
	}
}

// TD-RNN's matrices of 512 x 512 in partitions of 32 x 128, which are as many as there are SMs.
func TestRowsAreSharedAsSettingsSay(t *testing.T) {
	d := onH200()
	d.Columns = 128
	p, err := RoundRobin(matrices([2]int{512, 512}, [2]int{512, 512}, [2]int{512, 512}, [2]int{5, 512}, [2]int{512, 70}), d, 4)
	require.NoError(t, err)
	require.Equal(t, []int{4, 4, 4, 4, 1}, []int{p.Matrices[0].Across, p.Matrices[1].Across, p.Matrices[2].Across, p.Matrices[3].Across, p.Matrices[4].Across})
	require.Len(t, p.Of(0), 64)
	require.Equal(t, Partition{Matrix: 0, Processor: 5, Row: 32, Rows: 32, Column: 128, Rank: 1}, p.Of(0)[5])
	require.Equal(t, 32, p.Used)
	require.Contains(t, p.Report(), "512 x 512   in 64 partitions of 128 columns in registers")
	require.Contains(t, p.Name(), "128 columns a partition")
	d.Processors = 63
	p, err = RoundRobin(matrices([2]int{512, 512}), d, 4)
	require.NoError(t, err)
	require.Equal(t, 1, p.Matrices[0].Across, "there is no processor for each")
}
