package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A measurement is what the command line of measure asks for.
type measurement struct {
	programs, trees, tags, batches, hiddenApp string
	apps, parts, devices, modes, hidden       list
	torch                                     list
	torchData, into                           string
	repetitions, embed                        int
	seconds, torchSeconds, curveSeconds       float64
	limit, budget                             time.Duration
	log                                       io.Writer
	rows, torchRows, starts, curves           *sink
}

// A list is a flag of words separated by commas.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }
func (l *list) Set(text string) error {
	*l = strings.Split(text, ",")
	if slices.Contains(*l, "") {
		return errors.New("a word is empty")
	}
	return nil
}

// A job is one program's run.
type job struct {
	name string
	run  func() error
}

var parts = []string{"apps", "hidden", "breakdown", "jit", "curves"}

func (m *measurement) flags(name string) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	var apps list
	for _, a := range applications {
		apps = append(apps, a.name)
	}
	m.apps, m.parts, m.devices, m.modes, m.hidden = apps, parts[:4], list{"auto"}, list{"vpps"}, list{"128", "256", "384", "512"}
	f.StringVar(&m.programs, "programs", "build", "folder of the applications")
	f.StringVar(&m.trees, "trees", "cpp_examples/data", "trees to train on: a file, or a folder with train.txt")
	f.StringVar(&m.tags, "tags", "cpp_examples/data/tags", "tagged sentences for bilstm and bilstm_char, likewise")
	f.Var(&m.parts, "parts", "apps: at their usual sizes; hidden: --hidden-app at each --hidden; breakdown: apps with VPPS_TIMES=1 and VPPS_PROFILE=1;\njit: what a start costs, by bench/startup in that folder; curves: held-out score while training, a seed\nfor each repetition, for which the data must be folders with dev.txt too")
	f.Var(&m.apps, "apps", "the applications")
	f.Var(&m.devices, "devices", "as the applications' --device, for example cuda,cpu")
	f.Var(&m.modes, "modes", "of part apps: vpps: one call; dynet: DyNet's three")
	f.StringVar(&m.batches, "batch-sizes", "1,2,4,8,16,32,64,128", "the batch sizes")
	f.Var(&m.hidden, "hidden", "lengths of the hidden vectors of part hidden")
	f.StringVar(&m.hiddenApp, "hidden-app", "treelstm", "the application of part hidden")
	f.IntVar(&m.embed, "embed", 128, "length of the word vectors of part hidden")
	f.IntVar(&m.repetitions, "repetitions", 3, "how often everything is run, in turn")
	f.Float64Var(&m.seconds, "seconds", 1, "of training for each row; half of it answering")
	f.Var(&m.torch, "torch", "PyTorch programs to run in turn with the others, called with a folder of data, the CSV file to\nwrite and seconds; those named .py by python3")
	f.StringVar(&m.torchData, "torch-data", ".", "their folder of data")
	f.Float64Var(&m.torchSeconds, "torch-seconds", 60, "of each of their runs")
	f.Float64Var(&m.curveSeconds, "curve-seconds", 60, "of training of each run of part curves")
	f.DurationVar(&m.limit, "limit", 5*time.Minute, "after which one run is ended")
	f.DurationVar(&m.budget, "budget", 0, "after which no other run is begun; 0: none")
	f.StringVar(&m.into, "into", "build/results", "folder for rows.csv, torch.csv, jit.csv and curves.csv, which must not be there yet")
	return f
}

// measure runs everything that is asked for, repetition by repetition, so that whatever disturbs the
// machine for a while disturbs all alike. A run that fails does not end the others.
func measure(args []string, out, log io.Writer) error {
	m := &measurement{log: log}
	flags := m.flags("figures measure")
	flags.SetOutput(log)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s is one argument too many", flags.Arg(0))
	}
	if m.repetitions < 1 || m.seconds <= 0 {
		return fmt.Errorf("--repetitions %d, --seconds %g: give numbers above 0", m.repetitions, m.seconds)
	}
	if err := m.open(); err != nil {
		return err
	}
	failed := m.runAll()
	if err := m.summarize(out); err != nil {
		return errors.Join(failed, err)
	}
	return failed
}

func (m *measurement) open() (err error) {
	if err := os.MkdirAll(m.into, 0o777); err != nil {
		return err
	}
	m.rows = &sink{path: rowsFile(m.into)}
	m.torchRows = &sink{path: torchFile(m.into)}
	m.starts = &sink{path: jitFile(m.into)}
	m.curves = &sink{path: curvesFile(m.into)}
	for _, s := range []*sink{m.rows, m.torchRows, m.starts, m.curves} {
		if _, err := os.Stat(s.path); err == nil {
			return fmt.Errorf("%s is there already: move it, or name another folder with --into", s.path)
		}
	}
	return nil
}

