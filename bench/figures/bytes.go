package main

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/plot/plotter"
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
	d.say("# Bytes of weights for 128 inputs")
	d.say("Megabytes (10^6) of parameters that processors asked memory for while 128 inputs were trained.")
	q := p.panel("Weights loaded for 128 inputs", "batch size", "MB")
	least, most := math.Inf(1), 0.0
	for _, s := range sizesOf(rows) {
		for _, who := range whosOf(rows) {
			of := only(rows, func(r rate) bool { return r.size == s && r.who == who })
			if len(of) == 0 {
				continue
			}
			name := s.title() + ", " + strings.TrimPrefix(who, "libvpps, ")
			var xys plotter.XYs
			for _, b := range batchesOf(of) {
				for _, r := range of {
					if r.batch == b {
						xys = append(xys, plotter.XY{X: float64(b), Y: loads(r)})
						least, most = math.Min(least, loads(r)), math.Max(most, loads(r))
					}
				}
			}
			line, points := linePoints(p, name, xys)
			q.Add(line, points)
			p.explain(name, line)
			bytesTable(d, name, of)
		}
	}
	batches := batchesOf(rows)
	logAxis(&q.X, float64(batches[0]), float64(batches[len(batches)-1]), batchTicks(batches))
	logAxis(&q.Y, least, most, logTicks(least/1.15, most*1.15, true))
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
