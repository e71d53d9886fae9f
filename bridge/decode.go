package bridge

import (
	"fmt"
	"math"
	"slices"

	"libvpps/bridge/ops"
)

// Bounds that keep a malformed graph from exhausting memory.
const (
	MaxNodes  = 1 << 26
	MaxTensor = 1<<31 - 1 // elements of one tensor
)

// Words is what one call adds to a graph; see vpps_words in vpps.h.
type Words struct {
	Nodes     []uint32
	NodeCount int
	Dims      []Dim
	Inputs    []uint32 // all input words of the graph
}

// Append decodes words behind the nodes that are there. Parameters reports the dim of
// a parameter (nil: there is no such parameter) and whether it is a lookup table, whose
// last dimension counts its rows. After an error the graph is as before.
func (g *Graph) Append(w *Words, parameter func(id uint32) (dim *Dim, lookup bool)) error {
	if len(g.ArgStart) == 0 {
		g.ArgStart, g.AttrStart = append(g.ArgStart, 0), append(g.AttrStart, 0)
	}
	nodes, dims, inputs := g.Len(), len(g.Dims), g.Inputs
	err := g.append(w, parameter)
	if err != nil {
		if g.Len() > nodes {
			g.Truncate(nodes)
		}
		g.Args, g.Attrs = g.Args[:g.ArgStart[nodes]], g.Attrs[:g.AttrStart[nodes]]
		g.Dims, g.Inputs = g.Dims[:dims], inputs
	}
	return err
}

func (g *Graph) append(w *Words, parameter func(id uint32) (dim *Dim, lookup bool)) error {
	for i := range w.Dims {
		if err := CheckDim(&w.Dims[i]); err != nil {
			return &Error{g.Len(), 0, fmt.Sprintf("dim %d of the table: %v", len(g.Dims)+i, err)}
		}
	}
	g.Dims = append(g.Dims, w.Dims...)
	if w.NodeCount < 0 || g.Len()+w.NodeCount > MaxNodes {
		return &Error{g.Len(), 0, fmt.Sprintf("%d more nodes: a graph has at most %d", w.NodeCount, MaxNodes)}
	}
	if need := g.inputsNeeded(); need > uint64(len(w.Inputs)) {
		return &Error{g.Len(), 0, fmt.Sprintf("%d input words, but the nodes before it read %d", len(w.Inputs), need)}
	}
	g.Inputs = w.Inputs
	node, op, err := ops.Decode(w.Nodes, w.NodeCount, g.Dims, g.acceptedShapes(), &g.Nodes)
	switch {
	case err != nil && node >= 0:
		return &Error{node, op, err.Error()}
	case err != nil:
		return err
	}
	return g.checkLeaves(parameter)
}

// acceptedShapes is what the shape rules have accepted, with the dims that the graph's numbers stand for now.
func (g *Graph) acceptedShapes() *ops.Accepted {
	if g.accepted == nil {
		g.accepted = &ops.Accepted{}
	}
	n := min(len(g.numbered), len(g.Dims))
	if !slices.Equal(g.numbered[:n], g.Dims[:n]) {
		g.accepted.Forget()
		g.numbered, n = g.numbered[:0], 0
	}
	g.numbered = append(g.numbered, g.Dims[n:]...)
	return g.accepted
}

// CheckDim returns an error if a dim of unknown origin is not sound.
func CheckDim(d *Dim) error {
	if d.Nd > MaxDims {
		return fmt.Errorf("%d dimensions: at most %d", d.Nd, MaxDims)
	}
	if d.Bd == 0 {
		return fmt.Errorf("batch size 0")
	}
	size := uint64(d.Bd)
	if size > MaxTensor {
		return fmt.Errorf("%v has more than %d elements", *d, MaxTensor)
	}
	for _, x := range d.D[:d.Nd] {
		if x == 0 {
			return fmt.Errorf("a dimension of 0 in %v", *d)
		}
		if size *= uint64(x); size > MaxTensor {
			return fmt.Errorf("%v has more than %d elements", *d, MaxTensor)
		}
	}
	return nil
}

