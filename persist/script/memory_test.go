package script

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Offsets of segment act have 32 bits: what goes beyond them is noted, not wrapped around.
func TestAnArenaDoesNotWrapAround(t *testing.T) {
	for _, c := range []struct {
		top  uint32
		n    uint64
		full bool
	}{
		{0, highest, false},
		{0, highest + 1, true},
		{highest, 0, false},
		{highest, 4, true},
		{math.MaxUint32 &^ 63, 8, true}, // where a graph begins that comes after a full one
		{64, 1 << 32, true},
		{64, 1<<33 + 4, true},
	} {
		a := arena{top: c.top, limit: highest}
		a.take(c.n)
		require.Equal(t, c.full, a.full, "%d floats at %d", c.n, c.top)
	}
}

// Parameters of more than 2^32 elements in all have a norm and an update that cover each element once.
func TestPartsOfMoreThanTwoSegments(t *testing.T) {
	const size = 1<<31 - 64
	spans := []span{{n: size}, {n: size}, {n: size, lookup: true}, {n: 77, lookup: true}}
	var x closing
	const share = (3*size+77)/4 + 1
	x.divide(spans, 4, share)
	covered := map[*span]uint64{}
	for _, p := range x.parts {
		p.each(func(s *span, shift, n uint32) {
			require.EqualValues(t, covered[s], shift)
			covered[s] += uint64(n)
		})
	}
	for i := range spans {
		require.EqualValues(t, spans[i].n, covered[&spans[i]])
	}
}
