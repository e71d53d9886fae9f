package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The picture in the manual shows the plan that is made today: go generate ./bench/plan writes it anew.
func TestTheRecordedPlanIsTodays(t *testing.T) {
	p, err := chosen()
	require.NoError(t, err)
	var now bytes.Buffer
	require.NoError(t, write(&now, p))
	recorded, err := os.ReadFile("../results/plan.csv")
	require.NoError(t, err)
	require.Equal(t, string(recorded), now.String())
	require.Zero(t, p.Outside())
}
