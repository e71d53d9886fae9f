package script

// Goroutines that work on one script. They are called a few times a script, for large pieces of work each: to wake up
// one may take 75 µs, where the core of a virtual machine has to be waked up.

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// mostGoroutines is how many work on a script at most.
const mostGoroutines = 4

// crew is how many goroutines work on a script.
type crew int

// newCrew is one of as many as there are processors for.
func newCrew() crew { return crew(min(mostGoroutines, runtime.GOMAXPROCS(0))) }

// share calls work for 0 to n-1, side by side. It goes on when all have returned; a panic of one is its own.
func (c crew) share(n int, work func(k int)) {
	var next atomic.Int32
	var failed atomic.Pointer[string]
	each := func() {
		defer func() {
			if x := recover(); x != nil {
				text := fmt.Sprint(x)
				failed.Store(&text)
			}
		}()
		for k := int(next.Add(1)); k <= n; k = int(next.Add(1)) {
			work(k - 1)
		}
	}
	var group sync.WaitGroup
	for range min(n, int(c)) - 1 {
		group.Go(each)
	}
	each()
	group.Wait()
	if x := failed.Load(); x != nil {
		panic(*x)
	}
}
