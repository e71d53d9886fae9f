package persist

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// rowsOfRanks are notices of ranks that each have some rows of a table.
func rowsOfRanks(ranks, rows, table int) []notice {
	random := rand.New(rand.NewPCG(1, 2))
	all := make([]notice, ranks)
	for rank := range all {
		mine := make([]uint32, rows)
		for k := range mine {
			mine[k] = uint32(random.IntN(table))
		}
		slices.Sort(mine)
		all[rank] = notice{call: stepping, gradients: []pendingRows{{}, {rows: slices.Compact(mine)}}}
	}
	return all
}

func table(rows uint32) *parameter {
	p := &parameter{}
	p.Lookup, p.Size, p.Row = true, 4*rows, 4
	return p
}

func TestTheUnionOfRows(t *testing.T) {
	for _, c := range []struct{ ranks, rows, table int }{{1, 1, 1}, {3, 20, 64}, {3, 200, 129}, {5, 0, 10}} {
		all := rowsOfRanks(c.ranks, c.rows, c.table)
		var want []uint32
		for _, n := range all {
			want = append(want, n.gradients[1].rows...)
		}
		slices.Sort(want)
		have := unionOf(table(uint32(c.table)), all, 1)
		require.False(t, have.whole)
		require.Equal(t, slices.Compact(want), have.rows)
		require.Empty(t, unionOf(table(uint32(c.table)), all, 0).rows)
		all = append(all, notice{call: joining}, notice{call: stepping, gradients: []pendingRows{{}, {whole: true}}})
		require.Equal(t, pendingRows{whole: true}, unionOf(table(uint32(c.table)), all, 1))
	}
}

func BenchmarkUnionOfRows(b *testing.B) {
	for _, ranks := range []int{8, 128, 1024} {
		for _, rows := range []int{32, 300, 2000} {
			all, p := rowsOfRanks(ranks, rows, 18280), table(18280)
			b.Run(fmt.Sprintf("ranks%d/rows%d", ranks, rows), func(b *testing.B) {
				for b.Loop() {
					unionOf(p, all, 1)
				}
			})
		}
	}
}
