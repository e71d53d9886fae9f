package persist

import (
	"cmp"
	"math"
	"slices"

	"libvpps/bridge"
	"libvpps/persist/isa"
	"libvpps/persist/script"
)

// Answers. Infer evaluates nodes as Forward does, but returns before the work is done, as FB does. The script copies the
// values asked for to segment result, where each of the batches in flight has a region. Another batch in flight takes the
// region over once the values are on the host. They stay there until the program fetches or drops them.

// Ticket is the number of a call of Infer, from 1.
type Ticket uint64

// answer is what one call of Infer has asked for.
type answer struct {
	floats int
	values []float32 // once they are on the host
	err    error     // instead of values
	landed bool      // values or err are there
}

// Infer evaluates all nodes up to the last one asked for anew, without waiting. Result gives their values, one after the
// other in the order given. The graph counts as not evaluated afterwards.
func (g *Graph) Infer(w *bridge.Words, nodes []uint32) (t Ticket, err error) {
	e, came := g.e, now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(nodes) == 0 {
		return 0, wrong(ErrArgument, "infer: no node was given: name at least one")
	}
	if err := e.catchUp(); err != nil {
		return 0, err
	}
	if !e.asynchronous() || e.exposed() {
		e.drain()
	} else if g.job != nil {
		<-g.job.done
	}
	unread := e.unread()
	if e.ranks != nil && !e.noneTrains() {
		unread = 0 // as all calls of a rank but FB
	}
	err = g.call("infer", came, w, slices.Max(nodes), unread, func() error {
		t, err = g.ask(nodes)
		return err
	})
	return t, err
}

// ask hands the nodes to a worker, or launches them.
func (g *Graph) ask(nodes []uint32) (Ticket, error) {
	e := g.e
	g.restart()
	a := &answer{}
	lowered := make([]uint32, 0, len(nodes))
	for _, n := range nodes {
		lowered = append(lowered, g.at(n))
		a.floats += g.wire.DimOf(n).Size()
	}
	if err := e.roomForAnswer(uint64(a.floats)); err != nil {
		return 0, err
	}
	last := slices.Max(nodes)
	id, forward := g.drawing()
	r := script.Request{Graph: g.ir(), State: &g.state, Node: g.at(last), Forward: true, Answers: lowered, Apart: e.apart, Wide: e.wide, PerShape: e.perShape,
		Base: e.top(), Result: e.answerSlot(), GraphID: id, ForwardCount: forward}
	f := e.newFlight()
	f.answer, f.slot, f.job = a, r.Result, nil
	if e.asynchronous() && !e.exposed() {
		if err := e.describe(&r); err != nil {
			e.land(f)
			return 0, err
		}
		g.leaveCells(&r)
		f.job = e.hand(&r, nil)
		g.job = f.job
	} else {
		e.drain()
		g.findCells(&r, 0)
		if _, err := e.run(&r); err != nil {
			e.land(f)
			return 0, err
		}
	}
	f.request, f.launch, f.evidence = r, e.batch, g.evidence(last)
	f.evidence.recording.pin()
	e.flights = append(e.flights, f)
	e.tickets++
	e.answers[e.tickets] = a
	if err := e.collect(e.unread()); err != nil { // a batch that has failed is for a later call to tell
		return 0, err
	}
	return e.tickets, nil
}

// roomForAnswer sees to the memory of an answer, on the device and on the host.
func (e *Engine) roomForAnswer(floats uint64) error {
	kept := floats
	for _, a := range e.answers {
		kept += uint64(a.floats)
	}
	if err := e.room.prove(4*kept, "answers that were not fetched"); err != nil {
		return err
	}
	if floats <= e.answerRoom {
		return nil
	}
	if err := e.collect(0); err != nil {
		return err
	}
	room := max((floats+63)&^63, e.answerRoom+e.answerRoom/2)
	n := firstAnswer + resultSlots*room
	if n > math.MaxUint32 {
		return wrong(ErrMemory, "answers: %d elements at once are too many: ask for fewer", floats)
	}
	if err := e.grow(isa.SegResult, n, "answers"); err != nil {
		return e.broke(err)
	}
	e.answerRoom, e.used[isa.SegResult] = room, n
	return nil
}

