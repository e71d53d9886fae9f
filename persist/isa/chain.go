package isa

// Chain: element-wise operations whose intermediate values stay with the thread. Its words behind the
// fixed fields are a byte for each slot, then the operations, then the items.

import (
	"errors"
	"fmt"
)

// MaxSlots is how many vectors a Chain works with at most. Its function is how many there are.
const MaxSlots = 32

// What a Chain does with a slot's vector: bits of the slot's byte, above the segment.
const (
	ChainRead    = 0x10 // it is loaded before the first operation
	ChainWritten = 0x20 // it is stored after the last
)

// ChainOpWords is how many words an operation of a Chain has: ChainOp, p, q.
const ChainOpWords = 3

// ChainOp packs the first word of an operation: slot dst = f(slots a, b, c), those of them that the
// function has; acc adds to what the slot has. The others must be 0.
func ChainOp(fn Fn, dst, a, b, c uint32, acc bool) uint32 {
	w := uint32(fn) | dst<<8 | a<<13 | b<<18 | c<<23
	if acc {
		w |= 1 << 28
	}
	return w
}

// WithSlots is the first word of an operation with other slots: slot[s] for s.
func WithSlots(w uint32, slot *[MaxSlots]uint32) uint32 {
	o := unpackChainOp(w)
	for i := range o.inputs() {
		o.in[i] = slot[o.in[i]]
	}
	return ChainOp(o.fn, slot[o.dst], o.in[0], o.in[1], o.in[2], o.acc)
}

// chainOp is an operation unpacked; its inputs are as many of in as the function has.
type chainOp struct {
	fn  Fn
	dst uint32
	in  [3]uint32
	acc bool
}

func unpackChainOp(w uint32) chainOp {
	return chainOp{Fn(w), w >> 8 & 31, [3]uint32{w >> 13 & 31, w >> 18 & 31, w >> 23 & 31}, w>>28&1 != 0}
}

// inputs are the slots that the function reads; nil where there is no such function.
func (o *chainOp) inputs() []uint32 {
	if o.fn >= Fns {
		return nil
	}
	return o.in[:min(len(o.in), FnTable[o.fn].Arity)]
}

// chainHead counts the words of a Chain before its items.
func (in *Instruction) chainHead() int {
	n := 2 + len(Formats[Chain].Fields)
	if len(in.Words) >= n {
		n += (int(in.Fn)+3)/4 + ChainOpWords*int(in.Field("operations"))
	}
	return n
}

// ChainSlot is the byte of a Chain's slot.
func (in *Instruction) ChainSlot(slot int) uint32 {
	return in.Words[2+len(Formats[Chain].Fields)+slot/4] >> (8 * (slot % 4)) & 0xff
}

// ChainOps are the words of a Chain's operations.
func (in *Instruction) chainOps() []uint32 {
	return in.Words[2+len(Formats[Chain].Fields)+(int(in.Fn)+3)/4 : in.chainHead()]
}

// CheckChain holds slots and operations against each other.
func (in *Instruction) CheckChain() error {
	if in.Flags&^Sync != 0 {
		return fmt.Errorf("%s can have no flag but sync", in.Op)
	}
	slots, ops := int(in.Fn), in.chainOps()
	if len(ops) == 0 {
		return errors.New("no operations")
	}
	valued, results := uint32(0), uint32(0)
	for s := range slots {
		w := in.ChainSlot(s)
		if w >= ChainWritten<<1 {
			return fmt.Errorf("slot %d: unknown bits %#x", s, w)
		}
		if Segment(w&15) >= Segments {
			return fmt.Errorf("slot %d is in segment %d: there are %d", s, w&15, Segments)
		}
		if w&ChainRead != 0 {
			valued |= 1 << s
		}
	}
	for i := 0; len(ops) > 0; i, ops = i+1, ops[ChainOpWords:] {
		o := unpackChainOp(ops[0])
		if err := o.check(ops[0], slots, valued); err != nil {
			return fmt.Errorf("operation %d: %w", i, err)
		}
		valued |= 1 << o.dst
		results |= 1 << o.dst
	}
	for s := range slots {
		if in.ChainSlot(s)&ChainWritten != 0 && results>>s&1 == 0 {
			return fmt.Errorf("slot %d is written, but is no operation's result", s)
		}
	}
	return nil
}

// check checks an operation on so many slots, of which those of a bit mask have a value.
func (o *chainOp) check(word uint32, slots int, valued uint32) error {
	if o.fn >= Fns {
		return fmt.Errorf("function %d: there are %d", o.fn, Fns)
	}
	used := [3]uint32{}
	copy(used[:], o.inputs())
	if word != ChainOp(o.fn, o.dst, used[0], used[1], used[2], o.acc) {
		return fmt.Errorf("%#x has bits that %s has no use for", word, FnTable[o.fn].Name)
	}
	if int(o.dst) >= slots {
		return fmt.Errorf("slot %d: there are %d", o.dst, slots)
	}
	for _, s := range o.inputs() {
		if int(s) >= slots {
			return fmt.Errorf("slot %d: there are %d", s, slots)
		}
		if valued>>s&1 == 0 {
			return fmt.Errorf("slot %d has no value yet", s)
		}
	}
	if o.acc && valued>>o.dst&1 == 0 {
		return fmt.Errorf("slot %d is added to, but has no value yet", o.dst)
	}
	return nil
}

// Overlapping finds a slot whose vector of n elements overlaps with that of slot s, -1: none.
func (in *Instruction) Overlapping(item []uint32, s int, n uint64) int {
	a := uint64(item[s])
	for t, b := range item {
		if b := uint64(b); t != s && in.ChainSlot(t) >= ChainRead && in.Segment(t) == in.Segment(s) && a < b+n && b < a+n {
			return t
		}
	}
	return -1
}
