package schedule

import (
	"fmt"
	"math"

	"libvpps/persist/isa"
	"libvpps/persist/memory"
)

// ErrFull is of a batch whose values and gradients do not fit segment act.
var ErrFull = fmt.Errorf("%w: the batch needs more than 16 GiB of activations: use a smaller batch", memory.ErrExhausted)

// ErrLong is of a script that 32-bit addresses cannot reach the end of.
var ErrLong = fmt.Errorf("%w: the batch needs a script of more than 16 GiB: use a smaller batch", memory.ErrExhausted)

// highest is the first float of segment act that is not used: addresses are rounded up.
const highest = math.MaxUint32 - 64

// arena is free memory of segment act: one run, or chunks in turn with others.
type arena struct {
	Top, Limit  uint32 // what is at hand
	Chunk, turn uint32 // floats of a chunk, chunks from one of ours to the next; 0: there are none
	next        uint64 // where our next chunk begins
	Full        bool   // there was not enough

	Checked bool     // the script has a tensor table
	Tensors []uint32 // that table so far, as it is in a script
}

// Take reserves n floats.
func (a *arena) Take(n uint64) uint32 {
	if uint64(a.Top)+n > uint64(a.Limit) {
		a.refill(n)
	}
	at := a.Top
	a.Top += uint32(n)
	return at
}

// refill takes the next chunk; without one, it lets memory overlap, and says so.
func (a *arena) refill(n uint64) {
	if a.Chunk > 0 && n > uint64(a.Chunk) {
		panic(fmt.Sprintf("%d floats in chunks of %d", n, a.Chunk))
	}
	if a.Chunk == 0 || a.next+uint64(a.Chunk) > highest {
		a.Full, a.Top = true, 0
		return
	}
	a.Top, a.Limit = uint32(a.next), uint32(a.next)+a.Chunk
	a.next += uint64(a.Chunk) * uint64(a.turn)
}

// Alloc reserves n floats of segment act, 16-byte aligned.
func (a *arena) Alloc(n int) uint32 {
	at := a.Take((uint64(n) + 3) &^ 3)
	if a.Checked {
		a.Tensors = append(a.Tensors, uint32(isa.SegAct), at, uint32(n))
	}
	return at
}

// AllocHolders reserves a partial result of size floats for each holder, without gaps.
func (a *arena) AllocHolders(holders, size uint32) uint32 {
	return a.Alloc(int(holders) * int(size))
}

// StartAt makes it one run of memory.
func (a *arena) StartAt(top uint32) {
	a.Top, a.Limit, a.Chunk, a.turn, a.next, a.Full = top, highest, 0, 0, 0, false
}

// InChunks makes it chunks in turn with others', a turn, of which there are none yet.
func (a *arena) InChunks(chunk uint32, turn int) {
	a.Top, a.Limit, a.Chunk, a.turn, a.next, a.Full = 0, 0, chunk, uint32(turn), 0, false
}

// ChunksFrom says where the first of them is: number k from an address on.
func (a *arena) ChunksFrom(at uint32, k int) { a.next = uint64(at) + uint64(k)*uint64(a.Chunk) }
