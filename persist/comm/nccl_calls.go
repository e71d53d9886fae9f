package comm

import (
	"fmt"
	"slices"
	"time"
	"unsafe"

	"libvpps/gpu"
)

// The calls of a rank that NCCL connects.

func (c *nccl) Barrier() error {
	if err := c.begin(); err != nil {
		return err
	}
	defer c.call.Unlock()
	return c.meet(call{kind: barrier}, nil, nil)
}

// AllGather gives what fits into the record with it, else all of it in a second round.
func (c *nccl) AllGather(mine []uint32) ([][]uint32, error) {
	if err := c.begin(); err != nil {
		return nil, err
	}
	defer c.call.Unlock()
	room := c.each - headerWords
	k := call{kind: allGather, n: len(mine)}
	if err := c.meet(k, mine[:min(len(mine), room)], nil); err != nil {
		return nil, err
	}
	most := 0
	lengths := make([]int, c.size)
	for rank := range lengths {
		other, _ := callOf(c.record(rank))
		lengths[rank], most = other.n, max(most, other.n)
	}
	if most > room {
		if err := c.gather(k, mine, most); err != nil {
			return nil, err
		}
	}
	all := make([][]uint32, c.size)
	for rank, n := range lengths {
		given := c.record(rank)[headerWords:]
		if most > room {
			given = words(c.bulk, (1+rank)*most, most)
		}
		all[rank] = append(make([]uint32, 0, n), given[:n]...)
	}
	return all, c.enlarge(k, most)
}

// enlarge has records be large enough for so many words that a rank gives to a sum, and half as many again, if those of all
// ranks stay small. All ranks do it in the same call.
func (c *nccl) enlarge(k call, n int) error {
	n += headerWords + 1
	each := min(n+n/2, mostRecordWords/c.size)
	if n <= c.each || each <= c.each {
		return nil
	}
	records, err := c.newRecords(each)
	if err != nil {
		return c.without(k, err)
	}
	_ = c.dev.FreeHost(c.records)
	c.records, c.each = records, each
	return nil
}

// without ends the group for a rank that has no memory.
func (c *nccl) without(k call, err error) error {
	err = c.breakUp(abortedBy(c.rank, fmt.Sprintf("call %d of the group, %v: %v", c.number, k, err)))
	c.end((gpu.Group).Abort)
	return err
}

// gather brings each words of all ranks here, behind this one's.
func (c *nccl) gather(k call, mine []uint32, each int) error {
	if err := c.room(k, each*(c.size+1)); err != nil {
		return err
	}
	copy(words(c.bulk, 0, each), mine)
	return c.await(k, false, func() error { return c.group.Gather(c.bulk.Dev, c.bulk.Dev+gpu.Ptr(4*each), each) })
}

// room makes pinned memory of n words. A rank that has none ends the group.
func (c *nccl) room(k call, n int) error {
	if 4*n <= c.bulk.Bytes {
		return nil
	}
	bulk, err := c.dev.AllocHost(4 * n)
	if err != nil {
		return c.without(k, err)
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
	err := c.meet(k, nil, nil)
	if err == nil && len(x) > 0 {
		err = c.room(k, min(len(x), chunk))
	}
	for rest := wordsOf(x); err == nil && len(rest) > 0; {
		n := min(len(rest), chunk)
		copy(words(c.bulk, 0, n), rest[:n])
		if err = c.await(k, false, func() error { return do(c.bulk.Dev, n) }); err == nil {
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

func (c *nccl) Sum(ranges []gpu.Range, scale *float32, mine []uint32) ([][]uint32, error) {
	n := 0
	for i := range ranges {
		n += int(ranges[i].N)
	}
	return c.sum(call{allReduce, n, 0}, mine, func() error { return c.group.Sum(ranges, scale) })
}

func (c *nccl) SumBF16(at uint64, n int, mine []uint32) ([][]uint32, error) {
	return c.sum(call{allReduceBF16, n, 0}, mine, func() error { return c.group.SumBF16(gpu.Ptr(at), n) })
}

// sum is a call that puts a sum behind its round, in which words go to all: how many, and the words.
func (c *nccl) sum(k call, mine []uint32, behind func() error) ([][]uint32, error) {
	if err := c.begin(); err != nil {
		return nil, err
	}
	defer c.call.Unlock()
	if k.n == 0 {
		behind = nil
	}
	if headerWords+1+len(mine) > c.each {
		mine = nil
	}
	if err := c.meet(k, append([]uint32{uint32(len(mine))}, mine...), behind); err != nil {
		return nil, err
	}
	all := make([][]uint32, c.size)
	for rank := range all {
		given := c.record(rank)[headerWords:]
		if given[0] == 0 || int(given[0]) >= len(given) {
			return nil, nil
		}
		all[rank] = slices.Clone(given[1:][:given[0]])
	}
	return all, nil
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
	record := words(c.records, 0, c.each)
	clear(record)
	copy(record, call{kind: telling}.header(c.number))
	text := unsafe.Slice((*byte)(unsafe.Pointer(&record[headerWords])), 4*(c.each-headerWords)-1)
	copy(text, why)
	if err := c.gatherRecords(); err != nil {
		return err
	}
	for since := time.Now(); time.Since(since) < c.patience; c.rest(time.Since(since)) {
		if over, err := c.heard.Done(); over || err != nil {
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
