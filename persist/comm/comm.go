// Package comm is how engines that train one model together exchange numbers. Each of them is a rank of a group.
// Communicator is what an engine asks of whatever connects it; there are one for
// the ranks of a process, one for MPI and one for NCCL.
package comm

import "errors"

// Communicator is one rank's place in a group. All ranks make the same calls in the same order, each from one
// goroutine at a time; Rank, Size and Abort may be called from any.
//
// A call ends on every rank, at the latest when the group's patience is over: with success on all, or with an error.
// Between processes there is one exception: if a rank is lost within a call, some ranks may succeed, and have the error
// in their next call.
//
// After an error the group is broken: every later call on every rank reports the first one. What a call was to
// change is then undefined on the ranks that were in it, so callers give it copies.
type Communicator interface {
	// Rank is this one's number, from 0 on.
	Rank() int
	// Size is how many ranks there are.
	Size() int
	// AllReduce replaces each element by its sum over all ranks. All give equally many. The sums are the same bits
	// on every rank, and do not depend on who arrives first.
	AllReduce(x []float32) error
	// Broadcast replaces the elements by those of rank from. All give equally many and name the same rank.
	Broadcast(x []float32, from int) error
	// AllGather returns what each rank has given, by rank; ranks may give different numbers of words. The result is
	// the caller's.
	AllGather(mine []uint32) ([][]uint32, error)
	// Barrier returns when all ranks have called it.
	Barrier() error
	// Abort breaks the group: calls that wait, and later ones, report that this rank has aborted and why. The first
	// reason counts.
	Abort(why error)
}

// OnHost is a communicator for gradients in the host's memory. For those in a device's memory there is OnDevice.
type OnHost interface {
	Communicator
	// AllReduceBF16 is AllReduce with half the bytes: each rank's elements are rounded to bfloat16, and so are the sums.
	AllReduceBF16(x []float32) error
}

// Kinds of errors.
var (
	ErrAbsent   = errors.New("a rank did not arrive in time")
	ErrAborted  = errors.New("a rank has aborted")
	ErrDiffers  = errors.New("ranks make different calls")
	ErrArgument = errors.New("wrong argument")

	ErrUnavailable = errors.New("the library that connects ranks cannot be used")
)

// kindError is one of them with its text.
type kindError struct {
	kind error
	text string
}

func (e *kindError) Error() string { return e.text }
func (e *kindError) Unwrap() error { return e.kind }
