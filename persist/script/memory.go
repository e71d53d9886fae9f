package script

import (
	"fmt"
	"math"

	"libvpps/persist/isa"
	"libvpps/persist/memory"
)

// errFull is of a batch whose values and gradients do not fit segment act.
var errFull = fmt.Errorf("%w: the batch needs more than 16 GiB of activations: use a smaller batch", memory.ErrExhausted)

// errLong is of a script that 32-bit addresses cannot reach the end of.
var errLong = fmt.Errorf("%w: the batch needs a script of more than 16 GiB: use a smaller batch", memory.ErrExhausted)

// highest is the first float of segment act that is not used: addresses are rounded up.
const highest = math.MaxUint32 - 64

// arena is free memory of segment act: one run, or chunks in turn with others.
type arena struct {
	top, limit  uint32 // what is at hand
	chunk, turn uint32 // floats of a chunk, chunks from one of ours to the next; 0: there are none
	next        uint64 // where our next chunk begins
	full        bool   // there was not enough

	checked bool     // the script has a tensor table
	tensors []uint32 // that table so far: triples
}

// take reserves n floats.
func (a *arena) take(n uint64) uint32 {
	if uint64(a.top)+n > uint64(a.limit) {
		a.refill(n)
	}
	at := a.top
	a.top += uint32(n)
	return at
}

// refill takes the next chunk; without one, it lets memory overlap, and says so.
func (a *arena) refill(n uint64) {
	if a.chunk > 0 && n > uint64(a.chunk) {
		panic(fmt.Sprintf("%d floats in chunks of %d", n, a.chunk))
	}
	if a.chunk == 0 || a.next+uint64(a.chunk) > highest {
		a.full, a.top = true, 0
		return
	}
	a.top, a.limit = uint32(a.next), uint32(a.next)+a.chunk
	a.next += uint64(a.chunk) * uint64(a.turn)
}

// alloc reserves n floats of segment act, 16-byte aligned.
func (a *arena) alloc(n int) uint32 {
	at := a.take((uint64(n) + 3) &^ 3)
	if a.checked {
		a.tensors = append(a.tensors, uint32(isa.SegAct), at, uint32(n))
	}
	return at
}

// allocHolders reserves a partial result of size floats for each holder, without gaps.
func (a *arena) allocHolders(holders, size uint32) uint32 {
	return a.alloc(int(holders) * int(size))
}

// startAt makes it one run of memory.
func (a *arena) startAt(top uint32) {
	a.top, a.limit, a.chunk, a.turn, a.next, a.full = top, highest, 0, 0, 0, false
}

// inChunks makes it chunks in turn with others', a turn, of which there are none yet.
func (a *arena) inChunks(chunk uint32, turn int) {
	a.top, a.limit, a.chunk, a.turn, a.next, a.full = 0, 0, chunk, uint32(turn), 0, false
}

// chunksFrom says where the first of them is: number k from an address on.
func (a *arena) chunksFrom(at uint32, k int) { a.next = uint64(at) + uint64(k)*uint64(a.chunk) }
