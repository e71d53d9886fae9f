package env

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsMalformedIsSaid(t *testing.T) {
	for _, c := range []struct{ name, value, line string }{
		{"VPPS_THREADS", "abc", "libvpps: VPPS_THREADS=abc, threads of the CPU executor, is ignored: it takes a whole number from 1 to 1024"},
		{"VPPS_THREADS", "0", "whole number"},
		{"VPPS_THREADS", "2.5", "whole number"},
		{"VPPS_THREADS", "99999999999999999999", "whole number"},
		{"VPPS_WAIT_SECONDS", "-1", "seconds above 0"},
		{"VPPS_WAIT_SECONDS", "nan", "seconds above 0"},
		{"VPPS_WAIT_SECONDS", "inf", "seconds above 0"},
		{"VPPS_SNAPSHOT_BATCHES", "4294967296", "whole number"},
		{"VPPS_CHECK", "yes", "VPPS_CHECK=yes, whether operands are checked while scripts run, is ignored: it takes 0 or 1"},
		{"VPPS_LOG", "verbose", "it takes off, info or debug"},
		{"VPPS_COMM", "gloo", "VPPS_COMM=gloo, what connects ranks, is ignored: it takes nccl or mpi"},
		{"VPPS_COMM_GRADIENTS", "fp16", "it takes fp32 or bf16"},
		{"VPPS_CLOCKS", "1", "did you mean"},
		{"VPPS_NVRTC", "/nowhere/libnvrtc.so", "no such file"},
		{"VPPS_THREAD", "2", "libvpps: there is no variable VPPS_THREAD: did you mean VPPS_THREADS?"},
		{"VPPS_CACHEDIR", "/tmp", "did you mean VPPS_CACHE_DIR?"},
	} {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			t.Setenv(c.name, c.value)
			lines := slices.DeleteFunc(Problems(), func(l string) bool { return !strings.Contains(l, c.name) })
			require.Len(t, lines, 1)
			require.Contains(t, lines[0], c.line)
		})
	}
}

func TestWhatIsWellFormedIsReadAndNotSaid(t *testing.T) {
	before := Problems()
	t.Setenv("VPPS_THREADS", "3")
	t.Setenv("VPPS_WAIT_SECONDS", "0.5")
	t.Setenv("VPPS_CHECK", "1")
	t.Setenv("VPPS_MERGE", "0")
	t.Setenv("VPPS_TRACE", "some file")
	t.Setenv("VPPS_NVRTC", "libnvrtc.so.12")
	t.Setenv("VPPS_COMM", "mpi")
	t.Setenv("VPPS_COMM_GRADIENTS", "bf16")
	require.Equal(t, before, Problems())
	require.Equal(t, 3.0, Number("VPPS_THREADS", 7))
	require.Equal(t, 0.5, Number("VPPS_WAIT_SECONDS", 10))
	require.True(t, On("VPPS_CHECK", false))
	require.False(t, On("VPPS_MERGE", true))
	require.Equal(t, "some file", String("VPPS_TRACE"))
	require.Equal(t, "mpi", Word("VPPS_COMM"))
	t.Setenv("VPPS_THREADS", "abc")
	t.Setenv("VPPS_CHECK", "yes")
	t.Setenv("VPPS_COMM", "gloo")
	require.Empty(t, Word("VPPS_COMM"))
	require.Equal(t, 7.0, Number("VPPS_THREADS", 7))
	require.False(t, On("VPPS_CHECK", false))
}

func TestAPrivilegedProcessReadsNone(t *testing.T) {
	defer func(before func() bool) { secure = before }(secure)
	t.Setenv("VPPS_NVRTC", "/tmp/evil.so")
	t.Setenv("VPPS_THREADS", "abc")
	require.NotEmpty(t, String("VPPS_NVRTC"))
	secure = func() bool { return true }
	require.Empty(t, String("VPPS_NVRTC"))
	require.Equal(t, 4.0, Number("VPPS_THREADS", 4))
	require.Empty(t, Problems())
}

var variable = regexp.MustCompile(`VPPS_[A-Z_]+[A-Z]`)

func namesIn(t *testing.T, path, from, to string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	_, text, found := strings.Cut(string(b), from)
	require.True(t, found, "%s: %q", path, from)
	text, _, found = strings.Cut(text, to)
	require.True(t, found, "%s: %q", path, to)
	names := variable.FindAllString(text, -1)
	names = slices.DeleteFunc(names, func(n string) bool { return strings.HasPrefix(n, "VPPS_ERR_") })
	slices.Sort(names)
	return slices.Compact(names)
}

func TestTheDocumentsHaveTheTable(t *testing.T) {
	var want []string
	for _, v := range Variables {
		want = append(want, v.Name)
	}
	slices.Sort(want)
	require.Equal(t, want, namesIn(t, "../include/vpps.h", " * ## Environment", "*/"))
	require.Equal(t, want, namesIn(t, "../docs/manual/configuration.md", "\n## Variables\n", "\n## "))
}

// Nothing but the table's package asks for a variable.
func TestNobodyElseReadsVariables(t *testing.T) {
	reads := regexp.MustCompile(`(Getenv|LookupEnv)\("VPPS_`)
	seen := 0
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == "build" {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			require.False(t, reads.Match(b), "%s reads a variable itself: ask package env", path)
			seen++
		}
		return nil
	}))
	require.Greater(t, seen, 100)
}
