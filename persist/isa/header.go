package isa

import (
	"bytes"
	"fmt"
	"strings"
)

// Header returns the text of jit/kernel/isa.h. A test fails when the file is stale.
func Header() []byte {
	var b bytes.Buffer
	b.WriteString("// Generated from persist/isa by go generate. The instruction set.\n#pragma once\n\n")
	constant := func(name string, v int) { fmt.Fprintf(&b, "#define %s %d\n", name, v) }
	up := func(prefix, s string) string { return prefix + strings.ToUpper(s) }
	for op, f := range Formats {
		constant(up("OP_", f.Name), op)
	}
	b.WriteString("\n// Word offsets of the fixed fields, and where the items begin.\n")
	for _, f := range Formats[1:] {
		for i, n := range f.Fields {
			constant(up("", f.Name+"_"+n), 2+i)
		}
		constant(up("", f.Name+"_items"), 2+len(f.Fields))
	}
	b.WriteString("\n// Flags, in word 0 from bit 16 on.\n")
	for i, n := range flagNames {
		constant(up("FLAG_", n), 1<<i)
	}
	b.WriteString("\n")
	for s := Segment(0); s < Segments; s++ {
		constant(up("SEG_", s.String()), int(s))
	}
	constant("SEGMENTS", int(Segments))
	b.WriteString("\n// Header and processor table.\n")
	for i, n := range []string{"MAGIC", "PROCESSORS", "BARRIERS", "LISTS", "LIST_END", "COUNTERS", "INPUTS", "DEVICE", "TENSORS", "TENSOR_END", "WORDS"} {
		constant("HEAD_"+n, i)
	}
	for i, n := range []string{"START", "RANK", "GROUP", "OWN", "PIECES", "WORDS"} {
		constant("PROC_"+n, i)
	}
	for i, n := range []string{"WHOLE", "FIRST", "SECOND"} {
		constant("PART_"+n, i)
	}
	constant("TENSOR_WORDS", TensorWords)
	constant("BARRIER_STRIDE", BarrierStride)
	constant("MAX_WORDS", MaxWords)
	constant("MAX_LISTED", MaxListed)
	constant("MAX_RUN", MaxRun)
	constant("PLACE_STORED", PlaceStored)
	constant("PLACE_HALVED", PlaceHalved)
	constant("MAX_SLOTS", MaxSlots)
	constant("CHAIN_READ", ChainRead)
	constant("CHAIN_WRITTEN", ChainWritten)
	constant("CHAIN_OP_WORDS", ChainOpWords)
	b.WriteString("\n// What a processor leaves that gives up: see persist/isa/stop.go.\n")
	for i, n := range []string{"CODE", "PROCESSOR", "WORD", "BATCH", "DETAIL", "WORDS"} {
		constant("STOP_"+n, []int{StopCode, StopProcessor, StopWord, StopBatch, StopDetail, StopWords}[i])
	}
	for i, n := range []string{"NONE", "LOST_SIGNAL", "NO_INSTRUCTION", "OUTSIDE_TENSORS", "OUTSIDE_LISTS"} {
		constant("STOPPED_"+n, i)
	}
	b.WriteString("\n// What clocks leave, by processor: see persist/isa/clocks.go.\n")
	constant("PHASE_SHIFT", 16+PhaseShift)
	constant("OPCODES", Opcodes)
	for i, n := range []string{"BEGIN", "END", "TICKS", "FETCH", "LOADED", "UPDATED", "STREAMED", "LAST", "CELL", "BLOCKED", "CELLS"} {
		constant("CLOCK_"+n, i)
	}
	constant("CLOCK_COUNTS", ClockCounts)
	constant("CLOCK_WORDS", ClockWords)
	b.WriteString("\n// FN(NAME, inputs) of every element function.\n#define ELEMENT_FUNCTIONS(FN) \\\n")
	for _, f := range FnTable {
		fmt.Fprintf(&b, "\tFN(%s, %d) \\\n", strings.ToUpper(f.Name), f.Arity)
	}
	b.WriteString("\t/* end */\n\n")
	for i, f := range FnTable {
		constant(up("FN_", f.Name), i)
	}
	constant("FN_COUNT", int(Fns))
	for i, f := range RowTable {
		constant(up("ROW_", f.Name), i)
	}
	constant("ROW_COUNT", int(RowFns))
	for i, f := range RandomTable {
		constant(up("RANDOM_", f.Name), i)
	}
	constant("RANDOM_COUNT", int(RandomFns))
	for i, f := range RuleTable {
		constant(up("RULE_", f.Name), i)
	}
	constant("RULE_COUNT", int(Rules))
	b.WriteString("\n// RULE(NAME, states, words of an item) of every update rule.\n#define UPDATE_RULES(RULE) \\\n")
	for _, f := range RuleTable {
		fmt.Fprintf(&b, "\tRULE(%s, %d, %d) \\\n", strings.ToUpper(f.Name), f.States, f.Words())
	}
	b.WriteString("\t/* end */\n")
	b.WriteString("\n// ROW(NAME, rows, scalars, parts, label, words): which words of an item are rows, single elements\n// and parts of rows, whether the last is a label, and how many they are.\n#define ROW_FUNCTIONS(ROW) \\\n")
	for _, f := range RowTable {
		label := 0
		if f.Label {
			label = 1
		}
		fmt.Fprintf(&b, "\tROW(%s, %d, %d, %d, %d, %d) \\\n", strings.ToUpper(f.Name), f.Rows, f.Scalars, f.Parts, label, f.Words)
	}
	b.WriteString("\t/* end */\n")
	return b.Bytes()
}
