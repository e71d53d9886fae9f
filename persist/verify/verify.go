// The verifier proves a script free of deadlocks and races and inside its memory. It
// reads the words, the tensor table and the plan, never the scheduler's own state.
//
// All processors are simulated together. A barrier's waits expect every signal that the
// script sends to it, so what happens before what does not depend on who runs first: one
// simulated order, with a vector clock per processor and a shadow of every element, covers
// all of them.
package verify

import (
	"fmt"
	"slices"

	"libvpps/persist/isa"
	"libvpps/persist/plan"
)

// Verify returns nil if the script is sound, else the first fault found.
func Verify(s *isa.Script, p *plan.Plan) error {
	v, err := newVerifier(s, p)
	if err != nil {
		return fmt.Errorf("script: %w", err)
	}
	if err := v.run(); err != nil {
		return fmt.Errorf("script: %w", err)
	}
	return nil
}

// VerifySecond is Verify of a script that is launched after another one, whose values it reads, and nothing in between that
// writes to memory of either.
func VerifySecond(first, second *isa.Script, p *plan.Plan) error {
	before, err := newVerifier(first, p)
	if err == nil {
		err = before.run()
	}
	if err != nil {
		return fmt.Errorf("first script: %w", err)
	}
	v, err := newVerifier(second, p)
	if err == nil {
		v.follow(before)
		err = v.run()
	}
	if err != nil {
		return fmt.Errorf("second script: %w", err)
	}
	return nil
}

// verifier is the state of the simulation.
type verifier struct {
	words    []uint32 // of the script
	reports  bool     // somebody writes what the host reads, and is no Clip
	unjudged error    // of the first Clip that knows no loss
	plan     *plan.Plan
	bySeg    [isa.Segments][]shadow
	procs    []runner
	barriers []gate
	events   []event  // events[0] is nobody
	sets     readSets // who has read an element since it was written
	resident []resident
	foot     Footprint
}

// runner is one virtual processor at work.
type runner struct {
	number int
	stream []uint32
	index  int // of the instruction that comes next
	next   isa.Instruction
	clock  []uint32 // the epochs of every processor that it has caught up with
	epoch  uint32   // its own; work of the present epoch is not even ordered for itself
	clip   *Range   // the partial norms that its latest Clip summed
}

// gate is a barrier: it counts signals and joins the clocks of those who signal.
type gate struct {
	total, arrived uint32
	clock          []uint32
	waiting        []int
}

// loading is the epoch in which a processor loads its matrices, before its first instruction.
const loading = 1

// event is one unit of one instruction having run.
type event struct {
	processor, epoch uint32
	index            uint32 // of the instruction
	unit             uint32
	result           uint32 // the address that an accumulating unit adds to
	norm             uint8  // 1 + the segment of a Norm's partial sum, whose address is result
}

// resident is what the simulation knows of a matrix that lives in registers.
type resident struct {
	used  []uint32 // by processor: the event of its latest use
	write uint32   // the event that overwrote the stored copy
}

func newVerifier(s *isa.Script, p *plan.Plan) (*verifier, error) {
	v := &verifier{words: s.Words, plan: p, events: make([]event, 1), sets: newReadSets(), resident: make([]resident, len(p.Matrices))}
	if err := v.header(s.Words); err != nil {
		return nil, err
	}
	if err := v.tensorTable(s.Words); err != nil {
		return nil, err
	}
	if err := v.streams(); err != nil {
		return nil, err
	}
	return v, nil
}

