package main

import (
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// A phase is a part of a sentence's time, on the host or on the device.
type phase struct {
	name   string
	column string
	// of gives microseconds a sentence.
	of func(column float64, r rate) float64
}

func perNode(ns float64, r rate) float64 {
	return 1e-3 * ns * r.more["nodes_per_batch"] / float64(r.batch)
}
func perBatch(us float64, r rate) float64 { return us / float64(r.batch) }

var hostPhases = []phase{
	{"host: record", "record_ns_per_node", perNode},
	{"host: decode", "decode_ns_per_node", perNode},
	{"host: schedule", "schedule_ns_per_node", perNode},
}

// Of the device there is either the whole or, where processors noted it, the phases, which are the
// mean over processors.
var (
	devicePhases = []phase{
		{"device: start", "start_us", perBatch},
		{"device: forward", "forward_us", perBatch},
		{"device: backward", "backward_us", perBatch},
		{"device: gradients", "gradients_us", perBatch},
		{"device: update", "update_us", perBatch},
		{"device: fetch", "fetch_us", perBatch},
		{"device: waiting", "waiting_us", perBatch},
	}
	wholeDevice = []phase{{"device", "device_us_per_batch", perBatch}}
)

func devicePhaseColumns() []string {
	var all []string
	for _, p := range devicePhases {
		all = append(all, p.column)
	}
	return all
}

// measured are the phases of which a row has any time.
func measured(phases []phase, rows []rate) []phase {
	var all []phase
	for _, p := range phases {
		for _, r := range rows {
			if r.more[p.column] > 0 {
				all = append(all, p)
				break
			}
		}
	}
	return all
}

// Where a sentence's time goes, host and device side by side, as they work at the same time: the
// paper's figure 10. Rows measured for it go before others, since clocks cost time.
func drawBreakdown(results, into string) error {
	rows, err := readVPPS(rowsFile(results))
	if err != nil {
		return err
	}
	rows = only(rows, func(r rate) bool { return r.part != "hidden" && !strings.Contains(r.who, "DyNet's calls") })
	if timed := only(rows, func(r rate) bool { return r.part == "breakdown" }); len(timed) > 0 {
		rows = timed
	}
	if len(rows) == 0 {
		return fmt.Errorf("%s: %w", rowsFile(results), errNoRows)
	}
	rows = medians(rows)
	p, d := newPicture(3), &document{}
	d.say("# Where the time goes")
	d.say("Microseconds a sentence. Host and device work at the same time, so their times do not add up. " +
		"The program's thread records. The library's threads decode and schedule: one worker or more. " +
		"A device's phases are means over its processors (`VPPS_PROFILE=1`). " +
		"Without them its whole time is given, if that was measured (`VPPS_TIMES=1`).")
	d.picture("breakdown", "Time a sentence, by phase")
	for _, s := range sizesOf(rows) {
		for _, who := range whosOf(rows) {
			of := only(rows, func(r rate) bool { return r.size == s && r.who == who })
			if len(of) > 0 {
				breakdownPanel(p, d, s.title()+", "+strings.TrimPrefix(who, "libvpps, "), of)
			}
		}
	}
	if err := p.write(into + "/breakdown.png"); err != nil {
		return err
	}
	return d.write(into + "/breakdown.md")
}

func breakdownPanel(p *picture, d *document, title string, rows []rate) {
	device := measured(devicePhases, rows)
	if len(device) == 0 {
		device = measured(wholeDevice, rows)
	}
	batches := batchesOf(rows)
	of := map[int]rate{}
	for _, r := range rows {
		of[r.batch] = r
	}
	q := p.panel(title, "batch size", "µs a sentence")
	width := vg.Points(min(14, 190/float64(2*len(batches))))
	stack(p, q, hostPhases, batches, of, width, -width/2)
	stack(p, q, device, batches, of, width, width/2)
	var ticks plot.ConstantTicks
	head := []string{title}
	for k, b := range batches {
		head = append(head, figures(float64(b)))
		ticks = append(ticks, plot.Tick{Value: float64(k), Label: figures(float64(b))})
	}
	q.X.Tick.Marker = ticks
	q.X.Min, q.X.Max = -0.6, float64(len(batches))-0.4
	aboveBars(q)
	var lines [][]string
	for _, f := range append(append([]phase{}, hostPhases...), device...) {
		lines = append(lines, cellsOf(f.name, batches, of, func(r rate) string { return figures(f.of(r.more[f.column], r)) }))
	}
	d.table(head, lines)
}

// stack draws the phases of each batch size on top of each other.
func stack(p *picture, q *plot.Plot, phases []phase, batches []int, of map[int]rate, width, offset vg.Length) {
	var below *plotter.BarChart
	for _, f := range phases {
		bars := &plotter.BarChart{Width: width, Offset: offset, Color: phaseColour(f), LineStyle: plotter.DefaultLineStyle}
		bars.LineStyle.Width = 0
		for _, b := range batches {
			bars.Values = append(bars.Values, f.of(of[b].more[f.column], of[b]))
		}
		if below != nil {
			bars.StackOn(below)
		}
		below = bars
		q.Add(bars)
		p.explain(f.name, bars)
	}
}

// aboveBars keeps the highest bar away from the panel's edge.
func aboveBars(q *plot.Plot) { q.Y.Max *= 1.06 }

// phaseColour: shades of the CPU's colour for the host, and from green to the GPU's blue for the device.
func phaseColour(of phase) color.Color {
	for k, p := range hostPhases {
		if p.name == of.name {
			return []color.RGBA{{254, 217, 142, 255}, {230, 159, 0, 255}, {153, 82, 0, 255}}[k]
		}
	}
	for k, p := range devicePhases {
		if p.name == of.name {
			return []color.RGBA{{0, 0, 0, 255}, {199, 233, 180, 255}, {80, 190, 190, 255}, {0, 114, 178, 255},
				{8, 29, 88, 255}, {150, 120, 180, 255}, {210, 210, 210, 255}}[k]
		}
	}
	return style("").colour
}
