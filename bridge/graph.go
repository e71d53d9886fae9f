// Package bridge is the wire format: it turns the words that a front-end recorded
// into a typed graph, checking every index, length and shape on the way.
package bridge

import (
	"fmt"
	"strings"

	"libvpps/bridge/ops"
)

// MaxDims is the largest number of dimensions of a tensor, as in DyNet.
const MaxDims = 7

// Dim is a tensor's shape: Nd dimensions in D and the batch size Bd. Its layout is
// that of vpps_dim.
type Dim struct {
	Nd, Bd uint32
	D      [MaxDims]uint32
}

// Batch returns the number of elements of one batch element.
func (d *Dim) Batch() int {
	n := 1
	for _, x := range d.D[:d.Nd] {
		n *= int(x)
	}
	return n
}

// Size returns the number of elements of the whole tensor.
func (d *Dim) Size() int { return d.Batch() * int(d.Bd) }

// Rows and Cols are the sizes of the first two dimensions, 1 where there is none.
func (d *Dim) Rows() int { return d.Axis(0) }

// Cols is the size of the second dimension.
func (d *Dim) Cols() int { return d.Axis(1) }

// Axis returns the size of dimension i, 1 beyond Nd.
func (d *Dim) Axis(i int) int {
	if i < int(d.Nd) {
		return int(d.D[i])
	}
	return 1
}

// sameAxes reports whether two dims have the same axes; those of 1 at the end do not count.
func (d *Dim) sameAxes(e *Dim) bool {
	for i := range MaxDims {
		if d.Axis(i) != e.Axis(i) {
			return false
		}
	}
	return true
}

// String prints a dim as DyNet does: {3,4X2}.
func (d Dim) String() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, x := range d.D[:min(d.Nd, MaxDims)] {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(&b, x)
	}
	if d.Bd != 1 {
		fmt.Fprintf(&b, "X%d", d.Bd)
	}
	b.WriteByte('}')
	return b.String()
}

// Graph is a decoded graph.
type Graph struct {
	ops.Nodes
	Dims   []Dim    // Dim of Nodes counts in it
	Inputs []uint32 // the input words of the latest call

	inputEnd uint64 // no node reads input words from here on
	cut      bool   // nodes were dropped since inputEnd was found
	accepted *ops.Accepted
	numbered []Dim // the dims that accepted's numbers stand for
}

// Len is the number of nodes.
func (g *Graph) Len() int { return len(g.Op) }

// DimOf returns node i's dim.
func (g *Graph) DimOf(i uint32) *Dim { return &g.Dims[g.Dim[i]] }

// ArgsOf returns node i's arguments.
func (g *Graph) ArgsOf(i uint32) []uint32 { return g.Args[g.ArgStart[i]:g.ArgStart[i+1]] }

// AttrsOf returns node i's attribute words.
func (g *Graph) AttrsOf(i uint32) []uint32 { return g.Attrs[g.AttrStart[i]:g.AttrStart[i+1]] }

// Truncate drops the nodes from n on.
func (g *Graph) Truncate(n int) {
	if n >= g.Len() {
		return
	}
	g.Args = g.Args[:g.ArgStart[n]]
	g.Attrs = g.Attrs[:g.AttrStart[n]]
	g.Op, g.Dim = g.Op[:n], g.Dim[:n]
	g.ArgStart, g.AttrStart = g.ArgStart[:n+1], g.AttrStart[:n+1]
	g.cut = true
}

// Reset empties the graph, keeping its memory.
func (g *Graph) Reset() {
	g.Truncate(0)
	g.Dims, g.Inputs = g.Dims[:0], g.Inputs[:0]
}

// Error is a fault of a graph: which node, which operation, what is wrong.
type Error struct {
	Node   int
	Op     ops.Code
	Reason string
}

func (e *Error) Error() string {
	if e.Op == ops.Invalid {
		return fmt.Sprintf("node %d: %s", e.Node, e.Reason)
	}
	return fmt.Sprintf("node %d (%s): %s", e.Node, e.Op, e.Reason)
}
