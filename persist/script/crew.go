package script

// Goroutines that work on one script. They are called a few times a script, for large pieces of work each. One
// takes 10 to 200 µs to wake up, where the core of a virtual machine has to be waked up, too: on a machine with
// cores to spare they stay awake from the first call to the end of the script, and nowhere does one that comes late
// keep the others waiting.

import (
	"fmt"
	"runtime"
	"sync/atomic"
)

// mostGoroutines is how many work on a script at most.
const mostGoroutines = 7

// ManyProcessors is on how many goroutines stay awake: several scripts are written at a time, and the program wants
// a processor of its own.
const ManyProcessors = 8

// crew is the goroutines that work on a script, its builder's included. The zero crew is the builder's alone.
type crew struct {
	size  int // how many they are
	awake bool
	work  func(k int)
	n     int32                  // pieces of the work
	next  atomic.Int32           // how many of them are begun
	round atomic.Uint64          // script<<32 | call: odd while there is work
	busy  atomic.Int32           // how many of the others are at work, or are looking whether there is any
	fault atomic.Pointer[string] // a panic of one of them
}

// nodesEach is how many nodes of a graph there are for each who helps: who waits takes time from those at work, with
// which he shares a core.
const nodesEach = 1500

// begin makes it a crew for a graph of so many nodes, of as many as there are processors for, until end. Nobody stays
// awake where others have use for the processors.
func (c *crew) begin(spare bool, nodes int) {
	processors := runtime.GOMAXPROCS(0)
	c.size, c.awake = min(mostGoroutines, processors, 1+nodes/nodesEach), spare && processors >= ManyProcessors
	if c.awake {
		c.size = min(c.size, (processors-1)/2)
		for range c.size - 1 {
			go c.stay(c.round.Load() >> 32)
		}
	}
}

// end leaves the builder alone.
func (c *crew) end() {
	c.round.Store((c.round.Load()>>32 + 1) << 32)
	c.size = 1
}

// stay helps with all work for a script.
func (c *crew) stay(script uint64) {
	const patience = 1 << 10 // looks before others may have the processor
	for seen, looks := uint64(0), 0; ; looks++ {
		now := c.round.Load()
		if now>>32 != script {
			return
		}
		if now&1 == 1 && now != seen {
			seen = now
			c.help()
		}
		Pause()
		if looks%patience == 0 {
			runtime.Gosched()
		}
	}
}

// share calls work for 0 to n-1, side by side. It goes on when all have returned; a panic of one is its own.
func (c *crew) share(n int, work func(k int)) {
	if n == 1 || c.size <= 1 {
		for k := range n {
			work(k)
		}
		return
	}
	c.work, c.n = work, int32(n)
	c.next.Store(0)
	c.round.Add(1)
	if !c.awake {
		for range min(n, c.size) - 1 {
			go c.help()
		}
	}
	c.each()
	c.round.Add(1)
	for looks := 1; c.busy.Load() > 0; looks++ {
		Pause()
		if looks%64 == 0 {
			runtime.Gosched()
		}
	}
	if x := c.fault.Swap(nil); x != nil {
		panic(*x)
	}
}

// help works while there is work.
func (c *crew) help() {
	c.busy.Add(1) // before it looks, so that none is taken away that it has found
	if c.round.Load()&1 == 1 {
		c.each()
	}
	c.busy.Add(-1)
}

func (c *crew) each() {
	defer func() {
		if x := recover(); x != nil {
			text := fmt.Sprint(x)
			c.fault.Store(&text)
		}
	}()
	for k := c.next.Add(1); k <= c.n; k = c.next.Add(1) {
		c.work(int(k) - 1)
	}
}
