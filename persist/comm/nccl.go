package comm

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"libvpps/gpu"
)

// NCCL. Every call begins with a round in which all ranks tell what they are in, as records of equal size; so ranks in
// different calls, and one that has aborted, are found out. What the call moves comes behind it. The host looks
// whether the device is done, until its patience is over; then NCCL ends what the device is in. A sum is put on the stream
// with its round: where that shows an error, the sum is ended and what it wrote is void.

// NCCLIDBytes is the size of a group's id.
const NCCLIDBytes = gpu.GroupIDBytes

// NCCLID makes the id of a new group. The process that will be rank 0 calls it, and gives the id to all.
func NCCLID() ([]byte, error) {
	id, err := gpu.NewGroupID()
	if err != nil {
		return nil, noNCCL(err)
	}
	return id, nil
}

// FindNCCL reports why NCCL cannot be used, nil if it is there.
func FindNCCL() error {
	if _, err := gpu.FindGroups(); err != nil {
		return noNCCL(err)
	}
	return nil
}

func noNCCL(err error) error { return &kindError{ErrUnavailable, fmt.Sprintf("NCCL: %v", err)} }

// NCCL is a rank's place in a group of GPUs.
type NCCL struct {
	Device     int // as CUDA counts, after CUDA_VISIBLE_DEVICES
	Rank, Size int
	ID         []byte        // of NCCLID, the same on all ranks
	Patience   time.Duration // of the group's calls; joining may take startPatience times as long
	Attentive  func() bool   // whether a call that waits may keep its core; nil: it may not
}

// OnDevice is a communicator that sums floats in the memory of a device.
type OnDevice interface {
	Communicator
	// Device is its number, as CUDA counts.
	Device() int
	// Sum sums ranges of the device's memory over all ranks, each rank's floats multiplied by its scale; nil on all ranks:
	// as they are. All give as many ranges of the same lengths. Nothing may be at work on them. The sums are the same bits
	// on every rank. Words may go with it: the result is what each rank has given, by rank, or nil on all ranks if one has
	// given none, or too many for a record.
	Sum(ranges []gpu.Range, scale *float32, mine []uint32) ([][]uint32, error)
	// SumBF16 does so with n numbers of bfloat16, whose sums take their place. How often a sum is rounded is the library's.
	SumBF16(at uint64, n int, mine []uint32) ([][]uint32, error)
}

// Held is a communicator that is closed when nobody uses it any more. Its maker does first.
type Held interface {
	Hold()
	Close()
}

// nccl is that rank.
type nccl struct {
	rank, size int
	patience   time.Duration
	attentive  func() bool
	dev        gpu.Device
	group      gpu.Group
	heard      gpu.Event      // behind a round
	done       gpu.Event      // behind all of a call
	records    gpu.HostBuffer // this rank's, then those of all
	each       int            // words of a record, the same on all ranks
	bulk       gpu.HostBuffer
	users      atomic.Int32

	call   sync.Mutex // held during a call
	number uint64     // of calls so far

	mu     sync.Mutex
	broken error
	ended  bool          // the library's part
	over   chan struct{} // closed when that is given back
}

// NewNCCL makes the calling process, or thread, a rank. It returns when all ranks have called it.
func NewNCCL(o NCCL) (Communicator, error) {
	switch {
	case o.Size < 1 || o.Size > mostRanks || o.Rank < 0 || o.Rank >= o.Size:
		return nil, &kindError{ErrArgument, fmt.Sprintf("rank %d of %d: a group has 1 to %d, which are counted from 0", o.Rank, o.Size, mostRanks)}
	case o.Patience <= 0:
		return nil, &kindError{ErrArgument, fmt.Sprintf("a group that waits %v for a rank: the time must be above 0", o.Patience)}
	case len(o.ID) != NCCLIDBytes:
		return nil, &kindError{ErrArgument, fmt.Sprintf("the id of a group has %d bytes: NCCL's have %d", len(o.ID), NCCLIDBytes)}
	}
	c := &nccl{rank: o.Rank, size: o.Size, patience: o.Patience, attentive: o.Attentive, over: make(chan struct{})}
	c.users.Store(1)
	if err := c.open(o.Device); err != nil {
		return nil, noNCCL(err)
	}
	joined := make(chan error, 1)
	go func() {
		var err error
		c.group, err = gpu.OpenGroup(c.dev, o.Rank, o.Size, o.ID)
		joined <- err
	}()
	timer := time.NewTimer(startPatience * o.Patience)
	defer timer.Stop()
	select {
	case err := <-joined:
		if err != nil {
			c.free()
			return nil, noNCCL(err)
		}
		return c, nil
	case <-timer.C: // the library has no way to end this: a thread stays in it
		return nil, &kindError{ErrAbsent, fmt.Sprintf("rank %d of %d: not all ranks have joined the group by NCCL within %v", o.Rank, o.Size, startPatience*o.Patience)}
	}
}

// A record is what a rank tells in a round: its call, and words that it gives to all. It has recordWords at first. It grows
// with what all-gathers bring, until those of all ranks have mostRecordWords.
const (
	recordWords     = 256
	mostRecordWords = 1 << 16
)

// open opens the device and makes what is needed on it.
func (c *nccl) open(ordinal int) error {
	driver, err := gpu.OpenDriver()
	if err != nil {
		return err
	}
	if c.dev, err = driver.Open(ordinal); err != nil {
		return err
	}
	if c.heard, err = c.dev.NewEvent(); err == nil {
		c.done, err = c.dev.NewEvent()
	}
	if err == nil {
		c.records, err = c.newRecords(recordWords)
	}
	if err != nil {
		c.free()
		return err
	}
	c.each = recordWords
	return nil
}

// newRecords makes pinned memory for records of each words.
func (c *nccl) newRecords(each int) (gpu.HostBuffer, error) {
	b, err := c.dev.AllocHost(4 * each * (c.size + 1))
	if err == nil {
		clear(words(b, 0, each*(c.size+1)))
	}
	return b, err
}

// words is a part of pinned memory.
func words(b gpu.HostBuffer, at, n int) []uint32 {
	return unsafe.Slice((*uint32)(b.Mem), b.Bytes/4)[at : at+n]
}

// free gives back what was opened but the library's part.
func (c *nccl) free() {
	for _, mark := range []gpu.Event{c.heard, c.done} {
		if mark != nil {
			mark.Close()
		}
	}
	c.dev.Close()
}

func (c *nccl) Hold() { c.users.Add(1) }

// Close: the last user's frees everything.
func (c *nccl) Close() {
	if c.users.Add(-1) > 0 {
		return
	}
	c.call.Lock()
	defer c.call.Unlock()
	c.breakUp(&kindError{ErrArgument, "the communicator was closed"})
	if c.end((gpu.Group).Close) {
		c.free()
	}
}

func (c *nccl) Rank() int   { return c.rank }
func (c *nccl) Size() int   { return c.size }
func (c *nccl) Device() int { return c.dev.Info().Ordinal }

func (c *nccl) lost() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// breakUp has every call fail from now on. It returns the first reason.
func (c *nccl) breakUp(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == nil {
		c.broken = err
	}
	return c.broken
}

// end ends the library's part, if nobody has. It reports whether that is over, since a lost device may hold the library
// up.
func (c *nccl) end(how func(gpu.Group) error) bool {
	c.mu.Lock()
	first := !c.ended
	c.ended = true
	c.mu.Unlock()
	if first {
		go func() {
			_ = how(c.group) // there is nobody left to tell
			close(c.over)
		}()
	}
	select {
	case <-c.over:
		return true
	case <-time.After(c.patience):
		return false
	}
}
