package comm

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"libvpps/gpu"
)

// Rounds of NCCL, and how a device is waited for.

// watch is on a call: whether it is overdue, and whether the library is asked to put something on the stream.
type watch struct{ overdue, inside atomic.Bool }

// await has put put something on the stream, and waits for it. It may begin with a round.
func (c *nccl) await(k call, round bool, put func() error) error {
	w := &watch{}
	w.inside.Store(true)
	watchdog := time.AfterFunc(c.patience, func() {
		w.overdue.Store(true)
		if w.inside.Load() { // it waits for other ranks, which only this ends
			c.end((gpu.Group).Abort)
		}
	})
	defer watchdog.Stop()
	err := put()
	w.inside.Store(false)
	if err == nil {
		err = c.done.Record()
	}
	since := time.Now()
	for looks := 0; err == nil && !w.overdue.Load(); looks++ {
		var over bool
		if round {
			if over, err = c.heard.Done(); over {
				round, err = false, c.compare()
			}
		} else if over, err = c.done.Done(); over {
			return nil
		}
		if err == nil && looks%16 == 0 {
			err = c.failure()
		}
		c.rest(time.Since(since))
	}
	return c.fail(k, round, w.overdue.Load(), err)
}

// fail ends the group for a call that is overdue or has failed. It returns why.
func (c *nccl) fail(k call, round, overdue bool, err error) error {
	c.end((gpu.Group).Abort)
	for since := time.Now(); time.Since(since) < c.patience; c.rest(time.Since(since)) { // the device leaves the memory
		if over, failed := c.done.Done(); over || failed != nil {
			break
		}
	}
	absent := c.missing()
	switch known := (*kindError)(nil); {
	case overdue && round && slices.Contains(absent, true):
		err = c.late(k, func(rank int) bool { return absent[rank] })
	case overdue && round && c.compare() != nil:
		err = c.compare()
	case overdue:
		err = c.late(k, func(rank int) bool { return rank != c.rank })
	case !errors.As(err, &known):
		err = &kindError{ErrAborted, fmt.Sprintf("call %d of the group, %v: %v", c.number, k, err)}
	}
	return c.breakUp(err)
}

// late is the error of ranks from which nothing came in time.
func (c *nccl) late(k call, some func(rank int) bool) error {
	return &kindError{ErrAbsent, fmt.Sprintf("call %d of the group, %v: word of %s did not arrive within %v; one of them has ended, hangs, or was busy for longer", c.number, k, named(some, c.size), c.patience)}
}

// missing reports for each rank whether its record of the present round has not arrived, which another may hold up.
func (c *nccl) missing() []bool {
	some := make([]bool, c.size)
	for rank := range some {
		_, number := callOf(c.record(rank))
		some[rank] = rank != c.rank && number != c.number
	}
	return some
}

// record is what a rank has told in the last round.
func (c *nccl) record(rank int) []uint32 { return words(c.records, (1+rank)*c.each, c.each) }

// failure is why the call cannot go on, nil if it can.
func (c *nccl) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil || c.ended {
		return errors.New("the group has ended")
	}
	return c.group.Failure()
}

// rest leaves the core to others while a device is waited for. Where there are cores to spare it does not at first: a
// goroutine that leaves one may get the next only milliseconds later, and all ranks wait for it.
func (c *nccl) rest(waited time.Duration) {
	switch {
	case c.attentive != nil && c.attentive() && waited < 5*time.Millisecond:
	case waited < time.Millisecond:
		runtime.Gosched()
	default:
		time.Sleep(50 * time.Microsecond)
	}
}

// begin takes the communicator for a call.
func (c *nccl) begin() error {
	if err := c.lost(); err != nil {
		return err
	}
	if !c.call.TryLock() {
		return &kindError{ErrArgument, fmt.Sprintf("rank %d is in two calls at once: a rank makes one after the other", c.rank)}
	}
	return nil
}

// telling is a round of a rank that has aborted: it tells the others why.
const telling kind = 255

// meet is the round that a call begins with. All ranks are in the same call then. What is put behind it is done, too.
func (c *nccl) meet(k call, more []uint32, behind func() error) error {
	c.number++
	mine := words(c.records, 0, c.each)
	copy(mine[copy(mine, k.header(c.number)):], more)
	return c.await(k, true, func() error {
		err := c.gatherRecords()
		if err == nil && behind != nil {
			err = behind()
		}
		return err
	})
}

func (c *nccl) gatherRecords() error {
	if err := c.group.Gather(c.records.Dev, c.records.Dev+gpu.Ptr(4*c.each), c.each); err != nil {
		return err
	}
	return c.heard.Record()
}

// compare reports a rank that has aborted, or is in another call.
func (c *nccl) compare() error {
	first, _ := callOf(c.record(0))
	for rank := range c.size {
		other, _ := callOf(c.record(rank))
		if other.kind == telling {
			return abortedBy(rank, textOf(c.record(rank)[headerWords:]))
		}
		if !other.same(first) {
			return different(c.number, first, rank, other)
		}
	}
	return nil
}
