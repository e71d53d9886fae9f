// Package kernel is the virtual processor: one C++ source that the GPU's compiler gets
// as text (Sources) and that is compiled here for the host (Machine).
//
// The folder holds the sources because Go's build cache notices changed headers only in a
// package's own directory.
package kernel

/*
#cgo CXXFLAGS: -std=c++14 -O3 -g1 -fno-exceptions -fno-rtti -Wall
#cgo amd64,race CXXFLAGS: -DVPPS_V2_ONLY
#include <stdlib.h>
#include "host.h"
*/
import "C"

import (
	"errors"
	"math/bits"
	"sync"
	"time"
	"unsafe"

	"libvpps/persist/plan"
	"libvpps/persist/script"
)

// Variant names the instruction set level the CPU's processors run with.
func Variant() string { return C.GoString(C.vpps_cpu_variant()) }

// Machine runs scripts on the CPU. It is used by one goroutine at a time.
//
// With Check every operand is held against the script's tensor table, which then has to follow the
// device's words.
type Machine struct {
	launch  *C.struct_vpps_launch
	res     *C.struct_vpps_residency
	owned   []unsafe.Pointer // C memory of res
	states  int              // processors that launch.processors has room for
	paces   [33]pace         // by the length of the script
	Threads int
	Check   bool
	Part    script.Part // what is run of a script that is cut
}

// NewMachine makes a machine over segments of C memory.
func NewMachine(segments []unsafe.Pointer, threads int, waitSeconds float64) *Machine {
	m := &Machine{Threads: threads}
	m.launch = (*C.struct_vpps_launch)(C.calloc(1, C.size_t(unsafe.Sizeof(C.struct_vpps_launch{}))))
	m.res = (*C.struct_vpps_residency)(C.calloc(1, C.size_t(unsafe.Sizeof(C.struct_vpps_residency{}))))
	m.launch.residency = m.res
	m.launch.status = (*C.uint32_t)(C.calloc(1, 64))
	m.launch.wait_seconds = C.double(waitSeconds)
	for i, s := range segments {
		m.launch.segment[i] = (*C.float)(s)
	}
	return m
}

// Close frees the machine's memory.
func (m *Machine) Close() {
	m.freePlan()
	C.free(m.launch.processors)
	C.free(unsafe.Pointer(m.launch.status))
	C.free(unsafe.Pointer(m.launch))
	C.free(unsafe.Pointer(m.res))
}

func (m *Machine) freePlan() {
	for _, p := range m.owned {
		C.free(p)
	}
	m.owned = m.owned[:0]
}

// cArray is aligned to cache lines.
func cArray[T any](m *Machine, n int) []T {
	const line = 64
	var t T
	p := C.calloc(C.size_t(n)*C.size_t(unsafe.Sizeof(t))+line, 1)
	m.owned = append(m.owned, p)
	return unsafe.Slice((*T)(unsafe.Add(p, -uintptr(p)%line)), n)
}

// SetPlan tells which rows and columns of which matrix each processor works with.
func (m *Machine) SetPlan(p *plan.Plan) {
	m.freePlan()
	matrices := cArray[C.struct_vpps_matrix](m, len(p.Matrices))
	for i, x := range p.Matrices {
		matrices[i] = C.struct_vpps_matrix{C.uint32_t(x.Rows), C.uint32_t(x.Cols), C.uint32_t(x.Offset)}
	}
	first := cArray[C.uint32_t](m, len(p.Matrices)*p.Processors+1)
	parts := cArray[C.struct_vpps_rows](m, len(p.Partitions))
	columns := cArray[C.struct_vpps_columns](m, len(p.Matrices)*p.Processors)
	n := 0
	for i := range p.Matrices {
		held := p.Residence(i).Columns == 0
		for q := range p.Processors {
			lo, hi := p.ColumnsOf(i, q)
			columns[i*p.Processors+q] = C.struct_vpps_columns{C.uint32_t(lo), C.uint32_t(hi - lo)}
			if held {
				columns[i*p.Processors+q].column = C.VPPS_HELD
			}
			first[i*p.Processors+q] = C.uint32_t(n)
			for _, x := range p.Of(i) {
				if x.Processor == q {
					b := p.OuterBlock(&x)
					parts[n] = C.struct_vpps_rows{C.uint32_t(x.Row), C.uint32_t(x.Rows), C.uint32_t(x.Column), C.uint32_t(p.Matrices[i].ColumnsEach()), C.uint32_t(x.Rank), C.uint32_t(b.Row), C.uint32_t(b.Rows), C.uint32_t(b.Column), C.uint32_t(b.Columns)}
					n++
				}
			}
		}
	}
	first[len(first)-1] = C.uint32_t(n)
	m.res.processors, m.res.matrices = C.uint32_t(p.Processors), C.uint32_t(len(p.Matrices))
	m.res.matrix, m.res.first, m.res.parts = unsafe.SliceData(matrices), unsafe.SliceData(first), unsafe.SliceData(parts)
	m.res.columns = unsafe.SliceData(columns)
	m.res.panels = unsafe.SliceData(cArray[C.struct_vpps_panels](m, 2*len(p.Matrices)*p.Processors))
	floats := int(C.vpps_cpu_place_operands(m.res, nil))
	C.vpps_cpu_place_operands(m.res, unsafe.SliceData(cArray[C.float](m, floats)))
}

