package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A panic anywhere below an export becomes VPPS_ERR_INTERNAL, with what happened and where.
func TestAPanicBecomesAnInternalError(t *testing.T) {
	export := func() (status int) {
		s := failed(nil)
		func() {
			defer guard(&s)
			var list []int
			_ = list[len(list)]
		}()
		return int(s)
	}
	const internal = 10 // VPPS_ERR_INTERNAL
	require.Equal(t, internal, export())
}

func TestADescriptionBeginsWithTheDevice(t *testing.T) {
	require.Equal(t, "cpu", deviceOf("cpu: 2 threads, 2 processors, x86-64-v3"))
	require.Equal(t, "cuda:0", deviceOf("cuda:0: NVIDIA H200, 132 processors"))
}