// firstAnswer is where in segment result the answers begin, after what batches of fb report.
const firstAnswer = resultSlot * resultSlots

// answerSlot is where the next answer goes: no more than resultSlots are in flight.
func (e *Engine) answerSlot() uint32 {
	return uint32(firstAnswer + uint64(e.tickets%resultSlots)*e.answerRoom)
}

// asks reports whether an answer in flight is made of a recording.
func (e *Engine) asks(r *recording) bool {
	return slices.ContainsFunc(e.flights, func(f *flight) bool { return f.answer != nil && f.evidence.recording == r })
}

// allTrain reports whether all batches in flight are of fb, noneTrains whether none is.
func (e *Engine) allTrain() bool {
	return !slices.ContainsFunc(e.flights, func(f *flight) bool { return f.answer != nil })
}

func (e *Engine) noneTrains() bool {
	return !slices.ContainsFunc(e.flights, func(f *flight) bool { return f.answer == nil })
}

// readAnswer brings an answer to the host. Errors are the device's.
func (e *Engine) readAnswer(f *flight) error {
	a := f.answer
	if j := f.job; j != nil && j.refused != nil {
		a.err = wrong(harmless(j.refused), "infer: %v", j.refused)
	} else {
		if err := e.exec.WaitBatch(f.launch); err != nil {
			return e.fail(err)
		}
		values := make([]float32, a.floats)
		if err := e.download(isa.SegResult, uint64(f.slot), values); err != nil {
			return err
		}
		a.values = values
	}
	a.landed = true
	return nil
}

// askAgain evaluates what was in flight after a batch that failed. Parameters are as before that batch.
func (e *Engine) askAgain(f *flight) {
	a, v, r := f.answer, &f.evidence, &f.request
	defer v.recording.lend(v.inputs)()
	seed := e.seed
	defer func() { e.seed = seed }()
	e.seed = v.seed
	r.State, r.Base, r.Space = &script.State{}, e.top(), nil
	if r.Cells != nil {
		e.dictionary.Find(r.Graph, 0, r.Node+1, r.Cells)
		v.recording.matched = 0
	}
	_, err := e.run(r)
	if f.job, f.launch = nil, e.batch; err == nil {
		err = e.readAnswer(f)
	}
	a.landed = a.landed || e.dead == nil
	a.err = err
}

// Result waits for the values that a call of Infer has asked for, and copies them. The ticket is used up.
func (e *Engine) Result(t Ticket, to []float32) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	a, err := e.answerOf(t)
	if err != nil {
		return err
	}
	if a.floats != len(to) {
		return wrong(ErrArgument, "ticket %d: its nodes have %d elements, room for %d", t, a.floats, len(to))
	}
	if k := slices.IndexFunc(e.flights, func(f *flight) bool { return f.answer == a }); k >= 0 {
		if j := e.flights[k].job; j != nil {
			e.hurry(j)
		}
		err = e.collect(len(e.flights) - 1 - k)
	}
	if !a.landed {
		return cmp.Or(err, e.dead)
	}
	delete(e.answers, t)
	copy(to, a.values)
	return a.err
}

// Drop forgets what a call of Infer has asked for.
func (e *Engine) Drop(t Ticket) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, err := e.answerOf(t); err != nil {
		return err
	}
	delete(e.answers, t)
	return nil
}

func (e *Engine) answerOf(t Ticket) (*answer, error) {
	if e.closed {
		return nil, e.dead
	}
	a := e.answers[t]
	switch {
	case a != nil:
		return a, nil
	case t == 0 || t > e.tickets:
		return nil, wrong(ErrArgument, "ticket %d: this engine has given none, or only the first %d", t, e.tickets)
	}
	return nil, wrong(ErrArgument, "ticket %d: its result was fetched or dropped before", t)
}