// header checks the fixed words and finds the streams.
func (v *verifier) header(w []uint32) error {
	if len(w) < isa.HeadWords || w[isa.HeadMagic] != isa.Magic {
		return fmt.Errorf("no script: the first of %d words is not the magic number", len(w))
	}
	n := int(w[isa.HeadProcessors])
	if n < 1 || n > v.plan.Processors {
		return fmt.Errorf("%d processors, but the plan has %d", n, v.plan.Processors)
	}
	end := uint64(isa.HeadWords + n*isa.ProcWords)
	for i, name := range []string{isa.HeadLists: "lists", isa.HeadListEnd: "lists' end", isa.HeadCounters: "counters", isa.HeadInputs: "inputs", isa.HeadDevice: "device words", isa.HeadTensors: "tensor table", isa.HeadTensorEnd: "tensor table's end"} {
		if name == "" {
			continue
		}
		if at := uint64(w[i]); at < end || at > uint64(len(w)) {
			return fmt.Errorf("the %s at word %d: not between %d and %d", name, w[i], end, len(w))
		} else if i != isa.HeadDevice {
			end = at
		}
		if i == isa.HeadCounters {
			end += uint64(w[isa.HeadBarriers]) * isa.BarrierStride
		}
	}
	if w[isa.HeadTensors] < w[isa.HeadDevice] {
		return fmt.Errorf("the tensor table at word %d is among the %d device words", w[isa.HeadTensors], w[isa.HeadDevice])
	}
	v.barriers = make([]gate, w[isa.HeadBarriers])
	for i := range n {
		if err := v.processor(w, i); err != nil {
			return fmt.Errorf("processor %d: %w", i, err)
		}
	}
	return nil
}

// processor reads an entry of the processor table.
func (v *verifier) processor(w []uint32, i int) error {
	start := w[isa.HeadWords+i*isa.ProcWords+isa.ProcStart]
	if start < w[isa.HeadListEnd] || start >= w[isa.HeadCounters] {
		return fmt.Errorf("its stream starts at word %d: the streams are words %d to %d", start, w[isa.HeadListEnd], w[isa.HeadCounters])
	}
	r := runner{number: i, stream: w[start:w[isa.HeadCounters]], clock: make([]uint32, w[isa.HeadProcessors]), epoch: loading}
	r.order()
	v.procs = append(v.procs, r)
	return nil
}

// streams checks every instruction by itself and counts the signals.
func (v *verifier) streams() error {
	type wait struct{ processor, index, barrier, expected uint32 }
	var waits []wait
	for i := range v.procs {
		stream := v.procs[i].stream
		var half half
		for index := 0; ; index++ {
			in, err := isa.Decode(stream, v.words)
			if err == nil && (in.Op == isa.Signal || in.Op == isa.Wait) && in.Field("barrier") >= uint32(len(v.barriers)) {
				err = fmt.Errorf("barrier %d: the script has %d", in.Field("barrier"), len(v.barriers))
			}
			if err == nil {
				err = half.check(&in)
			}
			if err != nil {
				return fmt.Errorf("processor %d, instruction %d (%s): %w", i, index, in.Op, err)
			}
			switch in.Op {
			case isa.Signal:
				v.barriers[in.Field("barrier")].total++
			case isa.Wait:
				waits = append(waits, wait{uint32(i), uint32(index), in.Field("barrier"), in.Field("expected")})
			}
			if in.Op == isa.Halt {
				break
			}
			stream = stream[len(in.Words):]
		}
	}
	for _, w := range waits {
		if total := v.barriers[w.barrier].total; w.expected != total {
			return fmt.Errorf("processor %d, instruction %d (wait): expects %d signals at barrier %d, but the script sends %d",
				w.processor, w.index, w.expected, w.barrier, total)
		}
	}
	return nil
}

// run simulates the script.
func (v *verifier) run() error {
	v.loadResident()
	err := v.simulate()
	if err == nil && v.reports {
		err = v.unjudged
	}
	return err
}

// simulate lets the processors go on until every one has halted.
func (v *verifier) simulate() error {
	ready := make([]int, len(v.procs))
	for i := range ready {
		ready[i] = i
	}
	for len(ready) > 0 {
		i := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		if err := v.advance(&v.procs[i], &ready); err != nil {
			p := &v.procs[i]
			return fmt.Errorf("processor %d, instruction %d (%s): %w", i, p.index, p.next.Op, err)
		}
	}
	return v.deadlock()
}

// loadResident lets every processor read its part of the matrices it multiplies with.
func (v *verifier) loadResident() {
	for m := range v.resident {
		v.resident[m].used = make([]uint32, len(v.procs))
	}
	for i := range v.procs {
		v.events = append(v.events, event{processor: uint32(i), epoch: loading})
		mine := uint32(len(v.events) - 1)
		for at := v.procs[i].stream; ; {
			in, err := isa.Decode(at, v.words)
			if err != nil || in.Op == isa.Halt {
				break
			}
			if v.loads(&in) {
				v.resident[in.Field("matrix")].used[i] = mine
			}
			at = at[len(in.Words):]
		}
	}
}

