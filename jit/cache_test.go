package jit

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"libvpps/gpu"
	"libvpps/gpu/mocks"
	"libvpps/persist/plan"
)

// Tests of the cache compile with a stand-in for NVRTC, which takes no time.

func newCache(t *testing.T) *Cache {
	t.Helper()
	return &Cache{Dir: filepath.Join(t.TempDir(), "kernels"), Max: 256 << 20}
}

func smallPlan(t *testing.T, rows int) *plan.Plan {
	t.Helper()
	p, err := plan.RoundRobin([]plan.Matrix{{Name: "W", Rows: rows, Cols: 8}}, h200, 1)
	require.NoError(t, err)
	return p
}

// counting counts how often a compiler is asked to compile.
type counting struct {
	gpu.Compiler
	compiled int
}

func (c *counting) Compile(name, src string, options []string) ([]byte, string, error) {
	c.compiled++
	return c.Compiler.Compile(name, src, options)
}

func compile(t *testing.T, c gpu.Compiler, cache *Cache, rows, arch int, o Options) *Kernel {
	t.Helper()
	k, err := Compile(c, smallPlan(t, rows), arch, o, cache)
	require.NoError(t, err)
	return k
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestAKernelIsCompiledOnce(t *testing.T) {
	c := &counting{Compiler: mocks.NVRTC(t)}
	cache := newCache(t)
	first := compile(t, c, cache, 8, 90, Options{})
	require.False(t, first.Cached)
	again := compile(t, c, cache, 8, 90, Options{})
	require.True(t, again.Cached)
	require.Equal(t, first.Image, again.Image)
	require.Equal(t, first.Registers, again.Registers)
	require.Equal(t, 1, c.compiled)
	require.Len(t, names(t, cache.Dir), 1)
	require.Empty(t, cache.Report())
}

// What machine code depends on is in the key: model, architecture, compiler, options. The driver is
// not: it runs machine code as it is, and chooses the compiler, which is in the key.
func TestWhateverChangesTheCodeChangesTheKey(t *testing.T) {
	c := &counting{Compiler: mocks.NVRTC(t)}
	cache := newCache(t)
	compile(t, c, cache, 8, 90, Options{})
	compile(t, c, cache, 9, 90, Options{})
	compile(t, c, cache, 8, 80, Options{})
	compile(t, c, cache, 8, 90, Options{Clocks: true})
	require.Equal(t, 4, c.compiled)
	t.Setenv("VPPS_FAKE_NVRTC", "12.8")
	older, err := gpu.OpenCompiler(0)
	require.NoError(t, err)
	o := &counting{Compiler: older}
	require.False(t, compile(t, o, cache, 8, 90, Options{}).Cached)
	require.True(t, compile(t, o, cache, 8, 90, Options{}).Cached)
	require.Equal(t, 1, o.compiled)
	require.Len(t, names(t, cache.Dir), 5)
}

// Whatever lies where a kernel should be, the kernel that comes back is the right one, and is in
// the cache afterwards.
func TestDamageIsCompiledAnew(t *testing.T) {
	c := &counting{Compiler: mocks.NVRTC(t)}
	cache := newCache(t)
	want := compile(t, c, cache, 8, 90, Options{}).Image
	file := filepath.Join(cache.Dir, names(t, cache.Dir)[0])
	key := strings.TrimSuffix(filepath.Base(file), suffix)
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	other := compile(t, c, cache, 9, 90, Options{}).Image
	require.NotEqual(t, want, other)
	foreign, err := os.ReadFile(cache.path(otherThan(t, cache, key)))
	require.NoError(t, err)
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 1

	for name, content := range map[string][]byte{
		"truncated":               good[:len(good)/2],
		"truncated to a checksum": good[:32],
		"empty":                   {},
		"one bit":                 flipped,
		"text":                    []byte("not a kernel at all, and longer than a checksum is"),
		"another kernel's file":   foreign,
		"sound, but no kernel":    append([]byte("nothing"), sumOf(key, []byte("nothing"))...),
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(file, content, 0o644))
			before := c.compiled
			k := compile(t, c, cache, 8, 90, Options{})
			require.False(t, k.Cached)
			require.Equal(t, want, k.Image)
			require.Equal(t, before+1, c.compiled)
			require.True(t, compile(t, c, cache, 8, 90, Options{}).Cached)
			require.Empty(t, cache.Report())
		})
	}
}

