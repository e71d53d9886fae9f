package persist

import (
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"libvpps/env"
	"libvpps/jit/kernel"
	"libvpps/persist/comm"
)

// Data parallel training. Engines of several processes or threads, the ranks, train one model, each with batches of its
// own. A step sums the gradients of all ranks; every rank then makes the same update.
//
// Invariant: between two steps parameters, rule states and weight decay factors are the same bits on every rank.
// So is a step's decision whether to commit, as each rank takes it from the same sums.

// ErrRank is the kind of errors that another rank, or the connection to it, has caused.
var ErrRank = errors.New("another rank")

// ParallelOptions say how gradients of several ranks become one.
type ParallelOptions struct {
	// Average weighs each rank's gradients by its count (SetCount), over the sum of the counts. Otherwise gradients are
	// summed: then N ranks train as one rank does with their batches joined.
	Average bool
	// BF16 has ranks exchange bfloat16: half the bytes, and an error of 0.4 % in each gradient; by NCCL, of 0.2 % for each
	// rank. VPPS_COMM_GRADIENTS=bf16 does, too.
	BF16 bool
}

// ranks is the group that an engine trains in, as this rank sees it.
type ranks struct {
	comm    comm.Communicator
	average bool
	bf16    bool    // gradients are exchanged so
	count   float32 // of this rank's batches
	changed bool    // something was set since all ranks were made equal
	told    bool    // the others know of the batch of this call, or will
	mine    []float32
	sum     []float32 // C memory, as mine
	device  *onDevice // nil: gradients go by way of the host's memory
}

// LocalGroup connects ranks of this process. A rank waits seconds for the others at most; 0: VPPS_WAIT_SECONDS.
func LocalGroup(size int, seconds float64) ([]comm.Communicator, error) {
	patience, err := patienceOf(seconds)
	if err != nil {
		return nil, err
	}
	return comm.NewLocal(size, patience)
}

// MPIGroup makes this process a rank of its MPI program. It waits seconds for the others at most; 0: VPPS_WAIT_SECONDS.
func MPIGroup(seconds float64) (comm.Communicator, error) {
	patience, err := patienceOf(seconds)
	if err != nil {
		return nil, err
	}
	return comm.NewMPI(env.String("VPPS_MPI"), patience)
}

// NCCLID makes the id of a group of GPUs. The process that will be rank 0 calls it, and gives the id to all.
func NCCLID() ([]byte, error) { return comm.NCCLID() }

// NCCLGroup makes a GPU ("cuda", "cuda:1") a rank of a group by NCCL, with the id that all ranks have. It returns when all
// have called it. It waits seconds for the others at most; 0: VPPS_WAIT_SECONDS.
func NCCLGroup(device string, rank, size int, id []byte, seconds float64) (comm.Communicator, error) {
	patience, err := patienceOf(seconds)
	if err != nil {
		return nil, err
	}
	n, ok := deviceNumber(device)
	if !ok || !strings.HasPrefix(device, "cuda") {
		return nil, wrong(ErrArgument, "a rank of a group of GPUs on device %q: write cuda or cuda:N", device)
	}
	return byNCCL{n, patience}.Join(id, rank, size)
}

