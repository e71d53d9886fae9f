package persist

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/ops"
)

// event is one of a timeline.
type event struct {
	Name     string
	Ph       string
	Tid      int
	Ts, Dur  float64
	Args     struct{ Batch uint64 }
	from, to float64
}

// eventsOf reads a timeline's spans by name.
func eventsOf(t *testing.T, path string) map[string][]event {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var all []event
	require.NoError(t, json.Unmarshal(text, &all))
	by := map[string][]event{}
	for _, e := range all {
		if e.Ph == "X" {
			e.from, e.to = e.Ts, e.Ts+e.Dur
			by[e.Name] = append(by[e.Name], e)
		}
	}
	return by
}

// deep records a chain of so many products behind another.
func deep(n int) *bridge.Words {
	w := product(1, 1)
	w.NodeCount--
	w.Nodes = w.Nodes[:len(w.Nodes)-2]
	at := uint32(2)
	for range n {
		w.Nodes = append(w.Nodes, op(ops.CwiseMultiply, dim2, at, 1)...)
		w.NodeCount++
		at++
	}
	w.Nodes = append(w.Nodes, op(ops.SumElements, dim1, at)...)
	w.NodeCount++
	return w
}

// onTimeline is the little model on the stand-in, which works on its own, with a timeline.
func onTimeline(t *testing.T) (m *model, path string) {
	path = filepath.Join(t.TempDir(), "trace.json")
	m, g := onGPU(t)
	require.NoError(t, m.measure(Options{Trace: path}))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				g.Synchronize()
				runtime.Gosched()
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-stopped })
	return m, path
}

// While the device runs one batch, a worker writes the script of a later one and the program
// records one after that.
func TestTheTimelineShowsThreeStagesAtOnce(t *testing.T) {
	t.Setenv("VPPS_VERIFY", "0") // verifying takes so long that kernels end before the next script is there
	m, path := onTimeline(t)
	h := m.handle()
	overlap := func() bool {
		const nodes = 1000
		for k := range 20 {
			g := m.NewGraph()
			time.Sleep(time.Duration(k%10) * 200 * time.Microsecond) // recording takes about as long as the others
			_, err := h.FB(g, deep(nodes), nodes+3)
			require.NoError(t, err)
			g.Close()
		}
		require.NoError(t, m.FlushTimeline())
		by := eventsOf(t, path)
		for _, r := range by["record"] {
			for _, s := range by["script"] {
				for _, k := range by["kernel"] {
					if k.Args.Batch < s.Args.Batch && s.Args.Batch < r.Args.Batch && max(r.from, s.from, k.from) < min(r.to, s.to, k.to) {
						return true
					}
				}
			}
		}
		return false
	}
	require.Eventually(t, overlap, 30*time.Second, time.Millisecond)
	by := eventsOf(t, path)
	for _, name := range []string{"record", "fb", "decode", "script", "launch", "await script", "kernel"} {
		require.GreaterOrEqual(t, len(by[name]), 20, name)
	}
	times := map[string]map[uint64]event{}
	for name, events := range by {
		times[name] = map[uint64]event{}
		for _, e := range events {
			times[name][e.Args.Batch] = e
		}
	}
	for batch, k := range times["kernel"] { // what must be over before
		require.LessOrEqual(t, times["record"][batch].to, times["decode"][batch].from, "batch %d", batch)
		require.LessOrEqual(t, times["decode"][batch].to, times["script"][batch].from, "batch %d", batch)
		require.LessOrEqual(t, times["launch"][batch].from, times["await script"][batch].from+0.01, "batch %d", batch)
		require.LessOrEqual(t, times["await script"][batch].to, k.from+0.01, "batch %d", batch)
	}
}

// On the CPU a launch is the processors' work.
func TestTheTimelineOfTheCPU(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.json")
	t.Setenv("VPPS_TRACE", path)
	m := newModel(t, 0)
	require.NoError(t, m.measure(Options{}))
	h := m.handle()
	for range 3 {
		require.NoError(t, trainBatch(m, h))
	}
	require.NoError(t, m.FlushTimeline())
	by := eventsOf(t, path)
	for _, name := range []string{"record", "fb", "decode", "script", "processors"} {
		require.Len(t, by[name], 3, name)
	}
}

func TestATimelineThatCannotBeWrittenIsAnError(t *testing.T) {
	t.Setenv("VPPS_TRACE", filepath.Join(t.TempDir(), "missing", "trace.json"))
	_, err := Open(Options{Device: "cpu"})
	require.ErrorIs(t, err, ErrFile)
	require.ErrorContains(t, err, os.Getenv("VPPS_TRACE"))
}
