package script_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/persist/script"
)

// A script is the same whether one goroutine writes all streams or several do.
func TestStreamsByGoroutines(t *testing.T) {
	var alone, several script.Builder
	for seed := range uint64(script.Few(300)) {
		for _, r := range []*script.Request{script.Requested(t, seed), script.Sentences(t, seed, 2+int(seed%7))} {
			if r == nil {
				continue
			}
			script.ByGoroutines(&several, 2+int(seed%4))
			require.Equal(t, wordsOf(t, &alone, r), wordsOf(t, &several, r), "seed %d", seed)
		}
	}
}
