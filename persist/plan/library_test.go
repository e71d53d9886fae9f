package plan

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/log"
)

// The library is found once, when it is first wanted, and the report says what came of it.
func TestALibraryIsFoundWhenItIsFirstWanted(t *testing.T) {
	for _, c := range []struct {
		name     string
		settings Settings
		err      error
		found    int
		ready    bool
		before   string
		after    string
	}{
		{"found", Settings{}, nil, 1, true, "256 items in a batch or more: by cuBLAS, which is looked for", "256 items in a batch or more: by cuBLAS 12.9"},
		{"from one item on", Settings{Library: 1}, nil, 1, true, "1 items in a batch or more: by cuBLAS, which", "by cuBLAS 12.9"},
		{"missing", Settings{}, errors.New("no usable cuBLAS\nlibcublas.so.12: no such file"), 1, false, "which is looked for", "by the kernel, as those of fewer: no usable cuBLAS\n"},
		{"not wanted", Settings{Library: NoLibrary}, nil, 0, false, "VPPS_PLAN says library=0", "by the kernel, as those of fewer: VPPS_PLAN says library=0\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := 0
			var lines []string
			log.Set(log.Info, func(_ log.Level, line string) { lines = append(lines, line) })
			defer log.Set(log.Off, nil)
			p := &Plan{Library: NewLibrary(c.settings, func() (string, error) {
				found++
				return "cuBLAS 12.9", c.err
			})}
			require.Contains(t, p.Report(), c.before)
			for range 3 {
				require.Equal(t, c.ready, p.Library.Ready())
			}
			require.Equal(t, c.found, found)
			require.Contains(t, p.Report(), c.after)
			p.Library.Refuse(errors.New("it failed"))
			require.False(t, p.Library.Ready())
			require.Contains(t, p.Report(), "by the kernel, as those of fewer: it failed\n")
			require.Equal(t, "fallback: the kernel forms all gradients, without cuBLAS: it failed", lines[len(lines)-1])
		})
	}
	require.False(t, (*Library)(nil).Ready())
}
