package isa

// The layout of a script: header, processor table, lists, streams, barrier counters, inputs, tensor table.

import "iter"

// Header words of a script, in this order.
const (
	HeadMagic      = iota // Magic, which is of this instruction set
	HeadProcessors        // number of processors
	HeadBarriers          // number of barriers
	HeadLists             // word offset of the lists that instructions share
	HeadListEnd           // their end; the streams follow
	HeadCounters          // word offset of the barrier counters, BarrierStride words apart
	HeadInputs            // word offset of segment input
	HeadDevice            // words that a device fetches; what follows is for the verifier
	HeadTensors           // word offset of the tensor table
	HeadTensorEnd         // its end
	HeadWords
)

// After the header comes the processor table, with ProcWords words for each processor: the word offset of its instructions.
const (
	ProcStart = iota
	ProcWords
)

// BarrierStride is the distance of two counters in words: one cache line each.
const BarrierStride = 32

// A tensor table entry: segment | flags<<8, offset, length. It says which memory an
// instruction may touch; entries are sorted by segment and offset and do not overlap.
const TensorWords = 3

// LiveIn is a tensor flag: it is defined before the launch.
const LiveIn = 1

// Script is the program of one launch.
type Script struct{ Words []uint32 }

// Processors is the number of processors the script drives.
func (s *Script) Processors() int { return int(s.Words[HeadProcessors]) }

// lists returns the region of the lists that instructions share, its end behind the script's if the
// script is too short to have one.
func lists(words []uint32) (begin, end uint64) {
	if len(words) < HeadWords {
		return 0, 0
	}
	return uint64(words[HeadLists]), min(uint64(words[HeadListEnd]), uint64(len(words)))
}

// Instructions yields the instructions of processor p up to its Halt, and an error in place of the first that is none.
func (s *Script) Instructions(p int) iter.Seq2[*Instruction, error] {
	start := s.Words[HeadWords+p*ProcWords+ProcStart]
	return func(yield func(*Instruction, error) bool) {
		for stream := s.Words[start:s.Words[HeadCounters]]; ; {
			in, err := Decode(stream, s.Words)
			if err == nil && in.Op == Halt || !yield(&in, err) || err != nil {
				return
			}
			stream = stream[len(in.Words):]
		}
	}
}

// Recycled yields the runs of segment act that no value of an earlier launch lives in, begin and
// end: what a launch finds there it must not use. The script needs its tensor table.
func (s *Script) Recycled() iter.Seq2[uint32, uint32] {
	return func(yield func(uint32, uint32) bool) {
		at, end := uint32(0), uint32(0)
		for t := s.Words[s.Words[HeadTensors]:s.Words[HeadTensorEnd]]; len(t) > 0; t = t[TensorWords:] {
			if Segment(t[0]) != SegAct {
				continue
			}
			switch live := t[0]>>8&LiveIn != 0; {
			case !live && end == 0:
				at, end = t[1], t[1]+t[2]
			case !live:
				end = t[1] + t[2] // what lies between two tensors belongs to none
			case end != 0:
				if !yield(at, end) {
					return
				}
				end = 0
			}
		}
		if end != 0 {
			yield(at, end)
		}
	}
}

// Align appends Halt up to a multiple of four words: the GPU fetches 16 bytes at a time.
func Align(w []uint32) []uint32 {
	for len(w)%4 != 0 {
		w = append(w, uint32(Halt))
	}
	return w
}

// ListsAt is where in a script the lists begin.
func ListsAt(processors int) int { return HeadWords + processors*ProcWords }