// checkLeaves checks input words and parameters, which shape rules do not see.
func (g *Graph) checkLeaves(parameter func(id uint32) (*Dim, bool)) error {
	var checked [64]uint32 // by some bits of a parameter's id: the last node of such a one that was checked, from 1 on
	for _, n := range g.Leaves {
		op := g.Op[n]
		at, need := g.inputRange(n)
		if end := uint64(at) + uint64(need); need > 0 {
			if end > uint64(len(g.Inputs)) {
				return &Error{int(n), op, fmt.Sprintf("input words %d..%d of %d", at, end, len(g.Inputs))}
			}
			g.inputEnd = max(g.inputEnd, end)
		}
		switch op {
		case ops.Parameter, ops.ConstParameter, ops.Lookup, ops.ConstLookup:
			id := g.AttrsOf(n)[0]
			last := &checked[id%uint32(len(checked))]
			if o := *last - 1; *last == 0 || op != g.Op[o] || g.Dim[n] != g.Dim[o] || id != g.AttrsOf(o)[0] {
				if err := g.checkParameter(int(n), parameter); err != nil {
					return err
				}
				*last = n + 1
			}
		}
	}
	return nil
}

func (g *Graph) checkParameter(n int, parameter func(id uint32) (*Dim, bool)) error {
	op, id, have := g.Op[n], g.AttrsOf(uint32(n))[0], g.DimOf(uint32(n))
	want, lookup := parameter(id)
	if want == nil {
		return &Error{n, op, fmt.Sprintf("there is no parameter %d", id)}
	}
	if op == ops.Lookup || op == ops.ConstLookup {
		if !lookup || want.Nd == 0 {
			return &Error{n, op, fmt.Sprintf("parameter %d is no lookup table", id)}
		}
		row := *want
		row.Nd--
		if have.Batch() != row.Batch() {
			return &Error{n, op, fmt.Sprintf("dim %v, but a row of parameter %d is %v", *have, id, row)}
		}
		return nil
	}
	if !have.sameAxes(want) || have.Bd != 1 {
		return &Error{n, op, fmt.Sprintf("dim %v, but parameter %d is %v", *have, id, *want)}
	}
	return nil
}

// inputsNeeded is how many input words the nodes read that are there already.
func (g *Graph) inputsNeeded() uint64 {
	if g.cut {
		g.inputEnd, g.cut = 0, false
		for n := range uint32(g.Len()) {
			if at, count := g.inputRange(n); count > 0 {
				g.inputEnd = max(g.inputEnd, uint64(at)+uint64(count))
			}
		}
	}
	return g.inputEnd
}

// inputRange is the range of input words that node n reads.
func (g *Graph) inputRange(n uint32) (at uint32, count int) {
	a, d := g.AttrsOf(n), g.DimOf(n)
	switch g.Op[n] {
	case ops.Input, ops.ScalarInput:
		return a[0], d.Size()
	case ops.SparseInput:
		return a[1], 2 * int(min(a[2], math.MaxInt32))
	case ops.Lookup, ops.ConstLookup:
		return a[1], int(d.Bd)
	case ops.PickElement:
		return a[1], int(min(a[2], math.MaxInt32))
	case ops.HingeDim:
		return a[2], int(min(a[3], math.MaxInt32))
	case ops.PoissonRegressionLoss:
		return a[0], 1
	case ops.PickBatchElements, ops.RestrictedLogSoftmax, ops.SelectRows, ops.SelectCols, ops.SparsemaxLoss:
		return a[0], int(min(a[1], math.MaxInt32))
	case ops.PickNegLogSoftmax:
		return a[0], int(d.Bd)
	case ops.Hinge:
		return a[1], int(d.Bd)
	}
	return 0, 0
}
