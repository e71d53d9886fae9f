package finish

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Parameters of more than 2^32 elements in all have a norm and an update that cover each element once.
func TestPartsOfMoreThanTwoSegments(t *testing.T) {
	const size = 1<<31 - 64
	spans := []span{{n: size}, {n: size}, {n: size, lookup: true}, {n: 77, lookup: true}}
	var x Closing
	const share = (3*size+77)/4 + 1
	x.divide(spans, 4, share)
	covered := map[*span]uint64{}
	for _, p := range x.Parts {
		p.each(func(s *span, shift, n uint32) {
			require.EqualValues(t, covered[s], shift)
			covered[s] += uint64(n)
		})
	}
	for i := range spans {
		require.EqualValues(t, spans[i].n, covered[&spans[i]])
	}
}
