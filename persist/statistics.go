package persist

// Counters of an engine's work. They cost an addition each.

import (
	"libvpps/gpu"
	"libvpps/jit"
)

// Statistics counts an engine's work; times are nanoseconds, summed.
type Statistics struct {
	Batches, Launches, Copies, Nodes                uint64
	DecodeNS, PlanNS, ScheduleNS, ExecuteNS, Script uint64

	Updates, Failures, Snapshots              uint64
	KernelsCompiled, KernelsCached, CompileNS uint64 // on a GPU
	BytesToDevice, BytesFromDevice            uint64 // on a GPU
}

// Statistics returns the counts so far.
func (e *Engine) Statistics() Statistics {
	e.enter()
	defer e.mu.Unlock()
	s := e.stats
	s.Updates, s.Failures = e.updates, e.failures
	if x, ok := e.exec.(interface{ DeviceNS() uint64 }); ok {
		s.ExecuteNS = x.DeviceNS()
	}
	if x, ok := e.exec.(interface{ Counts() gpu.Counts }); ok {
		s.Copies = x.Counts().CopiesToDevice
		s.Launches = x.Counts().Launches
	}
	if x, ok := e.exec.(interface{ Kernels() jit.Counts }); ok {
		k := x.Kernels()
		s.KernelsCompiled, s.KernelsCached, s.CompileNS = k.Compiled, k.Found, uint64(k.Compiling)
	}
	if x, ok := e.exec.(interface{ Traffic() (to, from uint64) }); ok {
		s.BytesToDevice, s.BytesFromDevice = x.Traffic()
	}
	return s
}
