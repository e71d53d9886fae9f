package bridge

import (
	"fmt"
	"syscall"

	"libvpps/bridge/ops"
)

// checkDims runs the shape rules over new nodes, in one call.
func (g *Graph) checkDims(words []uint32, first, count int) error {
	switch bad, reason := ops.CheckDims(words, first, count, g.Dims, g.Dim); {
	case bad >= 0:
		return &Error{bad, g.Op[bad], reason}
	case bad < -1:
		return fmt.Errorf("%w: %s", syscall.ENOMEM, reason)
	}
	return nil
}
