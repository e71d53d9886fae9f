package kernel

import (
	"runtime"
	"testing"
)

func TestThreadsInCLeaveGoItsProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, chosen := range []string{"", "2"} {
		t.Setenv("GOMAXPROCS", chosen)
		before := runtime.GOMAXPROCS(goProcessors())
		if makeRoom(3); (runtime.GOMAXPROCS(0) == goProcessors()+3) != (chosen == "") {
			t.Errorf("GOMAXPROCS=%q: %d goroutines beside 3 threads in C, of %d before", chosen, runtime.GOMAXPROCS(0), before)
		}
		if makeRoom(1); chosen == "" && runtime.GOMAXPROCS(0) != goProcessors()+3 {
			t.Error("a machine of fewer threads takes room away")
		}
	}
}
