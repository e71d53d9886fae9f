package bridge

import "libvpps/bridge/ops"

// checkDims runs the shape rules over new nodes, in one call.
func (g *Graph) checkDims(words []uint32, first, count int) error {
	if bad, reason := ops.CheckDims(words, first, count, g.Dims, g.Dim); bad >= 0 {
		return &Error{bad, g.Op[bad], reason}
	}
	return nil
}
