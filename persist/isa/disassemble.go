// Scripts as text, for people: vpps_script_dump, error reports, tests. It prints what
// it can of a damaged script and never fails on one.
package isa

import (
	"fmt"
	"math"
	"strings"
)

// shownItems is how many items of a list are printed before it is shortened.
const shownItems = 6

// Disassemble returns a script as text.
func Disassemble(s *Script) string {
	b := new(strings.Builder)
	words := s.Words
	if len(words) < HeadWords || words[HeadMagic] != Magic {
		fmt.Fprintf(b, "no script: %d words without the magic number\n", len(words))
		return b.String()
	}
	fmt.Fprintf(b, "script: %d words, %d of them for the device; %d processors, %d barriers, lists from word %d to %d\n",
		len(words), words[HeadDevice], words[HeadProcessors], words[HeadBarriers], words[HeadLists], words[HeadListEnd])
	for p := range int(min(words[HeadProcessors], uint32(len(words)))) {
		at := HeadWords + p*ProcWords
		if at+ProcWords > len(words) {
			fmt.Fprintf(b, "damaged: the processor table ends before processor %d\n", p)
			break
		}
		start := words[at+ProcStart]
		fmt.Fprintf(b, "\nprocessor %d: from word %d\n", p, start)
		disassembleStream(b, int(start), words)
	}
	disassembleTensors(b, words)
	return b.String()
}

// disassembleStream writes the instructions from a word to their Halt.
func disassembleStream(b *strings.Builder, from int, script []uint32) {
	end := min(int(script[HeadCounters]), len(script))
	if from >= end {
		fmt.Fprintf(b, "damaged: its stream starts behind the last, at word %d\n", end)
		return
	}
	for stream, index := script[from:end], 0; ; index++ {
		in, err := Decode(stream, script)
		if err != nil {
			fmt.Fprintf(b, "%6d  damaged: %s: %v; words %x\n", index, in.Op, err, stream[:min(len(stream), 8)])
			return
		}
		fmt.Fprintf(b, "%6d  %s\n", index, in.String())
		if in.Op == Halt {
			return
		}
		stream = stream[len(in.Words):]
	}
}

// String prints an instruction on one line.
func (in *Instruction) String() string {
	var b strings.Builder
	b.WriteString(in.Op.String())
	if name := in.FnName(); name != "" {
		b.WriteString("." + name)
	}
	for i, name := range flagNames {
		if in.Flags&(1<<i) != 0 {
			b.WriteString(" " + name)
		}
	}
	if in.Phase != NoPhase {
		b.WriteString(" (" + in.Phase.String() + ")")
	}
	for _, name := range Formats[in.Op].Fields {
		if name != "segments" && name != "axes" {
			fmt.Fprintf(&b, " %s=%s", name, in.fieldText(name))
		}
	}
	switch in.Op {
	case Strided:
		b.WriteString(in.axesText())
	case Chain:
		b.WriteString(in.chainText())
	}
	if in.Flags&Listed != 0 {
		fmt.Fprintf(&b, " at %d", in.Words[len(in.Words)-1])
	}
	for i := range min(in.Items, shownItems) {
		b.WriteString(" " + in.itemText(i))
	}
	if in.Items > shownItems {
		fmt.Fprintf(&b, " ... %d items", in.Items)
	}
	return b.String()
}

// slotOfField is the slot that a fixed address belongs to.
var slotOfField = map[string]int{"dst": 0, "bias": 2, "partials": 1, "result": 0}

func (in *Instruction) fieldText(name string) string {
	w := in.Field(name)
	switch name {
	case "value", "p", "q", "r", "scale", "bias_scale", "threshold", "rate":
		if w == Sentinel {
			return "sentinel"
		}
		return fmt.Sprint(math.Float32frombits(w))
	}
	if slot, ok := slotOfField[name]; ok {
		return in.addressText(slot, w)
	}
	return fmt.Sprint(w)
}

