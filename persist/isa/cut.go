package isa

// A script may be cut. Between its two launches a library multiplies matrices.

import "fmt"

// LibraryGradient is a product of the library between the two parts of a script: a gradient G (+)= Scale * DY X^T. All three lie
// in columns without gaps, DY and X in segment act.
type LibraryGradient struct {
	Matrix            int // of the plan: as many rows and columns
	Rows, Cols, Items int // DY has Rows x Items, X Cols x Items
	Segment           Segment
	G, DY, X          uint32
	Scale             float32
	Acc               bool // G has something already
}

// String is the product on one line.
func (g *LibraryGradient) String() string {
	to := "="
	if g.Acc {
		to = "+="
	}
	return fmt.Sprintf("gemm matrix=%d scale=%g %s+%d (%d x %d) %s act+%d (%d x %d) * act+%d (%d x %d)^T",
		g.Matrix, g.Scale, g.Segment, g.G, g.Rows, g.Cols, to, g.DY, g.Rows, g.Items, g.X, g.Cols, g.Items)
}

// Part is what a launch runs of a script that is cut.
type Part uint32

const (
	Whole  Part = iota // of a script that is not cut
	First              // up to every processor's first Halt
	Second             // from there on, without matrices
)

// InParts reports whether the script is cut: between its parts are the products Library.
func (s *Script) InParts() bool { return len(s.Library) > 0 }
