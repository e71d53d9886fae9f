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
#include "memory.h"
*/
import "C"

import (
	"fmt"
	"math/bits"
	"sync"
	"time"
	"unsafe"

	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/plan"
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
	owned   []unsafe.Pointer // memory of res
	states  int              // processors that launch.processors has room for
	paces   [33]pace         // by the length of the script
	running int              // threads of the latest launch
	Threads int
	Check   bool
}

// NewMachine makes a machine over segments of C memory.
func NewMachine(segments []unsafe.Pointer, threads int, waitSeconds float64) (*Machine, error) {
	makeRoom(threads)
	m := &Machine{Threads: threads}
	m.launch = (*C.struct_vpps_launch)(C.vpps_alloc_lines(1, C.size_t(unsafe.Sizeof(C.struct_vpps_launch{}))))
	m.res = (*C.struct_vpps_residency)(C.vpps_alloc_lines(1, C.size_t(unsafe.Sizeof(C.struct_vpps_residency{}))))
	status := (*C.uint32_t)(C.vpps_alloc_lines(1, 64))
	if m.launch == nil || m.res == nil || status == nil {
		Free(unsafe.Pointer(m.launch))
		Free(unsafe.Pointer(m.res))
		Free(unsafe.Pointer(status))
		return nil, fmt.Errorf("%w for the processors", memory.ErrExhausted)
	}
	m.launch.residency, m.launch.status = m.res, status
	m.launch.wait_seconds = C.double(waitSeconds)
	for i, s := range segments {
		m.SetSegment(isa.Segment(i), s)
	}
	return m, nil
}

// SetSegment says where a segment is.
func (m *Machine) SetSegment(s isa.Segment, at unsafe.Pointer) {
	m.launch.segment[s] = (*C.float)(at)
}

// Segment is where a segment is.
func (m *Machine) Segment(s isa.Segment) unsafe.Pointer {
	return unsafe.Pointer(m.launch.segment[s])
}

// Close frees the machine's memory.
func (m *Machine) Close() {
	free(m.owned)
	Free(m.launch.processors)
	Free(unsafe.Pointer(m.launch.status))
	Free(unsafe.Pointer(m.launch))
	Free(unsafe.Pointer(m.res))
}

func free(all []unsafe.Pointer) {
	for _, p := range all {
		Free(p)
	}
}

// residency is memory for a machine's plan.
type residency struct {
	owned []unsafe.Pointer
	full  bool // there was not enough
}

// cArray is aligned to cache lines; without memory it is empty.
func cArray[T any](r *residency, n int) []T {
	var t T
	p := C.vpps_alloc_lines(C.size_t(n), C.size_t(unsafe.Sizeof(t)))
	if p == nil {
		r.full = true
		return nil
	}
	r.owned = append(r.owned, p)
	return unsafe.Slice((*T)(p), n)
}

// SetPlan tells which rows of which matrix each processor works with. Without memory for that the
// machine's plan stays.
func (m *Machine) SetPlan(p *plan.Plan) error {
	var r residency
	res, err := r.of(p)
	if err != nil {
		free(r.owned)
		return err
	}
	free(m.owned)
	*m.res, m.owned = res, r.owned
	return nil
}

func (r *residency) of(p *plan.Plan) (res C.struct_vpps_residency, err error) {
	matrices := cArray[C.struct_vpps_matrix](r, len(p.Matrices))
	first := cArray[C.uint32_t](r, len(p.Matrices)*p.Processors+1)
	parts := cArray[C.struct_vpps_rows](r, len(p.Partitions))
	firstFormed, formed := p.AllGradientBlocks()
	firstBlock := cArray[C.uint32_t](r, len(firstFormed))
	blocks := cArray[C.struct_vpps_block](r, len(formed))
	columns := cArray[C.struct_vpps_columns](r, len(p.Matrices)*p.Processors)
	panels := cArray[C.struct_vpps_panels](r, 2*len(p.Matrices)*p.Processors)
	if r.full {
		return res, fmt.Errorf("%w for the plan of %d matrices on %d processors", memory.ErrExhausted, len(p.Matrices), p.Processors)
	}
	for i, x := range p.Matrices {
		matrices[i] = C.struct_vpps_matrix{C.uint32_t(x.Rows), C.uint32_t(x.Cols), C.uint32_t(x.Offset)}
	}
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
					parts[n] = C.struct_vpps_rows{C.uint32_t(x.Row), C.uint32_t(x.Rows), C.uint32_t(x.Rank)}
					n++
				}
			}
		}
	}
	first[len(first)-1] = C.uint32_t(n)
	for i, x := range firstFormed {
		firstBlock[i] = C.uint32_t(x)
	}
	for i, b := range formed {
		blocks[i] = C.struct_vpps_block{C.uint32_t(b.Row), C.uint32_t(b.Rows), C.uint32_t(b.Column), C.uint32_t(b.Columns)}
	}
	res.processors, res.matrices = C.uint32_t(p.Processors), C.uint32_t(len(p.Matrices))
	res.matrix, res.first, res.parts = unsafe.SliceData(matrices), unsafe.SliceData(first), unsafe.SliceData(parts)
	res.first_block, res.blocks = unsafe.SliceData(firstBlock), unsafe.SliceData(blocks)
	res.columns, res.panels = unsafe.SliceData(columns), unsafe.SliceData(panels)
	floats := int(C.vpps_cpu_place_operands(&res, nil))
	operands := cArray[C.float](r, floats)
	if r.full {
		return res, fmt.Errorf("%w for panels of %d matrices: %d bytes", memory.ErrExhausted, len(p.Matrices), 4*floats)
	}
	C.vpps_cpu_place_operands(&res, unsafe.SliceData(operands))
	return res, nil
}

