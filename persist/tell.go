package persist

import (
	"fmt"
	"os"
	"runtime/metrics"
	"strings"

	"libvpps/log"
	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/plan"
)

// Lines of the log on plans, and on an engine that is closed.

// size is bytes for people.
func size(bytes uint64) string {
	switch {
	case bytes < 1<<10:
		return fmt.Sprintf("%d bytes", bytes)
	case bytes < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	case bytes < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}

// tellPlan has the log say which plan runs from now on.
func (e *Engine) tellPlan(p *plan.Plan, ns uint64) {
	if !log.On(log.Info) {
		return
	}
	weights, most := uint64(0), 1
	for i := range p.Matrices {
		m := &p.Matrices[i]
		weights += 4 * uint64(m.Rows) * uint64(m.Cols)
		most = max(most, m.Copies)
	}
	line := fmt.Sprintf("%d matrices, %s, on %d processors", len(p.Matrices), size(weights), p.Processors)
	if p.Registers > 0 {
		line += fmt.Sprintf("; %d rows a warp, up to %d copies; registers a thread: %d for weights, %d for a gradient, %d for the interpreter, of %d; %d matrices are not in registers",
			p.RowsPerWarp, most, p.Used, p.Staging, p.SetAside, p.Registers, p.Outside())
	}
	log.Infof("plan", "%s; %.3f s", line, float64(ns)/1e9)
	log.DebugReport("plan", e.planReport())
}

// MemoryReport says what takes how much memory.
func (e *Engine) MemoryReport() string {
	e.enter()
	defer e.mu.Unlock()
	return e.memoryReport()
}

func (e *Engine) memoryReport() string {
	var uses []memory.Use
	if !e.closed {
		uses = e.exec.Memory()
	}
	for s := range isa.Segments {
		for i := range uses {
			if u := &uses[i]; u.What == memory.OfSegment(s) && s != isa.SegInput && s != isa.SegResult {
				u.Used, u.Known = 4*e.inUse(s), true
			}
		}
	}
	uses = append(uses, e.onHost()...)
	text := memory.Table(uses)
	if d := e.exec.Device(); d != nil && !e.closed {
		if free, total := d.Free(); total > 0 {
			text += fmt.Sprintf("%s of the device's %s are free\n", size(free), size(total))
		}
	}
	if n := resident(); n > 0 {
		text += fmt.Sprintf("the process has %s of host memory (resident)\n", size(n))
	}
	return text
}

// inUse is how many floats of a segment something has.
func (e *Engine) inUse(s isa.Segment) (n uint64) {
	switch s {
	case isa.SegAct:
		return uint64(e.top())
	case isa.SegState:
		n = e.used[s]
		for size, free := range e.freeStates {
			n -= size * uint64(len(free))
		}
		return n
	}
	for i := range e.params {
		p := &e.params[i]
		if s == p.segment(Values) || s == p.segment(Gradient) {
			n += uint64(p.Size)
		}
	}
	return n
}

// onHost is what the engine has in the host's memory.
func (e *Engine) onHost() []memory.Use {
	var copies, gradients uint64
	for i := range e.params {
		for k := range e.params[i].host {
			h := &e.params[i].host[k]
			copies += 4 * uint64(len(h.host)+len(h.equal))
		}
	}
	for _, f := range e.flights {
		for i := range f.params {
			gradients += 4 * uint64(len(f.params[i].gradient))
		}
	}
	use := func(what string, bytes uint64) memory.Use {
		return memory.Use{Place: memory.Host, What: what, Bytes: bytes}
	}
	heap, live := heapBytes()
	return []memory.Use{use("the snapshot of the parameters", e.snapshot.bytes()), use("copies that the program sees", copies),
		use("gradients of batches in flight", gradients), {Place: memory.Host, What: "graphs, scripts in the making (heap)", Bytes: heap, Used: live, Known: true}}
}

// heapBytes is what Go's heap has of the system, and what is used of it.
func heapBytes() (all, live uint64) {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
	metrics.Read(samples)
	for i := range samples {
		all += samples[i].Value.Uint64()
	}
	return all, samples[0].Value.Uint64()
}

// resident is the process's memory that is there, 0 if the system does not tell.
func resident() (bytes uint64) {
	text, err := os.ReadFile("/proc/self/statm")
	var pages [2]uint64
	if err == nil {
		fmt.Sscan(string(text), &pages[0], &pages[1])
	}
	return pages[1] * uint64(os.Getpagesize())
}

// tellAtEnd tells what an engine leaves to be known when it is closed.
func (e *Engine) tellAtEnd() {
	if e.dead == nil {
		if sum, err := e.exec.Clocks(); err == nil && sum != nil {
			if t, err := e.times(); err == nil {
				log.Report("profile", e.profile(&t))
			}
			e.traceProfile(sum)
		}
	}
	log.DebugReport("memory", e.memoryReport())
}

// profile is what VPPS_PROFILE=1 tells at the end.
func (e *Engine) profile(t *Times) string {
	var b strings.Builder
	seconds := func(ns uint64) float64 { return float64(ns) / 1e9 }
	fmt.Fprintf(&b, "%s; %d batches, %d launches\n", e.exec.Describe(), e.stats.Batches, t.Clocks.Launches)
	fmt.Fprintf(&b, "host, seconds: record %.3f, decode %.3f, scripts %.3f, launch %.3f, wait %.3f; device: %.3f\n", seconds(t.RecordNS),
		seconds(t.DecodeNS), seconds(t.ScheduleNS), seconds(t.LaunchNS), seconds(t.WaitNS), seconds(t.KernelNS))
	b.WriteString(t.Clocks.Profile())
	b.WriteString(t.Clocks.LevelProfile())
	operations, cells := e.shares(&t.Clocks)
	b.WriteString(shareTable(operations, "nodes", "operation of the program", t.Clocks.Processors))
	b.WriteString(shareTable(cells, "instances", "cell", t.Clocks.Processors))
	return b.String()
}
