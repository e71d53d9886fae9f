package main

import (
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const head = "part,app,mode,device,trainer,hidden,embed,batch,sentences_per_s,slowest,fastest,nodes_per_batch,record_ns_per_node," +
	"decode_ns_per_node,schedule_ns_per_node,device_us_per_batch,forward_sentences_per_s,loaded_bytes,streamed_bytes\n"

const gpu = `"cuda:0: NVIDIA H200, sm_90, 132 SMs"`

// folder writes files, name and text in turn, into a folder of results.
func folder(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for k := 0; k < len(files); k += 2 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, files[k]), []byte(files[k+1]), 0o666))
	}
	return dir
}

// has tells whether a table of a document has the line of these cells.
func has(t *testing.T, path string, cells ...string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), "\n| "+strings.Join(cells, " | ")+" |\n")
}

// measures checks a PNG's size in pixels and that something is drawn in it.
func measures(t *testing.T, path string, width, height int) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	image, err := png.Decode(f)
	require.NoError(t, err)
	require.Equal(t, []int{width, height}, []int{image.Bounds().Dx(), image.Bounds().Dy()})
	colours := func(from, to int) int {
		seen := map[any]bool{}
		for x := range width {
			for y := from; y < to; y++ {
				seen[image.At(x, y)] = true
			}
		}
		return len(seen)
	}
	panels := height / 310 * 310
	require.Greater(t, colours(0, panels), 20, "the panels are empty")
	require.Greater(t, colours(panels, height), 20, "the legend is not below the panels")
}

func TestThroughput(t *testing.T) {
	results := folder(t, "rows.csv", head+
		"apps,treelstm,vpps,"+gpu+",sgd,256,256,1,2000,1900,2100,600,20,30,500,400,5000,0,0\n"+
		"apps,treelstm,vpps,"+gpu+",sgd,256,256,16,9000,8000,9500,9600,10,20,300,1000,20000,0,0\n"+
		"again,treelstm,vpps,"+gpu+",sgd,256,256,1,3000,2900,3100,600,20,30,500,400,7000,0,0\n"+
		"again,treelstm,vpps,"+gpu+",sgd,256,256,1,2400,2300,2500,600,20,30,500,400,6000,0,0\n"+
		"apps,rvnn,dynet,\"cpu: 2 threads, up to 2 processors, x86-64-v4\",adam,512,512,16,70.4,70,71,9600,10,20,300,0,200,0,0\n"+
		"hidden,treelstm,vpps,"+gpu+",sgd,512,128,1,1,1,1,600,20,30,500,400,1,0,0\n",
		"torch.csv", "impl,variant,app,hidden,embed,batch,sentences_per_s,slowest,fastest,forward_sentences_per_s\n"+
			"torch,eager,treelstm,256,256,1,500,400,600,\n"+
			"torch,eager,treelstm,64,64,1,12345,12345,12345,\n",
		"dynet-recorded.csv", "app,hidden,embed,strategy,host,batch,sentences_per_s\n"+
			"treelstm,256,256,agenda,1,1,200\ntreelstm,256,256,agenda,2,1,240\ntreelstm,256,256,depth,1,1,220\n")
	into := t.TempDir() + "/new"
	require.NoError(t, run([]string{"throughput", "--results", results, "--into", into}, io.Discard, io.Discard))

	table := into + "/throughput.md"
	has(t, table, "batch", "1", "16")
	has(t, table, "libvpps, NVIDIA H200", "2,400", "9,000")
	has(t, table, "libvpps, NVIDIA H200, forward only", "6,000", "20,000")
	has(t, table, "libvpps, NVIDIA H200 ÷ DyNet's best recorded", "10.0", "")
	has(t, table, "PyTorch, eager", "500", "")
	has(t, table, "DyNet-AB (recorded)", "200/240", "")
	has(t, table, "DyNet-DB (recorded)", "220", "")
	has(t, table, "libvpps, CPU, 2 threads, DyNet's calls, adam", "70")
	text, err := os.ReadFile(table)
	require.NoError(t, err)
	require.NotContains(t, string(text), "512/128", "of another figure")
	require.NotContains(t, string(text), "12,345", "of a size that has no panel")
	// Two panels of 420 by 310 pixels, six names of 19 pixels a line, too long for two columns, 10 points.
	measures(t, into+"/throughput.png", 840, 310+6*19+14)
}

