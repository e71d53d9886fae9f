package main

import (
	"fmt"
	"math"
	"path/filepath"
	"sort"
	"strings"
)

// A size is what a panel shows: an application with its hidden and its word vectors' length.
type size struct {
	app           string
	hidden, embed int
}

// applications are in the paper's order, behind Tree-LSTM, which has a figure of its own there.
var applications = []struct{ name, title string }{
	{"treelstm", "Tree-LSTM"}, {"bilstm", "BiLSTM"}, {"bilstm_char", "BiLSTM with characters"},
	{"tdrnn", "TD-RNN"}, {"tdlstm", "TD-LSTM"}, {"rvnn", "RvNN"},
}

// titleOf an application that is not among them is its name.
func titleOf(app string) string {
	for _, a := range applications {
		if a.name == app {
			return a.title
		}
	}
	return app
}

func place(app string) int {
	for k, a := range applications {
		if a.name == app {
			return k
		}
	}
	return len(applications)
}

func (s size) title() string { return fmt.Sprintf("%s %d/%d", titleOf(s.app), s.hidden, s.embed) }

// before orders panels.
func (s size) before(t size) bool {
	if a, b := place(s.app), place(t.app); a != b {
		return a < b
	}
	if s.app != t.app {
		return s.app < t.app
	}
	if s.hidden != t.hidden {
		return s.hidden < t.hidden
	}
	return s.embed < t.embed
}

// A rate is what a row says, or the median over rows of the same who, size and batch.
type rate struct {
	size
	who                        string // "libvpps, NVIDIA H200"
	part                       string // which measurement it belongs to
	recorded                   bool   // on another day, not in the same command
	batch                      int
	training, slowest, fastest float64 // sentences a second, of whole steps
	forward                    float64 // sentences a second without training; 0: not measured
	more                       map[string]float64
}

// Columns of --measure --csv beside the rates. Older rows lack some.
var moreColumns = append([]string{"nodes_per_batch", "record_ns_per_node", "decode_ns_per_node", "schedule_ns_per_node",
	"device_us_per_batch", "loaded_bytes", "streamed_bytes", "updated_bytes"}, devicePhaseColumns()...)

// readVPPS reads what the applications print with --measure --csv, with a column "part" before.
func readVPPS(path string) ([]rate, error) {
	t, err := readTable(path, "part", "app", "mode", "device", "hidden", "embed", "batch", "sentences_per_s", "slowest", "fastest")
	if err != nil {
		return nil, err
	}
	var all []rate
	err = t.each(func(c *cells) {
		r := readRate(c)
		r.part = c.text("part")
		r.who = "libvpps, " + deviceName(c.text("device"))
		if c.text("mode") == "dynet" {
			r.who += ", DyNet's calls"
		}
		if trainer := c.text("trainer"); trainer != "" && trainer != "sgd" {
			r.who += ", " + trainer
		}
		r.more = map[string]float64{}
		for _, name := range moreColumns {
			if t.has(name) {
				r.more[name] = c.ifThere(name)
			}
		}
		all = append(all, r)
	})
	return all, err
}

func readRate(c *cells) rate {
	return rate{
		size:     size{c.text("app"), c.whole("hidden"), c.whole("embed")},
		batch:    c.whole("batch"),
		training: c.positive("sentences_per_s"),
		slowest:  c.positive("slowest"),
		fastest:  c.positive("fastest"),
		forward:  c.ifThere("forward_sentences_per_s"),
	}
}

// deviceName is "NVIDIA H200" of "cuda:0: NVIDIA H200, sm_90, 132 SMs" and "CPU, 2 threads" of
// "cpu: 2 threads, up to 2 processors, x86-64-v4".
func deviceName(device string) string {
	at := strings.LastIndex(device, ": ")
	if at < 0 {
		return device
	}
	name, _, _ := strings.Cut(device[at+2:], ",")
	if strings.HasPrefix(device, "cpu") {
		name = "CPU, " + name
	}
	return name
}

