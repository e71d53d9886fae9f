package isa

// What a processor leaves when it gives up: words that the kernel writes on both devices, and the
// sentence made of them.

import (
	"fmt"
	"sort"
)

// Stop is a processor that gave up, as the kernel reports it; its zero value: none did.
type Stop [StopWords]uint32

// Words of a Stop. The details are
//
//	LostSignal       barrier, signals that came, signals expected
//	OutsideTensors   item, operand, segment, first and last element
//	OutsideLists     the first item's word of the script, the end of the items
const (
	StopCode = iota
	StopProcessor
	StopWord // of the processor's stream, where the instruction begins
	StopBatch
	StopDetail
	StopWords = StopDetail + 5
)

// Why a processor gives up.
const (
	Running        = iota
	LostSignal     // a wait took too long
	NoInstruction  // an opcode or a length that does not exist
	OutsideTensors // in a checking build: an operand is in no tensor
	OutsideLists   // in a checking build: listed items are not among the script's lists
)

// Error is the sentence; words are the script's, as far as they are still known, and seconds is the
// limit of a wait.
func (s *Stop) Error(words []uint32, seconds float64) error {
	in, index := s.instruction(words)
	place := fmt.Sprintf("processor %d, word %d of its script", s[StopProcessor], s[StopWord])
	if in != nil {
		name := in.Op.String()
		if f := in.FnName(); f != "" {
			name += "." + f
		}
		place = fmt.Sprintf("processor %d, instruction %d (%s)", s[StopProcessor], index, name)
	}
	d := s[StopDetail:]
	switch s[StopCode] {
	case Running:
		return nil
	case LostSignal:
		return fmt.Errorf("%s: barrier %d has %d of %d signals after %g s: a signal is lost (VPPS_WAIT_SECONDS sets the limit)", place, d[0], d[1], d[2], seconds)
	case OutsideTensors:
		return fmt.Errorf("%s: operand %d of item %d, %s+%d..%d, %s", place, d[1], d[0], segmentName(d[2]), d[3], d[4], whereabouts(words, d[2], d[3]))
	case OutsideLists:
		begin, end := lists(words)
		return fmt.Errorf("%s: its items are words %d to %d of the script, but the lists are words %d to %d", place, d[0], d[1], begin, end)
	}
	return fmt.Errorf("%s: not an instruction", place)
}

// instruction finds what the processor was at, nil where the words do not lead there.
func (s *Stop) instruction(words []uint32) (in *Instruction, index int) {
	at := HeadWords + int(s[StopProcessor])*ProcWords
	if len(words) < HeadWords || at+ProcWords > len(words) || uint64(words[at+ProcStart]) > uint64(len(words)) {
		return nil, 0
	}
	for stream, word := words[words[at+ProcStart]:], 0; word <= int(s[StopWord]); index++ {
		in, err := Decode(stream, words)
		if err != nil || in.Op == Halt {
			return nil, 0
		}
		if word == int(s[StopWord]) {
			return &in, index
		}
		word += len(in.Words)
		stream = stream[len(in.Words):]
	}
	return nil, 0
}

func segmentName(s uint32) string {
	if s < uint32(Segments) {
		return Segment(s).String()
	}
	return fmt.Sprintf("segment %d", s)
}

// whereabouts says which tensor an operand begins in.
func whereabouts(words []uint32, segment, first uint32) string {
	if len(words) < HeadWords || uint64(words[HeadTensorEnd]) > uint64(len(words)) || words[HeadTensors] > words[HeadTensorEnd] {
		return "is in no tensor"
	}
	table := words[words[HeadTensors]:words[HeadTensorEnd]]
	entry := func(i int) []uint32 { return table[i*TensorWords:][:TensorWords] }
	i := sort.Search(len(table)/TensorWords, func(i int) bool {
		e := entry(i)
		return e[0]&255 > segment || e[0]&255 == segment && e[1] > first
	}) - 1
	if i < 0 || entry(i)[0]&255 != segment || first-entry(i)[1] >= entry(i)[2] {
		return "is in no tensor"
	}
	return fmt.Sprintf("leaves tensor %d, %s+%d, %d long", i, segmentName(segment), entry(i)[1], entry(i)[2])
}
