package main

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// A look is a line of what the applications write with --curve.
type look struct {
	updates, seconds, loss, score float64
}

// A course is one run of an application.
type course struct {
	size
	device string
	seed   string
	looks  []look
}

func (c *course) onCPU() bool { return strings.HasPrefix(c.device, "CPU") }

func readCurves(path string) ([]*course, error) {
	t, err := readTable(path, "app", "device", "hidden", "embed", "seed", "updates", "seconds", "dev_loss", "dev_score")
	if err != nil {
		return nil, err
	}
	type key struct {
		size
		device, seed string
	}
	runs := map[key]*course{}
	var all []*course
	err = t.each(func(c *cells) {
		s := size{c.text("app"), c.whole("hidden"), c.whole("embed")}
		k := key{s, deviceName(c.text("device")), c.text("seed")}
		if runs[k] == nil {
			runs[k] = &course{size: s, device: k.device, seed: k.seed}
			all = append(all, runs[k])
		}
		l := look{c.notNegative("updates"), c.notNegative("seconds"), c.number("dev_loss"), c.notNegative("dev_score")}
		if n := len(runs[k].looks); n > 0 && l.updates <= runs[k].looks[n-1].updates {
			c.fail("%s on %s, seed %s: %g updates come after %g: two runs of the same seed", s.app, k.device, k.seed, l.updates, runs[k].looks[n-1].updates)
		}
		runs[k].looks = append(runs[k].looks, l)
	})
	sort.SliceStable(all, func(i, j int) bool { return all[i].size.before(all[j].size) })
	return all, err
}

// The held-out score as training goes on, over time and over updates.
func drawCurves(results, into string) error {
	all, err := readCurves(curvesFile(results))
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("%s: %w", curvesFile(results), errNoRows)
	}
	p, d := newPicture(2), &document{}
	d.say("# Held-out score as training goes on")
	d.say("Looks at the held-out sentences take no training time. The same seed gives both devices the same batches. " +
		"The last column compares held-out losses of the first 50 updates with those of the run before that has the same seed.")
	d.say("- **What the score is.** Trees: the share of sentences whose class is right. Taggers: the share of words. " +
		"A flat piece is a model that gives the most frequent answer to all.")
	d.say("- **Noise.** The learning rate stays as it is, so single batches of 16 move the score up and down. " +
		"Both devices jump alike, as the curves over updates show: it is the training's noise, not the device's.")
	d.say("- **Decline.** The training data are small, and a GPU passes over them hundreds of times in two minutes. " +
		"The model then learns them by heart, and its held-out loss grows. A program keeps the model of the best score.")
	d.picture("curves", "Held-out score over time and over updates")
	for from := 0; from < len(all); {
		to := from
		for to < len(all) && all[to].size == all[from].size {
			to++
		}
		curvePanels(p, all[from:to])
		curveTable(d, all[from:to])
		from = to
	}
	if err := p.write(into + "/curves.png"); err != nil {
		return err
	}
	return d.write(into + "/curves.md")
}

func curvePanels(p *picture, runs []*course) {
	curvePanel(p, p.panel(runs[0].title()+", by time", "seconds", "held-out score"), runs, func(l look) float64 { return l.seconds })
	curvePanel(p, p.panel(runs[0].title()+", by updates", "updates", "held-out score"), runs, func(l look) float64 { return l.updates })
}

// curvePanel draws over a logarithmic axis, as each look comes after a fifth more updates than the
// one before. The look before any training has no place on it. GPUs come first, in wide lines: a CPU's
// thin line on top shows both where they agree.
func curvePanel(p *picture, q *plot.Plot, runs []*course, x func(look) float64) {
	least, most := math.Inf(1), 0.0
	runs = slices.Clone(runs)
	sort.SliceStable(runs, func(i, j int) bool { return !runs[i].onCPU() && runs[j].onCPU() })
	for _, r := range runs {
		var xys plotter.XYs
		for _, l := range r.looks {
			if l.updates > 0 && x(l) > 0 {
				xys = append(xys, plotter.XY{X: x(l), Y: l.score})
				least, most = math.Min(least, x(l)), math.Max(most, x(l))
			}
		}
		if len(xys) == 0 {
			continue
		}
		line := &plotter.Line{XYs: xys, LineStyle: plotter.DefaultLineStyle}
		line.Color, line.Width = style(r.device).colour, vg.Points(2.4)
		if r.onCPU() {
			line.Width = vg.Points(1)
		}
		q.Add(line)
		p.explain(r.device, line)
	}
	if most > 0 {
		logAxis(&q.X, least, most, logTicks(least/1.15, most*1.15, false))
	}
}

func curveTable(d *document, runs []*course) {
	d.say("## %s", runs[0].title())
	var lines [][]string
	for k, r := range runs {
		last, best, least := r.looks[len(r.looks)-1], 0.0, math.Inf(1)
		for _, l := range r.looks {
			best = math.Max(best, l.score)
			if l.loss < least { // not NaN
				least = l.loss
			}
		}
		worst := ""
		for _, before := range runs[:k] {
			if before.seed == r.seed {
				worst = earlyDifference(before, r)
			}
		}
		lines = append(lines, []string{r.device + ", seed " + r.seed, figures(last.updates), figures(last.seconds),
			fmt.Sprintf("%.4f", last.score), fmt.Sprintf("%.4f", best), fmt.Sprintf("%.3f", last.loss), fmt.Sprintf("%.3f", least), worst})
	}
	d.table([]string{"run", "updates", "seconds", "last score", "best score", "last loss", "least loss", "worst early difference"}, lines)
}

// earlyDifference is the largest relative difference of the losses at the same numbers of updates,
// up to 50; "" if there are none.
func earlyDifference(a, b *course) string {
	loss := map[float64]float64{}
	for _, l := range a.looks {
		loss[l.updates] = l.loss
	}
	worst, any := 0.0, false
	for _, l := range b.looks {
		if x, ok := loss[l.updates]; ok && l.updates <= 50 {
			worst, any = math.Max(worst, math.Abs(l.loss-x)/math.Abs(x)), true
		}
	}
	if !any {
		return ""
	}
	return fmt.Sprintf("%.1e", worst)
}
