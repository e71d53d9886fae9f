package persist

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPanicsErrorSaysWhere(t *testing.T) {
	stack := "goroutine 1 [running]:\nruntime/debug.Stack()\n\t/go/src/runtime/debug/stack.go:26\n" +
		"panic({0x1, 0x2})\n\t/go/src/runtime/panic.go:787\nlibvpps/persist.(*Graph).evaluate(0x0)\n\tlibvpps/persist/graph.go:99 +0x1b\n"
	err := Panicked("index out of range", []byte(stack))
	require.EqualError(t, err, "internal error: index out of range at libvpps/persist/graph.go:99 +0x1b")
	require.False(t, strings.Contains(err.Error(), "\n"))
}