// Status is the sticky word: nonzero after a batch whose gradients were not finite.
func (m *Machine) Status() *uint32 { return (*uint32)(unsafe.Pointer(m.launch.status)) }

// Run interprets a script in C memory to its end, on as many threads as pay: what comes out is
// the same.
func (m *Machine) Run(memory unsafe.Pointer, processors int, batch uint32) error {
	if processors > m.states {
		C.free(m.launch.processors)
		m.launch.processors = C.calloc(C.size_t(processors), C.vpps_cpu_state_bytes())
		m.states = processors
	}
	if m.launch.processors == nil {
		return errors.New("out of memory for the processors' state")
	}
	m.launch.script = (*C.uint32_t)(memory)
	m.launch.batch, m.launch.part = C.uint32_t(batch), C.uint32_t(m.Part)
	m.launch.check = 0
	if m.Check {
		m.launch.check = 1
	}
	C.vpps_cpu_begin(m.launch)
	if threads := min(m.Threads, processors); threads == 1 {
		C.vpps_cpu_run(m.launch, 0, 1)
	} else {
		words := unsafe.Slice((*uint32)(memory), script.HeadWords)[script.HeadDevice]
		pace := &m.paces[bits.Len32(words)]
		alone := pace.alone()
		if alone {
			threads = 1
		}
		start := time.Now()
		m.together(threads)
		pace.took(alone, float64(time.Since(start))/float64(words))
	}
	var stop script.Stop
	for i := range stop {
		stop[i] = uint32(m.launch.stopped[i])
	}
	if stop[script.StopCode] == script.Running {
		return nil
	}
	known := script.HeadDevice
	if m.Check {
		known = script.HeadTensorEnd
	}
	words := unsafe.Slice((*uint32)(memory), script.HeadWords)
	return stop.Error(unsafe.Slice(&words[0], words[known]), float64(m.launch.wait_seconds))
}

// together runs the launch on so many threads.
func (m *Machine) together(threads int) {
	var wg sync.WaitGroup
	for t := 1; t < threads; t++ {
		wg.Go(func() { C.vpps_cpu_run(m.launch, C.uint32_t(t), C.uint32_t(threads)) })
	}
	C.vpps_cpu_run(m.launch, 0, C.uint32_t(threads))
	wg.Wait()
}

// Alloc returns n words of zeroed C memory that Free releases.
func Alloc(words int) unsafe.Pointer { return C.calloc(C.size_t(words), 4) }

// Free releases memory of Alloc.
func Free(p unsafe.Pointer) { C.free(p) }

// SetClocks has the processors leave records of script.ClockWords words of 64 bits each in C memory;
// nil: no more.
func (m *Machine) SetClocks(p unsafe.Pointer) { m.launch.clocks = (*C.uint64_t)(p) }

// SetInputs points segment input at the words of the next script.
func (m *Machine) SetInputs(p unsafe.Pointer) { m.launch.segment[script.SegInput] = (*C.float)(p) }
