// Package crew has goroutines that work on one script. Each is called a few times a script, for large pieces of work. One
// takes 10 to 200 µs to wake up, where the core of a virtual machine has to be waked up, too: on a machine with cores to
// spare they stay awake while scripts are written. And what they have written before lies in their core's cache: so each has
// its own pieces, and does not leave its core for another one as long as it is awake.
package crew

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// MostGoroutines is for how many the work on a script is cut; large graphs have twice as many parts, and more who help.
const MostGoroutines = 7

// ManyProcessors is on how many goroutines stay awake: several scripts are written at a time, and the program wants
// a processor of its own.
const ManyProcessors = 8

// Crew is who works on a script. The zero crew is the builder alone.
type Crew struct {
	Size  int // how many they are, the builder's own goroutine included
	awake bool
	work  func(k int)
	state atomic.Uint64          // call<<32 | a bit for each piece that is not begun
	left  atomic.Int32           // pieces that are not done
	fault atomic.Pointer[string] // a panic of one of them
}

// nodesEach is how many nodes of a graph there are for each who helps: that is about a part.
const nodesEach = 700

// patience is how long a helper stays without any crew.
const patience = 500 * time.Microsecond

// stealAfter is how many times who has no piece of his own pauses before he takes another's.
const stealAfter = 64

// helpers are the goroutines that stay awake, for the crews of all builders.
var helpers struct {
	sync.Mutex
	running uint32                  // bit k: helper k is there
	crews   atomic.Pointer[[]*Crew] // at work, in the order in which they began: it is that in which scripts are wanted
}

// withoutHelpers is how many processors are left to the program, to whom each script belongs, and to the runtime.
const withoutHelpers = 6

// Begin gives the crew its size for one graph, of so many nodes in so many parts. The size counts until End. Helpers stay
// awake only with spare and on a machine of ManyProcessors.
func (c *Crew) Begin(spare bool, nodes, parts int) {
	c.End() // a script that failed may have begun
	processors := runtime.GOMAXPROCS(0)
	c.Size, c.awake = min(MostGoroutines, processors, 1+nodes/nodesEach), spare && processors >= ManyProcessors
	if c.awake {
		c.Size = min(c.Size, (processors-1)/2)
	}
	if c.awake && c.Size > 1 {
		n := c.Size - 1
		if parts > MostGoroutines { // so that each has one
			n = min(parts-1, processors-withoutHelpers)
		}
		c.enlist(n)
	}
}

// enlist has so many helpers look for the crew's work.
func (c *Crew) enlist(n int) {
	helpers.Lock()
	defer helpers.Unlock()
	var list []*Crew
	if old := helpers.crews.Load(); old != nil {
		list = *old
	}
	list = append(slices.Clone(list), c)
	helpers.crews.Store(&list)
	for k := range n {
		if helpers.running>>k&1 == 0 {
			helpers.running |= 1 << k
			go help(k)
		}
	}
}

// End leaves the builder alone.
func (c *Crew) End() {
	if c.awake && c.Size > 1 {
		helpers.Lock()
		list := slices.Clone(*helpers.crews.Load())
		list = slices.DeleteFunc(list, func(x *Crew) bool { return x == c })
		helpers.crews.Store(&list)
		helpers.Unlock()
	}
	c.Size, c.awake = 1, false
}

// help is helper k's work, until it was without a crew for a while.
func help(k int) {
	since := time.Now()
	for looks := 1; ; looks++ {
		list := *helpers.crews.Load()
		for _, c := range list {
			if s := c.state.Load(); uint32(s) != 0 {
				c.assist(s>>32, k+1)
			}
		}
		Pause()
		switch {
		case len(list) > 0:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case looks&0xff == 0 && time.Since(since) > patience && leave(k):
			return
		}
	}
}

// leave takes helper k away, if there is no crew.
func leave(k int) bool {
	helpers.Lock()
	defer helpers.Unlock()
	if len(*helpers.crews.Load()) > 0 {
		return false
	}
	helpers.running &^= 1 << k
	return true
}

// Share calls work for 0 to n-1, at most 32, side by side. It goes on when all have returned; a panic of one is its own.
func (c *Crew) Share(n int, work func(k int)) {
	if n <= 1 || c.Size <= 1 {
		for k := range n {
			work(k)
		}
		return
	}
	c.work = work
	c.left.Store(int32(n))
	call := (c.state.Load()>>32 + 1) & math.MaxUint32
	c.state.Store(call<<32 | (1<<n - 1))
	if !c.awake {
		for k := range min(n, c.Size) - 1 {
			go c.assist(call, k+1)
		}
	}
	c.assist(call, 0)
	for looks := 1; c.left.Load() > 0; looks++ {
		Pause()
		if looks%64 == 0 && !c.awake {
			runtime.Gosched()
		}
	}
	if x := c.fault.Swap(nil); x != nil {
		panic(*x)
	}
}

// assist does pieces of a call: first number own, which it did in the call before, then, if they are not taken up
// at once, what is left.
func (c *Crew) assist(call uint64, own int) {
	if c.take(call, own) {
		c.do(own)
	} else {
		for range stealAfter {
			Pause()
		}
	}
	for k := range 32 {
		if k = (own + k) % 32; c.take(call, k) {
			c.do(k)
		}
	}
}

// take begins piece k of a call, unless it is begun, or the call is over.
func (c *Crew) take(call uint64, k int) bool {
	for {
		s := c.state.Load()
		if s>>32 != call || s>>k&1 == 0 {
			return false
		}
		if c.state.CompareAndSwap(s, s&^(1<<k)) {
			return true
		}
	}
}

// do does piece k, which was taken.
func (c *Crew) do(k int) {
	defer c.left.Add(-1)
	defer func() {
		if x := recover(); x != nil {
			text := fmt.Sprint(x)
			c.fault.Store(&text)
		}
	}()
	c.work(k)
}
