package kernel

import (
	"os"
	"runtime"
	"sync"
)

// goProcessors is how many goroutines the runtime runs at a time by its own choice.
var goProcessors = sync.OnceValue(func() int { return runtime.GOMAXPROCS(0) })

// makeRoom lets so many threads be in C without taking the processors of Go's runtime away from goroutines. A thread in
// C keeps one until the runtime takes it back, which can be milliseconds later: for so long the last of a machine's threads,
// or whoever writes the next script, would not begin. A program that sets GOMAXPROCS has chosen by itself.
func makeRoom(threads int) {
	if os.Getenv("GOMAXPROCS") != "" {
		return
	}
	if n := goProcessors() + threads; runtime.GOMAXPROCS(0) < n {
		runtime.GOMAXPROCS(n)
	}
}
