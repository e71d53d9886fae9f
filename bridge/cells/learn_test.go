package cells

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLearningWaitsUntilItPays(t *testing.T) {
	d := Dictionary{samples: []*sample{{keys: make([]int32, 60)}, {keys: make([]int32, 40)}}}
	for range freeLessons - 1 {
		d.owe(false)
		require.Zero(t, d.due) // the first graphs may differ
	}
	d.owe(false)
	require.EqualValues(t, 100, d.due)
	d.owe(true) // gained nothing: twice as many
	require.EqualValues(t, 200, d.due)
	d.owe(true)
	require.EqualValues(t, 400, d.due)
	d.owe(false)
	require.EqualValues(t, 100, d.due)
}
