package comm

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
	"unsafe"
)

// Ranks of several processes. A transport moves messages from rank to rank; here they become calls of a group. Each call
// begins with a header of every rank to every other one. So whoever is missing has a name, and calls that differ are
// found before anybody's numbers change.

// transport moves messages between ranks of several processes.
type transport interface {
	// exchange returns when all messages have arrived; else when patience is over, or a rank has told something.
	exchange(messages []message, patience time.Duration) outcome
	// tell has the exchange that runs here end, and those of all other ranks, which it tells a text. It may be called
	// at any time.
	tell(text string)
}

// message is words that are sent to, or received from, a peer.
type message struct {
	words   []uint32
	peer    int
	receive bool
	done    bool // after the exchange
}

// outcome is what became of an exchange; the zero outcome is that all messages are done.
type outcome struct {
	late bool
	told string // what another rank has told
	err  error  // of the transport
}

// peers is a rank of a group that a transport connects.
type peers struct {
	rank, size int
	patience   time.Duration
	to         transport

	call   sync.Mutex // held during a call
	number uint64     // of calls so far

	mu     sync.Mutex // of broken
	broken error
}

func (p *peers) Rank() int { return p.rank }
func (p *peers) Size() int { return p.size }

// mostWords is how many words a message has at most: transports count with 32 bits.
const mostWords = 1 << 28

// add appends messages of some words to a list.
func add(list []message, words []uint32, peer int, receive bool) []message {
	for len(words) > 0 {
		n := min(len(words), mostWords)
		list = append(list, message{words: words[:n], peer: peer, receive: receive})
		words = words[n:]
	}
	return list
}

// headerWords are the call's number, its kind, how many floats or words, and the rank that a broadcast is from.
const headerWords = 6

func (c call) header(number uint64) []uint32 {
	return []uint32{uint32(number), uint32(number >> 32), uint32(c.kind), uint32(c.n), uint32(uint64(c.n) >> 32), uint32(c.from)}
}

func callOf(header []uint32) (c call, number uint64) {
	return call{kind(header[2]), int(uint64(header[3]) | uint64(header[4])<<32), int(header[5])}, uint64(header[0]) | uint64(header[1])<<32
}

// meet exchanges headers. It returns those of all ranks, which are in the same call.
func (p *peers) meet(c call) ([]call, error) {
	if !p.call.TryLock() {
		return nil, &kindError{ErrArgument, fmt.Sprintf("rank %d is in two calls at once: a rank makes one after the other", p.rank)}
	}
	if err := p.lost(); err != nil {
		p.call.Unlock()
		return nil, err
	}
	p.number++
	all := make([]uint32, p.size*headerWords)
	mine := c.header(p.number)
	copy(all[p.rank*headerWords:], mine)
	var list []message
	for peer := range p.size {
		if peer != p.rank {
			list = add(list, mine, peer, false)
			list = add(list, all[peer*headerWords:][:headerWords], peer, true)
		}
	}
	err := p.move(c, list)
	calls := make([]call, p.size)
	for peer := 0; err == nil && peer < p.size; peer++ {
		var number uint64
		if calls[peer], number = callOf(all[peer*headerWords:]); number != p.number {
			err = p.breakUp(&kindError{ErrDiffers, fmt.Sprintf("rank %d is in its call %d of the group, rank %d in its call %d", p.rank, p.number, peer, number)})
		} else if first := calls[0]; !calls[peer].same(first) {
			err = p.breakUp(different(p.number, first, peer, calls[peer]))
		}
	}
	if err != nil {
		p.call.Unlock()
		return nil, err
	}
	return calls, nil
}

// same reports whether two ranks are in the same call; each brings as many words to an all-gather as it likes.
func (c call) same(other call) bool {
	return c == other || c.kind == allGather && other.kind == allGather
}

// move makes an exchange, and breaks the group unless all messages are done. Their memory is then left to them for ever.
func (p *peers) move(c call, list []message) error {
	pins := new(runtime.Pinner)
	for i := range list {
		pins.Pin(unsafe.SliceData(list[i].words))
	}
	o := p.to.exchange(list, p.patience)
	if o.err != nil || o.told != "" || o.late {
		underWay.Lock()
		underWay.pins = append(underWay.pins, pins)
		underWay.Unlock()
	}
	switch {
	case o.err != nil:
		return p.breakUp(&kindError{ErrAborted, fmt.Sprintf("call %d of the group, %v: %v", p.number, c, o.err)})
	case o.told != "":
		return p.breakUp(toldError(o.told))
	case o.late:
		missing := make([]bool, p.size)
		for _, m := range list {
			missing[m.peer] = missing[m.peer] || !m.done && m.receive
		}
		err := p.breakUp(absent(p.number, c, func(rank int) bool { return missing[rank] }, p.size, p.patience))
		p.to.tell(tellable(err))
		return err
	}
	pins.Unpin()
	return nil
}

