package trace

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func events(t *testing.T, path string) (all []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &all), "%s", text)
	return all
}

func TestAFileIsCompleteAfterEveryWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.json")
	f, err := Open(path)
	require.NoError(t, err)
	p := f.Process(`cpu: "two" threads`, "program", "device")
	p.Span(1, "record", 7, 1500, 2750)
	require.NoError(t, p.Flush())
	require.Len(t, events(t, path), 6)
	again, err := Open(path)
	require.NoError(t, err)
	again.Process("another", "program").Span(1, "wait", 0, 3000, 2000)
	require.NoError(t, again.Close())
	all := events(t, path)
	require.Len(t, all, 10)
	require.Equal(t, map[string]any{"name": "record", "ph": "X", "pid": 1., "tid": 1., "ts": 1.5, "dur": 1.25, "args": map[string]any{"batch": 7.}}, all[5])
	require.Equal(t, map[string]any{"name": "wait", "ph": "X", "pid": 2., "tid": 1., "ts": 3., "dur": 0.}, all[9])
	for k := range 2000 { // more than is kept in memory: what was written before stays
		p.Span(2, "kernel", uint64(k+1), 4000, 5000)
	}
	require.Less(t, cap(f.events), 4*atOnce)
	require.NoError(t, f.Close())
	require.Len(t, events(t, path), 2010)
}

// Of a file that was cut off all whole lines are events.
func TestAFileThatWasCutOffCanBeRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.json")
	f, err := Open(path)
	require.NoError(t, err)
	p := f.Process("cpu", "program")
	for k := range 9 {
		p.Span(1, "fb", uint64(k), 0, 1)
	}
	require.NoError(t, f.Close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	cut := text[:len(text)*3/4]
	cut = append(bytes.TrimSuffix(cut[:bytes.LastIndexByte(cut, '\n')], []byte(",")), ']')
	var all []any
	require.NoError(t, json.Unmarshal(cut, &all))
	require.Greater(t, len(all), 6)
}

func TestErrorsNameTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "trace.json")
	_, err := Open(path)
	require.ErrorContains(t, err, path)

	f, err := Open("/dev/full")
	if err != nil {
		t.Skip("skipped: needs /dev/full")
	}
	p := f.Process("cpu", "program")
	require.ErrorContains(t, p.Flush(), "/dev/full")
	p.Span(1, "fb", 1, 0, 1)
	require.ErrorContains(t, f.Close(), "/dev/full")
}

func TestWithoutAFileNothingHappens(t *testing.T) {
	var p *Process
	require.Zero(t, testing.AllocsPerRun(10, func() { p.Span(1, "fb", 1, 0, 1) }))
	require.NoError(t, p.Flush())
}
