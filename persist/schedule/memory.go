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

// arena is free memory of segment act.
type arena struct {
	Top  uint32
	Full bool // there was not enough

	Checked bool     // the script has a tensor table
	Tensors []uint32 // that table so far, as it is in a script
}

// Take reserves n floats. If there are not enough, it lets memory overlap, and says so.
func (a *arena) Take(n uint64) uint32 {
	if uint64(a.Top)+n > highest {
		a.Full, a.Top = true, 0
	}
	at := a.Top
	a.Top += uint32(n)
	return at
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

// StartAt makes all memory from an address on free.
func (a *arena) StartAt(top uint32) { a.Top, a.Full = top, false }