func TestHiddenTakesItsPart(t *testing.T) {
	results := folder(t, "rows.csv", head+
		"apps,treelstm,vpps,"+gpu+",sgd,256,256,1,2000,1900,2100,600,20,30,500,400,5000,0,0\n"+
		"hidden,treelstm,vpps,"+gpu+",sgd,512,128,1,1500,1400,1600,600,20,30,500,400,3000,0,0\n"+
		"hidden,treelstm,vpps,"+gpu+",sgd,128,128,1,2500,2400,2600,600,20,30,500,400,3000,0,0\n")
	into := t.TempDir()
	require.NoError(t, drawHidden(results, into))
	text, err := os.ReadFile(into + "/hidden.md")
	require.NoError(t, err)
	require.Less(t, strings.Index(string(text), "Tree-LSTM 128/128"), strings.Index(string(text), "Tree-LSTM 512/128"))
	require.NotContains(t, string(text), "256/256")
	has(t, into+"/hidden.md", "libvpps, NVIDIA H200", "1,500")
	measures(t, into+"/hidden.png", 840, 310+19+14)
}

func TestBreakdownIsPerSentence(t *testing.T) {
	results := folder(t, "rows.csv", head+
		"apps,treelstm,vpps,"+gpu+",sgd,256,256,4,2000,1900,2100,2400,20,30,500,0,5000,0,0\n"+
		"breakdown,treelstm,vpps,"+gpu+",sgd,256,256,4,2000,1900,2100,2400,10,25,400,1000,5000,0,0\n")
	into := t.TempDir()
	require.NoError(t, drawBreakdown(results, into))
	has(t, into+"/breakdown.md", "host: record", "6")
	has(t, into+"/breakdown.md", "host: decode", "15")
	has(t, into+"/breakdown.md", "host: schedule", "240")
	has(t, into+"/breakdown.md", "device", "250")
	measures(t, into+"/breakdown.png", 420, 310+2*19+14)
}

func TestBreakdownTakesThePhasesThatThereAre(t *testing.T) {
	with := strings.TrimSuffix(head, "\n") + ",forward_us,backward_us,waiting_us\n"
	results := folder(t, "rows.csv", with+"breakdown,treelstm,vpps,"+gpu+",sgd,256,256,4,2000,1900,2100,2400,10,25,400,1000,5000,0,0,100,200,0\n")
	into := t.TempDir()
	require.NoError(t, drawBreakdown(results, into))
	has(t, into+"/breakdown.md", "device: forward", "25")
	has(t, into+"/breakdown.md", "device: backward", "50")
	text, err := os.ReadFile(into + "/breakdown.md")
	require.NoError(t, err)
	require.NotContains(t, string(text), "| device |")
	require.NotContains(t, string(text), "device: waiting")
}

func TestBytesAreFor128Inputs(t *testing.T) {
	results := folder(t, "rows.csv", head+
		"apps,treelstm,vpps,"+gpu+",sgd,256,256,4,2000,1900,2100,2400,20,30,500,0,5000,3000000,500000\n")
	into := t.TempDir()
	require.NoError(t, drawBytes(results, into))
	has(t, into+"/bytes.md", "loaded into registers", "96")
	has(t, into+"/bytes.md", "read again for each use", "16")
	measures(t, into+"/bytes.png", 672, 310+19+14)
}

