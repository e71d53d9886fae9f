package cells

import (
	"libvpps/bridge"
	"libvpps/bridge/ops"
)

// InputUse is what input words are to the items that a node is lowered to.
type InputUse uint8

// Uses of input words.
const (
	CopiedAsData InputUse = iota
	PartOfWords           // rows and labels: words of items, or parts of their addresses
	ShapesItems           // how many items there are, or where their results are
)

// MostPicked is how many words of one PickElement are parts of addresses: for each batch element one.
const MostPicked = 30

// InputWords is how many input words a node reads, and what they are to its items.
func InputWords(op ops.Code, d *bridge.Dim, attrs []uint32) (use InputUse, count uint32) {
	switch op {
	case ops.Lookup, ops.ConstLookup, ops.PickNegLogSoftmax, ops.Hinge:
		return PartOfWords, d.Bd
	case ops.Input, ops.ScalarInput:
		return CopiedAsData, uint32(d.Size())
	case ops.SparseInput:
		return ShapesItems, 2 * attrs[2]
	case ops.PickElement:
		if attrs[2] <= MostPicked {
			return PartOfWords, attrs[2]
		}
		return ShapesItems, attrs[2]
	case ops.PickBatchElements, ops.RestrictedLogSoftmax, ops.SelectRows, ops.SelectCols, ops.SparsemaxLoss:
		return ShapesItems, attrs[1]
	case ops.HingeDim:
		return ShapesItems, attrs[3]
	case ops.PoissonRegressionLoss:
		return ShapesItems, 1
	}
	return CopiedAsData, 0
}

// hasShapes reports whether the items of node v have another shape with other input words. Such a node is lowered for
// each shape, so it is a template of its own: nothing else is lowered with it.
func hasShapes(g *bridge.Graph, v uint32) bool {
	use, count := InputWords(g.Op[v], g.DimOf(v), g.AttrsOf(v))
	return use == ShapesItems && count > 0
}
