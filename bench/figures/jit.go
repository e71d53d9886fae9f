package main

import (
	"fmt"
	"sort"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// A start is how long a program takes to its first updates, without and with the kernel in the cache.
type start struct {
	size
	device     string
	cold, warm []float64 // seconds
}

func readStarts(path string) ([]*start, error) {
	t, err := readTable(path, "app", "device", "hidden", "embed", "cold_s", "warm_s")
	if err != nil {
		return nil, err
	}
	type key struct {
		size
		device string
	}
	same := map[key]*start{}
	var all []*start
	err = t.each(func(c *cells) {
		k := key{size{c.text("app"), c.whole("hidden"), c.whole("embed")}, deviceName(c.text("device"))}
		if same[k] == nil {
			same[k] = &start{size: k.size, device: k.device}
			all = append(all, same[k])
		}
		same[k].cold = append(same[k].cold, c.positive("cold_s"))
		same[k].warm = append(same[k].warm, c.positive("warm_s"))
	})
	sort.SliceStable(all, func(i, j int) bool { return all[i].size.before(all[j].size) })
	return all, err
}

// What compiling a model's kernel costs: the paper's table II.
func drawJIT(results, into string) error {
	all, err := readStarts(jitFile(results))
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("%s: %w", jitFile(results), errNoRows)
	}
	p, d := newPicture(1), &document{}
	d.say("# Starting with an empty and with a filled cache of kernels")
	d.say("Seconds of a program that reads its data, makes its model and trains a few batches; medians.")
	q := p.panel("Start to end of a short run", "", "seconds")
	cold, warm := plotter.Values{}, plotter.Values{}
	var names []string
	var lines [][]string
	for _, s := range all {
		c, w := median(s.cold), median(s.warm)
		cold, warm = append(cold, c), append(warm, w)
		names = append(names, s.app)
		lines = append(lines, []string{s.title() + ", " + s.device, figures(c), figures(w), figures(c - w)})
	}
	width := vg.Points(14)
	for k, values := range []plotter.Values{cold, warm} {
		bars := &plotter.BarChart{Values: values, Width: width, Offset: width * vg.Length(2*k-1) / 2, Color: colours[1-k], LineStyle: plotter.DefaultLineStyle}
		bars.LineStyle.Width = 0
		q.Add(bars)
		p.explain([]string{"cold: compiles the kernel", "warm: takes it from the cache"}[k], bars)
	}
	q.NominalX(names...)
	q.X.Min, q.X.Max = -0.6, float64(len(names))-0.4
	d.table([]string{"model", "cold", "warm", "difference"}, lines)
	if err := p.write(into + "/jit.png"); err != nil {
		return err
	}
	return d.write(into + "/jit.md")
}