func TestJIT(t *testing.T) {
	results := folder(t, "jit.csv", "app,hidden,start,context,plan,source,cache,compiler,load,handle,first_fb\n"+
		"rvnn,512,cold,100,1,2,3,30000,50,30056,9\nrvnn,512,cold,100,1,2,3,40000,50,30056,9\nrvnn,512,cold,100,1,2,3,32000,50,30056,9\n"+
		"rvnn,512,warm,90,1,2,4,0,50,57,10\n")
	into := t.TempDir()
	require.NoError(t, drawJIT(results, into))
	has(t, into+"/jit.md", "RvNN 512, cold", "0.100", "0.001", "0.002", "0.003", "32.000", "0.050", "0.009", "32.16")
	has(t, into+"/jit.md", "RvNN 512, warm", "0.090", "0.001", "0.002", "0.004", "0.000", "0.050", "0.010", "0.16")
	measures(t, into+"/jit.png", 420, 310+7*19+14)
}

func TestCurves(t *testing.T) {
	results := folder(t, "curves.csv", "app,mode,device,trainer,hidden,embed,batch,seed,updates,sentences,seconds,train_loss,dev_loss,dev_score\n"+
		"treelstm,vpps,"+gpu+",sgd,256,256,16,1,0,0,0,-1,2,0.2\ntreelstm,vpps,"+gpu+",sgd,256,256,16,1,10,160,0.5,1.9,1.8,0.5\n"+
		"treelstm,vpps,"+gpu+",sgd,256,256,16,1,80,1280,0.9,1.9,1.5,0.4\n"+
		"treelstm,vpps,\"cpu: 2 threads, up to 2\",sgd,256,256,16,1,0,0,0,-1,2,0.2\ntreelstm,vpps,\"cpu: 2 threads, up to 2\",sgd,256,256,16,1,10,160,4,1.9,1.89,0.3\n"+
		"treelstm,vpps,\"cpu: 2 threads, up to 2\",sgd,256,256,16,1,80,1280,8,-nan,-nan,0.3\n")
	into := t.TempDir()
	require.NoError(t, drawCurves(results, into))
	has(t, into+"/curves.md", "NVIDIA H200, seed 1", "80", "0.900", "0.4000", "0.5000", "1.500", "1.500", "")
	has(t, into+"/curves.md", "CPU, 2 threads, seed 1", "80", "8", "0.3000", "0.3000", "NaN", "1.890", "5.0e-02")
	measures(t, into+"/curves.png", 840, 310+19+14)
}

func TestPlan(t *testing.T) {
	results := folder(t, "plan.csv", "matrix,processor,copy,row,rows,columns,register,registers\n"+
		"interpreter,-1,0,0,0,0,0,80\nW,0,0,0,32,256,80,32\nW,1,0,32,18,256,80,32\nV,2,0,0,5,64,80,8\nW,3,1,0,32,256,80,32\nW,4,1,32,18,256,80,32\nfree,-1,0,0,0,0,112,143\n")
	into := t.TempDir()
	require.NoError(t, drawPlan(results, into))
	has(t, into+"/plan.md", "W", "50 x 256", "2", "2", "32", "0 to 1, 3 to 4")
	has(t, into+"/plan.md", "V", "5 x 64", "1", "1", "8", "2")
}

func TestTimeline(t *testing.T) {
	var file strings.Builder
	file.WriteString(`[{"name":"thread_name","ph":"M","pid":1,"tid":1,"args":{"name":"program"}},{"name":"thread_name","ph":"M","pid":1,"tid":5,"args":{"name":"device"}}`)
	for k := range 20 { // The device works half of the time, but for the first batches.
		fmt.Fprintf(&file, `,{"name":"record","ph":"X","pid":1,"tid":1,"ts":%d,"dur":500,"args":{"batch":%d}}`, 2000*k, k)
		if k > 4 {
			fmt.Fprintf(&file, `,{"name":"kernel","ph":"X","pid":1,"tid":5,"ts":%d,"dur":1000,"args":{"batch":%d}}`, 2000*k+500, k)
		}
	}
	file.WriteString("]")
	results := folder(t, "h200-bilstm-timeline.json", file.String())
	into := t.TempDir()
	require.NoError(t, drawTimeline(results, into))
	require.FileExists(t, into+"/timeline.png")
	_, events, err := readTimeline(timelineFile(results))
	require.NoError(t, err)
	require.Len(t, events, 35)
	require.Equal(t, 8000.0, typical(events), "of the first piece with five kernels in six batches")

	require.ErrorContains(t, drawTimeline(folder(t, "h200-bilstm-timeline.json", "[{]"), into), "h200-bilstm-timeline.json: ")
	require.ErrorIs(t, drawTimeline(folder(t, "h200-bilstm-timeline.json", "[]"), into), errNoRows)
}

