package jit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"libvpps/gpu/mocks"
	"libvpps/log"
)

// slow is a compiler that takes its time.
type slow struct {
	counting
	takes time.Duration
}

func (s *slow) Compile(name, src string, options []string) ([]byte, string, error) {
	time.Sleep(s.takes)
	return s.counting.Compile(name, src, options)
}

// The log says that a long compilation goes on, and what became of it; the cache counts.
func TestALongCompilationIsTold(t *testing.T) {
	var lines []string
	log.Set(log.Info, func(_ log.Level, line string) { lines = append(lines, line) })
	defer log.Set(log.Off, nil)
	defer func(every time.Duration) { tellEvery = every }(tellEvery)
	tellEvery = 20 * time.Millisecond
	c := &slow{counting{Compiler: mocks.NVRTC(t)}, 70 * time.Millisecond}
	cache := newCache(t)
	compile(t, c, cache, 8, 90, Options{})
	require.GreaterOrEqual(t, len(lines), 3)
	require.Equal(t, "compile: compiling a kernel for 1 matrix, 0 s", lines[0])
	require.Regexp(t, `^compile: a kernel for 1 matrix: 0\.\d s by NVRTC 12\.9 for sm_90, \d+ registers a thread$`, lines[len(lines)-1])

	lines = nil
	compile(t, c, cache, 8, 90, Options{})
	require.Len(t, lines, 1)
	require.Regexp(t, `^compile: a kernel for 1 matrix: from the cache, 0\.\d\d\d s, `, lines[0])
	counts := cache.Counts()
	require.Equal(t, Counts{Compiled: 1, Found: 1, Compiling: counts.Compiling}, counts)
	require.GreaterOrEqual(t, counts.Compiling, c.takes)
	files, bytes := cache.Size()
	require.Equal(t, 1, files)
	require.Positive(t, bytes)

	lines = nil
	_, err := Compile(c, smallPlan(t, 8), 40, Options{}, cache)
	require.Error(t, err)
	require.Equal(t, uint64(1), cache.Counts().Compiled)
}
