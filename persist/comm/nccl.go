package comm

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"libvpps/gpu"
)

// NCCL. Every call begins with a round in which all ranks tell what they are in, as records of equal size; so ranks in
// different calls, and one that has aborted, are found out. What the call moves comes behind it. The host looks
// whether the device is done, until its patience is over; then NCCL ends what the device is in.

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

func noNCCL(err error) error { return &kindError{ErrUnavailable, fmt.Sprintf("NCCL: %v", err)} }

// NCCL is a rank's place in a group of GPUs.
type NCCL struct {
	Device     int // as CUDA counts, after CUDA_VISIBLE_DEVICES
	Rank, Size int
	ID         []byte // of NCCLID, the same on all ranks
	Patience   time.Duration
}

// OnDevice is a communicator that sums floats in the memory of a device.
type OnDevice interface {
	Communicator
	// Device is its number, as CUDA counts.
	Device() int
	// Sum sums ranges of the device's memory over all ranks, each rank's floats multiplied by its scale; nil on all ranks:
	// as they are. All give as many ranges of the same lengths. Nothing may be at work on them. The sums are the same bits
	// on every rank.
	Sum(ranges []gpu.Range, scale *float32) error
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
	dev        gpu.Device
	group      gpu.Group
	done       gpu.Event
	records    gpu.HostBuffer // this rank's, then those of all
	bulk       gpu.HostBuffer
	users      atomic.Int32

	call   sync.Mutex // held during a call
	number uint64     // of calls so far

	mu      sync.Mutex
	broken  error
	putting bool          // the library is asked to put something on the stream
	ended   bool          // the library's part
	over    chan struct{} // closed when that is given back
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
	c := &nccl{rank: o.Rank, size: o.Size, patience: o.Patience, over: make(chan struct{})}
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
	timer := time.NewTimer(o.Patience)
	defer timer.Stop()
	select {
	case err := <-joined:
		if err != nil {
			c.free()
			return nil, noNCCL(err)
		}
		return c, nil
	case <-timer.C: // the library has no way to end this: a thread stays in it
		return nil, &kindError{ErrAbsent, fmt.Sprintf("rank %d of %d: not all ranks have joined the group by NCCL within %v", o.Rank, o.Size, o.Patience)}
	}
}

// recordWords is how much a rank tells in a round: its call, and the first of what it gives to an all-gather.
const recordWords = 256

// open opens the device and makes what is needed on it.
func (c *nccl) open(ordinal int) error {
	driver, err := gpu.OpenDriver()
	if err != nil {
		return err
	}
	if c.dev, err = driver.Open(ordinal); err != nil {
		return err
	}
	if c.done, err = c.dev.NewEvent(); err == nil {
		c.records, err = c.dev.AllocHost(4 * recordWords * (c.size + 1))
	}
	if err != nil {
		c.free()
		return err
	}
	clear(words(c.records, 0, recordWords*(c.size+1)))
	return nil
}

// words is a part of pinned memory.
func words(b gpu.HostBuffer, at, n int) []uint32 {
	return unsafe.Slice((*uint32)(b.Mem), b.Bytes/4)[at : at+n]
}