func patienceOf(seconds float64) (time.Duration, error) {
	if seconds == 0 {
		seconds = waitSeconds()
	}
	if !(seconds > 0 && seconds <= mostSeconds) {
		return 0, wrong(ErrArgument, "a group that waits %g s for a rank: the time must be above 0 and at most %g", seconds, float64(mostSeconds))
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// mostSeconds bounds a group's patience, as VPPS_WAIT_SECONDS is bounded.
const mostSeconds = 1e6

// Attach makes the engine a rank of a group. All ranks call it, with the same parameters and trainers. It gives this rank
// the values, states, update counts and weight decay factors of rank 0. A group of one rank changes nothing.
//
// Afterwards FB, Trainer.Update, Join and Handle.GlobalLoss are calls of the group: each rank makes them in the same
// order. So is the first of them, or Backward, after a rank has set something: all ranks set it, and rank 0's value counts.
func (e *Engine) Attach(c comm.Communicator, o ParallelOptions) error {
	awaitSteps(c)
	e.enter()
	defer e.mu.Unlock()
	if e.dead != nil {
		return e.dead
	}
	if e.ranks != nil {
		return wrong(ErrState, "the engine is rank %d of a group already: detach it first", e.ranks.comm.Rank())
	}
	if c.Size() == 1 {
		return nil
	}
	if err := e.giveCopies(); err != nil {
		return err
	}
	device, err := e.onDeviceOf(c)
	if err != nil {
		return err
	}
	o.BF16 = o.BF16 || env.Word("VPPS_COMM_GRADIENTS") == "bf16"
	if h, ok := c.(comm.Held); ok {
		h.Hold()
	}
	err = e.settle(0) // before this, the batches were its own
	e.ranks = &ranks{comm: c, average: o.Average, bf16: o.BF16, count: 1, changed: true, device: device}
	e.enlistIn(c)
	if err != nil {
		err = e.failed(err)
		e.detach()
		return err
	}
	if len(e.params) == 0 {
		return nil // the ranks are made equal once there is something, in their first call
	}
	if _, err := e.synchronise(); err != nil {
		e.detach()
		return err
	}
	return nil
}

// Detach has the engine train alone from now on.
func (e *Engine) Detach() error {
	e.enter()
	defer e.mu.Unlock()
	if e.dead != nil {
		return e.dead
	}
	e.detach()
	return nil
}

func (e *Engine) detach() {
	if e.ranks != nil {
		e.leave(e.ranks.comm)
		kernel.FreeFloats(e.ranks.mine)
		kernel.FreeFloats(e.ranks.sum)
		if h, ok := e.ranks.comm.(comm.Held); ok {
			h.Close()
		}
		e.ranks = nil
	}
}

// leaveGroup tells the others of a closed engine, which would wait for it.
func (e *Engine) leaveGroup() {
	if e.ranks != nil {
		e.ranks.comm.Abort(wrong(ErrState, "its engine was closed, while attached to the group"))
		e.detach()
	}
}

// SetCount says how many examples the rank's batches have from now on; 1 at first. It weighs gradients that are averaged.
func (e *Engine) SetCount(n float32) error {
	e.enter()
	defer e.mu.Unlock()
	if !(n >= 0 && n <= math.MaxFloat32) {
		return wrong(ErrArgument, "a batch of %g examples: the count must be finite and not negative", n)
	}
	if e.ranks != nil {
		e.ranks.count = n
	}
	return nil
}

// set notes that what all ranks have in common was set on this one.
func (e *Engine) set() {
	if e.ranks != nil {
		e.ranks.changed = true
	}
}

// tell exchanges notices. It returns those of all ranks, unless a rank has failed or ranks are in different calls.
func (r *ranks) tell(n *notice) ([]notice, error) {
	words, err := r.comm.AllGather(n.words())
	if err != nil {
		return nil, wrong(ErrRank, "%v", err)
	}
	all, err := readNotices(words)
	if err != nil {
		return nil, wrong(ErrRank, "%v", err)
	}
	return all, r.agree(all)
}

// agree reports the first rank that has failed, or that makes another call than those before it.
func (r *ranks) agree(all []notice) error {
	for rank := range all {
		if n := &all[rank]; n.failed != noFailure {
			kind := ErrRank
			if n.failed == numericFailure {
				kind = ErrNumeric
			}
			return wrong(kind, "rank %d: %s; no rank has applied the batch, parameters are as before it", rank, n.why)
		}
	}
	first := slices.IndexFunc(all, func(n notice) bool { return n.call != joining })
	for rank := range all {
		if call := all[rank].call; call != joining && call != all[first].call {
			return wrong(ErrRank, "rank %d is %s, rank %d is %s: all ranks make the same calls, and set the same things between them",
				first, all[first].call, rank, call)
		}
	}
	return nil
}

// failed tells the others, if there are any, that this rank's call has failed, and why. It returns the error.
func (e *Engine) failed(err error) error {
	if e.ranks == nil {
		return err
	}
	if e.dead != nil {
		e.ranks.comm.Abort(err)
		return err
	}
	e.tellFailure(err)
	return err
}

// tellFailure takes the place of what the others are told in a call.
func (e *Engine) tellFailure(err error) {
	n := notice{failed: anyFailure, why: err.Error()}
	if isNumeric(err) {
		n.failed = numericFailure
	}
	_, _ = e.ranks.tell(&n) // reports this failure, or one of the group after which there is nobody to tell
}

// lostStep ends the group: this rank cannot do what the others have begun.
func (e *Engine) lostStep(err error) error {
	e.ranks.comm.Abort(err)
	return err
}