func (m *measurement) runAll() error {
	began := time.Now()
	var failed []error
	for repetition := 1; repetition <= m.repetitions; repetition++ {
		jobs, err := m.jobs(repetition)
		if err != nil {
			return err
		}
		for k, j := range jobs {
			if m.budget > 0 && time.Since(began) > m.budget {
				return errors.Join(append(failed, fmt.Errorf("not run, as the budget of %v is spent: repetition %d from %s on", m.budget, repetition, j.name))...)
			}
			clock := time.Now()
			err := j.run()
			fmt.Fprintf(m.log, "%d/%d %3d/%d %s: %.1f s\n", repetition, m.repetitions, k+1, len(jobs), j.name, time.Since(clock).Seconds())
			if err != nil {
				err = fmt.Errorf("%s: %w", j.name, err)
				fmt.Fprintln(m.log, err)
				failed = append(failed, err)
			}
		}
	}
	return errors.Join(failed...)
}

// jobs are one repetition. Programs to be compared come one after the other.
func (m *measurement) jobs(repetition int) ([]job, error) {
	var jobs []job
	add := func(part, app string, flags, environment []string) {
		name := strings.Join(append([]string{part, app}, flags...), " ")
		jobs = append(jobs, job{name, func() error { return m.application(part, app, repetition, flags, environment) }})
	}
	for _, part := range m.parts {
		switch part {
		case "apps":
			m.eachAppAndDevice(func(app, device string) {
				for _, mode := range m.modes {
					add(part, app, []string{"--device", device, "--mode", mode}, nil)
				}
			})
			for _, program := range m.torch {
				jobs = append(jobs, job{program, func() error { return m.pytorch(program, repetition) }})
			}
		case "hidden":
			for _, hidden := range m.hidden {
				for _, device := range m.devices {
					add(part, m.hiddenApp, []string{"--device", device, "--hidden", hidden, "--embed", fmt.Sprint(m.embed)}, nil)
				}
			}
		case "breakdown":
			m.eachAppAndDevice(func(app, device string) {
				add(part, app, []string{"--device", device}, []string{"VPPS_TIMES=1", "VPPS_PROFILE=1"})
			})
		case "jit":
			m.eachAppAndDevice(func(app, device string) {
				if device != "cpu" { // nothing is compiled there
					jobs = append(jobs, job{"jit " + app + " --device " + device, func() error { return m.start(app, device, repetition) }})
				}
			})
		case "curves":
			m.eachAppAndDevice(func(app, device string) {
				jobs = append(jobs, job{"curves " + app + " --device " + device, func() error { return m.curve(app, device, repetition) }})
			})
		default:
			return nil, fmt.Errorf("--parts %s is unknown: give %s", part, strings.Join(parts, ", "))
		}
	}
	return jobs, nil
}

func (m *measurement) eachAppAndDevice(f func(app, device string)) {
	for _, app := range m.apps {
		for _, device := range m.devices {
			f(app, device)
		}
	}
}

// summarize prints the medians of each part's rows.
func (m *measurement) summarize(out io.Writer) error {
	rows, err := m.written(rowsFile(m.into), readVPPS)
	if err != nil {
		return err
	}
	torch, err := m.written(torchFile(m.into), readTorch)
	if err != nil {
		return err
	}
	rows = append(rows, torch...)
	for _, part := range append(slices.Clone(parts), "") {
		of := medians(only(rows, func(r rate) bool { return r.part == part }))
		for _, s := range sizesOf(of) {
			for _, who := range whosOf(of) {
				m.line(out, part, s, who, of)
			}
		}
	}
	return nil
}

// written reads what this measurement has written, which may be nothing.
func (m *measurement) written(path string, read func(string) ([]rate, error)) ([]rate, error) {
	rows, err := read(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return rows, err
}

func (m *measurement) line(out io.Writer, part string, s size, who string, rows []rate) {
	text := ""
	for _, r := range rows {
		if r.size == s && r.who == who {
			text += fmt.Sprintf(" %d=%.1f", r.batch, r.training)
		}
	}
	if text != "" {
		fmt.Fprintf(out, "%s %s, %s:%s\n", part, s.title(), who, text)
	}
}

// data are the flags that name an application's sentences.
func (m *measurement) data(app string) []string {
	folder, path := "--trees", m.trees
	if strings.HasPrefix(app, "bilstm") {
		folder, path = "--tags", m.tags
	}
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		folder = "--train"
	}
	return []string{folder, path}
}

func (m *measurement) program(app string) string { return filepath.Join(m.programs, app) }
