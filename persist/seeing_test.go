package persist

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"libvpps/log"
	"libvpps/persist/isa"
)

// What the engine tells of itself: lines of the log, counters, memory, the profile.

// listen has lines of a level come to a list, until the test ends.
func listen(t *testing.T, l log.Level) *[]string {
	t.Helper()
	lines := &[]string{}
	log.Set(l, func(_ log.Level, line string) { *lines = append(*lines, line) })
	t.Cleanup(func() { log.Set(log.Off, nil) })
	return lines
}

// saying is the lines that match.
func saying(lines []string, pattern string) (found []string) {
	re := regexp.MustCompile(pattern)
	for _, line := range lines {
		if re.MatchString(line) {
			found = append(found, line)
		}
	}
	return found
}

func TestTheLogTellsOfPlanCompilationAndSnapshots(t *testing.T) {
	lines := listen(t, log.Info)
	m, _ := onGPU(t)
	m.addMatrix()
	m.snapshot.every = 4
	batches(m, m.by(isa.SGD), 8)
	require.Len(t, saying(*lines, `^plan: 1 matrices, 24 bytes, on \d+ processors; \d rows a warp, up to \d+ copies; registers a thread: \d+ for weights`), 1)
	require.NotEmpty(t, saying(*lines, `^compile: a kernel for 1 matrix: .* by NVRTC`))
	require.NotEmpty(t, saying(*lines, `^snapshot: after update 4: \d+ bytes in`))
	require.Empty(t, saying(*lines, `^memory`))
	m.Close()
	require.Empty(t, saying(*lines, `^(memory|profile)`))
}

func TestDebugTellsOfMemoryAtTheEnd(t *testing.T) {
	lines := listen(t, log.Debug)
	m, _ := onGPU(t)
	m.addMatrix()
	batches(m, m.by(isa.Adam), 2)
	m.Close()
	require.NotEmpty(t, saying(*lines, `^plan:   M +3 x 2`))
	for _, what := range []string{`device  parameters +\d+ +\d+`, `device  trainers' memory +\d+ +\d+`, `device  scripts +\d+`, `device  the kernel's code`,
		`pinned  scripts +\d+`, `host    graphs, scripts in the making \(heap\) +\d+ +\d+`, `the process has .* of host memory`} {
		require.Len(t, saying(*lines, "^memory: "+what), 1, what)
	}
}

// What is in use follows what the program has.
func TestTheMemoryReportFollowsParameters(t *testing.T) {
	m := newModel(t, 0)
	used := func() string {
		return regexp.MustCompile(`host +parameters +\d+ +(\d+)`).FindStringSubmatch(m.MemoryReport())[1]
	}
	require.Equal(t, "8", used())
	id, err := m.NewParameter(0, "big", dim(1000), false, nil)
	require.NoError(t, err)
	require.Equal(t, "4008", used())
	require.NoError(t, m.DestroyParameter(id))
	require.Equal(t, "8", used())
}

func TestCountersOfAGPU(t *testing.T) {
	t.Setenv("VPPS_FAKE_NVRTC", "12.8") // without quick kernels
	m, _ := onGPU(t)
	m.addMatrix()
	before := m.Statistics()
	h := m.by(isa.SGD)
	batches(m, h, 5)
	_, err := h.SyncLatestLoss()
	require.NoError(t, err)
	s := m.Statistics()
	require.EqualValues(t, 5, s.Batches)
	require.EqualValues(t, 5, s.Updates)
	require.Zero(t, s.Failures)
	require.EqualValues(t, 1, s.KernelsCompiled)
	require.Zero(t, s.KernelsCached)
	require.Positive(t, s.CompileNS)
	require.Greater(t, s.BytesToDevice-before.BytesToDevice, 4*s.Script)
	require.Positive(t, s.BytesFromDevice)

	g := m.NewGraph()
	_, err = h.FB(g, mixed(0, inf, 1), 7)
	require.NoError(t, err)
	_, err = h.SyncLatestLoss()
	require.ErrorIs(t, err, ErrNumeric)
	s = m.Statistics()
	require.EqualValues(t, 5, s.Updates, "what is taken back does not count")
	require.EqualValues(t, 1, s.Failures)
}

