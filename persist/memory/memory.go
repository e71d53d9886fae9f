// Package memory knows memory that has run out, and reports what takes how much, on the device and on the host.
package memory

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"libvpps/persist/isa"
)

// ErrExhausted is the kind of an error of memory that has run out, on the host or the device.
var ErrExhausted = errors.New("out of memory")

// Place is where memory is.
type Place int

const (
	Device Place = iota
	Pinned       // host memory that a GPU can address
	Host
)

func (p Place) String() string { return [...]string{"device", "pinned", "host"}[p] }

// Use is memory that something has.
type Use struct {
	Place Place
	What  string
	Bytes uint64 // reserved
	Used  uint64 // of these, in use now, if Known
	Known bool
}

// segments names what is in a segment for who does not know segments.
var segments = [isa.Segments]string{
	isa.SegParam: "parameters", isa.SegGrad: "gradients of parameters", isa.SegTable: "lookup tables",
	isa.SegTGrad: "gradients of lookup tables", isa.SegAct: "values and gradients of nodes", isa.SegInput: "inputs",
	isa.SegResult: "results", isa.SegState: "trainers' memory",
}

// OfSegment is what a segment holds.
func OfSegment(s isa.Segment) string { return segments[s] }

// Table is the report, a line for each use and place, the largest first.
func Table(uses []Use) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-7s %-34s %12s %12s\n", "place", "what", "reserved", "in use")
	for place := Device; place <= Host; place++ {
		var here []Use
		total := uint64(0)
		for _, u := range uses {
			if u.Place == place && u.Bytes > 0 {
				here = append(here, u)
				total += u.Bytes
			}
		}
		slices.SortStableFunc(here, func(x, y Use) int { return cmp.Compare(y.Bytes, x.Bytes) })
		for _, u := range here {
			used := ""
			if u.Known {
				used = fmt.Sprint(u.Used)
			}
			b.WriteString(strings.TrimRight(fmt.Sprintf("%-7s %-34s %12d %12s", place, u.What, u.Bytes, used), " ") + "\n")
		}
		if total > 0 {
			fmt.Fprintf(&b, "%-7s %-34s %12d\n", place, "all of these", total)
		}
	}
	return b.String()
}
