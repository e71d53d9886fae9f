package script

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// withProcessors runs a test of a crew on machines with few and with many cores.
func withProcessors(t *testing.T, test func(t *testing.T, c *crew)) {
	for name, n := range map[string]int{"asleep": 2, "awake": 2 * mostGoroutines} {
		t.Run(name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
			var c crew
			c.begin(true, 1<<20)
			defer c.end()
			if c.awake != (n > 2) {
				t.Fatalf("with %d processors, awake is %v", n, c.awake)
			}
			test(t, &c)
		})
	}
}

func TestCrewDoesEachPieceOnce(t *testing.T) {
	withProcessors(t, func(t *testing.T, c *crew) {
		for call := range 2000 {
			var done [7]atomic.Int32
			n := 1 + call%len(done)
			c.share(n, func(k int) { done[k].Add(1) })
			for k := range done {
				if got := done[k].Load(); got != 1 && k < n || got != 0 && k >= n {
					t.Fatalf("call %d of %d pieces: piece %d was done %d times", call, n, k, got)
				}
			}
		}
	})
}

func TestPanicOfACrewIsItsCallers(t *testing.T) {
	withProcessors(t, func(t *testing.T, c *crew) {
		for k := range 3 {
			func() {
				defer func() {
					if x := recover(); x != "piece" {
						t.Errorf("piece %d panicked, the call %v", k, x)
					}
				}()
				c.share(3, func(piece int) {
					if piece == k {
						panic("piece")
					}
				})
			}()
		}
		c.share(3, func(int) {})
	})
}

// A builder's goroutines are gone soon after its last script.
func TestCrewsEnd(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2 * mostGoroutines))
	before := runtime.NumGoroutine()
	var c crew
	for range 1000 {
		c.begin(true, 1<<20)
		c.share(2, func(int) {})
		c.end()
	}
	for range 1 << 20 {
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}