// Status is the sticky word: nonzero after a batch whose gradients were not finite.
func (m *Machine) Status() *uint32 { return (*uint32)(unsafe.Pointer(m.launch.status)) }

// Run interprets a script in C memory to its end, on as many threads as pay: what comes out is
// the same. hold: it stops before updates, for Update.
func (m *Machine) Run(at unsafe.Pointer, processors int, batch uint32, hold bool) error {
	if processors > m.states {
		states := C.vpps_alloc_lines(C.size_t(processors), C.vpps_cpu_state_bytes())
		if states == nil {
			return fmt.Errorf("%w for the state of %d processors", memory.ErrExhausted, processors)
		}
		Free(m.launch.processors)
		m.launch.processors, m.states = states, processors
	}
	m.launch.script = (*C.uint32_t)(at)
	m.launch.batch = C.uint32_t(batch)
	m.launch.check, m.launch.hold = flag(m.Check), flag(hold)
	C.vpps_cpu_begin(m.launch)
	if m.running = min(m.Threads, processors); m.running == 1 {
		C.vpps_cpu_run(m.launch, 0, 1)
	} else {
		words := unsafe.Slice((*uint32)(at), isa.HeadWords)[isa.HeadDevice]
		pace := &m.paces[bits.Len32(words)]
		alone := pace.alone()
		if alone {
			m.running = 1
		}
		start := time.Now()
		m.together()
		pace.took(alone, float64(time.Since(start))/float64(words))
	}
	return m.stopped()
}

// Update goes on with the updates of a script that stopped before them, on as many threads. Its memory and all segments are
// as it left them.
func (m *Machine) Update() error {
	m.launch.hold = 0
	m.together()
	return m.stopped()
}

func flag(yes bool) C.uint32_t {
	if yes {
		return 1
	}
	return 0
}

// stopped is why the launch has stopped before its end, nil: it has not.
func (m *Machine) stopped() error {
	at := unsafe.Pointer(m.launch.script)
	var stop isa.Stop
	for i := range stop {
		stop[i] = uint32(m.launch.stopped[i])
	}
	if stop[isa.StopCode] == isa.Running {
		return nil
	}
	known := isa.HeadDevice
	if m.Check {
		known = isa.HeadTensorEnd
	}
	words := unsafe.Slice((*uint32)(at), isa.HeadWords)
	return stop.Error(unsafe.Slice(&words[0], words[known]), float64(m.launch.wait_seconds))
}

// together runs the launch on its threads.
func (m *Machine) together() {
	threads := C.uint32_t(m.running)
	var wg sync.WaitGroup
	for t := 1; t < m.running; t++ {
		wg.Go(func() { C.vpps_cpu_run(m.launch, C.uint32_t(t), threads) })
	}
	C.vpps_cpu_run(m.launch, 0, threads)
	wg.Wait()
}

// SetClocks has the processors leave records of isa.ClockWords words of 64 bits each in C memory;
// nil: no more.
func (m *Machine) SetClocks(p unsafe.Pointer) { m.launch.clocks = (*C.uint64_t)(p) }

// SetInputs points segment input at the words of the next script.
func (m *Machine) SetInputs(p unsafe.Pointer) { m.launch.segment[isa.SegInput] = (*C.float)(p) }
