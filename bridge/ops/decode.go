package ops

/*
#cgo CFLAGS: -I${SRCDIR}/../../include
#cgo noescape vpps_read_nodes
#cgo nocallback vpps_read_nodes
#include "decode.h"

static int64_t vpps_read_nodes(const uint32_t *words, size_t size, uint32_t first, uint32_t count, const void *dims,
                               uint32_t dim_count, const vpps_format *formats, void *accepted, uint64_t epoch,
                               void *op, uint32_t *dim, uint32_t *arg_start, uint32_t *args, uint32_t *attr_start,
                               uint32_t *attrs, uint32_t *leaves, vpps_read *read, char *msg, size_t room) {
  const vpps_arrays g = {(uint8_t *)op, dim, arg_start, args, attr_start, attrs, leaves};
  return vpps_decode(words, size, first, count, (const vpps_dim *)dims, dim_count, formats, (vpps_accepted *)accepted,
                     epoch, g, read, msg, room);
}
*/
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"unsafe"
)

// Nodes are nodes in flat slices; node i is element i of Op and Dim, a number of a dim. Its arguments are
// Args[ArgStart[i]:ArgStart[i+1]], all smaller than i; its attribute words Attrs[AttrStart[i]:AttrStart[i+1]].
type Nodes struct {
	Op        []Code
	Dim       []uint32
	ArgStart  []uint32
	Args      []uint32
	AttrStart []uint32
	Attrs     []uint32
	Leaves    []uint32 // of the nodes that were decoded last: those that read a parameter or input words
}

// Accepted remembers nodes that the shape rules have accepted, by the numbers of dims. Graphs of one program have the
// same ones over and over.
type Accepted struct {
	epoch uint64
	known [C.VPPS_ACCEPTED]C.vpps_accepted
}

// Forget is called when a number stands for another dim than before.
func (a *Accepted) Forget() { a.epoch++ }

// Decode reads count nodes from words and appends them to n. It trusts nothing of the words, and asks the shape rules
// of shape.h, the one place where they stand. D is laid out as a vpps_dim. An error names the first node with faulty
// words, or if there is none, the first whose shape is refused; n is as before then. The error is syscall.ENOMEM if
// there was no memory.
func Decode[D any](words []uint32, count int, dims []D, a *Accepted, n *Nodes) (node int, op Code, err error) {
	first, room := len(n.Op), min(count, len(words)) // a node has at least one word
	n.Op, n.Dim, n.Leaves = slices.Grow(n.Op, room), slices.Grow(n.Dim, room), slices.Grow(n.Leaves[:0], room)
	n.ArgStart, n.AttrStart = slices.Grow(n.ArgStart, room), slices.Grow(n.AttrStart, room)
	n.Args, n.Attrs = slices.Grow(n.Args, len(words)), slices.Grow(n.Attrs, len(words))
	read := C.vpps_read{args: C.uint32_t(len(n.Args)), attrs: C.uint32_t(len(n.Attrs))}
	var msg [512]byte
	bad := C.vpps_read_nodes(at(words), C.size_t(len(words)), C.uint32_t(first), C.uint32_t(count),
		unsafe.Pointer(unsafe.SliceData(dims)), C.uint32_t(len(dims)), &formats[0], unsafe.Pointer(&a.known), C.uint64_t(a.epoch),
		unsafe.Pointer(unsafe.SliceData(n.Op)), at(n.Dim), at(n.ArgStart), at(n.Args), at(n.AttrStart), at(n.Attrs), at(n.Leaves),
		&read, (*C.char)(unsafe.Pointer(&msg[0])), C.size_t(len(msg)))
	if bad != -1 {
		reason, _, _ := bytes.Cut(msg[:], []byte{0})
		if bad == -2 {
			return -1, Invalid, fmt.Errorf("%w: %s", syscall.ENOMEM, reason)
		}
		return int(bad), Code(read.op), errors.New(string(reason))
	}
	last := first + count
	n.Op, n.Dim, n.Leaves = n.Op[:last], n.Dim[:last], n.Leaves[:read.leaves]
	n.ArgStart, n.AttrStart = n.ArgStart[:last+1], n.AttrStart[:last+1]
	n.Args, n.Attrs = n.Args[:read.args], n.Attrs[:read.attrs]
	return -1, Invalid, nil
}

func at(words []uint32) *C.uint32_t { return (*C.uint32_t)(unsafe.Pointer(unsafe.SliceData(words))) }

// formats is what the decoder needs of each operation.
var formats [256]C.vpps_format

// Leaf reports whether an operation reads a parameter or input words.
func (c Code) Leaf() bool { return formats[c].leaf != 0 }

func init() {
	for c := range Table {
		op, f := &Table[c], &formats[c]
		if op.Name == "" {
			continue
		}
		f.known, f.args, f.attrs = 1, C.int8_t(op.Args), C.uint8_t(len(op.Attrs))
		switch {
		case op.Same, Code(c) == CwiseSum, Code(c) == CwiseMultiply, Code(c) == Sum:
			f.same = 1
		}
		for k, a := range op.Attrs {
			switch a.Kind {
			case Offset, Param:
				f.leaf = 1
			default:
				f.shape |= 1 << k
			}
		}
	}
}
