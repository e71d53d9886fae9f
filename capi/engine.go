package main

/*
#define _GNU_SOURCE
#include <string.h>
#include "vpps.h"
#include "errors.h"
*/
import "C"

import (
	"fmt"
	"maps"
	"strings"
	"sync"

	"libvpps/persist"
	"libvpps/persist/clocks"
)

// engines are opened once per device; "auto" is the one of the device that it found.
var engines struct {
	sync.Mutex
	open map[string]*shared // by the names asked for and the device's own
}

type shared struct {
	engine *persist.Engine
	number number
	users  int
}

//export goEngineOpen
func goEngineOpen(o *C.vpps_cengine_options, out *C.uintptr_t) (status C.int) {
	defer guard(&status)
	name, err := textOf(o.device, "device")
	if err != nil {
		return failed(err)
	}
	if o.device == nil {
		name = "auto"
	}
	plan, err := textOf(o.plan, "plan")
	if err != nil {
		return failed(err)
	}
	trace, err := textOf(o.trace, "trace")
	if err != nil {
		return failed(err)
	}
	engines.Lock()
	defer engines.Unlock()
	s := engines.open[name]
	if s == nil {
		e, err := persist.Open(persist.Options{Device: name, Threads: int(o.threads), Processors: int(o.processors), Seed: uint32(o.seed), Snapshot: int(o.snapshot_batches),
			Plan: plan, Trace: trace, Times: o.times != 0, Profile: o.profile != 0, DataParallel: o.data_parallel != 0, Version: version()})
		if err != nil {
			return failed(err)
		}
		if s, err = share(name, e); err != nil {
			return failed(err)
		}
	}
	s.users++
	*out = C.uintptr_t(s.number)
	return 0
}

// mostText bounds a caller's string: longer ones are not copied.
const mostText = 1 << 16

// textOf is a C string, "" for NULL.
func textOf(s *C.vpps_cchar, what string) (string, error) {
	if s == nil {
		return "", nil
	}
	n := C.strnlen((*C.char)(s), mostText+1)
	if n > mostText {
		return "", argument("the %s has more than %d bytes", what, mostText)
	}
	return C.GoStringN((*C.char)(s), C.int(n)), nil
}

// share enters a new engine under its names, unless its device has one already.
func share(name string, e *persist.Engine) (s *shared, err error) {
	if engines.open == nil {
		engines.open = map[string]*shared{}
	}
	device := deviceOf(e.Describe())
	if s = engines.open[device]; s != nil {
		e.Close()
	} else {
		s = &shared{engine: e}
		if s.number, err = objects.add(engineKind, s); err != nil {
			e.Close()
			return nil, err
		}
	}
	engines.open[name], engines.open[device] = s, s
	return s, nil
}

// deviceOf is the device that a description begins with: "cpu", "cuda:1".
func deviceOf(description string) string {
	device, _, _ := strings.Cut(description, ": ")
	return device
}

//export goEngineClose
func goEngineClose(n C.uintptr_t) (status C.int) {
	defer guard(&status)
	return failed(closeEngine(number(n)))
}

// closeEngine closes an engine for one who opened it; the last one ends it.
func closeEngine(n number) error {
	engines.Lock()
	defer engines.Unlock()
	last := false
	err := use(n, engineKind, func(s *shared) error {
		if last = s.users == 1; !last {
			s.users--
		}
		return nil
	})
	if err != nil || !last {
		return err
	}
	found, err := objects.freeze(n, engineKind)
	if err != nil {
		return err
	}
	s := found.object.(*shared)
	objects.remove(n, found)
	maps.DeleteFunc(engines.open, func(_ string, x *shared) bool { return x == s })
	s.engine.Close()
	return nil
}

//export goEngineDescribe
func goEngineDescribe(h C.uintptr_t, to *C.char, size C.size_t) C.int {
	return withEngine(h, func(e *persist.Engine) error {
		text(e.Describe(), to, size, nil)
		return nil
	})
}

//export goEngineSeed
func goEngineSeed(h C.uintptr_t, seed C.uint32_t) C.int {
	return withEngine(h, func(e *persist.Engine) error {
		e.Seed(uint32(seed))
		return nil
	})
}

