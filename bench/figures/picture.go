package main

import (
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// A picture is a grid of panels above one legend for all.
type picture struct {
	panels  []*plot.Plot
	wide    vg.Length // times the usual width of a panel
	high    vg.Length // times the usual height
	columns int
	entries []entry
}

type entry struct {
	name  string
	thumb plot.Thumbnailer
}

const (
	panelWidth  = 4.2 * vg.Inch
	panelHeight = 3.1 * vg.Inch
	legendLine  = 0.19 * vg.Inch
	legendThumb = 0.42 * vg.Inch // the line or box before a name
	legendGap   = 0.25 * vg.Inch // between two columns of names
	margin      = 0.17 * vg.Inch // left and right of the legend
	dpi         = 100
)

func newPicture(columns int) *picture {
	return &picture{columns: columns, wide: 1, high: 1}
}

func (p *picture) panel(title, x, y string) *plot.Plot {
	q := plot.New()
	q.Title.Text, q.X.Label.Text, q.Y.Label.Text = title, x, y
	q.Title.TextStyle.Font.Size = vg.Points(12)
	q.Title.Padding = vg.Points(4)
	q.X.Tick.Marker, q.Y.Tick.Marker = linearTicks{}, linearTicks{}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{225}, color.Gray{225}
	q.Add(grid)
	p.panels = append(p.panels, q)
	return q
}

// A look of a device or a peer: colour and mark are the same in all pictures, and colour-blind readers tell them apart.
type mark struct {
	colour color.RGBA
	glyph  draw.GlyphDrawer
}

// marks lists devices and peers by a part of their names; the first that fits counts.
var marks = []struct {
	part string
	mark
}{
	{"PyTorch, hand-written", mark{color.RGBA{213, 94, 0, 255}, draw.BoxGlyph{}}},
	{"PyTorch, level-batched", mark{color.RGBA{0, 158, 115, 255}, draw.TriangleGlyph{}}},
	{"PyTorch, nn.LSTM", mark{color.RGBA{204, 121, 167, 255}, draw.PyramidGlyph{}}},
	{"PyTorch", mark{color.RGBA{150, 60, 40, 255}, draw.BoxGlyph{}}},
	{"DyNet's calls", mark{color.RGBA{86, 180, 233, 255}, draw.RingGlyph{}}},
	{"DyNet", mark{color.RGBA{120, 120, 120, 255}, draw.CrossGlyph{}}},
	{"CPU", mark{color.RGBA{230, 159, 0, 255}, draw.RingGlyph{}}},
	{"", mark{color.RGBA{0, 114, 178, 255}, draw.CircleGlyph{}}}, // a GPU
}

// style is that of a device or a peer.
func style(name string) mark {
	for _, m := range marks {
		if strings.Contains(name, m.part) {
			return m.mark
		}
	}
	panic("the last entry fits every name")
}

// explain puts a name into the legend, once.
func (p *picture) explain(name string, thumb plot.Thumbnailer) {
	for _, e := range p.entries {
		if e.name == name {
			return
		}
	}
	p.entries = append(p.entries, entry{name, thumb})
}

var legendText = func() draw.TextStyle {
	text := plot.NewLegend().TextStyle
	text.Font.Size = vg.Points(11)
	return text
}()

// legendColumns deals the names out to as many columns, up to three, as have room for them.
func (p *picture) legendColumns() (columns [][]entry, widths []vg.Length) {
	room, _ := p.extentOfPanels()
	for n := min(3, len(p.entries)); n > 0; n-- {
		columns, widths = nil, nil
		total, lines := 2*margin-legendGap, (len(p.entries)+n-1)/n
		for from := 0; from < len(p.entries); from += lines {
			column := p.entries[from:min(from+lines, len(p.entries))]
			widest := vg.Length(0)
			for _, e := range column {
				widest = max(widest, legendText.Width(e.name))
			}
			columns, widths = append(columns, column), append(widths, legendThumb+vg.Points(4)+widest+legendGap)
			total += widths[len(widths)-1]
		}
		if total <= room {
			break
		}
	}
	return columns, widths
}

func (p *picture) width() int { return min(p.columns, len(p.panels)) }

func (p *picture) rows() int { return (len(p.panels) + p.columns - 1) / p.columns }

func (p *picture) legendHeight() vg.Length {
	lines := 0
	columns, _ := p.legendColumns()
	for _, c := range columns {
		lines = max(lines, len(c))
	}
	return vg.Length(lines)*legendLine + vg.Points(10)
}

func (p *picture) extentOfPanels() (w, h vg.Length) {
	return vg.Length(p.width()) * p.wide * panelWidth, vg.Length(p.rows()) * p.high * panelHeight
}

func (p *picture) extent() (w, h vg.Length) {
	w, h = p.extentOfPanels()
	return w, h + p.legendHeight()
}

// write draws the picture into a PNG file, whose folder is made.
func (p *picture) write(path string) error {
	w, h := p.extent()
	image := vgimg.NewWith(vgimg.UseWH(w, h), vgimg.UseDPI(dpi))
	all := draw.New(image)
	p.drawPanels(draw.Crop(all, 0, 0, p.legendHeight(), 0))
	p.drawLegend(draw.Crop(all, margin, 0, vg.Points(4), p.legendHeight()-h))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := (vgimg.PngCanvas{Canvas: image}).WriteTo(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

func (p *picture) drawPanels(on draw.Canvas) {
	grid := make([][]*plot.Plot, p.rows())
	for k := range grid {
		grid[k] = make([]*plot.Plot, p.width())
	}
	for k, q := range p.panels {
		grid[k/p.columns][k%p.columns] = q
	}
	// The last number of an axis may stand over its end by half its width.
	tiles := draw.Tiles{Rows: p.rows(), Cols: p.width(), PadX: vg.Points(22), PadY: vg.Points(8),
		PadTop: vg.Points(4), PadLeft: vg.Points(4), PadRight: vg.Points(24)}
	for i, line := range plot.Align(grid, tiles, on) {
		for j, canvas := range line {
			if grid[i][j] != nil {
				grid[i][j].Draw(canvas)
			}
		}
	}
}

func (p *picture) drawLegend(on draw.Canvas) {
	columns, widths := p.legendColumns()
	for c, column := range columns {
		legend := plot.NewLegend()
		legend.Left, legend.Top = true, true
		legend.TextStyle = legendText
		legend.ThumbnailWidth = legendThumb
		legend.Padding = vg.Points(3)
		for _, e := range column {
			legend.Add(e.name, e.thumb)
		}
		legend.Draw(on)
		on.Min.X += widths[c]
	}
}

// logTicks are 1, 2 and 5 times the powers of ten within the axis. Where there is no room for long
// numbers beside each other, only the powers are labelled, if there are two.
func logTicks(least, most float64, room bool) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	room = room || math.Ceil(math.Log10(least))+1 > math.Log10(most)
	for power := math.Floor(math.Log10(least)); power <= math.Log10(most); power++ {
		for _, step := range []float64{1, 2, 5} {
			x, label := step*math.Pow(10, power), ""
			if room || step == 1 {
				label = figures(x)
			}
			if x < 1 && label != "" {
				label = strconv.FormatFloat(x, 'g', 2, 64)
			}
			if x >= least && x <= most {
				ticks = append(ticks, plot.Tick{Value: x, Label: label})
			}
		}
	}
	return ticks
}

// logAxis makes an axis logarithmic from least to most, which are above 0.
func logAxis(a *plot.Axis, least, most float64, ticks plot.Ticker) {
	a.Scale = plot.LogScale{}
	a.Tick.Marker = ticks
	a.Min, a.Max = least/1.15, most*1.15
}

// linearTicks are the usual ones, written like all numbers here.
type linearTicks struct{}

func (linearTicks) Ticks(least, most float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(least, most)
	for k := range ticks {
		if !ticks[k].IsMinor() {
			ticks[k].Label = figures(ticks[k].Value)
		}
	}
	return ticks
}

func batchTicks(batches []int) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for _, b := range batches {
		ticks = append(ticks, plot.Tick{Value: float64(b), Label: strconv.Itoa(b)})
	}
	return ticks
}