// A device or a peer has one colour, whatever else is in a picture, and no two of them have the same.
func TestColoursBelongToDevicesAndPeers(t *testing.T) {
	require.Equal(t, style("NVIDIA H200"), style("libvpps, NVIDIA H200"))
	require.Equal(t, style("CPU, 2 threads"), style("libvpps, CPU, 8 threads"))
	seen := map[any]string{}
	for _, name := range []string{"NVIDIA H200", "CPU, 2 threads", "PyTorch, hand-written backward fp32", "PyTorch, level-batched autograd fp32",
		"PyTorch, nn.LSTM cuDNN packed fp32", "PyTorch, eager", "DyNet-AB", "libvpps, NVIDIA H200, DyNet's calls"} {
		colour := style(name).colour
		require.Empty(t, seen[colour], name)
		seen[colour] = name
	}
}

// Names of a legend have room: no column of them reaches into the next one or over the edge.
func TestNamesOfALegendDoNotOverlap(t *testing.T) {
	for _, names := range [][]string{
		{"libvpps, NVIDIA H200", "DyNet's best variant (" + notHere + ")", "3 times DyNet's best", "6 times DyNet's best"},
		{"a", "b", "c", "d", "e", "f", "g"},
		{strings.Repeat("long ", 20), "b"},
	} {
		p := newPicture(2)
		p.panel("", "", "")
		p.panel("", "", "")
		for _, name := range names {
			p.explain(name, nil)
		}
		columns, widths := p.legendColumns()
		room, _ := p.extentOfPanels()
		count, total := 0, 2*margin-legendGap
		for c, column := range columns {
			count += len(column)
			total += widths[c]
			for _, e := range column {
				require.Less(t, legendThumb+legendText.Width(e.name), widths[c])
			}
		}
		require.Equal(t, len(names), count)
		require.LessOrEqual(t, total, room)
	}
}

func TestParagraphsAreWrapped(t *testing.T) {
	var d document
	d.say("%s", strings.Repeat("word ", 50))
	for _, line := range strings.Split(d.text.String(), "\n") {
		require.LessOrEqual(t, len(line), 120)
	}
	require.Equal(t, 50, strings.Count(d.text.String(), "word"))
}

func TestBadFilesAreNamedWithTheLine(t *testing.T) {
	row := "apps,treelstm,vpps,gpu,sgd,256,256,1,2000,1900,2100,600,20,30,500,400,5000,0,0\n"
	for _, c := range []struct{ text, says string }{
		{"", ":1: empty"},
		{"app,batch\n", `:1: there is no column "part"`},
		{"part," + head, ":1: two columns are named \"part\""},
		{head + row + "apps,treelstm\n", ":3: 2 fields under 19 columns"},
		{head + row + strings.Replace(row, "2000", "fast", 1), `:3: column sentences_per_s: "fast" is not a number`},
		{head + strings.Replace(row, "2000", "0", 1), `:2: column sentences_per_s: "0" is not a number above 0`},
		{head + strings.Replace(row, "2000", "nan", 1), `:2: column sentences_per_s: "nan" is not a number above 0`},
		{head + strings.Replace(row, ",1,2000", ",1.5,2000", 1), `:2: column batch: "1.5" is not a whole number`},
		{head + strings.Replace(row, ",500,", ",-1,", 1), `:2: column schedule_ns_per_node: "-1" is not a number from 0 on`},
		{head + row + "a\"b,\n", ":3: bare \""},
	} {
		results := folder(t, "rows.csv", c.text)
		err := drawThroughput(results, t.TempDir())
		require.ErrorContains(t, err, filepath.Join(results, "rows.csv")+c.says)
	}
	results := folder(t, "curves.csv", "app,device,hidden,embed,seed,updates,seconds,dev_loss,dev_score\na,b,1,1,1,10,1,1,1\na,b,1,1,1,10,1,1,1\n")
	require.ErrorContains(t, drawCurves(results, t.TempDir()), "curves.csv:3: a on b, seed 1: 10 updates come after 10")
}