// underWay keeps the memory of messages that were not done. A Pinner that is collected with its pins is a panic.
var underWay struct {
	sync.Mutex
	pins []*runtime.Pinner
}

func (p *peers) lost() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken
}

// breakUp ends the group for this rank. It returns the first error that did.
func (p *peers) breakUp(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken == nil {
		p.broken = err
	}
	return p.broken
}

func (p *peers) Abort(why error) {
	err := abortedBy(p.rank, why.Error())
	if p.breakUp(err) == err {
		p.to.tell(tellable(err))
	}
}

// tellable is an error as a text that ranks tell one another: a letter for its kind, and its own text.
func tellable(err error) string {
	if errors.Is(err, ErrAbsent) {
		return "m" + err.Error()
	}
	return "a" + err.Error()
}

// toldError is that error again.
func toldError(told string) error {
	if told[0] == 'm' {
		return &kindError{ErrAbsent, told[1:]}
	}
	return &kindError{ErrAborted, told[1:]}
}

func (p *peers) Barrier() error {
	_, err := p.meet(call{kind: barrier})
	if err == nil {
		p.call.Unlock()
	}
	return err
}

func (p *peers) AllGather(mine []uint32) ([][]uint32, error) {
	calls, err := p.meet(call{kind: allGather, n: len(mine)})
	if err != nil {
		return nil, err
	}
	defer p.call.Unlock()
	all := make([][]uint32, p.size)
	var list []message
	for peer := range all {
		if all[peer] = make([]uint32, calls[peer].n); peer == p.rank {
			copy(all[peer], mine)
			continue
		}
		list = add(list, mine, peer, false)
		list = add(list, all[peer], peer, true)
	}
	if err := p.move(calls[p.rank], list); err != nil {
		return nil, err
	}
	return all, nil
}

func (p *peers) Broadcast(x []float32, from int) error {
	if from < 0 || from >= p.size {
		return &kindError{ErrArgument, fmt.Sprintf("broadcast from rank %d of %d", from, p.size)}
	}
	c := call{broadcast, len(x), from}
	if _, err := p.meet(c); err != nil {
		return err
	}
	defer p.call.Unlock()
	var list []message
	if p.rank != from {
		list = add(list, wordsOf(x), from, true)
	} else {
		for peer := range p.size {
			if peer != from {
				list = add(list, wordsOf(x), peer, false)
			}
		}
	}
	return p.move(c, list)
}

// AllReduce gives each rank a share of the elements. It adds them up in the order of ranks, and gives the sums to all. So
// all ranks have the same bits, which reductions of MPI do not promise.
func (p *peers) AllReduce(x []float32) error { return p.reduce(x, false) }

// AllReduceBF16 does so with two elements in each word that is sent.
func (p *peers) AllReduceBF16(x []float32) error { return p.reduce(x, true) }

func (p *peers) reduce(x []float32, half bool) error {
	c := call{allReduce, len(x), 0}
	if half {
		c.kind = allReduceBF16
	}
	if _, err := p.meet(c); err != nil {
		return err
	}
	defer p.call.Unlock()
	of := func(rank int) []float32 { return x[share(len(x), rank, p.size):share(len(x), rank+1, p.size)] }
	mine := of(p.rank)
	parts := make([][]float32, p.size)
	for peer := range parts {
		if parts[peer] = mine; peer != p.rank {
			parts[peer] = make([]float32, len(mine))
		}
	}
	if half {
		roundBF16(mine)
	}
	if err := p.swap(c, of, func(peer int) []float32 { return parts[peer] }, half); err != nil {
		return err
	}
	for i := range mine {
		sum := parts[0][i]
		for _, part := range parts[1:] {
			sum += part[i]
		}
		mine[i] = sum
	}
	if half {
		roundBF16(mine)
	}
	return p.swap(c, func(int) []float32 { return mine }, of, half)
}

// swap gives each peer some floats, and takes others from it.
func (p *peers) swap(c call, give, take func(peer int) []float32, half bool) error {
	var list []message
	packed := make([][]uint32, p.size) // that are taken
	for peer := range p.size {
		if peer == p.rank {
			continue
		}
		given, taken := wordsOf(give(peer)), wordsOf(take(peer))
		if half {
			given, taken = packBF16(give(peer)), make([]uint32, wordsOfBF16(len(taken)))
		}
		packed[peer] = taken
		list = add(list, given, peer, false)
		list = add(list, taken, peer, true)
	}
	if err := p.move(c, list); err != nil || !half {
		return err
	}
	for peer, words := range packed {
		if peer != p.rank {
			unpackBF16(words, take(peer))
		}
	}
	return nil
}

// wordsOf is floats as words.
func wordsOf(x []float32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}
