package script

import (
	"bytes"
	"fmt"
	"strings"
)

// Manual returns the text of docs/INSTRUCTIONS.md: the instruction set for people. A test
// fails when the file is stale.
func Manual() []byte {
	var b bytes.Buffer
	b.WriteString(`<!-- Generated from persist/script by go generate. -->
# Instructions

What a virtual processor can do. Word 0 of an instruction is opcode, function and flags, word 1 its
length and the number of items; then come the fields named below, then the items, or, with the flag ` + "`listed`" + `,
the word of the script from which on they are: one list serves many processors. An address is an
offset in floats into a segment; the field ` + "`segments`" + ` says which, four bits a slot. Slot 0 is
written. The flag ` + "`acc`" + ` adds to what is there, ` + "`own`" + ` leaves to each processor its slice,
` + "`sync`" + ` lets the threads meet before the instruction, ` + "`published`" + ` says that others poll the result,
` + "`nograd`" + ` that gradients are 0, ` + "`atomic`" + ` that several processors add to one result in any order. The flags' last three bits name the phase from which the instruction and those
behind it are; only clocks read them.

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
	fmt.Fprintf(&b, chainManual, MaxSlots)
	fmt.Fprintf(&b, collectManual, MaxRuns, MaxRun, uint32(Absent), Derived)
	fmt.Fprintf(&b, affineManual, MaxTerms)
	b.WriteString("\n## Functions of map, strided and chain\n\nOver the inputs a, b, c, d; derivatives name theirs. An item is the result's address and the inputs'.\n\n| function | inputs | |\n| --- | --- | --- |\n")
	for _, f := range FnTable {
		fmt.Fprintf(&b, "| `%s` | %d | %s |\n", f.Name, f.Arity, tableCell(f.Doc))
	}
	b.WriteString("\n## Functions of row\n\n| function | words of an item |\n| --- | --- |\n")
	for _, f := range RowTable {
		fmt.Fprintf(&b, "| `%s` | %s |\n", f.Name, tableCell(f.Doc))
	}
	b.WriteString("\n## Functions of random\n\n| function | words of an item |\n| --- | --- |\n")
	for _, f := range RandomTable {
		fmt.Fprintf(&b, "| `%s` | %s |\n", f.Name, tableCell(f.Doc))
	}
	b.WriteString("\n## Rules of update\n\nA step of one element with value v and gradient g, which is scaled by what clip decided. States are h, k, m, in this order. An item is the addresses of value and gradient, their length, the addresses of the states and, of `eg`, how many elements the sum is of.\n\n| rule | step |\n| --- | --- |\n")
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

const chainManual = `
## Chain

The function is the number of slots, up to %d. Behind the fields stand the slots, a byte each, slot 0
lowest: the segment (4 bits), 16 if the vector is loaded before the first operation, 32 if it is stored
after the last. Then three words for each operation, in which slots take 5 bits: function | dst<<8 | a<<13 |
b<<18 | c<<23 | acc<<28, then p and q. An item is the address of each slot's vector. For each element of
each item an operation is slot dst = f(slots a, b, c), added to what the slot has if acc says so. What is
used must have been loaded or formed, and a vector that is stored overlaps with no other of the instruction.
`

const collectManual = `
## Collect

The function is the number of runs, 1 to %d; a run has 1 to %d vectors. An item is the result's address and that
of each run's first vector; the last runs may be absent (%#x). The order of the additions depends on the instruction alone.
With %d added to the function an item ends with the address of y, and the result is a derivative, of which the field function
says which, of the sum and y; else that field is copy.
`

const affineManual = `
## Affine and affine_t

The function is the number of matrices, 1 to %d, the field matrices their numbers, a byte each, the first lowest. They are of
one size and lie alike on the processors of a group. An item of affine is the result's address and that of a vector for each
matrix. An item of affine_t is the address of the first matrix's result on the group's first processor, and of the vector.
`

// tableCell is text that cannot end a table's cell.
func tableCell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