func TestAllDrawsWhatThereIs(t *testing.T) {
	results := folder(t, "rows.csv", head+"apps,treelstm,vpps,"+gpu+",sgd,256,256,1,2000,1900,2100,600,20,30,500,400,5000,0,0\n")
	into := t.TempDir()
	var out strings.Builder
	require.NoError(t, run([]string{"all", "--results", results, "--into", into}, &out, io.Discard))
	for _, line := range []string{into + "/throughput.png\n", into + "/breakdown.png\n", "hidden is not drawn", "bytes is not drawn", "jit is not drawn", "curves is not drawn"} {
		require.Contains(t, out.String(), line)
	}
	require.ErrorContains(t, run([]string{"all", "--results", t.TempDir(), "--into", into}, &out, io.Discard), "there is nothing to draw")
	results = folder(t, "rows.csv", "part\n1\n")
	require.ErrorContains(t, run([]string{"all", "--results", results, "--into", into}, &out, io.Discard), "rows.csv:1")
}

// The recorded rates are read, and the best of Tree-LSTM is what the documents speak of.
func TestTheRecordedRatesOfTheRepository(t *testing.T) {
	rows, err := readRecorded(recordedFile("../results"))
	require.NoError(t, err)
	best := bestRecorded(only(rows, func(r rate) bool { return r.size == size{"treelstm", 256, 256} }))
	require.Equal(t, map[int]float64{1: 246, 2: 353, 4: 532, 8: 745, 16: 1079, 32: 1329, 64: 1600, 128: 1899}, best)
	require.Len(t, sizesOf(rows), 9)
}

func TestTicksOfALogarithmicAxis(t *testing.T) {
	labels := func(least, most float64, room bool) (all []string) {
		for _, tick := range logTicks(least, most, room) {
			all = append(all, tick.Label)
		}
		return all
	}
	require.Equal(t, []string{"0.5", "1", "2", "5", "10"}, labels(0.3, 11, true))
	require.Equal(t, []string{"", "1", "", "", "10"}, labels(0.3, 11, false))
	require.Equal(t, []string{"2,000", "5,000", "10,000"}, labels(1500, 11000, false))
}

func TestNumbers(t *testing.T) {
	for x, text := range map[float64]string{0: "0", 1: "1", 0.5: "0.500", 12.34: "12.3", 123.4: "123", 1234: "1,234", 1234567.8: "1,234,568", -1234: "-1,234", -123: "-123"} {
		require.Equal(t, text, figures(x))
	}
	require.Equal(t, 2.5, median([]float64{4, 1, 2, 3}))
	require.Equal(t, 2.0, median([]float64{9, 1, 2}))
}

// The tables in docs/figures are those of the rows in bench/results.
func TestTheTablesOfTheRepositoryAreTodays(t *testing.T) {
	into := t.TempDir()
	require.NoError(t, drawAll("../results", into, io.Discard))
	pages, err := filepath.Glob(into + "/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		now, err := os.ReadFile(page)
		require.NoError(t, err)
		recorded, err := os.ReadFile("../../docs/figures/" + filepath.Base(page))
		require.NoError(t, err)
		require.Equal(t, string(recorded), string(now), "make figures")
	}
}