//export goEngineStatistics
func goEngineStatistics(h C.uintptr_t, to *C.vpps_statistics) C.int {
	return withEngine(h, func(e *persist.Engine) error {
		s := e.Statistics()
		to.batches, to.launches, to.copies_to_device = C.uint64_t(s.Batches), C.uint64_t(s.Launches), C.uint64_t(s.Copies)
		to.nodes, to.decode_ns, to.plan_ns = C.uint64_t(s.Nodes), C.uint64_t(s.DecodeNS), C.uint64_t(s.PlanNS)
		to.schedule_ns, to.execute_ns, to.script_words = C.uint64_t(s.ScheduleNS), C.uint64_t(s.ExecuteNS), C.uint64_t(s.Script)
		to.updates, to.failures, to.snapshots = C.uint64_t(s.Updates), C.uint64_t(s.Failures), C.uint64_t(s.Snapshots)
		to.kernels_compiled, to.kernels_cached, to.compile_ns = C.uint64_t(s.KernelsCompiled), C.uint64_t(s.KernelsCached), C.uint64_t(s.CompileNS)
		to.bytes_to_device, to.bytes_from_device = C.uint64_t(s.BytesToDevice), C.uint64_t(s.BytesFromDevice)
		to.templates, to.instances, to.loose_nodes = C.uint64_t(s.Templates), C.uint64_t(s.Instances), C.uint64_t(s.Loose)
		return nil
	})
}

// version is the library's.
func version() string {
	return fmt.Sprintf("%d.%d.%d", C.VPPS_VERSION_MAJOR, C.VPPS_VERSION_MINOR, C.VPPS_VERSION_PATCH)
}

//export goEngineTimes
func goEngineTimes(h C.uintptr_t, to *C.vpps_times) C.int {
	return withEngine(h, func(e *persist.Engine) error {
		t, err := e.Times()
		if err != nil {
			return err
		}
		to.record_ns, to.decode_ns, to.schedule_ns = C.uint64_t(t.RecordNS), C.uint64_t(t.DecodeNS), C.uint64_t(t.ScheduleNS)
		to.launch_ns, to.wait_ns = C.uint64_t(t.LaunchNS), C.uint64_t(t.WaitNS)
		to.copy_ns, to.kernel_ns = C.uint64_t(t.CopyNS), C.uint64_t(t.KernelNS)
		s := &t.Clocks
		to.processors, to.launches = C.uint32_t(s.Processors), C.uint64_t(s.Launches)
		for part, to := range map[clocks.Part]*C.vpps_part_time{
			clocks.Start: &to.start, clocks.Forward: &to.forward, clocks.Backward: &to.backward, clocks.Gradients: &to.gradients,
			clocks.Update: &to.update, clocks.Fetch: &to.fetch, clocks.Waiting: &to.waiting, clocks.Idle: &to.idle, clocks.Busy: &to.busy,
		} {
			to.mean_ns, to.max_ns = C.uint64_t(s.Parts[part].Mean), C.uint64_t(s.Parts[part].Max)
		}
		to.loaded_bytes, to.updated_bytes, to.streamed_bytes = C.uint64_t(s.Loaded), C.uint64_t(s.Updated), C.uint64_t(s.Streamed)
		return nil
	})
}

//export goClockTable
func goClockTable(h C.uintptr_t, to *C.char, size C.size_t, needed *C.size_t) C.int {
	return withEngine(h, func(e *persist.Engine) error {
		t, err := e.Times()
		if err != nil {
			return err
		}
		text(t.Clocks.Table(), to, size, needed)
		return nil
	})
}

//export goPlanReport
func goPlanReport(h C.uintptr_t, to *C.char, size C.size_t, needed *C.size_t) C.int {
	return withHandle(h, func(x *persist.Handle) error {
		report, err := x.PlanReport()
		if err == nil {
			text(report, to, size, needed)
		}
		return err
	})
}

//export goFlushTimeline
func goFlushTimeline(h C.uintptr_t) C.int {
	return withEngine(h, (*persist.Engine).FlushTimeline)
}

//export goScriptDump
func goScriptDump(h C.uintptr_t, to *C.char, size C.size_t, needed *C.size_t) C.int {
	return withEngine(h, func(e *persist.Engine) error {
		text(e.Dump(), to, size, needed)
		return nil
	})
}

//export goBuildInfo
func goBuildInfo(to *C.char, size C.size_t) {
	text(buildInfo(), to, size, nil)
}
