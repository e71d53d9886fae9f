package plan

import (
	"fmt"
	"strings"
)

// Report says, matrix by matrix, where the rows live.
func (p *Plan) Report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d matrices on %d processors\n", len(p.Matrices), p.Processors)
	for m, x := range p.Matrices {
		parts := p.Of(m)
		fmt.Fprintf(&b, "  %-24s %5d x %-5d in %d partitions\n", x.Name, x.Rows, x.Cols, len(parts))
	}
	return b.String()
}
