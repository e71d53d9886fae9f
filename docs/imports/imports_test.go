package imports

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePictureOfPackagesIsUpToDate(t *testing.T) {
	g, err := Read("../..")
	require.NoError(t, err)
	have, err := os.ReadFile("../packages.svg")
	require.NoError(t, err)
	require.Equal(t, string(g.Draw()), string(have), "run go generate ./docs/imports")
}

// What a package must not import, by itself or by way of others.
func TestArrowsLeadOneWay(t *testing.T) {
	g, err := Read("../..")
	require.NoError(t, err)
	require.Empty(t, g["persist/isa"], "the instruction set imports nothing of ours")
	require.Equal(t, []string{"persist/isa", "persist/plan"}, g["persist/verify"], "a verifier that knew the scheduler would believe it")
	for from, never := range map[string][]string{
		"bridge":         {"persist/isa", "persist/plan"},
		"persist/script": {"persist/verify", "jit", "gpu", "persist/executor"},
		"jit":            {"persist/script", "persist/cuda", "bridge"},
		"persist/cpu":    {"persist/script", "gpu", "bridge"},
	} {
		require.Contains(t, g, from)
		for _, to := range never {
			require.Contains(t, g, to)
			require.False(t, slices.Contains(g[from], to) || g.reaches(from, to), "%s imports %s", from, to)
		}
	}
}
