package persist

// The timeline of VPPS_TRACE=file: what the program, the workers and the device do when.

import (
	"fmt"

	"libvpps/env"
	"libvpps/persist/clocks"
	"libvpps/persist/script"
	"libvpps/persist/trace"
)

// The tracks. Workers have one each, from firstWorker on; the last are of the profile.
const (
	programTrack = 1 + iota
	firstWorker
	deviceTrack    = firstWorker + builders
	profileTrack   = deviceTrack + 1
	operationTrack = profileTrack + 1
	cellTrack      = operationTrack + 1
)

// timeline is the engine's part of a file of trace events; its zero value writes nothing.
type timeline struct {
	file *trace.File
	to   *trace.Process // nil: nothing is written
}

// measure begins what the options or the environment ask for.
func (e *Engine) measure(o Options) error {
	if d := e.exec.Device(); d != nil && o.Times {
		if err := d.MeasureTimes(); err != nil {
			return e.fail(err)
		}
	}
	if o.Profile {
		if err := e.exec.Profile(); err != nil {
			return e.fail(err)
		}
	}
	if sum, err := e.exec.Clocks(); err != nil {
		return e.fail(err)
	} else if sum != nil {
		e.costs = &script.Work{}
	}
	if o.Trace == "" {
		o.Trace = env.String("VPPS_TRACE")
	}
	if o.Trace == "" {
		return nil
	}
	return e.startTimeline(o.Trace)
}

// startTimeline opens the file and has the executor tell of launches.
func (e *Engine) startTimeline(path string) error {
	f, err := trace.Open(path)
	if err != nil {
		return wrong(ErrFile, "%v", err)
	}
	tracks := []string{programTrack - 1: "program", deviceTrack - 1: "device", profileTrack - 1: "profile of the mean launch",
		operationTrack - 1: "the same by operation", cellTrack - 1: "the same by cell"}
	for k := range builders {
		tracks[firstWorker-1+k] = fmt.Sprintf("scripts, worker %d", k+1)
	}
	e.timeline = timeline{f, f.Process(e.exec.Describe(), tracks...)}
	if d := e.exec.Device(); d != nil {
		if err := d.Trace(now, e.traceLaunch); err != nil {
			return e.fail(err)
		}
	}
	return nil
}

func (e *Engine) traceLaunch(batch uint32, begin, copied, done uint64) {
	e.timeline.to.Span(deviceTrack, "await script", uint64(batch), begin, copied)
	e.timeline.to.Span(deviceTrack, "kernel", uint64(batch), copied, done)
}

// traceExecution is for the host's processors: Launch runs the script.
func (e *Engine) traceExecution(batch uint32, from uint64) {
	if e.exec.Device() == nil {
		e.span(deviceTrack, "processors", batch, from)
	}
}

// traceProfile draws the mean launch behind the last: a span for each kind of instruction, as long as a processor's mean
// of it, phase by phase. Below it are those of operations and of cells.
func (e *Engine) traceProfile(sum *clocks.Sum) {
	began := float64(now())
	span := func(track int, at *float64, name string, ns float64) {
		ns /= float64(max(sum.Launches, 1))
		e.timeline.to.Span(track, name, 0, uint64(*at), uint64(*at+ns))
		*at += ns
	}
	at := began
	for _, r := range sum.Rows() {
		name := r.Name
		if r.Phase != "" {
			name = r.Phase + ": " + name
		}
		span(profileTrack, &at, name, r.NS)
	}
	operations, cells := e.shares(sum)
	for k, list := range [][]share{operations, cells} {
		at = began
		for i := range list {
			span(operationTrack+k, &at, list[i].name, list[i].ns())
		}
	}
}

// span is from a moment until now.
func (e *Engine) span(track int, name string, batch uint32, from uint64) {
	if e.timeline.to != nil {
		e.timeline.to.Span(track, name, uint64(batch), from, now())
	}
}

// FlushTimeline waits for all batches and completes the file; the error is of the first write that
// failed, or of a batch.
func (e *Engine) FlushTimeline() error {
	e.enter()
	defer e.mu.Unlock()
	if err := e.collect(0); err != nil {
		return err
	}
	if err := e.timeline.to.Flush(); err != nil {
		return wrong(ErrFile, "%v", err)
	}
	return nil
}

// close ends the file. Nobody hears that it could not be written: FlushTimeline tells.
func (t *timeline) close() {
	if t.file != nil {
		t.file.Close()
		*t = timeline{}
	}
}
