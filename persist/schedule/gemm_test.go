package schedule

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A product has as many pieces as there are processors at most. Their sizes are those that take the least time: of tiles, or
// of blocks of 2 x 2 tiles, which take less than twice as long as one tile.
func TestPiecesOfAProduct(t *testing.T) {
	for _, x := range []struct {
		m, n          uint32
		blocks        bool
		rows, columns uint32
	}{
		{2048, 64, true, 32, 32},
		{10000, 64, false, 160, 32},
		{10000, 64, true, 96, 64},
		{10000, 480, false, 416, 96},
		{10000, 480, true, 320, 128},
		{1024, 1920, false, 32, 480},
		{1024, 1920, true, 64, 256},
		{4, 3000, true, 4, 32},
		{30, 30, true, 30, 30},
	} {
		rows, columns := PieceOfProduct(x.m, x.n, 132, x.blocks)
		require.Equal(t, []uint32{x.rows, x.columns}, []uint32{rows, columns}, "%+v", x)
		require.LessOrEqual(t, (x.m+rows-1)/rows*((x.n+columns-1)/columns), uint32(132), "%+v", x)
	}
}

// Few results of long sums are partial results of some of the terms each, so that all processors have work. Many are not:
// they would have to be added up.
func TestPartialResultsOfAProduct(t *testing.T) {
	for _, x := range []struct {
		m, n, k uint32
		blocks  bool
		sums    uint32
	}{
		{512, 16, 2048, true, 8},
		{512, 64, 10000, false, 4},
		{512, 64, 10000, true, 16},
		{512, 480, 10000, false, 1},
		{512, 480, 10000, true, 2},
		{512, 1920, 10000, true, 1},
		{512, 64, 100, true, 1},
	} {
		require.Equal(t, x.sums, SumsOfProduct(x.m, x.n, x.k, 132, 128, x.blocks), "%+v", x)
	}
	for k := uint32(128); k < 20000; k += 77 {
		for sums := uint32(1); sums <= min(k/128, 132); sums++ {
			terms := TermsOfSum(k, sums)
			require.True(t, terms*sums >= k && terms*(sums-1) < k, "%d terms of %d in %d sums", terms, k, sums)
		}
	}
}
