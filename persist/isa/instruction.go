// Reading instructions back: the one decoder that the footprint, the verifier
// and the disassembler share. It trusts nothing but the table of formats.
package isa

import "fmt"

// Instruction is one instruction of a stream, its lengths checked.
type Instruction struct {
	Op    Opcode
	Fn    uint8
	Flags uint32
	Phase Phase
	Items int
	Words []uint32 // all of them, the first two included
	list  []uint32 // the items, if they are listed
}

// Decode reads the instruction at the start of words, which are of a stream of the script; of the
// script only the lists are read.
func Decode(words, script []uint32) (Instruction, error) {
	var in Instruction
	if len(words) == 0 {
		return in, fmt.Errorf("the stream ends without halt")
	}
	w := words[0]
	in.Op, in.Fn, in.Flags, in.Phase = Opcode(w), uint8(w>>8), w>>16&(1<<PhaseShift-1), Phase(w>>(16+PhaseShift))
	if in.Op >= opcodes {
		return in, fmt.Errorf("opcode %d: there are %d", in.Op, opcodes)
	}
	if in.Op == Halt {
		if w != 0 {
			return in, fmt.Errorf("halt is not a zero word but %#x", w)
		}
		in.Words = words[:1]
		return in, nil
	}
	if in.Op == Chain && (in.Fn == 0 || in.Fn > MaxSlots) {
		return in, fmt.Errorf("%d slots: a chain has 1 to %d", in.Fn, MaxSlots)
	}
	if int(in.Fn) >= functions(in.Op) {
		return in, fmt.Errorf("function %d: %s has %d", in.Fn, in.Op, functions(in.Op))
	}
	if in.Op == Product && !Epilogues[in.Fn] || in.Op == Sum && !Epilogues[in.Fn] && !EpilogueDerivatives[in.Fn] {
		return in, fmt.Errorf("function %s cannot be behind a %s", FnTable[in.Fn].Name, in.Op)
	}
	if in.Flags >= 1<<len(flagNames) {
		return in, fmt.Errorf("unknown flags %#x", in.Flags)
	}
	if in.Phase >= Phases {
		return in, fmt.Errorf("phase %d: there are %d", in.Phase, Phases)
	}
	if len(words) < 2 {
		return in, fmt.Errorf("the stream ends inside it")
	}
	length := int(words[1] & 0xffff)
	in.Items = int(words[1] >> 16)
	if length > MaxWords {
		return in, fmt.Errorf("%d words: at most %d", length, MaxWords)
	}
	if length > len(words) {
		return in, fmt.Errorf("%d words, but the stream has %d left", length, len(words))
	}
	in.Words = words[:max(length, 2)]
	head := in.headWords()
	if in.Flags&Listed != 0 {
		return in, in.findList(length, head, script)
	}
	if want := head + in.Items*ItemWords(in.Op, in.Fn); length < head || length != want {
		return in, fmt.Errorf("%d words, but %d items take %d", length, in.Items, want)
	}
	return in, nil
}

// findList checks an instruction whose items are in the script's lists, and finds them.
func (in *Instruction) findList(length, head int, script []uint32) error {
	switch in.Op {
	case Product, ProductT, Outer:
	default:
		return fmt.Errorf("%s cannot have flag listed", in.Op)
	}
	if length != head+1 {
		return fmt.Errorf("%d words, but with listed items it is %d", length, head+1)
	}
	if n := in.Items * ItemWords(in.Op, in.Fn); n > MaxListed {
		return fmt.Errorf("%d words of listed items: at most %d", n, MaxListed)
	}
	from := uint64(in.Words[head])
	to := from + uint64(in.Items*ItemWords(in.Op, in.Fn))
	if begin, end := lists(script); from < begin || to > end {
		return fmt.Errorf("its items are words %d to %d of the script, but the lists are words %d to %d", from, to, begin, end)
	}
	in.list = script[from:to]
	return nil
}

// functions is the number of functions an opcode selects among.
func functions(op Opcode) int {
	if op == Product || op == Sum {
		return int(Fns)
	}
	switch Formats[op].Items {
	case -1:
		return int(Fns)
	case -2:
		return int(RowFns)
	case -3:
		return int(RandomFns)
	case -4:
		return int(Rules)
	case -5:
		return MaxSlots + 1
	}
	return 1
}

// headWords counts the words before the items.
func (in *Instruction) headWords() int {
	if in.Op == Chain {
		return in.chainHead()
	}
	n := 2 + len(Formats[in.Op].Fields)
	if in.Op == Strided && len(in.Words) >= n {
		kept, reduced := in.Axes()
		n += (kept + reduced) * (2 + FnTable[in.Fn].Arity)
	}
	return n
}

// Runs returns how many of Sum's items stand for several sources, for how many and how far apart.
func (in *Instruction) Runs() (runs, count int, apart uint64, err error) {
	w := in.Field("runs")
	runs, count, apart = int(w&0xffff), int(w>>16), uint64(in.Field("apart"))
	if runs > in.Items {
		err = fmt.Errorf("%d runs, but %d items", runs, in.Items)
	} else if runs > 0 && (count < 1 || count > MaxRun) {
		err = fmt.Errorf("runs of %d sources: 1 to %d", count, MaxRun)
	}
	return runs, count, apart, err
}

// Axes returns Strided's numbers of kept and reduced axes.
func (in *Instruction) Axes() (kept, reduced int) {
	w := in.Field("axes")
	return int(w & 0xff), int(w >> 8)
}

// Field returns a fixed word by its name in Formats.
func (in *Instruction) Field(name string) uint32 {
	for i, f := range Formats[in.Op].Fields {
		if f == name {
			return in.Words[2+i]
		}
	}
	return 0
}

// Has reports whether the instruction has a field.
func (in *Instruction) Has(name string) bool {
	for _, f := range Formats[in.Op].Fields {
		if f == name {
			return true
		}
	}
	return false
}

// Item returns the words of item i.
func (in *Instruction) Item(i int) []uint32 {
	n := ItemWords(in.Op, in.Fn)
	if in.Flags&Listed != 0 {
		return in.list[i*n : (i+1)*n]
	}
	at := in.headWords() + i*n
	return in.Words[at : at+n]
}

// Segment returns the segment that a slot addresses.
func (in *Instruction) Segment(slot int) Segment {
	if in.Op == Chain {
		return Segment(in.ChainSlot(slot) & 15)
	}
	return Segment(in.Field("segments") >> (4 * slot) & 15)
}

// FnName names the function, "" where the opcode has none.
func (in *Instruction) FnName() string {
	if in.Op == Product && Fn(in.Fn) != Copy {
		return FnTable[in.Fn].Name
	}
	switch Formats[in.Op].Items {
	case -1:
		return FnTable[in.Fn].Name
	case -2:
		return RowTable[in.Fn].Name
	case -3:
		return RandomTable[in.Fn].Name
	case -4:
		return RuleTable[in.Fn].Name
	}
	return ""
}

// String names an opcode.
func (op Opcode) String() string {
	if op >= opcodes {
		return fmt.Sprintf("opcode %d", uint8(op))
	}
	return Formats[op].Name
}
