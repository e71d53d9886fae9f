package persist

import (
	"slices"

	"libvpps/persist/isa"
)

// The memory of the trainers' rules: vectors in segment state.

// forget gives back the states of all parameters from the n-th on, and these.
func (t *Trainer) forget(n int) {
	for i, at := range t.state[n:] {
		if size := t.sizes[n+i]; size > 0 {
			t.e.freeStates[size] = append(t.e.freeStates[size], at)
		}
	}
	for _, id := range t.ids[n:] {
		t.has[id] = false
	}
	t.ids, t.state, t.sizes = t.ids[:n], t.state[:n], t.sizes[:n]
}

// newState hands out memory for a parameter's states, which are 0.
func (e *Engine) newState(size uint64) (uint32, error) {
	if size == 0 {
		return 0, nil
	}
	if free := e.freeStates[size]; len(free) > 0 {
		at := free[len(free)-1]
		if err := e.zero(isa.SegState, uint64(at), size); err != nil {
			return 0, err
		}
		e.freeStates[size] = free[:len(free)-1]
		return at, nil
	}
	at := (e.used[isa.SegState] + 7) &^ 7
	if at+size > 1<<32-64 {
		return 0, wrong(ErrMemory, "a trainer: segment state would exceed 16 GiB")
	}
	if err := e.grow(isa.SegState, at+size, "a trainer's state"); err != nil {
		return 0, e.broke(err)
	}
	e.used[isa.SegState] = at + size
	return uint32(at), nil
}

// Restart makes the rule forget (DyNet's Trainer::restart). The count of updates stays.
func (t *Trainer) Restart() error {
	t.e.enter()
	defer t.e.mu.Unlock()
	if err := t.e.settle(0); err != nil {
		return err
	}
	t.e.set()
	for i, at := range t.state {
		if err := t.e.zero(isa.SegState, uint64(at), t.sizes[i]); err != nil {
			return err
		}
	}
	return nil
}

// stateOf is where n floats, all that the rule remembers of a parameter, lie when all batches are done.
func (t *Trainer) stateOf(id uint32, n int) (uint32, error) {
	p, err := t.e.settled(id)
	if err != nil {
		return 0, err
	}
	k := slices.Index(t.ids, id)
	if k < 0 {
		return 0, wrong(ErrArgument, "parameter %q is not one of the trainer's: add it first", p.name)
	}
	if uint64(n) != t.sizes[k] {
		return 0, wrong(ErrArgument, "parameter %q: rule %s remembers %d floats of it, not %d", p.name, isa.RuleTable[t.options.Rule].Name, t.sizes[k], n)
	}
	return t.state[k], nil
}

// ReadState copies all that the rule remembers of a parameter: its vectors one after the other, as
// isa.RuleTable has them.
func (t *Trainer) ReadState(id uint32, to []float32) error {
	t.e.enter()
	defer t.e.mu.Unlock()
	at, err := t.stateOf(id, len(to))
	if err != nil || len(to) == 0 {
		return err
	}
	return t.e.download(isa.SegState, uint64(at), to)
}

// WriteState has the rule remember something else of a parameter.
func (t *Trainer) WriteState(id uint32, from []float32) error {
	t.e.enter()
	defer t.e.mu.Unlock()
	at, err := t.stateOf(id, len(from))
	if err != nil || len(from) == 0 {
		return err
	}
	t.e.set()
	return t.e.upload(isa.SegState, uint64(at), from)
}

// Updates is how many were made, which Adam's correction follows.
func (t *Trainer) Updates() (uint64, error) {
	t.e.enter()
	defer t.e.mu.Unlock()
	err := t.e.settle(0)
	return t.steps, err
}

// maxUpdates bounds counts that are set: Adam's correction computes with them in double precision.
const maxUpdates = 1 << 53

// SetUpdates has the trainer count on from n.
func (t *Trainer) SetUpdates(n uint64) error {
	t.e.enter()
	defer t.e.mu.Unlock()
	if err := t.e.settle(0); err != nil {
		return err
	}
	if n > maxUpdates {
		return wrong(ErrArgument, "%d updates: at most %d can be counted", n, uint64(maxUpdates))
	}
	t.steps = n
	t.e.set()
	return nil
}
