// A small assembler for scripts written by hand: tests, examples and tools. The
// lowering has its own, faster way of emitting words.
package isa

import (
	"math"
	"slices"
)

// Assembler collects the parts of a script.
type Assembler struct {
	Streams  [][]uint32 // by processor, without the final halt
	Barriers int
	Lists    []uint32 // items that instructions share
	Inputs   []uint32 // segment input
	Tensors  []uint32 // table entries
}

// NewAssembler makes a number of processors.
func NewAssembler(processors int) *Assembler {
	return &Assembler{Streams: make([][]uint32, processors)}
}

// Tensor adds a table entry; a segment's entries must come in order.
func (a *Assembler) Tensor(segment Segment, flags, offset, length uint32) {
	a.Tensors = append(a.Tensors, uint32(segment)|flags<<8, offset, length)
}

// Do appends an instruction to a processor's stream. Head holds the words between
// the second one and the items.
func (a *Assembler) Do(processor int, op Opcode, fn uint8, flags uint32, head []uint32, items ...[]uint32) {
	n := 2 + len(head)
	for _, it := range items {
		n += len(it)
	}
	s := append(a.Streams[processor], uint32(op)|uint32(fn)<<8|flags<<16, uint32(n)|uint32(len(items))<<16)
	s = append(s, head...)
	for _, it := range items {
		s = append(s, it...)
	}
	a.Streams[processor] = s
}

// Chain appends a Chain over vectors of n elements: a byte for each slot, three words for each operation
// (ChainOp, p, q), and items of an address for each slot.
func (a *Assembler) Chain(processor int, flags uint32, n int, slots []uint32, operations []uint32, items ...[]uint32) {
	head := make([]uint32, 2+(len(slots)+3)/4)
	head[0], head[1] = uint32(n), uint32(len(operations)/ChainOpWords)
	for s, w := range slots {
		head[2+s/4] |= w << (8 * (s % 4))
	}
	a.Do(processor, Chain, uint8(len(slots)), flags, append(head, operations...), items...)
}

// DoListed appends an instruction whose items are in the script's lists. Equal lists are one.
func (a *Assembler) DoListed(processor int, op Opcode, flags uint32, head []uint32, items ...[]uint32) {
	list := slices.Concat(items...)
	at := 0
	for at < len(a.Lists) && (at+len(list) > len(a.Lists) || !slices.Equal(a.Lists[at:at+len(list)], list)) {
		at++
	}
	if at == len(a.Lists) {
		a.Lists = append(a.Lists, list...)
	}
	start := len(a.Streams[processor])
	a.Do(processor, op, 0, flags|Listed, head, []uint32{uint32(ListsAt(len(a.Streams)) + at)})
	a.Streams[processor][start+1] = uint32(2+len(head)+1) | uint32(len(items))<<16
}

// Signal, Wait: on a barrier.
func (a *Assembler) Signal(processor int, barrier uint32) {
	a.Barriers = max(a.Barriers, int(barrier)+1)
	a.Do(processor, Signal, 0, 0, []uint32{barrier})
}

// Wait waits for the expected number of signals.
func (a *Assembler) Wait(processor int, barrier, expected uint32) {
	a.Barriers = max(a.Barriers, int(barrier)+1)
	a.Do(processor, Wait, 0, 0, []uint32{barrier, expected})
}

// Script puts the parts together.
func (a *Assembler) Script() *Script {
	n := len(a.Streams)
	w := make([]uint32, HeadWords+n*ProcWords)
	w[HeadMagic], w[HeadProcessors], w[HeadBarriers] = Magic, uint32(n), uint32(a.Barriers)
	w[HeadLists] = uint32(len(w))
	w = append(w, a.Lists...)
	w[HeadListEnd] = uint32(len(w))
	for i, s := range a.Streams {
		w = Align(w)
		w[HeadWords+i*ProcWords+ProcStart] = uint32(len(w))
		w = append(append(w, s...), uint32(Halt))
	}
	for len(w)%BarrierStride != 0 {
		w = append(w, 0)
	}
	w[HeadCounters] = uint32(len(w))
	w = append(w, make([]uint32, a.Barriers*BarrierStride)...)
	w[HeadInputs] = uint32(len(w))
	w = append(w, a.Inputs...)
	w[HeadDevice], w[HeadTensors] = uint32(len(w)), uint32(len(w))
	for s := range Segments {
		for t := a.Tensors; len(t) > 0; t = t[TensorWords:] {
			if Segment(t[0]) == s {
				w = append(w, t[:TensorWords]...)
			}
		}
	}
	w[HeadTensorEnd] = uint32(len(w))
	return &Script{Words: w}
}

// Segs packs the segments of an instruction's slots.
func Segs(slots ...Segment) uint32 {
	w := uint32(0)
	for i, s := range slots {
		w |= uint32(s) << (4 * i)
	}
	return w
}

// Float is a float32 as a word.
func Float(x float32) uint32 { return math.Float32bits(x) }