func otherThan(t *testing.T, c *Cache, key string) string {
	t.Helper()
	for _, name := range names(t, c.Dir) {
		if k := strings.TrimSuffix(name, suffix); k != key {
			return k
		}
	}
	t.Fatal("the cache has one kernel only")
	return ""
}

// keyed is a key of the form that keys have.
func keyed(n int) string { return fmt.Sprintf("%064x", n) }

// The least recently used kernels go first, and nothing that the cache did not write goes at all,
// though somebody may have given it a folder that holds more.
func TestTheSizeIsBoundedByTheCachesOwnFiles(t *testing.T) {
	cache := newCache(t)
	cache.Max = 4000
	image := make([]byte, 1000)
	require.NoError(t, os.MkdirAll(cache.Dir, 0o755))
	long := time.Now().Add(-1000 * time.Hour)
	theirs := []string{"thesis.tex", "libs.cubin", "new-ideas", strings.Repeat("g", 64) + suffix}
	for _, name := range theirs {
		require.NoError(t, os.WriteFile(filepath.Join(cache.Dir, name), make([]byte, 3000), 0o644))
		require.NoError(t, os.Chtimes(filepath.Join(cache.Dir, name), long, long))
	}
	leftover := filepath.Join(cache.Dir, "vpps-123.new") // of a process that was killed
	require.NoError(t, os.WriteFile(leftover, image, 0o644))
	require.NoError(t, os.Chtimes(leftover, long, long))

	for n := range 3 {
		cache.put(keyed(n), image)
		then := long.Add(time.Duration(n+1) * time.Hour)
		require.NoError(t, os.Chtimes(cache.path(keyed(n)), then, then))
	}
	require.NoFileExists(t, leftover)
	require.NotNil(t, cache.get(keyed(0))) // recently used from now on
	cache.put(keyed(3), image)
	require.NotNil(t, cache.get(keyed(0)))
	require.Nil(t, cache.get(keyed(1)))
	require.NotNil(t, cache.get(keyed(2)))
	require.NotNil(t, cache.get(keyed(3)))
	cache.put(keyed(4), make([]byte, 5000)) // more than there may ever be
	require.Nil(t, cache.get(keyed(4)))
	require.NotNil(t, cache.get(keyed(3)))
	for _, name := range theirs {
		require.FileExists(t, filepath.Join(cache.Dir, name))
	}
	require.Empty(t, cache.Report())
}

// Where nothing can be written a program works, compiles every time, and can be told why.
func TestAFolderThatCannotBeWrittenOnlyCostsTime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	readOnly := filepath.Join(t.TempDir(), "read only")
	require.NoError(t, os.Mkdir(readOnly, 0o500))
	for _, dir := range []string{filepath.Join(file, "below a file"), readOnly} {
		if dir == readOnly && os.Getuid() == 0 {
			continue // root may write anywhere
		}
		t.Setenv("VPPS_CACHE_DIR", dir)
		c, cache := &counting{Compiler: mocks.NVRTC(t)}, OpenCache()
		require.Empty(t, cache.Report())
		for n := range 2 {
			require.False(t, compile(t, c, cache, 8, 90, Options{}).Cached)
			require.Equal(t, n+1, c.compiled)
			require.Contains(t, cache.Report(), dir)
			require.Contains(t, cache.Report(), "set VPPS_CACHE_DIR")
		}
	}
}

func TestWithoutAHomeThereIsNoCache(t *testing.T) {
	t.Setenv("VPPS_CACHE_DIR", "")
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	cache := OpenCache()
	require.False(t, compile(t, mocks.NVRTC(t), cache, 8, 90, Options{}).Cached)
	require.False(t, compile(t, mocks.NVRTC(t), cache, 8, 90, Options{}).Cached)
	require.Contains(t, cache.Report(), "set VPPS_CACHE_DIR")
}

