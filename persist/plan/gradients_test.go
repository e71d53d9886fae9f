package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A gradient has as few blocks as its rows and columns allow, and the first block after those of the matrix before is the
// next processor's.
func TestGradientsAreDealtInFewBlocks(t *testing.T) {
	p := &Plan{Processors: 132, Matrices: matrices([2]int{10000, 512}, [2]int{200, 200}, [2]int{10, 256}, [2]int{512, 1024})}
	p.dealGradients()
	require.Equal(t, []Grid{
		{Rows: 64, Columns: 64, Down: 157, Count: 1256},
		{Rows: 32, Columns: 128, Down: 7, Count: 14, First: 1256 % 132},
		{Rows: 32, Columns: 128, Down: 1, Count: 2, First: 1270 % 132},
		{Rows: 64, Columns: 64, Down: 8, Count: 128, First: 1272 % 132},
	}, p.Grids)
	least, most := 1400, 0
	for q := range p.Processors {
		blocks := 0
		for m := range p.Matrices {
			blocks += len(p.GradientBlocks(nil, m, q))
		}
		least, most = min(least, blocks), max(most, blocks)
	}
	require.Equal(t, []int{10, 11}, []int{least, most}, "of 1,400 blocks")
	for m := range p.Matrices {
		coveredByBlocks(t, p, m)
	}
}