// readTorch reads what a PyTorch program has written.
func readTorch(path string) ([]rate, error) {
	t, err := readTable(path, "variant", "app", "hidden", "embed", "batch", "sentences_per_s", "slowest", "fastest")
	if err != nil {
		return nil, err
	}
	var all []rate
	err = t.each(func(c *cells) {
		r := readRate(c)
		r.who = "PyTorch, " + c.text("variant")
		all = append(all, r)
	})
	return all, err
}

var strategies = map[string]string{"none": "DyNet without batching", "agenda": "DyNet-AB", "depth": "DyNet-DB", "agenda by depth": "DyNet-AB by depth"}

// readRecorded reads rates of DyNet that were measured before.
func readRecorded(path string) ([]rate, error) {
	t, err := readTable(path, "app", "hidden", "embed", "strategy", "host", "batch", "sentences_per_s")
	if err != nil {
		return nil, err
	}
	var all []rate
	err = t.each(func(c *cells) {
		who, ok := strategies[c.text("strategy")]
		if !ok {
			c.fail("column strategy: %q is unknown", c.text("strategy"))
		}
		x := c.positive("sentences_per_s")
		all = append(all, rate{size: size{c.text("app"), c.whole("hidden"), c.whole("embed")},
			who: who, recorded: true, batch: c.whole("batch"), training: x, slowest: x, fastest: x})
	})
	return all, err
}

// medians puts rows of the same who, size and batch together: medians, the slowest and the fastest
// window of all. The order stays.
func medians(rows []rate) []rate {
	type key struct {
		size
		who   string
		batch int
	}
	same := map[key][]rate{}
	var order []key
	for _, r := range rows {
		k := key{r.size, r.who, r.batch}
		if len(same[k]) == 0 {
			order = append(order, k)
		}
		same[k] = append(same[k], r)
	}
	var all []rate
	for _, k := range order {
		all = append(all, together(same[k]))
	}
	return all
}

func together(rows []rate) rate {
	over := func(of func(rate) float64) float64 {
		var values []float64
		for _, r := range rows {
			values = append(values, of(r))
		}
		return median(values)
	}
	m := rows[0]
	m.training = over(func(r rate) float64 { return r.training })
	m.forward = over(func(r rate) float64 { return r.forward })
	m.more = map[string]float64{}
	for name := range rows[0].more {
		m.more[name] = over(func(r rate) float64 { return r.more[name] })
	}
	for _, r := range rows {
		m.slowest, m.fastest = math.Min(m.slowest, r.slowest), math.Max(m.fastest, r.fastest)
	}
	return m
}

func median(values []float64) float64 {
	sort.Float64s(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// sizesOf lists the sizes in the order of panels.
func sizesOf(rows []rate) []size {
	var all []size
	seen := map[size]bool{}
	for _, r := range rows {
		if !seen[r.size] {
			seen[r.size] = true
			all = append(all, r.size)
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].before(all[j]) })
	return all
}

// batchesOf lists the batch sizes, ascending.
func batchesOf(rows []rate) []int {
	var all []int
	seen := map[int]bool{}
	for _, r := range rows {
		if !seen[r.batch] {
			seen[r.batch] = true
			all = append(all, r.batch)
		}
	}
	sort.Ints(all)
	return all
}

// whosOf lists who was measured, in the rows' order.
func whosOf(rows []rate) []string {
	var all []string
	seen := map[string]bool{}
	for _, r := range rows {
		if !seen[r.who] {
			seen[r.who] = true
			all = append(all, r.who)
		}
	}
	return all
}

func only(rows []rate, keep func(rate) bool) []rate {
	var all []rate
	for _, r := range rows {
		if keep(r) {
			all = append(all, r)
		}
	}
	return all
}

// Files of the folder of results.
func rowsFile(results string) string     { return filepath.Join(results, "rows.csv") }
func torchFile(results string) string    { return filepath.Join(results, "torch.csv") }
func recordedFile(results string) string { return filepath.Join(results, "dynet-recorded.csv") }
func curvesFile(results string) string   { return filepath.Join(results, "curves.csv") }
func jitFile(results string) string      { return filepath.Join(results, "jit.csv") }
func planFile(results string) string     { return filepath.Join(results, "plan.csv") }
func timelineFile(results string) string { return filepath.Join(results, "h200-bilstm-timeline.json") }
