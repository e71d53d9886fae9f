package main

import (
	"fmt"
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
)

// A held is a row of bench/plan: a partition of a matrix, or, with processor -1, what all processors have registers for.
type held struct {
	matrix                             string
	processor, copy, row, rows, column int
	register, registers                float64
}

func readPlan(path string) ([]held, error) {
	t, err := readTable(path, "matrix", "processor", "copy", "row", "rows", "columns", "register", "registers")
	if err != nil {
		return nil, err
	}
	var all []held
	err = t.each(func(c *cells) {
		all = append(all, held{c.text("matrix"), int(c.number("processor")), int(c.notNegative("copy")), int(c.notNegative("row")),
			int(c.notNegative("rows")), int(c.notNegative("columns")), c.notNegative("register"), c.positive("registers")})
	})
	return all, err
}

// Colours of matrices, which are neither devices nor peers; a copy has a lighter one.
var matrixColours = []color.RGBA{
	{31, 119, 180, 255}, {255, 127, 14, 255}, {44, 160, 44, 255}, {148, 103, 189, 255}, {140, 86, 75, 255},
	{227, 119, 194, 255}, {188, 189, 34, 255}, {23, 190, 207, 255}, {214, 39, 40, 255},
}

func lighter(c color.RGBA, copy int) color.RGBA {
	if copy == 0 {
		return c
	}
	towards := func(x uint8) uint8 { return uint8((2*int(x) + 3*255) / 5) }
	return color.RGBA{towards(c.R), towards(c.G), towards(c.B), 255}
}

// Which SM holds what of the Tree-LSTM example.
func drawPlan(results, into string) error {
	all, err := readPlan(planFile(results))
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("%s: %w", planFile(results), errNoRows)
	}
	p, d := newPicture(1), &document{}
	p.wide, p.high = 2.6, 1.15
	q := p.panel("Tree-LSTM 256/256 on a GPU of 132 SMs: registers of a thread; copies are lighter", "SM", "registers")
	processors, most := 0, 0.0
	for _, h := range all {
		processors = max(processors, h.processor+1)
		most = max(most, h.register+h.registers)
	}
	var names []string
	for _, h := range all {
		if h.processor >= 0 && !slices.Contains(names, h.matrix) {
			names = append(names, h.matrix)
		}
	}
	grey := uint8(205)
	for _, h := range all {
		from, to, name := float64(h.processor), float64(h.processor+1), h.matrix
		var fill color.RGBA
		if h.processor < 0 {
			from, to = 0, float64(processors)
			fill = color.RGBA{grey, grey, grey, 255}
			grey += 20
		} else {
			fill = lighter(matrixColours[slices.Index(names, h.matrix)%len(matrixColours)], h.copy)
		}
		b := box(from, to, h.register, h.register+h.registers, fill)
		if h.processor >= 0 {
			b.LineStyle.Width, b.LineStyle.Color = 0.4, color.White
		}
		q.Add(b)
		p.explain(name, b)
	}
	q.X.Min, q.X.Max, q.Y.Min, q.Y.Max = 0, float64(processors), 0, most*1.02
	var ticks plot.ConstantTicks
	for k := 0; k < processors; k += 12 {
		ticks = append(ticks, plot.Tick{Value: float64(k) + 0.5, Label: figures(float64(k))})
	}
	q.X.Tick.Marker, ticks = ticks, nil
	for r := 0.0; r <= most; r += 50 {
		ticks = append(ticks, plot.Tick{Value: r, Label: figures(r)})
	}
	q.Y.Tick.Marker = ticks
	d.say("# Which SM holds what")
	d.say("The plan of the cost model for the Tree-LSTM example, of an NVIDIA H200's size. `go generate ./bench/plan` makes it without a GPU. " +
		"Registers are those of one thread. A partition is some rows of a matrix, held by one SM.")
	d.picture("plan", "Registers of a thread, by SM")
	planTable(d, all, names)
	if err := p.write(into + "/plan.png"); err != nil {
		return err
	}
	return d.write(into + "/plan.md")
}

func planTable(d *document, all []held, names []string) {
	var lines [][]string
	for _, name := range names {
		partitions, copies, rows, columns, registers, where := 0, 0, 0, 0, 0.0, []string{}
		for k := 0; k < len(all); k++ {
			h := all[k]
			if h.matrix != name {
				continue
			}
			first := h.processor
			for k+1 < len(all) && all[k+1].matrix == name && all[k+1].copy == h.copy && all[k+1].processor == all[k].processor+1 {
				k++
			}
			if last := all[k].processor; last == first {
				where = append(where, fmt.Sprint(first))
			} else {
				where = append(where, fmt.Sprintf("%d to %d", first, last))
			}
		}
		for _, h := range all {
			if h.matrix == name {
				partitions++
				copies = max(copies, h.copy+1)
				rows, columns, registers = max(rows, h.row+h.rows), h.column, h.registers
			}
		}
		lines = append(lines, []string{name, fmt.Sprintf("%d x %d", rows, columns), fmt.Sprint(copies), fmt.Sprint(partitions / copies),
			figures(registers), strings.Join(where, ", ")})
	}
	d.table([]string{"matrix", "size", "copies", "partitions of each", "registers of a thread", "SMs"}, lines)
}

// box is a filled rectangle.
func box(left, right, bottom, top float64, fill color.RGBA) *plotter.Polygon {
	b, err := plotter.NewPolygon(plotter.XYs{{X: left, Y: bottom}, {X: right, Y: bottom}, {X: right, Y: top}, {X: left, Y: top}})
	if err != nil {
		panic(err) // the corners are finite numbers
	}
	b.Color = fill
	b.LineStyle.Width = 0
	return b
}