// free gives back what was opened but the library's part.
func (c *nccl) free() {
	if c.done != nil {
		c.done.Close()
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

// missing names the ranks whose record of the present round has not arrived: it may be held up by another. If there are
// none, or it is no round, all but this one.
func (c *nccl) missing(all []uint32) string {
	some := make([]bool, c.size)
	for rank := range len(all) / recordWords {
		_, number := callOf(all[rank*recordWords:])
		some[rank] = rank != c.rank && number != c.number
	}
	if !slices.Contains(some, true) {
		return named(func(rank int) bool { return rank != c.rank }, c.size)
	}
	return named(func(rank int) bool { return some[rank] }, c.size)
}

// watch is on a call: whether it is overdue, and whether the library is asked to put something on the stream.
type watch struct{ overdue, inside atomic.Bool }

// await has put put something on the stream, and waits for it. In a round all are the records that it brings.
func (c *nccl) await(k call, all []uint32, put func() error) error {
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
	for looks, since := 0, time.Now(); err == nil && !w.overdue.Load(); looks++ {
		var over bool
		if over, err = c.done.Done(); over {
			return nil
		}
		if err == nil && looks%16 == 0 {
			err = c.failure()
		}
		rest(time.Since(since))
	}
	c.end((gpu.Group).Abort)
	for since := time.Now(); time.Since(since) < c.patience; rest(time.Since(since)) { // the device leaves the memory
		if over, failed := c.done.Done(); over || failed != nil {
			break
		}
	}
	if w.overdue.Load() {
		return c.breakUp(&kindError{ErrAbsent, fmt.Sprintf("call %d of the group, %v: word of %s did not arrive within %v; one of them has ended, hangs, or was busy for longer", c.number, k, c.missing(all), c.patience)})
	}
	return c.breakUp(&kindError{ErrAborted, fmt.Sprintf("call %d of the group, %v: %v", c.number, k, err)})
}

// failure is why the call cannot go on, nil if it can.
func (c *nccl) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil || c.ended {
		return errors.New("the group has ended")
	}
	return c.group.Failure()
}

// rest leaves the core to others while a device is waited for.
func rest(waited time.Duration) {
	if waited < time.Millisecond {
		runtime.Gosched()
	} else {
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
const telling = barrier + 1

// round brings this rank's record to all, and theirs here.
func (c *nccl) round(k call, more []uint32) (all []uint32, err error) {
	c.number++
	mine, all := words(c.records, 0, recordWords), words(c.records, recordWords, recordWords*c.size)
	copy(mine[copy(mine, k.header(c.number)):], more)
	err = c.await(k, all, func() error { return c.group.Gather(c.records.Dev, c.records.Dev+4*recordWords, recordWords) })
	return all, err
}

// meet is the round that a call begins with. All ranks are in the same one then.
func (c *nccl) meet(k call, more []uint32) (all []uint32, err error) {
	if all, err = c.round(k, more); err != nil {
		return nil, err
	}
	for rank := range c.size {
		other, number := callOf(all[rank*recordWords:])
		switch {
		case other.kind == telling:
			err = abortedBy(rank, textOf(all[rank*recordWords+headerWords:][:recordWords-headerWords]))
		case number != c.number:
			err = &kindError{ErrDiffers, fmt.Sprintf("rank %d is in its call %d of the group, rank %d in its call %d", c.rank, c.number, rank, number)}
		default:
			if first, _ := callOf(all); !other.same(first) {
				err = different(c.number, first, rank, other)
			}
		}
		if err != nil {
			err = c.breakUp(err)
			c.end((gpu.Group).Abort)
			return nil, err
		}
	}
	return all, nil
}

func (c *nccl) Barrier() error {
	if err := c.begin(); err != nil {
		return err
	}
	defer c.call.Unlock()
	_, err := c.meet(call{kind: barrier}, nil)
	return err
}

// AllGather gives what fits into the record with it, else all of it in a second round.
func (c *nccl) AllGather(mine []uint32) ([][]uint32, error) {
	if err := c.begin(); err != nil {
		return nil, err
	}
	defer c.call.Unlock()
	const room = recordWords - headerWords
	k := call{kind: allGather, n: len(mine)}
	records, err := c.meet(k, mine[:min(len(mine), room)])
	if err != nil {
		return nil, err
	}
	lengths, most := make([]int, c.size), 0
	for rank := range lengths {
		other, _ := callOf(records[rank*recordWords:])
		lengths[rank] = other.n
		most = max(most, other.n)
	}
	at, each := records[headerWords:], recordWords
	if most > room {
		if at, err = c.gather(k, mine, most); err != nil {
			return nil, err
		}
		each = most
	}
	all := make([][]uint32, c.size)
	for rank, n := range lengths {
		all[rank] = append(make([]uint32, 0, n), at[rank*each:][:n]...)
	}
	return all, nil
}

// gather brings each words of all ranks here.
func (c *nccl) gather(k call, mine []uint32, each int) ([]uint32, error) {
	if err := c.room(k, each*(c.size+1)); err != nil {
		return nil, err
	}
	copy(words(c.bulk, 0, each), mine)
	err := c.await(k, nil, func() error { return c.group.Gather(c.bulk.Dev, c.bulk.Dev+gpu.Ptr(4*each), each) })
	return words(c.bulk, each, each*c.size), err
}

// room makes pinned memory of n words. A rank that has none ends the group.
func (c *nccl) room(k call, n int) error {
	if 4*n <= c.bulk.Bytes {
		return nil
	}
	bulk, err := c.dev.AllocHost(4 * n)
	if err != nil {
		err = c.breakUp(abortedBy(c.rank, fmt.Sprintf("call %d of the group, %v: %v", c.number, k, err)))
		c.end((gpu.Group).Abort)
		return err
	}
	_ = c.dev.FreeHost(c.bulk)
	c.bulk = bulk
	return nil
}

// chunk is how many words of the host's go to the device at once.
const chunk = 1 << 20

// inChunks does something with floats of the host, by way of pinned memory.
func (c *nccl) inChunks(k call, x []float32, do func(at gpu.Ptr, n int) error) error {
	if err := c.begin(); err != nil {
		return err
	}
	defer c.call.Unlock()
	_, err := c.meet(k, nil)
	if err == nil && len(x) > 0 {
		err = c.room(k, min(len(x), chunk))
	}
	for rest := wordsOf(x); err == nil && len(rest) > 0; {
		n := min(len(rest), chunk)
		copy(words(c.bulk, 0, n), rest[:n])
		if err = c.await(k, nil, func() error { return do(c.bulk.Dev, n) }); err == nil {
			copy(rest[:n], words(c.bulk, 0, n))
			rest = rest[n:]
		}
	}
	return err
}

func (c *nccl) Broadcast(x []float32, from int) error {
	if from < 0 || from >= c.size {
		return &kindError{ErrArgument, fmt.Sprintf("broadcast from rank %d of %d", from, c.size)}
	}
	return c.inChunks(call{broadcast, len(x), from}, x, func(at gpu.Ptr, n int) error { return c.group.Broadcast(at, n, from) })
}

func (c *nccl) AllReduce(x []float32) error {
	return c.inChunks(call{allReduce, len(x), 0}, x, func(at gpu.Ptr, n int) error {
		return c.group.Sum([]gpu.Range{{From: uint64(at), To: uint64(at), N: uint64(n)}}, nil)
	})
}

func (c *nccl) Sum(ranges []gpu.Range, scale *float32) error {
	n := 0
	for i := range ranges {
		n += int(ranges[i].N)
	}
	if err := c.begin(); err != nil {
		return err
	}
	defer c.call.Unlock()
	k := call{allReduce, n, 0}
	if _, err := c.meet(k, nil); err != nil || n == 0 {
		return err
	}
	return c.await(k, nil, func() error { return c.group.Sum(ranges, scale) })
}

// Abort tells the others in the background, in the round that they begin or are in. A call that this rank is in ends
// without.
func (c *nccl) Abort(why error) {
	err := abortedBy(c.rank, why.Error())
	if c.breakUp(err) != err || !c.call.TryLock() {
		return
	}
	go func() {
		defer c.call.Unlock()
		_ = c.tell(why.Error())
		c.end((gpu.Group).Abort)
	}()
}

// tell is the last round.
func (c *nccl) tell(why string) error {
	c.number++
	record := words(c.records, 0, recordWords)
	clear(record)
	copy(record, call{kind: telling}.header(c.number))
	text := unsafe.Slice((*byte)(unsafe.Pointer(&record[headerWords])), 4*(recordWords-headerWords)-1)
	copy(text, why)
	if err := c.group.Gather(c.records.Dev, c.records.Dev+4*recordWords, recordWords); err != nil {
		return err
	}
	if err := c.done.Record(); err != nil {
		return err
	}
	for since := time.Now(); time.Since(since) < c.patience; rest(time.Since(since)) {
		if over, err := c.done.Done(); over || err != nil {
			return err
		}
	}
	return nil
}

// textOf is text in words, which a zero byte ends.
func textOf(w []uint32) string {
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), 4*len(w))
	for n, c := range b {
		if c == 0 {
			return string(b[:n])
		}
	}
	return string(b)
}
