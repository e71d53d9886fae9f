package script

// Row numbers and labels come from the input words, which no shape rule sees. Lowering checks
// them where it uses them; this checks them all at once, for a caller that lowers later.

import (
	"fmt"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/schedule"
)

// CheckIndices returns the error that lowering the nodes from first to last would end in.
func CheckIndices(g *bridge.Graph, params []schedule.Param, first, last uint32) error {
	for v := first; v <= last; v++ {
		op := g.Op[v]
		if !op.Leaf() {
			continue
		}
		if err := checkIndices(g, params, v, op); err != nil {
			return err
		}
	}
	return nil
}

func checkIndices(g *bridge.Graph, params []schedule.Param, v uint32, op ops.Code) error {
	a, d := g.AttrsOf(v), g.DimOf(v)
	var at, n, bound uint32
	what := "label"
	switch op {
	case ops.Lookup, ops.ConstLookup:
		p := &params[a[0]]
		at, n, bound, what = a[1], d.Bd, p.Size/p.Row, "row"
	case ops.PickNegLogSoftmax:
		at, n, bound = a[0], d.Bd, uint32(g.DimOf(g.ArgsOf(v)[0]).Batch())
	case ops.Hinge:
		at, n, bound = a[1], d.Bd, uint32(g.DimOf(g.ArgsOf(v)[0]).Batch())
	case ops.HingeDim:
		at, n, bound = a[2], a[3], uint32(g.DimOf(g.ArgsOf(v)[0]).Axis(int(a[1])))
	case ops.SelectRows, ops.SparsemaxLoss:
		at, n, bound, what = a[0], a[1], uint32(g.DimOf(g.ArgsOf(v)[0]).Rows()), "row"
	case ops.SelectCols:
		at, n, bound, what = a[0], a[1], uint32(g.DimOf(g.ArgsOf(v)[0]).Cols()), "column"
	case ops.PickElement:
		at, n, bound, what = a[1], a[2], uint32(g.DimOf(g.ArgsOf(v)[0]).Axis(int(a[0]))), "index"
	case ops.PickBatchElements:
		at, n, bound, what = a[0], a[1], g.DimOf(g.ArgsOf(v)[0]).Bd, "batch element"
	case ops.RestrictedLogSoftmax:
		at, n, bound, what = a[0], a[1], uint32(d.Batch()), "row"
	case ops.SparseInput:
		at, n, bound, what = a[1], a[2], uint32(d.Size()), "index"
	default:
		return nil
	}
	for i := range n {
		if x := g.Inputs[at+i]; x >= bound {
			return fault(v, op, "%s", fmt.Sprintf("%s %d of %d", what, x, bound))
		}
	}
	return nil
}
