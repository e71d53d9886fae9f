package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

const notHere = "recorded on one NVIDIA H200, not run in this command"

// readRates reads all rates of a folder of results, medians. Those of PyTorch and DyNet may be absent.
func readRates(results string, keep func(rate) bool) ([]rate, error) {
	rows, err := readVPPS(rowsFile(results))
	if err != nil {
		return nil, err
	}
	rows = only(rows, keep)
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s: %w", rowsFile(results), errNoRows)
	}
	shown := map[size]bool{}
	for _, r := range rows {
		shown[r.size] = true
	}
	for _, other := range []struct {
		path string
		read func(string) ([]rate, error)
	}{{torchFile(results), readTorch}, {recordedFile(results), readRecorded}} {
		more, err := other.read(other.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		rows = append(rows, only(more, func(r rate) bool { return shown[r.size] })...)
	}
	return medians(rows), nil
}

var errNoRows = errors.New("there are no rows of this figure")

// Whole steps by batch size at the applications' usual sizes: the paper's figures 8 and 12.
func drawThroughput(results, into string) error {
	rates, err := readRates(results, func(r rate) bool { return r.part != "hidden" && r.part != "breakdown" })
	if err != nil {
		return err
	}
	return drawRates(rates, into, "throughput", "Training, by batch size", 3)
}

// The same for one application and several lengths of its hidden vectors: the paper's figure 9.
func drawHidden(results, into string) error {
	rates, err := readRates(results, func(r rate) bool { return r.part == "hidden" })
	if err != nil {
		return err
	}
	return drawRates(rates, into, "hidden", "Training, by length of the hidden vectors", 2)
}

func drawRates(rates []rate, into, name, title string, columns int) error {
	p, d := newPicture(columns), &document{}
	d.say("# %s", title)
	d.say("Sentences per second of whole steps: building the graph, forward, backward and update. Each rate is a median. "+
		"Rows that end in \"forward only\" are without training. Bars in the picture end at the slowest and the fastest window. "+
		"DyNet's rates are %s. Two of them in one cell are from two hosts.", notHere)
	d.picture(name, title)
	peers := len(bestRecorded(rates)) > 0
	for _, s := range sizesOf(rates) {
		rows := only(rates, func(r rate) bool { return r.size == s })
		without := peers && len(bestRecorded(rows)) == 0
		ratesPanel(p, s, rows, without)
		ratesTable(d, s, rows, without)
	}
	if err := p.write(into + "/" + name + ".png"); err != nil {
		return err
	}
	return d.write(into + "/" + name + ".md")
}

// bestRecorded is the fastest recorded rate of each batch size, of any variant on any host.
func bestRecorded(rows []rate) map[int]float64 {
	best := map[int]float64{}
	for _, r := range rows {
		if r.recorded {
			best[r.batch] = math.Max(best[r.batch], r.fastest)
		}
	}
	return best
}

func ratesPanel(p *picture, s size, rows []rate, withoutPeer bool) {
	title := s.title()
	if withoutPeer {
		title += " (no rates of DyNet recorded)"
	}
	q := p.panel(title, "batch size", "sentences/s")
	least, most := math.Inf(1), 0.0
	show := func(points plotter.XYs) {
		for _, xy := range points {
			least, most = math.Min(least, xy.Y), math.Max(most, xy.Y)
		}
	}
	for _, who := range whosOf(rows) {
		of := only(rows, func(r rate) bool { return r.who == who && !r.recorded })
		if len(of) > 0 {
			show(measuredLine(p, q, who, of))
		}
	}
	best := bestRecorded(rows)
	for _, target := range []struct {
		times  float64
		dashes []vg.Length
		name   string
	}{{1, nil, "DyNet's best variant (" + notHere + ")"}, {3, []vg.Length{6, 3}, "3 times DyNet's best"}, {6, []vg.Length{2, 2}, "6 times DyNet's best"}} {
		if len(best) > 0 {
			show(targetLine(p, q, target.name, best, batchesOf(rows), target.times, target.dashes))
		}
	}
	batches := batchesOf(rows)
	logAxis(&q.X, float64(batches[0]), float64(batches[len(batches)-1]), batchTicks(batches))
	logAxis(&q.Y, least, most, logTicks(least/1.15, most*1.15, true))
}

// spread is a line's points with the slowest and the fastest window beside the median.
type spread struct {
	plotter.XYs
	plotter.YErrors
}

