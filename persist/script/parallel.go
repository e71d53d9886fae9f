package script

// Work that goroutines share where a script is large enough. What they panic with, the caller's panics
// with.

import (
	"runtime"
	"sync"
)

const (
	parallelNodes = 1 << 12 // from here on a second goroutine is worth starting,
	parallelItems = 1 << 13 // and several
	maxWorkers    = 8
)

// workers is how many goroutines write the script.
func (b *Builder) workers() int {
	if len(b.items) < parallelItems {
		return 1
	}
	return min(maxWorkers, runtime.GOMAXPROCS(0))
}

// split calls f for a share [from, to) of n things in each of the workers.
func split(workers, n int, f func(worker, from, to int)) {
	if workers == 1 {
		f(0, 0, n)
		return
	}
	var all sync.WaitGroup
	var failed [maxWorkers]any
	for k := range workers {
		all.Add(1)
		go func() {
			defer all.Done()
			defer func() { failed[k] = recover() }()
			f(k, k*n/workers, (k+1)*n/workers)
		}()
	}
	all.Wait()
	for _, f := range failed {
		if f != nil {
			panic(f)
		}
	}
}

// beside runs f in a goroutine of its own if it is worth one. The function it returns waits for the end.
func beside(worth bool, f func()) (wait func()) {
	if !worth {
		f()
		return func() {}
	}
	done := make(chan any, 1)
	go func() {
		defer close(done)
		defer func() { done <- recover() }()
		f()
	}()
	return func() {
		if failed := <-done; failed != nil {
			panic(failed)
		}
	}
}
