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

// measured runs an application with --measure.
func (m *measurement) measured(app string, seconds float64, flags, environment []string) (*table, error) {
	args := append(m.data(app), "--measure", fmt.Sprint(seconds))
	out, err := m.output(environment, m.program(app), append(args, flags...)...)
	if err != nil {
		return nil, err
	}
	t, err := parseTable("its output", bytes.NewReader(out), "app", "mode", "device", "hidden", "embed", "batch", "sentences_per_s", "slowest", "fastest")
	if err != nil {
		return nil, err
	}
	return t, t.each(func(c *cells) { readRate(c) })
}

// application adds the rows of one run to rows.csv.
func (m *measurement) application(part, app string, repetition int, flags, environment []string) error {
	t, err := m.measured(app, m.seconds, append(flags, "--batch-sizes", m.batches), environment)
	if err != nil {
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

// start adds to jit.csv how long a short run takes with an empty and with a filled cache of kernels.
func (m *measurement) start(app, device string, repetition int) error {
	cache, err := os.MkdirTemp("", "figures")
	if err != nil {
		return err
	}
	defer os.RemoveAll(cache)
	var took [2]float64
	var t *table
	for k := range took {
		clock := time.Now()
		if t, err = m.measured(app, 0.01, []string{"--device", device, "--batch-sizes", "1"}, []string{"VPPS_CACHE_DIR=" + cache}); err != nil {
			return err
		}
		took[k] = time.Since(clock).Seconds()
	}
	var row []string
	err = t.each(func(c *cells) {
		row = []string{c.text("app"), c.text("device"), c.text("hidden"), c.text("embed"), strconv.Itoa(repetition),
			fmt.Sprintf("%.3f", took[0]), fmt.Sprintf("%.3f", took[1])}
	})
	if err != nil {
		return err
	}
	return m.starts.add([]string{"app", "device", "hidden", "embed", "repetition", "cold_s", "warm_s"}, [][]string{row})
}
