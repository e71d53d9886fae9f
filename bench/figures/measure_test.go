package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A stand-in for an application. It notes how it was called, and its rate grows with each call.
const fake = `#!/bin/sh
name=$(basename "$0") args=$*
echo "$name $* ${VPPS_TIMES:+timed}" >>"$CALLS"
while [ -n "$1" ]; do
	[ "$1" = --curve ] && echo "app,device,hidden,embed,seed,updates,seconds,dev_loss,dev_score
$name,cpu: x,1,1,7,0,0,1,0.5" >"$2"
	shift
done
[ "$name" = "$FAILS" ] && { echo "it is broken" >&2; exit 3; }
case " $args " in *" --csv "* | *" --curve "*) ;; *) echo "a table for people"; exit ;; esac
calls=$(grep -c "^$name " "$CALLS")
echo "app,mode,device,trainer,hidden,embed,batch,sentences_per_s,slowest,fastest,forward_sentences_per_s"
echo "$name,vpps,\"cuda:0: Chip, sm_90\",sgd,256,256,1,${calls}00,${calls}00,${calls}00,${calls}000"
`

const fakeStartup = `#!/bin/sh
echo "startup $* on $VPPS_DEVICE" >>"$CALLS"
echo "app,hidden,start,context,plan,source,cache,compiler,load,handle,first_fb"
echo "$1,256,cold,1,2,3,4,5,6,20,7"
`

const fakeTorch = `#!/bin/sh
echo "torch $1 $3" >>"$CALLS"
echo "impl,variant,app,hidden,embed,batch,sentences_per_s,slowest,fastest" >"$2"
echo "torch,eager,rvnn,256,256,1,50,40,60" >>"$2"
`

// programs makes a folder of stand-ins and returns it with the file of their calls.
func programs(t *testing.T) (folder, calls string) {
	t.Helper()
	folder = t.TempDir()
	for name, text := range map[string]string{"treelstm": fake, "rvnn": fake, "bilstm": fake, "torch": fakeTorch, "bench/startup": fakeStartup} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o777))
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o777))
	}
	calls = filepath.Join(t.TempDir(), "calls")
	t.Setenv("CALLS", calls)
	return folder, calls
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func TestMeasuringTakesTurnsAndMedians(t *testing.T) {
	folder, calls := programs(t)
	into := filepath.Join(t.TempDir(), "results")
	var out strings.Builder
	args := []string{"measure", "--programs", folder, "--apps", "treelstm,rvnn", "--parts", "apps", "--devices", "cuda", "--batch-sizes", "1",
		"--seconds", "0.5", "--repetitions", "3", "--trees", folder, "--torch", folder + "/torch", "--torch-data", "data", "--torch-seconds", "7", "--into", into}
	require.NoError(t, run(args, &out, io.Discard))

	turn := []string{
		"treelstm --trees " + folder + " --measure 0.5 --csv --batch-sizes 1 --device cuda --mode vpps",
		"rvnn --trees " + folder + " --measure 0.5 --csv --batch-sizes 1 --device cuda --mode vpps",
		"torch data 7",
	}
	called := lines(t, calls)
	require.Len(t, called, 9)
	for k, line := range called {
		require.Equal(t, turn[k%3], strings.TrimSpace(line))
	}
	require.Equal(t, "apps Tree-LSTM 256/256, libvpps, Chip: 1=200.0\napps RvNN 256/256, libvpps, Chip: 1=200.0\n RvNN 256/256, PyTorch, eager: 1=50.0\n", out.String())
	written := lines(t, rowsFile(into))
	require.Equal(t, `apps,2,rvnn,vpps,"cuda:0: Chip, sm_90",sgd,256,256,1,200,200,200,2000`, written[4])
	require.Len(t, written, 7)

	require.NoError(t, drawThroughput(into, into))
	has(t, into+"/throughput.md", "libvpps, Chip, forward only", "2,000")
	require.ErrorContains(t, run(args, &out, io.Discard), "rows.csv is there already")
}

func TestPartsOfMeasuring(t *testing.T) {
	folder, calls := programs(t)
	into := t.TempDir()
	tags := filepath.Join(folder, "all.txt")
	require.NoError(t, os.WriteFile(tags, nil, 0o666))
	require.NoError(t, run([]string{"measure", "--programs", folder, "--apps", "bilstm", "--parts", "hidden,breakdown,jit,curves", "--curve-seconds", "9", "--devices", "cuda,cpu", "--batch-sizes", "1",
		"--hidden", "128,512", "--repetitions", "1", "--trees", folder, "--tags", tags, "--into", into}, io.Discard, io.Discard))
	var called []string
	for _, line := range lines(t, calls) {
		line, _, _ = strings.Cut(line, " --curve ") // behind it is a temporary file
		called = append(called, strings.TrimSpace(line))
	}
	hidden := "treelstm --trees " + folder + " --measure 1 --csv --batch-sizes 1 --device "
	tagger := "bilstm --train " + tags
	require.Equal(t, []string{
		hidden + "cuda --hidden 128 --embed 128", hidden + "cpu --hidden 128 --embed 128",
		hidden + "cuda --hidden 512 --embed 128", hidden + "cpu --hidden 512 --embed 128",
		tagger + " --measure 1 --csv --batch-sizes 1 --device cuda timed", tagger + " --measure 1 --csv --batch-sizes 1 --device cpu timed",
		"startup bilstm on cuda",
		tagger + " --batch-size 16 --seconds 9 --seed 1 --device cuda", tagger + " --batch-size 16 --seconds 9 --seed 1 --device cpu",
	}, called)
	starts, err := readStarts(jitFile(into))
	require.NoError(t, err)
	require.Len(t, starts, 1)
	require.Equal(t, "BiLSTM 256, cold, cuda", starts[0].title())
	require.Len(t, lines(t, curvesFile(into)), 3)
}

func TestAProgramThatFailsDoesNotEndTheOthers(t *testing.T) {
	folder, _ := programs(t)
	t.Setenv("FAILS", "treelstm")
	into := t.TempDir()
	err := run([]string{"measure", "--programs", folder, "--apps", "treelstm,rvnn", "--parts", "apps", "--repetitions", "1", "--trees", folder, "--into", into}, io.Discard, io.Discard)
	require.ErrorContains(t, err, "apps treelstm --device auto --mode vpps: exit status 3\nit is broken")
	require.Len(t, lines(t, rowsFile(into)), 2)

	for _, c := range []struct {
		says string
		args []string
	}{
		{"--parts all is unknown: give apps, hidden, breakdown, jit, curves", []string{"--parts", "all"}},
		{"--repetitions 0", []string{"--repetitions", "0"}},
		{"as the budget of 1ns is spent: repetition 1 from apps treelstm", []string{"--budget", "1ns"}},
		{"ended after 1ms: allow more with --limit", []string{"--limit", "1ms", "--apps", "rvnn", "--repetitions", "1"}},
	} {
		args := append([]string{"measure", "--programs", folder, "--trees", folder, "--into", t.TempDir()}, c.args...)
		require.ErrorContains(t, run(args, io.Discard, io.Discard), c.says)
	}
}
