package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// traffic is what processors asked memory for, in megabytes per 128 inputs.
var traffic = []struct{ name, column string }{
	{"loaded into registers", "loaded_bytes"},
	{"read again for each use", "streamed_bytes"},
	{"by updates", "updated_bytes"},
}

func megabytes(r rate, column string) float64 { return r.more[column] * 128 / float64(r.batch) / 1e6 }

func loads(r rate) float64 {
	return megabytes(r, "loaded_bytes") + megabytes(r, "streamed_bytes")
}

// Bytes of weights asked from memory for 128 inputs: the paper's table I, which counts loads.
func drawBytes(results, into string) error {
	rows, err := readVPPS(rowsFile(results))
	if err != nil {
		return err
	}
	rows = only(rows, func(r rate) bool { return loads(r) > 0 && !strings.Contains(r.who, "DyNet's calls") })
	if len(rows) == 0 {
		return fmt.Errorf("%s: %w: they need the columns %s and %s", rowsFile(results), errNoRows, traffic[0].column, traffic[1].column)
	}
	rows = medians(rows)
	p, d := newPicture(1), &document{}
	p.wide = 1.6
	d.say("# Bytes of weights for 128 inputs")
	d.say("Megabytes (10^6) of parameters that processors asked memory for while 128 inputs were trained.")
	d.picture("bytes", "Weights loaded, by application and batch size")
	q := p.panel("Weights loaded for 128 inputs", "MB", "")
	batches, whos := batchesOf(rows), whosOf(rows)
	if len(whos) == 1 {
		q.Title.Text += ", " + strings.TrimPrefix(whos[0], "libvpps, ")
	}
	// A line for each application and device, with a point for each batch size: curves would cover each other.
	var names []string
	points := make([]plotter.XYs, len(batches))
	least, most := math.Inf(1), 0.0
	for _, s := range sizesOf(rows) {
		for _, who := range whos {
			of := only(rows, func(r rate) bool { return r.size == s && r.who == who })
			if len(of) == 0 {
				continue
			}
			name := s.title() + ", " + strings.TrimPrefix(who, "libvpps, ")
			bytesTable(d, name, of)
			if len(whos) == 1 {
				name = s.title()
			}
			names = append(names, name)
			for _, r := range of {
				k := slices.Index(batches, r.batch)
				points[k] = append(points[k], plotter.XY{X: loads(r), Y: float64(-len(names))})
				least, most = math.Min(least, loads(r)), math.Max(most, loads(r))
			}
		}
	}
	glyphs := []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}}
	for k, b := range batches {
		scatter := &plotter.Scatter{XYs: points[k], GlyphStyle: plotter.DefaultGlyphStyle}
		scatter.Color, scatter.Shape, scatter.Radius = style("").colour, glyphs[k%len(glyphs)], vg.Points(4)
		q.Add(scatter)
		p.explain("batches of "+strconv.Itoa(b), scatter)
	}
	var ticks plot.ConstantTicks
	for k, name := range names {
		ticks = append(ticks, plot.Tick{Value: float64(-k - 1), Label: name})
	}
	q.Y.Tick.Marker, q.Y.Min, q.Y.Max = ticks, -float64(len(names))-0.6, -0.4
	logAxis(&q.X, least, most, logTicks(least/1.15, most*1.15, true))
	if err := p.write(into + "/bytes.png"); err != nil {
		return err
	}
	return d.write(into + "/bytes.md")
}

func bytesTable(d *document, name string, rows []rate) {
	batches, of, head := batchesOf(rows), map[int]rate{}, []string{name}
	for _, r := range rows {
		of[r.batch] = r
	}
	for _, b := range batches {
		head = append(head, figures(float64(b)))
	}
	var lines [][]string
	for _, t := range traffic {
		lines = append(lines, cellsOf(t.name, batches, of, func(r rate) string { return figures(megabytes(r, t.column)) }))
	}
	d.table(head, lines)
}
