package schedule

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Two slots of a chain with views have an element in common only if this is said: tried for all places of a few sizes.
func TestViewsThatMeetAreFound(t *testing.T) {
	const view, count = 3, 4
	elements := func(at, step uint32) map[uint32]bool {
		all := map[uint32]bool{}
		for e := range uint32(count * view) {
			all[at+e/view*step+e%view] = true
		}
		return all
	}
	apart := 0
	for _, x := range []uint32{inOneRun, 0, 7, 12} {
		for _, y := range []uint32{inOneRun, 0, 7, 12} {
			for at := range uint32(60) {
				c := chain{view: view, n: view * count}
				c.at[0], c.step[0], c.at[1], c.step[1] = 30, x, at, y
				mine, met := elements(30, c.stepOf(0)), false
				for e := range elements(at, c.stepOf(1)) {
					met = met || mine[e]
				}
				if !c.viewsMeet(0, 1) {
					require.False(t, met, "steps %d and %d, %d", x, y, at)
					apart++
				} else if x == y {
					require.True(t, met, "step %d, %d", x, at)
				}
			}
		}
	}
	require.Greater(t, apart, 300)
}
