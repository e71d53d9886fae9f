package script

import (
	"libvpps/bridge/cells"
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
	"libvpps/persist/schedule"
)

// A lowered template: its items, with each address an entry of a table plus a number.

// Places in an instance's table of addresses. After them come the slots, the outputs' gradients, the parameters, the
// instance's own attributes and the input words read there. In a backward part there are the nodes' values, and what nodes keep
// besides. Picked addresses come last.
const (
	atNowhere = iota // 0: what is added is the word itself
	atBase           // the instance's memory
	atStart          // the number of its first node
	atSlots
)

// word is an address, or another word, of an item: an entry of the table plus a number.
type word struct{ entry, add uint32 }

// cellItem is an item of a template. Its words are words[first:first+count]; few has them, too, if they are part of the item.
type cellItem struct {
	cluster, sub int32
	sig          uint32 // in sigs; rawSig: the item is a whole instruction
	first, count uint32
	pooled       bool // its words are in the pool
	few          [schedule.FewWords]word
}

// cellMatrix is a matrixItem of a template.
type cellMatrix struct {
	level, group int32
	sig          uint32
	words        [2]word
}

// cellCluster is a cluster of a template; the level counts from that of the instance's group.
type cellCluster struct {
	level, group int32
	cost, items  int32
	top          int32 // the last order of its items
	kind         schedule.ClusterKind
	spread       bool // it is one of several whose work is one node's
}

// cellSource is a gradient that an instance leaves for another: count vectors, and the level in which they are there,
// counted from that of the instance's group.
type cellSource struct {
	word
	count, apart uint32
	ready, group int32
	in           int32 // the backward cluster that forms it, -1: a product
}

// cellSig is a signature with the words in it that change from batch to batch.
type cellSig struct {
	words   []uint32
	cost    int32 // of an item
	factor  int32 // the parameter whose factor word 4 is, -1: it is another number
	bias    int32 // of a product: number in params, -1: none
	draws   bool  // of random numbers
	numbers []cellNumber
	number  uint32 // in the script, with the numbers that are in words
}

// cellNumber is a word of a signature: what an entry of the instance's table is.
type cellNumber struct {
	at    int
	entry uint32
}

// cellParam is a parameter that a template reads.
type cellParam struct {
	id      uint32
	op      ops.Code
	segment isa.Segment
}

// cellInput is an input word whose value is part of an address: input word number add of constant.
type cellInput struct {
	constant, add uint32
	node          uint32 // of the template, for errors
	table         int32  // a parameter's id: it is a row of that; -1: a label
	bound         uint32 // of a label
}

// cellPick is an address: an entry of the table plus input number input times step.
type cellPick struct{ entry, input, step uint32 }

// cellRow is the gradients of a table's row.
type cellRow struct {
	param, input uint32 // input: number in inputs
	shift        uint32
	sources      []cellSource
}

// cellValue is where a node's value is, or what it keeps besides.
type cellValue struct {
	node uint32 // of the template
	word
}

// loweredCell is a template, lowered.
type loweredCell struct {
	variant
	template *cells.Template
	outs     []uint32 // the nodes that are needed
	exits    []uint32 // the nodes that are wanted
	output   []uint32 // by node, of both: their numbers as outputs, of which there are so many:
	outputs  uint32

	clusters [2][]cellCluster // forward, backward
	items    [2][]cellItem
	matrices [2][]cellMatrix
	outers   []cellMatrix
	words    []word
	sigs     []cellSig
	numbered []uint32 // of these, those with numbers of an instance's own
	params   []cellParam
	inputs   []cellInput
	picks    []cellPick
	size     uint32 // floats of an instance
	tensors  []vector
	groups   [2][]cellGroup
	mixed    bool // vectors of one length may overlap

	need        []int32      // by slot, then by parameter: in which level it is read first; -1: it is not
	products    []int32      // by slot: in which level a product reads it first; -1: none does
	reads       []slotRead   // what clusters read
	ready       []int32      // by output: the level after which it is there
	formedIn    []int32      // by output: the forward cluster that forms it; -1: a product
	formedBy    []int32      // by output: the forward group that forms it
	value       []uint32     // by node, of outputs: where in an instance's memory
	wantedAt    []int32      // by exit: the first level in which its gradient is read
	derivatives []derivative // by exit: how it comes of the node's gradient
	sumIn       []int32      // by exit: the backward cluster that reads it first and alone then; -1: none, or others read it as early
	sources     [][]cellSource
	sums        []paramSum
	rows        []cellRow
	values      []word      // of a forward part, by node
	aux         []cellValue // and what nodes keep besides
	work        []cellWork  // if it is counted

	added []int32 // slots from which products come that are added up

	script uint64 // the one that the numbers of sigs belong to

	err error // it cannot be lowered
}

// derivative is that of a function whose gradient comes back, formed with it; y is where the function's value is.
type derivative struct {
	fn isa.Fn // Copy: there is none
	p  float32
	y  word
}

// slotRead is a slot that a forward cluster reads.
type slotRead struct{ slot, cluster int32 }

// paramSum is a gradient of a parameter.
type paramSum struct {
	param uint32
	cellSource
}

func (c *loweredCell) atExits() uint32  { return atSlots + uint32(c.template.Slots) }
func (c *loweredCell) atParams() uint32 { return c.atExits() + uint32(len(c.wantedAt)) }
func (c *loweredCell) atConstants() uint32 {
	return c.atParams() + uint32(len(c.params))
}
func (c *loweredCell) atInputs() uint32 { return c.atConstants() + uint32(c.template.Constants) }
func (c *loweredCell) atValues() uint32 { return c.atInputs() + uint32(len(c.inputs)) }
func (c *loweredCell) atAux() uint32    { return c.atValues() + uint32(len(c.template.Nodes)) }
func (c *loweredCell) atPicks() uint32 {
	if c.part == backwardPart {
		return c.atAux() + uint32(len(c.template.Nodes))
	}
	return c.atValues()
}
func (c *loweredCell) tableSize() int { return int(c.atPicks()) + len(c.picks) }
