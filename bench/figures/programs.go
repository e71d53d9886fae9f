package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A sink is a CSV file that grows run by run. It is made with the first rows.
type sink struct {
	path   string
	header []string
}

func (s *sink) add(header []string, records [][]string) error {
	if s.header != nil && !slices.Equal(s.header, header) {
		return fmt.Errorf("%s has the columns %s, but here are %s: programs of one version belong together",
			s.path, strings.Join(s.header, ","), strings.Join(header, ","))
	}
	f, err := os.OpenFile(s.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	w := csv.NewWriter(f)
	if s.header == nil {
		w.Write(header)
		s.header = header
	}
	w.WriteAll(records) // flushes
	return errors.Join(w.Error(), f.Close())
}

// output runs a program and returns what it prints. The end of what it complains of becomes part of
// the error.
func (m *measurement) output(environment []string, program string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), m.limit)
	defer cancel()
	c := exec.CommandContext(ctx, program, args...)
	c.Env = append(os.Environ(), environment...)
	c.WaitDelay = time.Second
	var complaint bytes.Buffer
	c.Stderr = &complaint
	out, err := c.Output()
	if ctx.Err() != nil {
		err = fmt.Errorf("ended after %v: allow more with --limit", m.limit)
	}
	if err != nil {
		text := complaint.Bytes()
		return nil, fmt.Errorf("%w\n%s", err, text[max(0, len(text)-1000):])
	}
	return out, nil
}

// application adds the rows of one run with --measure --csv to rows.csv.
func (m *measurement) application(part, app string, repetition int, flags, environment []string) error {
	args := append(m.data(app), "--measure", fmt.Sprint(m.seconds), "--csv", "--batch-sizes", m.batches)
	out, err := m.output(environment, m.program(app), append(args, flags...)...)
	if err != nil {
		return err
	}
	t, err := parseTable("its output", bytes.NewReader(out), "app", "mode", "device", "hidden", "embed", "batch", "sentences_per_s", "slowest", "fastest")
	if err != nil {
		return err
	}
	if err := t.each(func(c *cells) { readRate(c) }); err != nil {
		return err
	}
	return m.rows.add(append([]string{"part", "repetition"}, t.header...), t.behind(part, strconv.Itoa(repetition)))
}

// behind gives the records with cells before them.
func (t *table) behind(cells ...string) [][]string {
	var all [][]string
	for _, r := range t.records {
		all = append(all, append(slices.Clone(cells), r.fields...))
	}
	return all
}

// pytorch adds the rows of one run of a PyTorch program to torch.csv.
func (m *measurement) pytorch(program string, repetition int) error {
	folder, err := os.MkdirTemp("", "figures")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "rows.csv")
	command := []string{program, m.torchData, path, fmt.Sprint(m.torchSeconds)}
	if strings.HasSuffix(program, ".py") {
		command = append([]string{"python3"}, command...)
	}
	if _, err := m.output(nil, command[0], command[1:]...); err != nil {
		return err
	}
	t, err := readTable(path, "variant", "app", "hidden", "embed", "batch", "sentences_per_s", "slowest", "fastest")
	if err != nil {
		return err
	}
	return m.torchRows.add(append([]string{"repetition"}, t.header...), t.behind(strconv.Itoa(repetition)))
}

// start adds to jit.csv what one application's model costs at start, cold and warm.
func (m *measurement) start(app, device string, repetition int) error {
	out, err := m.output([]string{"VPPS_DEVICE=" + device}, m.program("bench/startup"), app)
	if err != nil {
		return err
	}
	t, err := parseTable("its output", bytes.NewReader(out), "app", "hidden", "start")
	if err != nil {
		return err
	}
	return m.starts.add(append([]string{"repetition", "device"}, t.header...), t.behind(strconv.Itoa(repetition), device))
}

// Few updates make of a rounding error another model here, unless steps are small.
var curveFlags = map[string][]string{
	"tdrnn":  {"--trainer", "adam", "--learning-rate", "0.0003"},
	"tdlstm": {"--trainer", "adam", "--learning-rate", "0.0003"},
}

// curve adds the looks of one training to curves.csv.
func (m *measurement) curve(app, device string, repetition int) error {
	folder, err := os.MkdirTemp("", "figures")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "curve.csv")
	args := append(m.data(app), "--batch-size", "16", "--seconds", fmt.Sprint(m.curveSeconds), "--seed", strconv.Itoa(repetition),
		"--device", device, "--curve", path)
	if _, err := m.output(nil, m.program(app), append(args, curveFlags[app]...)...); err != nil {
		return err
	}
	t, err := readTable(path, "app", "device", "seed", "updates", "seconds", "dev_score")
	if err != nil {
		return err
	}
	return m.curves.add(t.header, t.behind())
}
