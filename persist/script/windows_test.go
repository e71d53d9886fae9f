package script

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The runs of an axis have each element of each window that is inside x once, and are as few as windows or elements.
func TestRunsOfWindowsAreWhatIsInside(t *testing.T) {
	for _, a := range []windowAxis{
		{windows: 1, size: 128, stride: 1, n: 128}, {windows: 28, size: 5, stride: 1, before: 2, n: 28}, {windows: 3, size: 7, stride: 2, before: 3, n: 6},
		{windows: 14, size: 2, stride: 2, n: 28}, {windows: 4, size: 3, stride: 5, before: 1, n: 17}, {windows: 2, size: 9, stride: 1, before: 4, n: 2},
		{windows: 1, size: 1, stride: 1, n: 1}, {windows: 2, size: 5, stride: 4, before: 1, n: 8},
	} {
		want, have, runs := map[[2]uint32]int{}, map[[2]uint32]int{}, 0
		for o := range a.windows {
			for k := range a.size {
				if at := int(o*a.stride+k) - int(a.before); at >= 0 && at < int(a.n) {
					want[[2]uint32{o, k}] = 1
				}
			}
		}
		a.runs(func(window, element, count uint32, overWindows bool) {
			runs++
			for i := range count {
				if overWindows {
					have[[2]uint32{window + i, element}]++
				} else {
					have[[2]uint32{window, element + i}]++
				}
			}
		})
		require.Equal(t, want, have, "%+v", a)
		require.LessOrEqual(t, runs, int(min(a.windows, a.size)), "%+v", a)
	}
}
