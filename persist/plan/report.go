package plan

import (
	"fmt"
	"strings"
)

// Report says, matrix by matrix, where the rows live.
func (p *Plan) Report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d matrices on %d processors\n", len(p.Matrices), p.Processors)
	if p.Registers > 0 {
		fmt.Fprintf(&b, "%d rows a warp, %d warps a processor\n", p.RowsPerWarp, p.Warps)
		fmt.Fprintf(&b, "registers a thread: %d for weights, %d for a gradient, %d for the interpreter, of %d\n", p.Used, p.Staging, p.SetAside, p.Registers)
	}
	if p.Why != "" {
		fmt.Fprintln(&b, p.Why)
	}
	if p.Note != "" {
		fmt.Fprintln(&b, p.Note)
	}
	if p.Resident > 0 {
		fmt.Fprintf(&b, "%d KB of shared memory a processor for weights\n", p.Resident>>10)
	}
	parts := p.parts()
	for m, x := range p.Matrices {
		fmt.Fprintf(&b, "  %-24s %5d x %-5d in %d partitions", x.Name, x.Rows, x.Cols, parts[m])
		if x.Copies > 1 {
			fmt.Fprintf(&b, ", %d copies,", x.Copies)
		}
		w := p.Residence(m)
		if p.Registers > 0 {
			fmt.Fprintf(&b, " in %s", w.Kind)
		}
		if w.Kind == Streamed {
			fmt.Fprintf(&b, "; a product reads %d KB for up to %d vectors", x.bytes()>>10, streamItems)
		}
		if w.Columns > 0 {
			fmt.Fprintf(&b, "; a transposed one, by %d columns a processor, reads %d KB for as many", w.Columns, x.bytes()>>10)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Name tells a plan from others of the same matrices.
func (p *Plan) Name() string {
	return fmt.Sprintf("%d rows a warp, %d registers a thread for weights", p.RowsPerWarp, p.Used)
}

// Predictions says what the cost model thinks of candidates.
func Predictions(plans []*Plan) string {
	var b strings.Builder
	b.WriteString("predicted microseconds of a level, by rows a warp:")
	for i, p := range plans {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, " %d %.2f", p.RowsPerWarp, p.Cost())
	}
	return b.String()
}