func (in *Instruction) axesText() string {
	kept, reduced := in.Axes()
	n := kept + reduced
	words := in.Words[2+len(Formats[Strided].Fields):]
	var b strings.Builder
	fmt.Fprintf(&b, " sizes=%v", words[:kept])
	if reduced > 0 {
		fmt.Fprintf(&b, "+%v", words[kept:n])
	}
	for slot := range 1 + FnTable[in.Fn].Arity {
		fmt.Fprintf(&b, " strides%d=%v", slot, words[(1+slot)*n:(2+slot)*n])
	}
	return b.String()
}

// chainText prints what a chain does with its slots, numbered as an item's words: "r" those that are
// loaded, "w" those that are stored.
func (in *Instruction) chainText() string {
	var b strings.Builder
	for s := range int(in.Fn) {
		if w := in.ChainSlot(s); w >= ChainRead {
			fmt.Fprintf(&b, " s%d:%s%s", s, [2]string{"", "r"}[w/ChainRead&1], [2]string{"", "w"}[w/ChainWritten&1])
		}
	}
	for ops := in.chainOps(); len(ops) > 0; ops = ops[ChainOpWords:] {
		o, name := unpackChainOp(ops[0]), "?"
		if o.fn < Fns {
			name = FnTable[o.fn].Name
		}
		fmt.Fprintf(&b, "; s%d %s %s", o.dst, [2]string{"=", "+="}[ops[0]>>28&1], name)
		for _, s := range o.inputs() {
			fmt.Fprintf(&b, " s%d", s)
		}
		if ops[1]|ops[2] != 0 {
			fmt.Fprintf(&b, " p=%g q=%g", math.Float32frombits(ops[1]), math.Float32frombits(ops[2]))
		}
	}
	return b.String() + ";"
}

// itemText prints an item: addresses, result first, then immediates.
func (in *Instruction) itemText(i int) string {
	item := in.Item(i)
	addresses, first := len(item), 0
	switch in.Op {
	case Random:
		addresses--
	case Row:
		if RowTable[in.Fn].Label && in.Segment(len(item)-1) != SegInput {
			addresses--
		}
	case Norm:
		addresses, first = 1, 1
	case Sum, Outer:
		first = 1
	case Update:
		return in.updateText(item)
	}
	var parts []string
	for k, w := range item {
		if k < addresses {
			parts = append(parts, in.addressText(first+k, w))
		} else {
			parts = append(parts, fmt.Sprint("#", w))
		}
	}
	return "(" + strings.Join(parts, " ") + ")"
}

// updateText prints an item of Update: value, gradient, length, states and what else there is.
func (in *Instruction) updateText(item []uint32) string {
	text := fmt.Sprintf("(%s %s #%d", in.addressText(0, item[0]), in.addressText(1, item[1]), item[2])
	for k, w := range item[3:] {
		if k < RuleTable[in.Fn].States {
			text += " " + in.addressText(2, w)
		} else {
			text += fmt.Sprint(" #", w)
		}
	}
	return text + ")"
}

func (in *Instruction) addressText(slot int, w uint32) string {
	if s := in.Segment(slot); s < Segments {
		return fmt.Sprintf("%s+%d", s, w)
	}
	return fmt.Sprintf("segment %d+%d", in.Segment(slot), w)
}

func disassembleTensors(b *strings.Builder, words []uint32) {
	lo, hi := uint64(words[HeadTensors]), uint64(words[HeadTensorEnd])
	if lo > hi || hi > uint64(len(words)) {
		fmt.Fprintf(b, "\ndamaged: the tensor table from word %d to %d\n", lo, hi)
		return
	}
	table := words[lo:hi]
	fmt.Fprintf(b, "\ntensors: %d\n", len(table)/TensorWords)
	for i := range len(table) / TensorWords {
		e := table[i*TensorWords:][:TensorWords]
		name := fmt.Sprintf("segment %d", e[0]&0xff)
		if s := Segment(e[0]); s < Segments {
			name = s.String()
		}
		fmt.Fprintf(b, "%6d  %s+%d, %d long", i, name, e[1], e[2])
		if e[0]>>8&LiveIn != 0 {
			b.WriteString(", live-in")
		}
		b.WriteByte('\n')
	}
}