// measuredLine draws a line and returns what the vertical axis has to hold.
func measuredLine(p *picture, q *plot.Plot, who string, rows []rate) plotter.XYs {
	var s spread
	for _, b := range batchesOf(rows) {
		for _, r := range rows {
			if r.batch == b {
				s.XYs = append(s.XYs, plotter.XY{X: float64(b), Y: r.training})
				// A bar that ends at 0 has no place on a logarithmic axis; windows are above it.
				s.YErrors = append(s.YErrors, struct{ Low, High float64 }{r.training - r.slowest, r.fastest - r.training})
			}
		}
	}
	line, points := linePoints(who, s.XYs)
	bars, err := plotter.NewYErrorBars(s)
	if err == nil { // else values are not finite, which the reader refuses
		bars.Color = line.Color
		q.Add(bars)
	}
	q.Add(line, points)
	p.explain(who, line)
	all := s.XYs
	for _, r := range rows {
		all = append(all, plotter.XY{Y: r.slowest}, plotter.XY{Y: r.fastest})
	}
	return all // the ends of the bars, too
}

func linePoints(who string, xys plotter.XYs) (*plotter.Line, *plotter.Scatter) {
	look := style(who)
	line, points := &plotter.Line{XYs: xys, LineStyle: plotter.DefaultLineStyle}, &plotter.Scatter{XYs: xys, GlyphStyle: plotter.DefaultGlyphStyle}
	line.Color, points.Color = look.colour, look.colour
	line.Width = vg.Points(1.6)
	points.Shape, points.Radius = look.glyph, vg.Points(2.6)
	return line, points
}

func targetLine(p *picture, q *plot.Plot, name string, best map[int]float64, batches []int, times float64, dashes []vg.Length) plotter.XYs {
	var xys plotter.XYs
	for _, b := range batches {
		if y, ok := best[b]; ok {
			xys = append(xys, plotter.XY{X: float64(b), Y: times * y})
		}
	}
	line := &plotter.Line{XYs: xys, LineStyle: plotter.DefaultLineStyle}
	line.Color, line.Width, line.Dashes = style("DyNet").colour, vg.Points(1.3), dashes
	q.Add(line)
	p.explain(name, line)
	return xys
}

func ratesTable(d *document, s size, rows []rate, withoutPeer bool) {
	batches := batchesOf(rows)
	d.say("## %s", s.title())
	if withoutPeer {
		d.say("No rates of DyNet were recorded at this size.")
	}
	head := []string{"batch"}
	for _, b := range batches {
		head = append(head, figures(float64(b)))
	}
	best := bestRecorded(rows)
	var lines, ratios, forward [][]string
	for _, who := range whosOf(rows) {
		of := map[int]rate{}
		recorded, asked := false, false
		for _, r := range rows {
			if r.who == who {
				of[r.batch], recorded, asked = r, r.recorded, asked || r.forward > 0
			}
		}
		name := who
		if recorded {
			name += " (recorded)"
		}
		lines = append(lines, cellsOf(name, batches, of, rateCell))
		if !recorded && len(best) > 0 && !onCPU(who) {
			ratios = append(ratios, cellsOf(who+" ÷ DyNet's best recorded", batches, of, func(r rate) string {
				if best[r.batch] == 0 {
					return ""
				}
				return fmt.Sprintf("%.1f", r.training/best[r.batch])
			}))
		}
		if asked {
			forward = append(forward, cellsOf(who+", forward only", batches, of, func(r rate) string {
				if r.forward == 0 {
					return ""
				}
				return figures(math.Round(r.forward))
			}))
		}
	}
	d.table(head, append(append(lines, ratios...), forward...))
}

// onCPU: DyNet's recorded rates are a GPU's.
func onCPU(who string) bool { return strings.HasPrefix(who, "libvpps, CPU") }

func rateCell(r rate) string {
	if r.recorded && r.slowest != r.fastest {
		return figures(r.slowest) + "/" + figures(r.fastest)
	}
	return figures(math.Round(r.training))
}

func cellsOf(name string, batches []int, of map[int]rate, cell func(rate) string) []string {
	line := []string{name}
	for _, b := range batches {
		if r, ok := of[b]; ok {
			line = append(line, cell(r))
		} else {
			line = append(line, "")
		}
	}
	return line
}