func TestTheProfileIsToldAtTheEnd(t *testing.T) {
	for name, open := range map[string]func() *model{
		"CPU": func() *model { return onThreads(t, 2) },
		"GPU": func() *model { m, _ := onGPU(t); m.addMatrix(); return m },
	} {
		t.Run(name, func(t *testing.T) {
			lines := listen(t, log.Off) // it is asked for
			m := open()
			file := filepath.Join(t.TempDir(), "timeline")
			require.NoError(t, m.measure(Options{Profile: true, Trace: file}))
			batches(m, m.by(isa.SGD), 6)
			m.Close()
			require.Len(t, saying(*lines, `^profile: .*; 6 batches, 6 launches$`), 1)
			require.Len(t, saying(*lines, `^profile: host, seconds: record `), 1)
			require.Len(t, saying(*lines, `^profile: +\d+\.\d% +\d+\.\d+ +\d+ +\d+\.\d+  forward +product$`), 1)
			spans := eventsOf(t, file)
			require.Len(t, spans["forward: product"], 1, "the mean launch is on the timeline")
			require.Equal(t, profileTrack, spans["forward: product"][0].Tid)
			require.Greater(t, spans["backward: product_t"][0].from, spans["forward: product"][0].from)
		})
	}
}

// A call of fb is slow compared with the others, not with a number of milliseconds.
func TestSlowBatchesAreNamed(t *testing.T) {
	lines := listen(t, log.Info)
	ms := uint64(time.Millisecond)
	var s slow
	for range slowFirst {
		s.note(1, 9, 90*ms, 0) // nothing to compare with yet
	}
	s = slow{}
	for i := range uint64(100) {
		s.note(i, 10, 20*ms, 0)
	}
	s.note(100, 10, 90*ms, 0)
	require.Empty(t, *lines)
	s.told = 0
	time.Sleep(max(0, time.Duration(slowApart-min(slowApart, now()))))
	s.note(101, 12, 150*ms, 140*ms)
	s.note(102, 12, 150*ms, 140*ms) // not every one of them
	require.Equal(t, []string{"slow batch: number 101: fb took 150.0 ms, 140.0 ms of these waiting for earlier batches; the median of 64 is 20.0 ms. The graph has 12 nodes, the median is 10"}, *lines)
	for range slowWindow {
		s.note(1, 9, 1*ms, 0)
	}
	s.told = 0
	s.note(103, 9, 8*ms, 0) // too short to matter
	require.Len(t, *lines, 1)
}

// Counting calls of fb costs nothing when the log is off.
func TestASilentEngineTakesNoTimes(t *testing.T) {
	log.Set(log.Off, nil)
	m := newModel(t, 0)
	h := m.handle()
	require.NoError(t, trainBatch(m, h))
	require.Zero(t, m.slow.calls)
	listen(t, log.Info)
	require.NoError(t, trainBatch(m, h))
	require.Equal(t, 1, m.slow.calls)
}

// Without CUDA the report says so, and what runs instead.
func TestTheSystemReportOfAMachineWithoutCUDA(t *testing.T) {
	t.Setenv("VPPS_LIBCUDA", "/nowhere/libcuda.so.1")
	t.Setenv("VPPS_NVRTC", "/nowhere/libnvrtc.so.12")
	t.Setenv("VPPS_NCCL", "/nowhere/libnccl.so.2")
	t.Setenv("VPPS_MPI", "/nowhere/libvpps_mpi.so")
	t.Setenv("VPPS_CACHE_DIR", t.TempDir())
	report := SystemReport("0.1.0")
	for _, line := range []string{"driver:    not usable: ", "NVRTC:     not usable: no usable NVRTC",
		"NCCL:      not usable, ranks on GPUs take MPI: no usable NCCL: install NCCL", "MPI:       not usable, ranks on CPUs need it: the plug-in for MPI: /nowhere",
		"cache:     ", ", 0 files, 0 bytes of at most 256.0 MiB",
		"VPPS_LIBCUDA=/nowhere/libcuda.so.1", "device:    cpu: ", "\n           not device cuda:0: "} {
		require.Contains(t, report, line)
	}
	require.Contains(t, report, "libvpps: VPPS_NVRTC=/nowhere/libnvrtc.so.12, the library file of NVRTC, is ignored: there is no such file")
	t.Setenv("VPPS_DEVICE", "cuda")
	require.Contains(t, SystemReport("0.1.0"), "device:    none, a program that names none fails: device cuda:0: ")
	t.Setenv("VPPS_DEVICE", "cpu")
	require.NotContains(t, SystemReport("0.1.0"), "not device")
	require.True(t, strings.HasSuffix(SystemReport("0.1.0"), "\n"))
}

func TestTheFallbackToTheCPUIsTold(t *testing.T) {
	t.Setenv("VPPS_LIBCUDA", "/nowhere/libcuda.so.1")
	lines := listen(t, log.Info)
	e, err := Open(Options{})
	require.NoError(t, err)
	e.Close()
	require.Len(t, saying(*lines, `^fallback: the CPU is taken: device cuda:0: `), 1)
}
