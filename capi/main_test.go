package main

import (
	"strings"
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

	stack := "goroutine 1 [running]:\nruntime/debug.Stack()\n\t/go/src/runtime/debug/stack.go:26\n" +
		"panic({0x1, 0x2})\n\t/go/src/runtime/panic.go:787\nlibvpps/persist.(*Graph).evaluate(0x0)\n\tlibvpps/persist/graph.go:99 +0x1b\n"
	err := panicked("index out of range", []byte(stack))
	require.EqualError(t, err, "internal error: index out of range at libvpps/persist/graph.go:99 +0x1b")
	require.False(t, strings.Contains(err.Error(), "\n"))
}

func TestADescriptionBeginsWithTheDevice(t *testing.T) {
	require.Equal(t, "cpu", deviceOf("cpu: 2 threads, 2 processors, x86-64-v3"))
	require.Equal(t, "cuda:0", deviceOf("cuda:0: NVIDIA H200, 132 processors"))
}
