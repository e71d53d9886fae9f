package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A processor has as few blocks of a gradient as rows and columns allow: two at a time.
func TestGradientsAreDividedIntoFewBlocks(t *testing.T) {
	for _, x := range []struct{ rows, cols, blocks int }{
		{10000, 512, 12}, // of 125 processors: 1,256 in all, and 16 in a strip of 80 rows
		{2048, 512, 2},   // 256 in all
		{512, 2048, 2},
		{512, 512, 1},
	} {
		m, w := Matrix{Rows: x.rows, Cols: x.cols}, Residence{}
		w.divideGradient(m, 132)
		p := &Plan{Processors: 132, Matrices: []Matrix{m}, Where: []Residence{w}, First: []int{0, 132}}
		for k := range 132 {
			p.Partitions = append(p.Partitions, Partition{Processor: k, Row: k * w.Unit, Rows: w.Unit})
		}
		most := 0
		for _, part := range p.Partitions {
			b := p.OuterBlock(&part)
			most = max(most, blocksOf(b.Rows, b.Columns))
		}
		require.Equal(t, x.blocks, most, "%d x %d", x.rows, x.cols)
	}
}
