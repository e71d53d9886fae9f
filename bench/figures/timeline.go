package main

import (
	"encoding/json"
	"fmt"
	"image/color"
	"math"
	"os"
	"sort"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// An event is one of a file that VPPS_TRACE has written; ts and dur are microseconds.
type event struct {
	Name, Ph string
	Tid      int
	Ts, Dur  float64
	Args     struct {
		Name  string
		Batch int
	}
}

// activities are what a timeline shows: the host's in shades of the CPU's colour, the device's in the GPU's.
var activities = []struct {
	name   string
	colour color.RGBA
}{
	{"record", color.RGBA{254, 217, 142, 255}}, {"decode", color.RGBA{230, 159, 0, 255}}, {"script", color.RGBA{153, 82, 0, 255}},
	{"launch", color.RGBA{0, 0, 0, 255}}, {"kernel", color.RGBA{0, 114, 178, 255}}, {"wait", color.RGBA{210, 210, 210, 255}},
}

// shownMicroseconds is the length of the picture.
const shownMicroseconds = 12000

func readTimeline(path string) (tracks map[int]string, events []event, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	var all []event
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, nil, fmt.Errorf("%s: %v", path, err)
	}
	tracks = map[int]string{}
	for _, e := range all {
		switch {
		case e.Ph == "M" && e.Name == "thread_name":
			tracks[e.Tid] = e.Args.Name
		case e.Ph == "X" && e.Name != "fb": // the call, which the others are parts of
			events = append(events, e)
		}
	}
	if len(events) == 0 {
		return nil, nil, fmt.Errorf("%s: %w", path, errNoRows)
	}
	sort.SliceStable(events, func(i, j int) bool { return events[i].Ts < events[j].Ts })
	return tracks, events, nil
}

// typical is the beginning of the piece in which kernels take the share of the time that they take in the whole run.
func typical(events []event) float64 {
	share := func(from, to float64) float64 {
		sum := 0.0
		for _, e := range events {
			if e.Name == "kernel" {
				sum += max(0, min(to, e.Ts+e.Dur)-max(from, e.Ts))
			}
		}
		return sum / (to - from)
	}
	last := events[len(events)-1]
	all, best, nearest := share(events[0].Ts, last.Ts+last.Dur), events[0].Ts, math.Inf(1)
	for _, e := range events {
		if off := math.Abs(share(e.Ts, e.Ts+shownMicroseconds) - all); e.Name == "record" && e.Ts+shownMicroseconds < last.Ts && off < nearest {
			best, nearest = e.Ts, off
		}
	}
	return best
}

// What the program, the workers and the device do at the same time.
func drawTimeline(results, into string) error {
	tracks, events, err := readTimeline(timelineFile(results))
	if err != nil {
		return err
	}
	p := newPicture(1)
	p.wide, p.high = 2.6, 0.95
	q := p.panel("A BiLSTM tagger on an NVIDIA H200, batches of 16 sentences", "milliseconds", "")
	start := typical(events)
	var ticks plot.ConstantTicks
	ids := make([]int, 0, len(tracks))
	for id := range tracks {
		ids = append(ids, id)
	}
	sort.Ints(ids)
	row := map[int]float64{}
	for k, id := range ids {
		row[id] = -float64(k)
		ticks = append(ticks, plot.Tick{Value: row[id], Label: tracks[id]})
	}
	var labels plotter.XYLabels
	for _, a := range activities {
		for _, e := range events {
			from, to := max(0, e.Ts-start), min(shownMicroseconds, e.Ts+e.Dur-start)
			name := e.Name
			if strings.HasPrefix(name, "wait") || strings.HasPrefix(name, "await") {
				name = "wait"
			}
			if name != a.name || from >= to {
				continue
			}
			y := row[e.Tid]
			b := box(from/1e3, to/1e3, y-0.38, y+0.38, a.colour)
			q.Add(b)
			p.explain(a.name, b)
			if (name == "kernel" || name == "script" || name == "record") && to-from > 250 {
				labels.XYs = append(labels.XYs, plotter.XY{X: (from + to) / 2e3, Y: y})
				labels.Labels = append(labels.Labels, fmt.Sprint(e.Args.Batch))
			}
		}
	}
	if numbers, err := plotter.NewLabels(labels); err == nil { // else none has room
		for k := range numbers.TextStyle {
			style := &numbers.TextStyle[k]
			style.Font.Size, style.XAlign, style.YAlign = vg.Points(9), -0.5, -0.4
			if labels.XYs[k].Y != row[ids[0]] { // on dark boxes
				style.Color = color.White
			}
		}
		q.Add(numbers)
	}
	q.Y.Tick.Marker, q.Y.Min, q.Y.Max = ticks, -float64(len(ids))+0.5, 0.5
	q.X.Min, q.X.Max = 0, shownMicroseconds/1e3
	return p.write(into + "/timeline.png")
}