func TestACompilersRefusalIsAnErrorWithItsLogAndIsNotKept(t *testing.T) {
	c, cache := mocks.NVRTC(t), newCache(t)
	t.Setenv("VPPS_FAKE_FAIL", "nvrtcCompileProgram:6")
	_, err := Compile(c, smallPlan(t, 8), 90, Options{}, cache)
	require.ErrorContains(t, err, "the kernel does not compile")
	require.ErrorContains(t, err, "as the fake compiler was told")
	require.NotContains(t, err.Error(), "\n")
	t.Setenv("VPPS_FAKE_FAIL", "")
	require.False(t, compile(t, c, cache, 8, 90, Options{}).Cached)
	_, err = Compile(c, smallPlan(t, 8), 70, Options{}, cache)
	require.ErrorContains(t, err, "makes no code for sm_70")
	require.ErrorContains(t, err, "VPPS_NVRTC")
}

// Tests below run this binary again as other processes, which begin in TestProcess.

func process(dir, task string) *exec.Cmd {
	c := exec.Command(os.Args[0], "-test.run=^TestProcess$")
	c.Env = append(os.Environ(), "VPPS_TEST_TASK="+task, "VPPS_CACHE_DIR="+dir)
	return c
}

func TestProcess(t *testing.T) {
	switch os.Getenv("VPPS_TEST_TASK") {
	case "cold start":
		coldStart(t)
	case "full disk":
		fullDisk(t)
	}
}

// coldStart compiles, then writes and reads one large file again and again: what was written once
// is whole ever after.
func coldStart(t *testing.T) {
	c, err := gpu.OpenCompiler(0)
	require.NoError(t, err)
	cache := OpenCache()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(cache.Dir + ".go"); err == nil {
			break
		}
		require.True(t, time.Now().Before(deadline))
	}
	compile(t, c, cache, 8, 90, Options{})
	image := bytes.Repeat([]byte("kernel"), 50000)
	for range 8 {
		cache.put(keyed(1), image)
		for range 20 {
			require.True(t, bytes.Equal(image, cache.get(keyed(1))))
		}
	}
	require.NoError(t, cache.Err)
}

func TestEightProcessesStartingColdOnOneFolder(t *testing.T) {
	c := mocks.NVRTC(t)
	dir := filepath.Join(t.TempDir(), "kernels")
	var all []*exec.Cmd
	var said [8]bytes.Buffer
	for n := range 8 {
		p := process(dir, "cold start")
		p.Stdout, p.Stderr = &said[n], &said[n]
		require.NoError(t, p.Start())
		all = append(all, p)
	}
	require.NoError(t, os.WriteFile(dir+".go", nil, 0o644))
	for n, p := range all {
		require.NoError(t, p.Wait(), said[n].String())
	}
	require.Len(t, names(t, dir), 2, "one kernel, one large file, nothing unfinished")
	require.True(t, compile(t, c, &Cache{Dir: dir, Max: 1 << 20}, 8, 90, Options{}).Cached)
}

// fullDisk writes files of at most 4096 bytes, as on a disk with little left.
func fullDisk(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 4096, Max: 4096}))
	cache := OpenCache()
	cache.put(keyed(1), make([]byte, 10000))
	require.Error(t, cache.Err)
	require.Contains(t, cache.Report(), "set VPPS_CACHE_DIR")
	require.Nil(t, cache.get(keyed(1)))
	require.Empty(t, names(t, cache.Dir), "what was begun is gone")
	cache.put(keyed(2), make([]byte, 100))
	require.NotNil(t, cache.get(keyed(2)))
}

func TestAFullDisk(t *testing.T) {
	out, err := process(filepath.Join(t.TempDir(), "kernels"), "full disk").CombinedOutput()
	require.NoError(t, err, string(out))
}

// A file that is larger than the whole cache may be, sparse or not, is no kernel and is not read; nor is what is no file.
func TestTheCacheReadsNoMoreThanItMayHold(t *testing.T) {
	c := newCache(t)
	require.NoError(t, os.MkdirAll(c.Dir, 0o755))
	key := strings.Repeat("ab", 32)
	f, err := os.Create(c.path(key))
	require.NoError(t, err)
	require.NoError(t, f.Truncate(30<<30))
	require.NoError(t, f.Close())
	require.Nil(t, c.get(key))
	c.put(key, []byte("code"))
	require.Equal(t, []byte("code"), c.get(key))

	require.NoError(t, os.Remove(c.path(key)))
	require.NoError(t, syscall.Mkfifo(c.path(key), 0o600))
	require.Nil(t, c.get(key))
}
