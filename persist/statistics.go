package persist

// Counters of an engine's work. They cost an addition each.

// Statistics counts an engine's work; times are nanoseconds, summed.
type Statistics struct {
	Batches, Launches, Copies, Nodes                uint64
	DecodeNS, PlanNS, ScheduleNS, ExecuteNS, Script uint64

	Updates, Failures, Snapshots              uint64
	KernelsCompiled, KernelsCached, CompileNS uint64 // on a GPU
	BytesToDevice, BytesFromDevice            uint64 // on a GPU
	Templates, Instances, Loose               uint64 // of the nodes that were evaluated, where instances are looked for
}

// Statistics returns the counts so far.
func (e *Engine) Statistics() Statistics {
	e.enter()
	defer e.mu.Unlock()
	s := e.stats
	s.Updates, s.Failures = e.updates, e.failures
	for _, t := range e.dictionary.Templates {
		if t != nil {
			s.Templates++
		}
	}
	if d := e.exec.Device(); d != nil {
		c := d.Counters()
		s.ExecuteNS, s.Copies, s.Launches = c.DeviceNS, c.CopiesToDevice, c.Launches
		s.KernelsCompiled, s.KernelsCached, s.CompileNS = c.KernelsCompiled, c.KernelsCached, c.CompileNS
		s.BytesToDevice, s.BytesFromDevice = c.BytesToDevice, c.BytesFromDevice
	}
	return s
}
