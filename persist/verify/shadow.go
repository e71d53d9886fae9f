// The verifier's shadow memory: for every element of every tensor who wrote it last and
// who has read it since, and the rules that each access must keep.
package verify

import (
	"errors"
	"fmt"
	"sort"

	"libvpps/persist/isa"
)

// shadow is an entry of the tensor table with its shadow, in pages that are made when touched.
type shadow struct {
	index          int
	segment        isa.Segment
	flags          uint32
	offset, length uint64
	pages          [][]cell
}

// cell is the shadow of one element.
type cell struct {
	write uint32 // event, 0: not written in this launch
	reads uint32 // set since, of those who read it
}

const (
	pageBits  = 10
	pageCells = 1 << pageBits
	maxPages  = 1 << 22 // of all tensors: 2^32 elements
)

// tensorTable checks the table and makes the shadows.
func (v *verifier) tensorTable(w []uint32) error {
	table := w[w[isa.HeadTensors]:w[isa.HeadTensorEnd]]
	if len(table)%isa.TensorWords != 0 {
		return fmt.Errorf("the tensor table has %d words: not a multiple of %d", len(table), isa.TensorWords)
	}
	pages := uint64(0)
	for i := range len(table) / isa.TensorWords {
		e := table[i*isa.TensorWords:][:isa.TensorWords]
		t := shadow{index: i, segment: isa.Segment(e[0]), flags: e[0] >> 8, offset: uint64(e[1]), length: uint64(e[2])}
		if t.segment >= isa.Segments {
			return fmt.Errorf("tensor %d is in segment %d: there are %d", i, t.segment, isa.Segments)
		}
		if i > 0 && t.segment < isa.Segment(table[(i-1)*isa.TensorWords]) {
			return fmt.Errorf("tensor %d in segment %s precedes tensor %d", i, t.segment, i-1)
		}
		list := &v.bySeg[t.segment]
		if n := len(*list); n > 0 && (*list)[n-1].offset+(*list)[n-1].length > t.offset {
			return fmt.Errorf("tensor %d at %s+%d overlaps or precedes tensor %d", i, t.segment, t.offset, (*list)[n-1].index)
		}
		n := (t.length + pageCells - 1) >> pageBits
		if pages += n; pages > maxPages {
			return fmt.Errorf("the tensors are too large to verify")
		}
		t.pages = make([][]cell, n)
		*list = append(*list, t)
	}
	return nil
}

// find returns the tensor that holds all of a range.
func (v *verifier) find(r *Range) (*shadow, error) {
	list := v.bySeg[r.Segment]
	i := sort.Search(len(list), func(i int) bool { return list[i].offset > r.Offset }) - 1
	if i < 0 || r.Offset >= list[i].offset+list[i].length {
		return nil, fmt.Errorf("%s+%d is in no tensor", r.Segment, r.Offset)
	}
	t := &list[i]
	if last := r.Last(); last >= t.offset+t.length {
		return nil, fmt.Errorf("%s+%d..%d leaves tensor %d, which ends before %d", r.Segment, r.Offset, last, t.index, t.offset+t.length)
	}
	if n := r.Count(); n > 8*t.length {
		return nil, fmt.Errorf("%s+%d visits %d elements of a tensor of %d: it repeats itself too often to check", r.Segment, r.Offset, n, t.length)
	}
	return t, nil
}

// page returns the page of shadow that holds an element of the tensor.
func (t *shadow) page(element uint64) []cell {
	p := t.pages[element>>pageBits]
	if p == nil {
		p = make([]cell, pageCells)
		t.pages[element>>pageBits] = p
	}
	return p
}

// walk calls visit for every cell of a range inside t until it returns false.
func (t *shadow) walk(r *Range, visit func(c *cell) bool) (element uint64, ok bool) {
	if r.Rank == 0 {
		e := r.Offset - t.offset
		return e, visit(&t.page(e)[e%pageCells])
	}
	var at [MaxAxes]uint64
	inner := r.Axes[0]
	base := r.Offset - t.offset
	for {
		e := base
		for range inner.Size {
			if !visit(&t.page(e)[e%pageCells]) {
				return e, false
			}
			e += inner.Stride
		}
		k := 1
		for ; k < r.Rank; k++ {
			base += r.Axes[k].Stride
			if at[k]++; at[k] < r.Axes[k].Size {
				break
			}
			base -= r.Axes[k].Stride * r.Axes[k].Size
			at[k] = 0
		}
		if k == r.Rank {
			return 0, true
		}
	}
}

