package persist

import "libvpps/persist/executor"

// Held updates. A graph that is still there when parameters change needs copies of them: its parameter nodes keep their
// values. Most programs call update while they have the graph, and drop it right after. So on a CPU, update runs a foreseen
// step up to where parameters change. It knows then that the gradients are finite, so that nothing can fail any more. The
// parameters change when the graph is dropped or with the next call, whichever comes first.

// holds is who runs the second script of a step, if it is to stop before its updates; nil: it is not.
func (e *Engine) holds(s *foreseen) executor.Host {
	if !s.g.borrows || s.orphan || e.exposed() {
		return nil
	}
	return e.exec.Host()
}

// change has the parameters change that a held step is to update.
func (e *Engine) change() error {
	s := e.foresight.step
	if s == nil || s.held == nil {
		return nil
	}
	if err := e.giveCopies(); err != nil {
		return err
	}
	e.foresight.step = nil
	s.leave()
	if err := s.held.Update(); err != nil {
		return e.broke(err)
	}
	return nil
}
