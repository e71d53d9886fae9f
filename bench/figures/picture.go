package main

import (
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strconv"

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
	columns int
	entries []entry
	styles  map[string]int
}

type entry struct {
	name  string
	thumb plot.Thumbnailer
}

const (
	panelWidth  = 4.2 * vg.Inch
	panelHeight = 3.1 * vg.Inch
	legendLine  = 0.24 * vg.Inch
	dpi         = 100
)

func newPicture(columns int) *picture {
	return &picture{columns: columns, wide: 1, styles: map[string]int{}}
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

// Colours that differ for colour-blind readers too.
var colours = []color.RGBA{
	{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255},
	{86, 180, 233, 255}, {230, 159, 0, 255}, {0, 0, 0, 255},
}

// style is the same for a name in all panels.
func (p *picture) style(name string) (color.Color, draw.GlyphDrawer) {
	k, ok := p.styles[name]
	if !ok {
		k = len(p.styles)
		p.styles[name] = k
	}
	glyphs := []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.TriangleGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{}}
	return colours[k%len(colours)], glyphs[k%len(glyphs)]
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

// legendColumns is 1 for narrow pictures, so that names have room.
func (p *picture) legendColumns() int {
	if p.width() == 1 && p.wide == 1 {
		return 1
	}
	return 2
}

func (p *picture) width() int { return min(p.columns, len(p.panels)) }

func (p *picture) rows() int { return (len(p.panels) + p.columns - 1) / p.columns }

func (p *picture) legendHeight() vg.Length {
	lines := (len(p.entries) + p.legendColumns() - 1) / p.legendColumns()
	return vg.Length(lines)*legendLine + vg.Points(10)
}

func (p *picture) extent() (w, h vg.Length) {
	return vg.Length(p.width()) * p.wide * panelWidth, vg.Length(p.rows())*panelHeight + p.legendHeight()
}

// write draws the picture into a PNG file, whose folder is made.
func (p *picture) write(path string) error {
	w, h := p.extent()
	image := vgimg.NewWith(vgimg.UseWH(w, h), vgimg.UseDPI(dpi))
	all := draw.New(image)
	p.drawPanels(draw.Crop(all, 0, 0, p.legendHeight(), 0))
	p.drawLegend(draw.Crop(all, vg.Points(12), 0, vg.Points(4), p.legendHeight()-h))
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
	tiles := draw.Tiles{Rows: p.rows(), Cols: p.width(), PadX: vg.Points(8), PadY: vg.Points(8),
		PadTop: vg.Points(4), PadLeft: vg.Points(4), PadRight: vg.Points(10)}
	for i, line := range plot.Align(grid, tiles, on) {
		for j, canvas := range line {
			if grid[i][j] != nil {
				grid[i][j].Draw(canvas)
			}
		}
	}
}

func (p *picture) drawLegend(on draw.Canvas) {
	columns := p.legendColumns()
	lines := (len(p.entries) + columns - 1) / columns
	width := (on.Max.X - on.Min.X) / vg.Length(columns)
	for c := 0; c < columns; c++ {
		legend := plot.NewLegend()
		legend.Left, legend.Top = true, true
		legend.TextStyle.Font.Size = vg.Points(11)
		legend.ThumbnailWidth = vg.Points(30)
		legend.Padding = vg.Points(3)
		for k := c * lines; k < min(len(p.entries), (c+1)*lines); k++ {
			legend.Add(p.entries[k].name, p.entries[k].thumb)
		}
		part := on
		part.Min.X += vg.Length(c) * width
		legend.Draw(part)
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
