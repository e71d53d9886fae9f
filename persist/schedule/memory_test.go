package schedule

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
		a := arena{Top: c.top}
		a.Take(c.n)
		require.Equal(t, c.full, a.Full, "%d floats at %d", c.n, c.top)
	}
}