// follow has the activations that a script before writes count as defined, and no others of its tensors.
func (v *verifier) follow(first *verifier) {
	v.reports = first.reports
	v.events = append(v.events, event{}) // all of it: epoch 0 comes before everything
	all := uint32(len(v.events) - 1)
	for i := range v.bySeg[isa.SegAct] {
		t := &v.bySeg[isa.SegAct][i]
		old, err := first.find(&Range{Segment: isa.SegAct, Offset: t.offset})
		if err != nil || old.flags&isa.LiveIn != 0 {
			continue
		}
		t.flags &^= isa.LiveIn
		for e := range t.length {
			if at := t.offset + e - old.offset; at < old.length && old.page(at)[at%pageCells].write != 0 {
				t.page(e)[e%pageCells].write = all
			}
		}
	}
}

// readSets interns sets of events as chains: a set is its parent and one event more.
type readSets struct {
	parent, event []uint32
	known         map[[2]uint32]uint32
}

func newReadSets() readSets {
	return readSets{make([]uint32, 1), make([]uint32, 1), map[[2]uint32]uint32{}}
}

// with returns the set with one event more.
func (s *readSets) with(set, event uint32) uint32 {
	if s.event[set] == event {
		return set
	}
	key := [2]uint32{set, event}
	id, ok := s.known[key]
	if !ok {
		id = uint32(len(s.parent))
		s.parent, s.event = append(s.parent, set), append(s.event, event)
		s.known[key] = id
	}
	return id
}

// execution is one instruction being simulated. Its units' events are first, first+1, ...
type execution struct {
	*verifier
	processor *runner
	first     uint32
	inOrder   bool // items of the same result are executed in order
	fault     error
}

// addUnits makes the events of the instruction's units.
func (x *execution) addUnits(ranges []Range) {
	for i := range ranges {
		r := &ranges[i]
		for len(x.events) <= int(x.first)+r.Unit {
			x.events = append(x.events, event{
				processor: uint32(x.processor.number), epoch: x.processor.epoch,
				index: uint32(x.processor.index), unit: uint32(len(x.events)) - x.first,
			})
		}
		if e := &x.events[x.first+uint32(r.Unit)]; r.Write {
			e.result = uint32(r.Offset)
		}
	}
}

// ordered reports whether an event comes before what the processor does now.
func (v *verifier) ordered(p *runner, id uint32) bool {
	e := &v.events[id]
	return e.epoch <= p.clock[e.processor]
}

// same reports whether two units add to the same address in order.
func (x *execution) same(id, mine uint32) bool {
	return x.inOrder && id >= x.first && x.events[id].result == x.events[mine].result
}

// read checks and records that a range is read.
func (x *execution) read(r *Range) error {
	if r.Matrix > 0 {
		return x.readResident(r)
	}
	t, err := x.find(r)
	if err != nil {
		return err
	}
	mine := x.first + uint32(r.Unit)
	record := !x.pairedWithResult(r)
	var goodWrite, oldSet, newSet uint32 = 0, ^uint32(0), 0
	element, ok := t.walk(r, func(c *cell) bool {
		if c.write != goodWrite || c.write == 0 {
			switch {
			case c.write == 0 && t.flags&isa.LiveIn == 0:
				x.fault = errors.New("is read before it is written")
				return false
			case c.write != 0 && !x.ordered(x.processor, c.write):
				x.fault = fmt.Errorf("is read, but not ordered after %s wrote it", x.name(c.write))
				return false
			default:
				goodWrite = c.write
			}
		}
		if record {
			if c.reads != oldSet {
				oldSet, newSet = c.reads, x.sets.with(c.reads, mine)
			}
			c.reads = newSet
		}
		return true
	})
	if !ok {
		return x.at(t, element)
	}
	return nil
}

// pairedWithResult reports whether a range is exactly its unit's result, read by the
// thread that then writes it: the write stands for both.
func (x *execution) pairedWithResult(r *Range) bool {
	if r.Write {
		return true
	}
	if !r.Paired {
		return false
	}
	for i := range x.foot.Ranges {
		w := &x.foot.Ranges[i]
		if w.Write && w.Unit == r.Unit && w.Segment == r.Segment && w.Offset == r.Offset && w.Rank == r.Rank && w.Axes == r.Axes {
			return true
		}
		if w.Unit > r.Unit {
			break
		}
	}
	return false
}

