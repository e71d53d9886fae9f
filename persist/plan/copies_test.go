package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Every copy of a matrix has each row once, no processor has a matrix twice or more registers than
// there are.
func TestCopiesShareAMatrix(t *testing.T) {
	d := Device{Processors: 132, Warps: 8, RegistersPer: 255, SetAside: 60, SharedPerBlock: 200 << 10}
	matrices := []Matrix{{Name: "A", Rows: 512, Cols: 512}, {Name: "B", Rows: 500, Cols: 70}, {Name: "C", Rows: 5, Cols: 20}, {Name: "D", Rows: 1100, Cols: 512}}
	p, err := RoundRobin(matrices, d, 4)
	require.NoError(t, err)
	require.Zero(t, p.Outside())
	most := 0
	for _, m := range p.Matrices {
		most = max(most, m.Copies)
	}
	require.Greater(t, most, 2)
	d.Copies = 1
	alone, err := RoundRobin(matrices, d, 4)
	require.NoError(t, err)
	require.Equal(t, alone.Used, p.Used, "copies take only registers that are there")
	for m, x := range p.Matrices {
		rows, has := map[[2]int]int{}, map[int]int{}
		for _, part := range p.Of(m) {
			has[part.Processor]++
			require.Equal(t, 1, has[part.Processor], "%s on processor %d", x.Name, part.Processor)
			for r := part.Row; r < part.Row+part.Rows; r++ {
				rows[[2]int{part.Copy, r}]++
			}
		}
		for c := range x.Copies {
			for r := range x.Rows {
				require.Equal(t, 1, rows[[2]int{c, r}], "%s, row %d of copy %d", x.Name, r, c)
			}
		}
		coveredByBlocks(t, p, m)
	}
}
