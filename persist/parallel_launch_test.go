package persist

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"libvpps/persist/comm"
	"libvpps/persist/executor"
)

// launched has this process be a rank of some on this machine, as torchrun says it.
func launched(t *testing.T, rank, size string) {
	t.Helper()
	for name, value := range map[string]string{"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": size} {
		t.Setenv(name, value)
	}
}

func TestTheGPUOfARank(t *testing.T) {
	for _, c := range []struct{ local, visible, want int }{
		{0, 0, 0}, {3, 0, 0}, // no driver: opening says so
		{0, 1, 0}, {3, 1, 0}, // its launcher has given it one
		{0, 4, 0}, {3, 4, 3},
	} {
		n, err := gpuOfRank(comm.Launch{By: comm.Srun, Local: c.local, LocalSize: 4}, c.visible)
		require.NoError(t, err)
		require.Equal(t, c.want, n)
	}
	_, err := gpuOfRank(comm.Launch{By: comm.Torchrun, Local: 2, LocalSize: 4}, 2)
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorContains(t, err, "torchrun has started 4 ranks on this machine, and there are 2 GPUs")
}

func TestTheCoresOfARank(t *testing.T) {
	for _, c := range []struct{ own, launchers, ranks, want int }{
		{8, 8, 1, 8},
		{8, 8, 2, 4},  // not bound: they share
		{4, 8, 2, 4},  // each bound to its half
		{1, 8, 2, 1},  // each bound to a core
		{4, 8, 4, 2},  // two bound to each half
		{2, 2, 3, 1},  // more ranks than cores
		{8, 0, 2, 4},  // nothing is known of the launcher
		{8, 64, 2, 8}, // bound by someone else
	} {
		require.Equal(t, c.want, coresOfRank(c.own, c.launchers, c.ranks), "%+v", c)
	}
	require.Positive(t, coresOf(os.Getpid()))
	require.Zero(t, coresOf(1<<30))
}

// on is an executor on another device.
type on struct {
	executor.Executor
	device string
}

func (x on) Describe() string { return x.device + ": a device" }

// A rank on a GPU leaves the cores of others to them, and one of its own to the driver, unless the program has chosen.
func TestARankOnAGPULeavesCoresToOthers(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for _, c := range []struct {
		cores  int
		device string
		set    string
		want   int
	}{{16, "cuda:1", "", 15}, {1, "cuda:0", "", 1}, {0, "cuda:0", "", 64}, {16, "cpu", "", 64}, {16, "cuda:0", "64", 64}, {128, "cuda:0", "", 64}} {
		runtime.GOMAXPROCS(64)
		t.Setenv("GOMAXPROCS", c.set)
		Options{cores: c.cores}.takeShare(on{device: c.device})
		require.Equal(t, c.want, runtime.GOMAXPROCS(0), "%+v", c)
	}
}

func TestARankHasItsShareOfTheMachine(t *testing.T) {
	describe := func(o Options) string {
		t.Helper()
		e, err := Open(o)
		require.NoError(t, err)
		defer e.Close()
		return e.Describe()
	}
	trace := filepath.Join(t.TempDir(), "trace")
	t.Setenv("VPPS_THREADS", "")
	launched(t, "3", "1024")
	require.True(t, strings.HasPrefix(describe(Options{Device: "cpu", DataParallel: true, Trace: trace}), "cpu: 1 threads"))
	require.NoFileExists(t, trace)
	require.FileExists(t, trace+".3")
	require.True(t, strings.HasPrefix(describe(Options{Device: "cpu", DataParallel: true, Threads: 2}), "cpu: 2 threads"))
	alone := describe(Options{Device: "cpu"})
	t.Setenv("VPPS_THREADS", "3")
	require.True(t, strings.HasPrefix(describe(Options{Device: "cpu", DataParallel: true}), "cpu: 3 threads"))
	t.Setenv("VPPS_THREADS", "")
	launched(t, "0", "1")
	require.Equal(t, alone, describe(Options{Device: "cpu", DataParallel: true}))
	t.Setenv("RANK", "1")
	_, err := Open(Options{Device: "cpu", DataParallel: true})
	require.ErrorIs(t, err, ErrArgument)
	require.ErrorContains(t, err, "RANK=1")
	require.Equal(t, alone, describe(Options{Device: "cpu"})) // what a launcher says is nothing to it
}

func TestALaunchedGroup(t *testing.T) {
	e, err := Open(Options{Device: "cpu"})
	require.NoError(t, err)
	defer e.Close()
	launched(t, "", "") // none
	c, err := e.LaunchedGroup(0)
	require.NoError(t, err)
	require.Equal(t, 1, c.Size())
	require.NoError(t, e.Attach(c, ParallelOptions{}))
	require.Nil(t, e.ranks)

	_, err = e.LaunchedGroup(-1)
	require.ErrorIs(t, err, ErrArgument)
	launched(t, "2", "2")
	_, err = e.LaunchedGroup(0)
	require.ErrorIs(t, err, ErrArgument)
	launched(t, "1", "2")
	t.Setenv("VPPS_PORT", "1")
	_, err = e.LaunchedGroup(0.05)
	require.ErrorIs(t, err, comm.ErrAbsent)
	require.ErrorContains(t, err, "127.0.0.1:1 within 300ms")
	t.Setenv("VPPS_COMM_FILE", filepath.Join(t.TempDir(), "ranks"))
	_, err = e.LaunchedGroup(0.05)
	require.ErrorIs(t, err, comm.ErrAbsent)
	require.ErrorContains(t, err, "ranks within 300ms")
}

// A group that is given no time waits as long as VPPS_WAIT_SECONDS says.
func TestThePatienceOfAGroup(t *testing.T) {
	for set, want := range map[string]time.Duration{"": 10 * time.Second, "0.25": 250 * time.Millisecond} {
		t.Setenv("VPPS_WAIT_SECONDS", set)
		patience, err := patienceOf(0)
		require.NoError(t, err)
		require.Equal(t, want, patience)
		patience, err = patienceOf(3)
		require.NoError(t, err)
		require.Equal(t, 3*time.Second, patience)
	}
}

// VPPS_COMM chooses what connects ranks. Here the other is not there, and rank 0 says what it has found.
func TestWhatConnectsRanksIsChosen(t *testing.T) {
	e, err := Open(Options{Device: "cpu"})
	require.NoError(t, err)
	defer e.Close()
	launched(t, "0", "2")
	t.Setenv("VPPS_MPI", "/nowhere/libvpps_mpi.so")
	for by, why := range map[string]string{
		"":     "its device is a CPU; ranks on CPUs need MPI",
		"mpi":  "rank 0: VPPS_COMM=mpi; ranks on CPUs need MPI",
		"nccl": "VPPS_COMM=nccl, and NCCL cannot connect all ranks: rank 0: its device is a CPU",
	} {
		t.Setenv("VPPS_COMM", by)
		file := filepath.Join(t.TempDir(), "ranks")
		t.Setenv("VPPS_COMM_FILE", file)
		other := make(chan error)
		go func() {
			l := comm.Launch{By: comm.Torchrun, Rank: 1, Size: 2}
			_, err := l.Connect(comm.ConnectOptions{Patience: 10 * time.Second, File: file, Why: "it is a test"})
			other <- err
		}()
		_, err := e.LaunchedGroup(10)
		require.ErrorContains(t, err, why)
		require.Error(t, <-other)
	}
}
