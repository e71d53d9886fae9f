package persist

import (
	"slices"
	"sync"

	"libvpps/persist/comm"
)

// The calls of a communicator come in the program's order, also where workers make the steps of batches: a call of the
// program's own waits for them. Steps of several engines that share a communicator are not left to workers.

// members are the engines that are attached to a communicator.
var members = struct {
	mu sync.Mutex
	of map[comm.Communicator][]*Engine
}{of: map[comm.Communicator][]*Engine{}}

func membersOf(c comm.Communicator) []*Engine {
	members.mu.Lock()
	defer members.mu.Unlock()
	return slices.Clone(members.of[c])
}

// enlistIn makes the engine a member.
func (e *Engine) enlistIn(c comm.Communicator) {
	members.mu.Lock()
	defer members.mu.Unlock()
	members.of[c] = append(members.of[c], e)
}

func (e *Engine) leave(c comm.Communicator) {
	members.mu.Lock()
	defer members.mu.Unlock()
	left := slices.DeleteFunc(members.of[c], func(x *Engine) bool { return x == e })
	if members.of[c] = left; len(left) == 0 {
		delete(members.of, c)
	}
}

// aloneInGroup reports whether no other engine of this process has the same communicator.
func (e *Engine) aloneInGroup() bool { return e.ranks == nil || len(membersOf(e.ranks.comm)) == 1 }

// awaitSteps waits for the steps that workers make.
func awaitSteps(c comm.Communicator) {
	for _, e := range membersOf(c) {
		e.enter()
		e.mu.Unlock()
	}
}

// Barrier returns when all ranks have called it, and batches before it are trained.
func Barrier(c comm.Communicator) error {
	awaitSteps(c)
	return c.Barrier()
}

// Broadcast gives all ranks the numbers of one, when batches before it are trained.
func Broadcast(c comm.Communicator, x []float32, from int) error {
	awaitSteps(c)
	return c.Broadcast(x, from)
}
