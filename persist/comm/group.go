package comm

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// How ranks of one process meet. Each call is a round. A rank that arrives leaves its part there and waits. Once all
// have arrived they work on each other's parts, and none returns before all are done with its memory: this takes no
// longer than copying, so it has no deadline.

type group struct {
	size     int
	patience time.Duration

	mu     sync.Mutex
	now    *round // that ranks arrive in
	number uint64 // its, from 1
	broken error
	stop   chan struct{} // closed when broken
}

func newGroup(size int, patience time.Duration) *group {
	g := &group{size: size, patience: patience, stop: make(chan struct{})}
	g.next()
	return g
}

// next begins another round.
func (g *group) next() {
	g.now = &round{parts: make([]part, g.size), complete: make(chan struct{}), done: make(chan struct{})}
	g.number++
}

// round is one call of all ranks.
type round struct {
	parts    []part // by rank
	arrived  int
	complete chan struct{} // closed when all have arrived
	left     atomic.Int64
	done     chan struct{} // closed when all have left
}

// part is what one rank brings.
type part struct {
	call
	floats []float32
	words  []uint32
}

// call is what must be equal on all ranks.
type call struct {
	kind kind
	n    int // floats
	from int // of a broadcast
}

type kind uint8

const (
	nothing kind = iota // the rank is not there
	allReduce
	allReduceBF16
	broadcast
	allGather
	barrier
	meeting // of processes that have no connection yet
)

func (c call) String() string {
	switch c.kind {
	case allReduce:
		return fmt.Sprintf("all-reduce of %d floats", c.n)
	case allReduceBF16:
		return fmt.Sprintf("all-reduce of %d floats in bf16", c.n)
	case broadcast:
		return fmt.Sprintf("broadcast of %d floats from rank %d", c.n, c.from)
	case allGather:
		return "all-gather"
	case meeting:
		return "meeting of all ranks"
	}
	return "barrier"
}

// meet brings a rank's part and waits for those of all. Who gets the round must leave it, unless nobody works on parts.
func (g *group) meet(rank int, p part) (*round, error) {
	r, err := g.arrive(rank, p)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(g.patience)
	defer timer.Stop()
	select {
	case <-r.complete:
		return r, nil
	case <-g.stop:
	case <-timer.C:
	}
	return g.giveUp(r, p.call)
}

// arrive leaves a part in the present round; the last rank completes it.
func (g *group) arrive(rank int, p part) (*round, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.broken != nil {
		return nil, g.broken
	}
	r := g.now
	if r.parts[rank].kind != nothing {
		return nil, &kindError{ErrArgument, fmt.Sprintf("rank %d is in two calls at once, %v and %v: a rank makes one after the other", rank, r.parts[rank].call, p.call)}
	}
	r.parts[rank] = p
	r.arrived++
	if r.arrived < g.size {
		return r, nil
	}
	if err := r.agree(g.number); err != nil {
		g.breakUp(err)
		return nil, err
	}
	g.next()
	close(r.complete)
	return r, nil
}

// agree reports whether all ranks are in the same call.
func (r *round) agree(number uint64) error {
	for rank, p := range r.parts {
		if p.call != r.parts[0].call {
			return different(number, r.parts[0].call, rank, p.call)
		}
	}
	return nil
}

// different is the error of ranks in different calls.
func different(number uint64, first call, rank int, other call) error {
	return &kindError{ErrDiffers, fmt.Sprintf("call %d of the group: rank 0 is in %v, rank %d in %v: all ranks make the same calls in the same order", number, first, rank, other)}
}

// giveUp ends a wait, unless the round has been completed in the meantime.
func (g *group) giveUp(r *round, c call) (*round, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-r.complete:
		return r, nil
	default:
	}
	if g.broken == nil {
		g.breakUp(absent(g.number, c, func(rank int) bool { return r.parts[rank].kind == nothing }, g.size, g.patience))
	}
	return nil, g.broken
}

// absent is the error of ranks that are missing in a call.
func absent(number uint64, c call, missing func(rank int) bool, size int, patience time.Duration) error {
	return &kindError{ErrAbsent, fmt.Sprintf("call %d of the group, %v: %s did not arrive within %v; it has ended, hangs, or was busy for longer", number, c, named(missing, size), patience)}
}

// named lists some of the ranks.
func named(some func(rank int) bool, size int) string {
	const few = 8
	var names []string
	for rank := range size {
		if some(rank) {
			names = append(names, fmt.Sprint(rank))
		}
	}
	what := "rank"
	if len(names) > 1 {
		what = "ranks"
	}
	if n := len(names); n > few {
		names = append(slices.Clone(names[:few]), fmt.Sprintf("%d more", n-few))
	}
	return what + " " + strings.Join(names, ", ")
}

// abortedBy is the error of a group that a rank has ended.
func abortedBy(rank int, why string) error {
	return &kindError{ErrAborted, fmt.Sprintf("rank %d has aborted: %s", rank, why)}
}

// breakUp wakes everyone with an error. The caller holds the lock.
func (g *group) breakUp(err error) {
	g.broken = err
	close(g.stop)
}

// end breaks the group, unless it is.
func (g *group) end(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.broken == nil {
		g.breakUp(err)
	}
}

// leave waits until all ranks are done with the parts.
func (r *round) leave() {
	if int(r.left.Add(1)) == len(r.parts) {
		close(r.done)
	}
	<-r.done
}