// loads reports whether a processor has loaded its part of a matrix for an instruction.
func (v *verifier) loads(in *isa.Instruction) bool {
	m := int(in.Field("matrix"))
	if in.Op != isa.Product && in.Op != isa.ProductT || m >= len(v.resident) {
		return false
	}
	w := v.plan.Residence(m)
	return w.Kind != plan.Streamed && !(in.Op == isa.ProductT && w.Columns > 0)
}

// advance runs a processor until it halts or waits; processors that it releases join ready.
func (v *verifier) advance(p *runner, ready *[]int) error {
	for {
		in, err := isa.Decode(p.stream, v.words)
		if err != nil {
			return err
		}
		p.next = in
		switch in.Op {
		case isa.Halt:
			return nil
		case isa.Wait:
			b := &v.barriers[in.Field("barrier")]
			if b.arrived != b.total {
				b.waiting = append(b.waiting, p.number)
				return nil
			}
			p.order()
			join(p.clock, b.clock)
		case isa.Signal:
			p.order()
			b := &v.barriers[in.Field("barrier")]
			if b.clock == nil {
				b.clock = make([]uint32, len(v.procs))
			}
			join(b.clock, p.clock)
			if b.arrived++; b.arrived == b.total {
				*ready = append(*ready, b.waiting...)
				b.waiting = nil
			}
		default:
			if err := v.execute(p, &in); err != nil {
				return err
			}
		}
		p.stream = p.stream[len(in.Words):]
		p.index++
	}
}

// order lets the processor's threads meet: what it did so far comes before what follows.
func (p *runner) order() {
	p.clock[p.number] = p.epoch
	p.epoch++
}

func join(to, from []uint32) {
	for i, x := range from {
		to[i] = max(to[i], x)
	}
}

// execute simulates an instruction with operands.
func (v *verifier) execute(p *runner, in *isa.Instruction) error {
	ranges, err := v.foot.Of(in, v.plan, p.number)
	if err != nil {
		return err
	}
	if in.Flags&isa.Sync != 0 || in.Op == isa.Clip {
		p.order()
	}
	x := execution{verifier: v, processor: p, first: uint32(len(v.events)), inOrder: in.Flags&isa.Acc != 0 && inOrder(in.Op)}
	x.addUnits(ranges)
	if in.Op == isa.Update {
		if err := x.committed(ranges); err != nil {
			return err
		}
	}
	if err := x.access(ranges); err != nil {
		return err
	}
	switch in.Op {
	case isa.Norm:
		v.events[x.first].norm = 1 + uint8(in.Segment(0))
	case isa.Clip:
		p.clip = x.partials(ranges)
		if in.Flags&isa.Loss == 0 && v.unjudged == nil {
			v.unjudged = fmt.Errorf("processor %d, instruction %d (clip): decides without the loss that the script reports", p.number, p.index)
		}
		p.order()
	default:
		v.reports = v.reports || slices.ContainsFunc(ranges, func(r Range) bool { return r.Write && r.Segment == isa.SegResult })
	}
	return nil
}

// access checks and records all accesses of an instruction.
func (x *execution) access(ranges []Range) error {
	for i := range ranges {
		if r := &ranges[i]; r.Read {
			if err := x.read(r); err != nil {
				return err
			}
		}
	}
	for i := range ranges {
		if r := &ranges[i]; r.Write {
			if err := x.write(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// inOrder: the opcodes whose items a thread takes one after the other, always the same
// elements, so that two items may add to one address. The others spread items over warps.
func inOrder(op isa.Opcode) bool {
	return op == isa.Product || op == isa.ProductT || op == isa.Gemm
}

// deadlock names a processor that has not halted, if there is one.
func (v *verifier) deadlock() error {
	for i := range v.procs {
		p := &v.procs[i]
		if p.next.Op == isa.Wait {
			n := p.next.Field("barrier")
			b := &v.barriers[n]
			return fmt.Errorf("processor %d, instruction %d (wait): deadlock: barrier %d has %d of %d signals when nobody can go on", i, p.index, n, b.arrived, b.total)
		}
	}
	return nil
}
