package persist

// Plans chosen by measuring, on a stand-in for a GPU whose clock the tests set.

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/gpu/mocks"
	"libvpps/persist/cuda"
	"libvpps/persist/cuda/standin"
	"libvpps/persist/plan"
)

// profiled is the little model, with a matrix that several plans differ by, on a GPU on which
// the plan of fastest rows a warp is the fastest.
func profiled(t *testing.T, cache string, profile, fastest int, version string) (*model, *Handle, *standin.GPU) {
	t.Helper()
	t.Setenv("VPPS_CACHE_DIR", cache)
	g := &standin.GPU{Took: func(p *plan.Plan) float64 {
		d := p.RowsPerWarp - fastest
		return float64(100 + d*d)
	}}
	x, err := cuda.New(g, mocks.NVRTC(t), 5, plan.Settings{Profile: profile}, version)
	require.NoError(t, err)
	m := &model{t, newEngine(x, 1), nil, nil}
	g.Plan = func() *plan.Plan { return m.Engine.plan }
	t.Cleanup(func() {
		m.Close()
		require.Zero(t, g.Held(), "everything is given back")
	})
	m.fill(0)
	m.addMatrix()
	_, err = m.NewParameter(0, "wide", dim(64, 8), false, make([]float32, 512))
	require.NoError(t, err)
	h, err := m.NewHandle([]uint32{paramW, paramTable, paramM, paramM + 1}, nil)
	require.NoError(t, err)
	return m, h, g
}

// trialSteps is more batches than all candidates take.
const trialSteps = 150

func TestAProfileChoosesTheFastestPlanAndIsRemembered(t *testing.T) {
	c := newModel(t, 0)
	c.addMatrix()
	want := batches(c, c.handleOfAll(), trialSteps)

	cache := t.TempDir()
	m, h, g := profiled(t, cache, 1, 3, "1.0")
	require.Equal(t, 1, m.Engine.plan.RowsPerWarp)
	require.Contains(t, m.PlanReport(), ": 1 to be measured 2 to be measured")
	have := batches(m, h, trialSteps)
	for id := range want {
		require.InDeltaSlice(t, want[id], have[id], 1e-5, "parameter %d", id)
	}
	require.Equal(t, 3, m.Engine.plan.RowsPerWarp)
	report := m.PlanReport()
	require.Contains(t, report, "lines through 15 batches")
	require.Regexp(t, `by rows a warp: 1 \d+\.\d+ 2 \d+\.\d+`, report)
	require.NotContains(t, report, "to be measured")
	require.Equal(t, 1, g.Held().Modules, "the other plans' kernels are unloaded")

	// Afterwards marks cost nothing again, and a batch is one launch and one copy.
	before := g.Calls()
	batches(m, h, 8)
	now := g.Calls()
	require.Equal(t, 8, now["Launch"]-before["Launch"])
	require.Equal(t, before["Load"], now["Load"])
	require.Equal(t, before["NewTimedEvent"], now["NewTimedEvent"])

	// Another process finds the choice and measures nothing.
	m, h, g = profiled(t, cache, 1, 1, "1.0")
	require.Equal(t, 3, m.Engine.plan.RowsPerWarp)
	require.Contains(t, m.PlanReport(), "as an earlier run measured nanoseconds of a graph node")
	batches(m, h, trialSteps)
	require.Equal(t, 3, m.Engine.plan.RowsPerWarp)
	require.Zero(t, g.Calls()["NewTimedEvent"])
	require.Equal(t, 1, g.Calls()["Load"])

	// Another version of the library measures again; without a profile the cost model chooses.
	m, _, _ = profiled(t, cache, 1, 1, "1.1")
	require.Contains(t, m.PlanReport(), "to be measured")
	m, h, g = profiled(t, cache, 0, 1, "1.0")
	require.Contains(t, m.PlanReport(), "predicted microseconds")
	batches(m, h, 8)
	require.Zero(t, g.Calls()["NewTimedEvent"])
}

// choices are the files that remember choices.
func choices(t *testing.T, cache string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(cache, "*.plan"))
	require.NoError(t, err)
	return files
}

// Whatever lies where a choice should be, it is measured again and nothing else happens.
func TestADamagedChoiceIsMeasuredAgain(t *testing.T) {
	cache := t.TempDir()
	m, h, _ := profiled(t, cache, 1, 2, "1.0")
	batches(m, h, trialSteps)
	files := choices(t, cache)
	require.Len(t, files, 1)
	good, err := os.ReadFile(files[0])
	require.NoError(t, err)
	for name, content := range map[string]string{"truncated": string(good[:20]), "empty": "", "foreign": strings.Repeat("something else ", 20),
		"another choice, not signed": strings.Replace(string(good), "rpw=2", "rpw=4", 1)} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(files[0], []byte(content), 0o644))
			m, h, _ := profiled(t, cache, 1, 8, "1.0")
			require.Contains(t, m.PlanReport(), "to be measured")
			batches(m, h, trialSteps)
			require.Equal(t, 8, m.Engine.plan.RowsPerWarp)
			m, _, _ = profiled(t, cache, 1, 2, "1.0")
			require.Equal(t, 8, m.Engine.plan.RowsPerWarp, "what was measured last is remembered")
		})
	}
}

func TestAChoiceThatCannotBeKeptIsStillMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	m, h, _ := profiled(t, filepath.Join(file, "below a file"), 1, 2, "1.0")
	batches(m, h, trialSteps)
	require.Equal(t, 2, m.Engine.plan.RowsPerWarp)
}

// A plan whose kernel cannot be loaded while others are measured is left out.
func TestAPlanThatCannotBeLoadedIsLeftOut(t *testing.T) {
	m, h, g := profiled(t, t.TempDir(), 1, 1, "1.0")
	failing(g, "Load", 0, 1, standin.OutOfMemory) // of the second plan
	batches(m, h, trialSteps)
	require.Contains(t, m.PlanReport(), " 2 unusable")
	require.Equal(t, 1, m.Engine.plan.RowsPerWarp)
}

// A batch that fails in the midst of measuring changes nothing, and measuring goes on.
func TestABatchThatFailsWhilePlansAreMeasured(t *testing.T) {
	m, h, g := profiled(t, t.TempDir(), 1, 4, "1.0")
	batches(m, h, 15)
	before := m.read(paramW, Values)
	failing(g, "Launch", 0, 1, standin.TooLarge)
	graph := m.NewGraph()
	_, err := h.FB(graph, mixed(1, 1, 1), 7)
	if err == nil {
		_, err = h.SyncLatestLoss()
	}
	graph.Close()
	require.ErrorIs(t, err, ErrDevice)
	require.Equal(t, before, m.read(paramW, Values))
	batches(m, h, trialSteps)
	require.Equal(t, 4, m.Engine.plan.RowsPerWarp)
}
