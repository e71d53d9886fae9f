package bridge

import (
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge/ops"
)

// sums is logsumexp of two numbers, again and again.
func sums(n int) *Graph {
	g := &Graph{Nodes: ops.Nodes{ArgStart: []uint32{0}, AttrStart: []uint32{0}}, Dims: []Dim{dim(1, 1)}}
	for v := range uint32(n) {
		g.Op, g.Dim = append(g.Op, ops.ScalarInput), append(g.Dim, 0)
		if v >= 2 {
			g.Op[v] = ops.LogSumExp
			g.Args = append(g.Args, v-2, v-1)
		}
		g.ArgStart, g.AttrStart = append(g.ArgStart, uint32(len(g.Args))), append(g.AttrStart, 0)
	}
	return g
}

func TestExpandingAgainTakesNoMemory(t *testing.T) {
	e, g := &Expanded{}, sums(100)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		e.Reset()
		e.Extend(g)
	}))
	require.Equal(t, 2+2*98, e.Len())
	require.Len(t, e.Dims, 2)
}

func TestDimsOfAnEarlierGraphAreNotTaken(t *testing.T) {
	e, g := &Expanded{}, sums(3)
	e.Extend(g)
	e.Reset()
	g.Dims[0] = dim(2, 1)
	e.Extend(g)
	require.Equal(t, dim(2, 1), *e.DimOf(e.At[1]))
	require.Equal(t, dim(2, 1, 2), *e.DimOf(e.At[2] - 1))
}
