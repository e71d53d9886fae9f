package main

import (
	"fmt"
	"image/color"
	"sort"
	"strings"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// What a start consists of, columns of build/bench/startup in milliseconds, one after the other. As in the breakdown
// the host has shades of the CPU's colour, the device of the GPU's.
var startParts = []struct {
	name, column string
	colour       color.RGBA
}{
	{"context: driver and NVRTC", "context", color.RGBA{210, 210, 210, 255}},
	{"plan", "plan", color.RGBA{0, 0, 0, 255}},
	{"the kernel's text", "source", color.RGBA{254, 217, 142, 255}},
	{"cache", "cache", color.RGBA{153, 82, 0, 255}},
	{"compiler", "compiler", color.RGBA{230, 159, 0, 255}},
	{"loading the kernel", "load", color.RGBA{80, 190, 190, 255}},
	{"first batch", "first_fb", color.RGBA{0, 114, 178, 255}},
}

// A start is how long the parts take for one application, cold or warm, on one device.
type start struct {
	app, hidden, device, kind string
	ms                        map[string][]float64 // by column, of each repetition
}

func (s *start) title() string {
	return strings.TrimSuffix(fmt.Sprintf("%s %s, %s, %s", titleOf(s.app), s.hidden, s.kind, s.device), ", ")
}

func readStarts(path string) ([]*start, error) {
	needed := []string{"app", "hidden", "start"}
	for _, p := range startParts {
		needed = append(needed, p.column)
	}
	t, err := readTable(path, needed...)
	if err != nil {
		return nil, err
	}
	same := map[string]*start{}
	var all []*start
	err = t.each(func(c *cells) {
		s := &start{app: c.text("app"), hidden: c.text("hidden"), device: c.text("device"), kind: c.text("start"), ms: map[string][]float64{}}
		if s.kind != "cold" && s.kind != "warm" {
			c.fail("column start: %q is neither cold nor warm", s.kind)
		}
		if same[s.title()] == nil {
			same[s.title()] = s
			all = append(all, s)
		}
		for _, p := range startParts {
			ms := same[s.title()].ms
			ms[p.column] = append(ms[p.column], c.notNegative(p.column))
		}
	})
	sort.SliceStable(all, func(i, j int) bool { return place(all[i].app) < place(all[j].app) })
	return all, err
}

// What a start costs without and with the kernel in the cache: the paper's table II.
func drawJIT(results, into string) error {
	all, err := readStarts(jitFile(results))
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("%s: %w", jitFile(results), errNoRows)
	}
	p, d := newPicture(1), &document{}
	d.say("# From start to first batch")
	d.say("Seconds of a process that makes an application's model, medians. " +
		"A cold start has an empty cache of kernels, a warm one a filled cache.")
	d.picture("jit", "Seconds from start to first batch")
	p.wide = max(1, vg.Length(len(all))/5)
	q := p.panel("From start to first batch, cold and warm", "", "seconds")
	var below *plotter.BarChart
	for _, part := range startParts {
		bars := &plotter.BarChart{Width: vg.Points(16), Color: part.colour, LineStyle: plotter.DefaultLineStyle}
		bars.LineStyle.Width = 0
		for _, s := range all {
			bars.Values = append(bars.Values, median(s.ms[part.column])/1e3)
		}
		if below != nil {
			bars.StackOn(below)
		}
		below = bars
		q.Add(bars)
		p.explain(part.name, bars)
	}
	var names []string
	for _, s := range all {
		names = append(names, strings.Replace(titleOf(s.app), " with ", ",\n", 1)+"\n"+s.kind)
	}
	q.NominalX(names...)
	q.X.Tick.Label.Font.Size = vg.Points(9)
	q.X.Min, q.X.Max = -0.6, float64(len(all))-0.4
	aboveBars(q)
	startTable(d, all)
	if err := p.write(into + "/jit.png"); err != nil {
		return err
	}
	return d.write(into + "/jit.md")
}

func startTable(d *document, all []*start) {
	head := []string{"model"}
	for _, part := range startParts {
		head = append(head, part.name)
	}
	var lines [][]string
	for _, s := range all {
		line, total := []string{s.title()}, 0.0
		for _, part := range startParts {
			seconds := median(s.ms[part.column]) / 1e3
			total += seconds
			line = append(line, fmt.Sprintf("%.3f", seconds))
		}
		lines = append(lines, append(line, fmt.Sprintf("%.2f", total)))
	}
	d.table(append(head, "all"), lines)
}
