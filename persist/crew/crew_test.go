package crew

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// withProcessors runs a test of a crew on machines with few and with many cores.
func withProcessors(t *testing.T, test func(t *testing.T, c *Crew)) {
	for name, n := range map[string]int{"asleep": 2, "awake": 2 * MostGoroutines} {
		t.Run(name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
			var c Crew
			c.Begin(true, 1<<20, 2*MostGoroutines)
			defer c.End()
			if c.awake != (n > 2) {
				t.Fatalf("with %d processors, awake is %v", n, c.awake)
			}
			test(t, &c)
		})
	}
}

func TestCrewDoesEachPieceOnce(t *testing.T) {
	withProcessors(t, func(t *testing.T, c *Crew) {
		for call := range 2000 {
			var done [7]atomic.Int32
			n := 1 + call%len(done)
			c.Share(n, func(k int) { done[k].Add(1) })
			for k := range done {
				if got := done[k].Load(); got != 1 && k < n || got != 0 && k >= n {
					t.Fatalf("call %d of %d pieces: piece %d was done %d times", call, n, k, got)
				}
			}
		}
	})
}

func TestPanicOfACrewIsItsCallers(t *testing.T) {
	withProcessors(t, func(t *testing.T, c *Crew) {
		for k := range 3 {
			func() {
				defer func() {
					if x := recover(); x != "piece" {
						t.Errorf("piece %d panicked, the call %v", k, x)
					}
				}()
				c.Share(3, func(piece int) {
					if piece == k {
						panic("piece")
					}
				})
			}()
		}
		c.Share(3, func(int) {})
	})
}

// Helpers are gone soon after the last script, also of a builder that began twice, as it does where a merged graph fails.
func TestHelpersEnd(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2 * MostGoroutines))
	before := runtime.NumGoroutine()
	var c Crew
	for range 1000 {
		c.Begin(true, 1<<20, 2*MostGoroutines)
		c.Share(2, func(int) {})
		c.Begin(true, 1, 1)
		c.End()
	}
	for start := time.Now(); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Since(start) > 10*time.Second {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

// Helpers serve several crews at once, whose calls have different numbers of pieces.
func TestCrewsShareHelpers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2 * MostGoroutines))
	scripts := 3000
	if testing.Short() {
		scripts = 300
	}
	var all sync.WaitGroup
	for k := range 3 {
		all.Go(func() {
			var c Crew
			for script := range scripts {
				c.Begin(true, nodesEach*(1+script%MostGoroutines), 1)
				for call := range 10 {
					var done atomic.Int32
					n := 1 + (script+call)%(2*MostGoroutines)
					c.Share(n, func(int) { done.Add(1) })
					if got := done.Load(); got != int32(n) {
						t.Errorf("crew %d, script %d: %d of %d pieces", k, script, got, n)
					}
				}
				c.End()
			}
		})
	}
	all.Wait()
}

// Who looks for work lets the collector of garbage stop him, without the runtime's signals.
func TestHelpersStopForTheCollector(t *testing.T) {
	const name = "VPPS_TEST_COLLECT"
	if os.Getenv(name) == "" {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		self := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$")
		self.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1", name+"=1")
		if out, err := self.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2 * MostGoroutines))
	var c Crew
	c.Begin(true, 1<<20, 2*MostGoroutines)
	defer c.End()
	for range 20 {
		c.Share(MostGoroutines, func(k int) {
			if k == 0 {
				runtime.GC()
			}
		})
	}
}
