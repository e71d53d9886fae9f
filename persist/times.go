package persist

// Where time goes: on the host always, on the device as far as VPPS_TIMES and VPPS_PROFILE ask for it.

import (
	"libvpps/persist/clocks"
)

// hostTimes are of the program's threads, nanoseconds, summed.
type hostTimes struct {
	record uint64 // from a graph's creation, or the last call on it, to the call that brings nodes
	wait   uint64 // in calls, for workers and device
}

// Times is where the engine's time went so far; nanoseconds, summed.
type Times struct {
	RecordNS, DecodeNS, ScheduleNS, LaunchNS, WaitNS uint64 // LaunchNS: 0 on the CPU
	CopyNS, KernelNS                                 uint64 // on the device
	Clocks                                           clocks.Sum
}

// Times waits for all batches. What a batch did wrong is left for a later call to tell.
func (e *Engine) Times() (Times, error) {
	e.enter()
	defer e.mu.Unlock()
	return e.times()
}

func (e *Engine) times() (Times, error) {
	t := Times{RecordNS: e.host.record, DecodeNS: e.stats.DecodeNS, ScheduleNS: e.stats.ScheduleNS, WaitNS: e.host.wait}
	if err := e.collect(0); err != nil {
		return t, err
	}
	sum, err := e.exec.Clocks()
	if err != nil {
		return t, e.fail(err)
	}
	if sum != nil {
		t.Clocks = *sum
	}
	if d := e.exec.Device(); d != nil {
		c := d.Counters()
		t.LaunchNS, t.CopyNS, t.KernelNS = e.stats.ExecuteNS, c.CopyNS, c.DeviceNS-c.CopyNS
	} else {
		t.KernelNS = e.stats.ExecuteNS
	}
	return t, nil
}

// waited counts the time since then, in which a call could not go on.
func (e *Engine) waited(since uint64, what string) {
	e.host.wait += now() - since
	e.span(programTrack, what, 0, since)
}

// recorded counts the time in which the program recorded what a call brings at a moment.
func (g *Graph) recorded(at uint64) {
	g.e.host.record += at - g.since
	g.e.timeline.to.Span(programTrack, "record", uint64(g.e.batch+1), g.since, at)
}
