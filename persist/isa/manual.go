package isa

import (
	"bytes"
	"fmt"
	"strings"
)

// Manual returns the text of docs/INSTRUCTIONS.md: the instruction set for people. A test
// fails when the file is stale.
func Manual() []byte {
	var b bytes.Buffer
	b.WriteString(`<!-- Generated from persist/isa by go generate. -->
# Instructions

This page lists what a virtual processor can do. It is for those who read scripts (` + "`vpps_script_dump`" + `) or change
the kernel. [ARCHITECTURE](ARCHITECTURE.md#script-persistisa-persistscript) explains the words.

An instruction is an array of 32-bit words:

| words | contents |
| --- | --- |
| 0 | opcode, function and flags |
| 1 | length, and number of items |
| then | the fields in the table below |
| then | the items; with the flag ` + "`listed`" + `, the index of the word where they begin, so that one list serves many processors |

An address is an offset in floats into a segment. The field ` + "`segments`" + ` names the segment of each slot, in four
bits. Slot 0 is written.

| flag | meaning |
| --- | --- |
| ` + "`acc`" + ` | the result is added to what is there |
| ` + "`sync`" + ` | the threads meet before the instruction |
| ` + "`bias`" + ` | the product has a bias |
| ` + "`last`" + ` | of ` + "`clip`" + `: this processor reports the norm |
| ` + "`nograd`" + ` | gradients are 0 |
| ` + "`loss`" + ` | of ` + "`clip`" + `: a loss that is not finite is not committed |

The last three bits of the flags name the phase that begins with the instruction. Clocks
read them, and a GPU's interpreter. From the wait before gradients on, or from its first outer product, norm, clip or
update, a processor has no products.

| instruction | what it does | fields | words an item |
| --- | --- | --- | --- |
`)
	for _, f := range Formats {
		words := fmt.Sprint(f.Items)
		if f.Items < 0 {
			words = "see below"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, tableCell(f.Doc), strings.Join(f.Fields, ", "), words)
	}
	b.WriteString(sumsManual)
	fmt.Fprintf(&b, chainManual, MaxSlots)
	b.WriteString("\n## Functions of map, strided and chain\n\nThe inputs are a, b, c, d. Derivatives name theirs. An item is the address of the result and those of the inputs.\n\n| function | inputs | |\n| --- | --- | --- |\n")
	for _, f := range FnTable {
		fmt.Fprintf(&b, "| `%s` | %d | %s |\n", f.Name, f.Arity, tableCell(f.Doc))
	}
	b.WriteString("\n## Functions of row\n\nAn item covers several lines of n elements. The field lines says how many. They are\nnumbered like the lines of a tensor along one of its axes. So line i begins at i / stride * stride * n + i % stride, in\nwhole numbers. Where an operand has one element of a line, or the first few, as many take the place of n. All lines have\none label.\n\n| function | words of an item |\n| --- | --- |\n")
	for _, f := range RowTable {
		fmt.Fprintf(&b, "| `%s` | %s |\n", f.Name, tableCell(f.Doc))
	}
	b.WriteString("\n## Functions of random\n\n| function | words of an item |\n| --- | --- |\n")
	for _, f := range RandomTable {
		fmt.Fprintf(&b, "| `%s` | %s |\n", f.Name, tableCell(f.Doc))
	}
	b.WriteString("\n## Rules of update\n\nThe table gives the step of one element with value v and gradient g. The gradient is scaled as clip decided. The states\nare h, k, m, in this order. An item is the addresses of value and gradient, their length, and the addresses of the\nstates. For `eg` the number of elements of the sum follows.\n\n| rule | step |\n| --- | --- |\n")
	for _, f := range RuleTable {
		fmt.Fprintf(&b, "| `%s` | %s |\n", f.Name, tableCell(f.Doc))
	}
	b.WriteString("\n## Segments\n\n")
	for s := Segment(0); s < Segments; s++ {
		fmt.Fprintf(&b, "%d `%s` ", s, s)
	}
	b.WriteString("\n")
	return b.Bytes()
}

const sumsManual = `
## Products, sums and their functions

The function f of an instruction is copy, tanh, logistic or relu. With the flag acc, the old value is added
before f.

**product_t** is the sum over one processor's rows. Each holder of rows has a result of its own, ` + "`apart`" + ` floats
from the next. A matrix that is transposed from memory is an exception: a processor forms the whole sum over all
rows, for its columns.

**sum** may also apply a derivative, of the sum and y[i]. The low half of the field runs counts items at the
front. Each of these stands for several sources, as many as the high half says, ` + "`apart`" + ` floats from each other.

**clip** does not commit an update whose norm is not finite. With the flag loss the same holds for the loss.
`

const chainManual = `
## Chain

The function is the number of slots, up to %d. After the fields come the slots, a byte each, slot 0 lowest. The
low four bits of a byte are the segment. 16 says that the vector is loaded before the first operation, and 32
that it is stored after the last one.

Each operation is three words. The first is function | dst<<8 | a<<13 | b<<18 | c<<23 | acc<<28, the others are
p and q. An item is the address of each slot's vector. For each element of each item, an operation is slot dst =
f(slots a, b, c). With acc it is added to the slot.

Invariant: a slot that is used was loaded or formed before. A vector that is stored overlaps with no other one.
`

// tableCell is text that cannot end a table's cell.
func tableCell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
