package log

import (
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// heard has lines of a level come to a list, until the test ends.
func heard(t *testing.T, l Level) *[]string {
	t.Helper()
	lines := &[]string{}
	Set(l, func(_ Level, line string) { *lines = append(*lines, line) })
	t.Cleanup(func() { Set(Off, nil) })
	return lines
}

func tellAll() {
	Infof("plan", "of %d\nmatrices", 3)
	DebugReport("memory", "a\nb\n")
	Report("profile", "c\n")
}

func TestALevelTellsWhatIsUpToIt(t *testing.T) {
	for level, want := range map[Level][]string{
		Off:   {"profile: c"}, // which was asked for in another way
		Info:  {"plan: of 3 | matrices", "profile: c"},
		Debug: {"plan: of 3 | matrices", "memory: a", "memory: b", "profile: c"},
	} {
		lines := heard(t, level)
		tellAll()
		require.Equal(t, want, *lines, level)
	}
}

func TestTheVariableSetsTheLevelUntilTheProgramDoes(t *testing.T) {
	for value, want := range map[string]Level{"": Off, "off": Off, "info": Info, "debug": Debug, "loud": Off} {
		t.Setenv("VPPS_LOG", value)
		level.Store(unread)
		require.Equal(t, want >= Info, On(Info), value)
		require.Equal(t, want >= Debug, On(Debug), value)
		Set(Info, nil)
		require.True(t, On(Info))
		require.False(t, On(Debug))
	}
	Set(Off, nil)
}

func TestLinesGoToStandardErrorWithTheTime(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	saved, err := syscall.Dup(2)
	require.NoError(t, err)
	require.NoError(t, syscall.Dup3(int(w.Fd()), 2, 0))
	Set(Info, nil)
	Infof("compile", "4 s")
	Set(Off, nil)
	require.NoError(t, syscall.Dup3(saved, 2, 0))
	w.Close()
	text := make([]byte, 200)
	n, err := r.Read(text)
	require.NoError(t, err)
	require.Regexp(t, `^libvpps \d+\.\d{3} s compile: 4 s\n$`, string(text[:n]))
}

// After Set nobody is in the old function, and lines come one at a time.
func TestAFunctionThatWasReplacedIsOver(t *testing.T) {
	inside, calls := 0, 0
	Set(Info, func(Level, string) {
		inside++
		require.Equal(t, 1, inside)
		time.Sleep(time.Millisecond)
		inside--
		calls++
	})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { Infof("plan", "x") })
	}
	time.Sleep(2 * time.Millisecond)
	Set(Off, nil)
	require.Zero(t, inside)
	before := calls
	all.Wait()
	require.Equal(t, before, calls)
}

func TestSilenceAllocatesNothing(t *testing.T) {
	Set(Off, nil)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if On(Info) {
			t.Error("on")
		}
	}))
}
