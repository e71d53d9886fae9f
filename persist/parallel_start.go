package persist

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"libvpps/jit/kernel"
	"libvpps/persist/isa"
)

// How ranks are made equal: each describes what it has, and gets rank 0's numbers if all have the same.

// synchronise makes the ranks equal if something was set on this one since they last were. It reports whether it did.
func (e *Engine) synchronise() (did bool, err error) {
	r := e.ranks
	if r == nil {
		return false, nil
	}
	if err = e.settle(0); err == nil {
		err = e.pushExposed()
	}
	if err == nil {
		err = e.planOnce()
	}
	if err != nil {
		return false, e.failed(err)
	}
	if !r.changed {
		return false, nil
	}
	if _, err = r.tell(&notice{call: synchronising}); err != nil {
		return false, err
	}
	return true, e.becomeEqual()
}

// becomeEqual is the rest of synchronise, after all ranks have told that they are in it.
func (e *Engine) becomeEqual() error {
	r := e.ranks
	words, err := r.comm.AllGather(append(append(appendText(nil, e.description()), e.layout()), e.counts()...))
	if err != nil {
		return wrong(ErrRank, "%v", err)
	}
	counts, alike, err := compareDescriptions(words)
	if err != nil {
		return err
	}
	if r.device != nil {
		r.device.alike = alike
	}
	staged := kernel.Floats(int(e.commonFloats()))
	if staged == nil {
		return e.lostStep(wrong(ErrMemory, "no memory for a copy of all parameters, %d bytes, from rank 0", 4*e.commonFloats()))
	}
	defer kernel.FreeFloats(staged)
	if r.comm.Rank() == 0 {
		if err := e.eachCommon(staged, e.download); err != nil {
			return e.lostStep(err)
		}
	}
	if err := r.comm.Broadcast(staged, 0); err != nil {
		return wrong(ErrRank, "%v", err)
	}
	if r.comm.Rank() > 0 {
		if err := e.take(staged, counts); err != nil {
			return e.lostStep(err)
		}
	}
	r.changed = false
	return nil
}

// take gives this rank the numbers of rank 0.
func (e *Engine) take(staged []float32, counts []uint32) error {
	if err := e.eachCommon(staged, e.upload); err != nil {
		return err
	}
	for i := range e.params {
		p := &e.params[i]
		p.version++
		p.host[Values].whole = true
	}
	if err := e.setCounts(counts); err != nil {
		return err
	}
	e.updates++ // values of graphs are stale
	return e.pullAll()
}

// eachCommon calls do for parts of a buffer and where their numbers lie in memory: values, then states.
func (e *Engine) eachCommon(buffer []float32, do func(s isa.Segment, at uint64, part []float32) error) error {
	next := func(s isa.Segment, at uint32, n uint64) error {
		part := buffer[:n]
		buffer = buffer[n:]
		if n == 0 {
			return nil
		}
		return do(s, uint64(at), part)
	}
	for i := range e.params {
		p := &e.params[i]
		if err := next(p.segment(Values), p.Offset, uint64(p.Size)); err != nil {
			return err
		}
	}
	for _, t := range e.trainers {
		for k, at := range t.state {
			if err := next(isa.SegState, at, t.sizes[k]); err != nil {
				return err
			}
		}
	}
	return nil
}

// commonFloats is how many numbers those are.
func (e *Engine) commonFloats() (n uint64) {
	for i := range e.params {
		n += uint64(e.params[i].Size)
	}
	for _, t := range e.trainers {
		for _, size := range t.sizes {
			n += size
		}
	}
	return n
}

// counts are the numbers of the host that ranks have in common: each collection's factor and each trainer's updates.
func (e *Engine) counts() (words []uint32) {
	for _, c := range e.collections {
		words = append(words, math.Float32bits(c.Factor))
	}
	for _, t := range e.trainers {
		words = append(words, uint32(t.steps), uint32(t.steps>>32))
	}
	return words
}

func (e *Engine) setCounts(words []uint32) error {
	if len(words) != len(e.collections)+2*len(e.trainers) {
		return wrong(ErrRank, "rank 0: %v", errNotice)
	}
	for i := range e.collections {
		e.collections[i].Factor = math.Float32frombits(words[i])
	}
	words = words[len(e.collections):]
	for i, t := range e.trainers {
		t.steps = uint64(words[2*i]) | uint64(words[2*i+1])<<32
	}
	return nil
}

// description is what must be the same on all ranks, a line each.
func (e *Engine) description() string {
	var b strings.Builder
	how := "summed"
	if e.ranks.average {
		how = "averaged"
	}
	if e.ranks.bf16 {
		how += " in bf16"
	}
	// A norm is a sum of as many parts as there are processors.
	fmt.Fprintf(&b, "device: %d virtual processors\ngradients: %s\n", e.plan.Processors, how)
	for i, c := range e.collections {
		fmt.Fprintf(&b, "collection %d: weight decay %g\n", i, c.Lambda)
	}
	for i := range e.params {
		p := &e.params[i]
		what, updated := "parameter", ""
		if p.Lookup {
			what = "lookup parameter"
		}
		if !p.Updated {
			updated = ", not updated"
		}
		fmt.Fprintf(&b, "parameter %d: %s %q %v of collection %d%s\n", i, what, p.name, p.dim, p.collection, updated)
	}
	for i, t := range e.trainers {
		fmt.Fprintf(&b, "trainer %d: %s of parameters %v\n", i, isa.RuleTable[t.options.Rule].Name, t.ids)
	}
	return b.String()
}

// compareDescriptions reports the first rank that differs from rank 0, and in what. It returns rank 0's counts, and whether
// all ranks have the same layout.
func compareDescriptions(words [][]uint32) (counts []uint32, alike bool, err error) {
	var first []string
	var layout uint32
	alike = true
	for rank, w := range words {
		r := wordReader{rest: w}
		lines, at := strings.Split(r.text(), "\n"), r.word()
		if r.bad {
			return nil, false, wrong(ErrRank, "rank %d: %v", rank, errNotice)
		}
		if rank == 0 {
			first, layout, counts = lines, at, r.rest
		}
		alike = alike && at == layout
		if !slices.Equal(lines, first) {
			return nil, false, wrong(ErrRank, "rank %d differs from rank 0: %s; build the same model and trainers on all ranks, for the same kind of device", rank, difference(lines, first))
		}
	}
	return counts, alike, nil
}

// difference is the first of two lists of lines that differ.
func difference(here, first []string) string {
	line := func(lines []string, k int) string {
		if k >= len(lines) || lines[k] == "" {
			return "nothing"
		}
		return lines[k]
	}
	for k := range max(len(here), len(first)) {
		if a, b := line(here, k), line(first, k); a != b {
			return fmt.Sprintf("it has %s, rank 0 has %s", a, b)
		}
	}
	return "nothing"
}
