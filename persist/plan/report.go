package plan

import (
	"fmt"
	"strings"
)

// Report says, matrix by matrix, where the rows live.
func (p *Plan) Report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d matrices on %d processors\n", len(p.Matrices), p.Processors)
	if p.Budget > 0 {
		fmt.Fprintf(&b, "%d rows a warp, %d warps a processor, %d of %d registers a thread for weights\n", p.RowsPerWarp, p.Warps, p.Used, p.Budget)
	}
	if p.Note != "" {
		fmt.Fprintln(&b, p.Note)
	}
	for _, r := range p.Refused {
		fmt.Fprintf(&b, "not taken: %s\n", r)
	}
	for m, x := range p.Matrices {
		parts := p.Of(m)
		fmt.Fprintf(&b, "  %-24s %5d x %-5d in %d partitions\n", x.Name, x.Rows, x.Cols, len(parts))
	}
	for _, x := range p.Left {
		fmt.Fprintf(&b, "  %-24s %5d x %-5d does not fit into the registers: multiplied from memory\n", x.Name, x.Rows, x.Cols)
	}
	return b.String()
}