// readResident notes the use of a matrix that was loaded when the launch began.
func (x *execution) readResident(r *Range) error {
	t, err := x.find(r)
	if err != nil {
		return fmt.Errorf("matrix %d: %w", r.Matrix-1, err)
	}
	if t.flags&isa.LiveIn == 0 {
		return fmt.Errorf("matrix %d in tensor %d is not defined before the launch", r.Matrix-1, t.index)
	}
	m := &x.resident[r.Matrix-1]
	if m.write != 0 {
		return fmt.Errorf("matrix %d was overwritten by %s, but registers hold it as it was when the launch began", r.Matrix-1, x.name(m.write))
	}
	m.used[x.processor.number] = x.first
	return nil
}

// write checks and records that a range is written.
func (x *execution) write(r *Range) error {
	t, err := x.find(r)
	if err != nil {
		return err
	}
	mine := x.first + uint32(r.Unit)
	if r.Segment == isa.SegParam {
		if err := x.overwriteResident(r, mine); err != nil {
			return err
		}
	}
	var goodWrite, goodSet uint32
	element, ok := t.walk(r, func(c *cell) bool {
		if c.write != goodWrite {
			if x.fault = x.overwrite(c.write, mine); x.fault != nil {
				return false
			}
			goodWrite = c.write
		}
		if c.reads != goodSet {
			if x.fault = x.overwriteRead(c.reads, mine); x.fault != nil {
				return false
			}
			goodSet = c.reads
		}
		c.write, c.reads = mine, 0
		return true
	})
	if !ok {
		return x.at(t, element)
	}
	return nil
}

// overwrite checks that an element last written by event old may be written by mine.
func (x *execution) overwrite(old, mine uint32) error {
	switch {
	case old == mine:
		return errors.New("is written twice by one operand: its strides overlap")
	case old >= x.first && !x.same(old, mine):
		return fmt.Errorf("is written by items %d and %d of the same instruction, which run in parallel", x.events[old].unit, x.events[mine].unit)
	case old < x.first && !x.ordered(x.processor, old):
		return fmt.Errorf("is overwritten, but not ordered after %s wrote it", x.name(old))
	}
	return nil
}

// overwriteRead checks that an element that a set of events has read may be written by mine.
func (x *execution) overwriteRead(set, mine uint32) error {
	for ; set != 0; set = x.sets.parent[set] {
		e := x.sets.event[set]
		switch {
		case e == mine:
			return errors.New("is read and written by different threads of one item")
		case e >= x.first:
			return fmt.Errorf("is read by item %d and written by item %d of the same instruction, which run in parallel", x.events[e].unit, x.events[mine].unit)
		case !x.ordered(x.processor, e):
			return fmt.Errorf("is overwritten, but not ordered after %s read it", x.name(e))
		}
	}
	return nil
}

// overwriteResident checks that nobody still loads or uses the matrices that a range of
// stored parameters touches.
func (x *execution) overwriteResident(r *Range, mine uint32) error {
	last := r.Last()
	for i := range x.plan.Matrices {
		m := &x.plan.Matrices[i]
		if last < uint64(m.Offset) || r.Offset >= uint64(m.Offset)+uint64(m.Rows)*uint64(m.Cols) {
			continue
		}
		for _, e := range x.resident[i].used {
			if !x.ordered(x.processor, e) {
				return fmt.Errorf("matrix %d is overwritten, but not ordered after %s used it", i, x.name(e))
			}
		}
		x.resident[i].write = mine
	}
	return nil
}

// name says which instruction an event was.
func (v *verifier) name(id uint32) string {
	e := &v.events[id]
	if e.epoch == loading {
		return fmt.Sprintf("processor %d (loading its matrices)", e.processor)
	}
	return fmt.Sprintf("processor %d, instruction %d", e.processor, e.index)
}

// at completes the fault of an element with its address.
func (x *execution) at(t *shadow, element uint64) error {
	return fmt.Errorf("%s+%d (element %d of tensor %d) %w", t.segment, t.offset+element, element, t.index, x.fault)
}
