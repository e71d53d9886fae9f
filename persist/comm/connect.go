package comm

import (
	"encoding/json"
	"fmt"
	"time"
)

// How the processes of a launcher become a group.

// Direct is a connection from device to device.
type Direct interface {
	// ID makes the group's id, on rank 0.
	ID() ([]byte, error)
	// Join makes this process a rank of the group with the id. It returns when all ranks have called it.
	Join(id []byte, rank, size int) (Communicator, error)
}

// ConnectOptions say by what ranks may be connected.
type ConnectOptions struct {
	Patience time.Duration // of the group's calls; the ranks' start may take startPatience times as long
	MPI      string        // the plug-in's file, as NewMPI takes it
	File     string        // where ranks meet; "": at the launch's host and port
	Only     bool          // by the direct connection or not at all: all ranks say the same
	Direct   Direct        // nil: this rank has none
	Why      string        // it has none
}

// Programs that start read files and compile: that takes longer than a call.
const startPatience = 6

// Connect makes this process a rank of those that its launcher has started: by their direct connection if all have one,
// else by MPI. Alone it is the only rank. All ranks call it.
func (l Launch) Connect(o ConnectOptions) (Communicator, error) {
	if l.Size == 1 {
		alone, err := NewLocal(1, o.Patience)
		if err != nil {
			return nil, err
		}
		return alone[0], nil
	}
	group, a, err := l.meet(o)
	if err != nil {
		return nil, err
	}
	if a.ID != nil {
		return o.Direct.Join(a.ID, l.Rank, l.Size)
	}
	if o.Only {
		err := &kindError{ErrUnavailable, fmt.Sprintf("VPPS_COMM=nccl, and NCCL cannot connect all ranks: %s", a.Why)}
		if group != nil {
			group.Abort(err)
		}
		return nil, err
	}
	if group != nil {
		return group, nil
	}
	if l.By == Torchrun {
		return nil, &kindError{ErrUnavailable, fmt.Sprintf("ranks of torchrun are connected by NCCL, each with a GPU of its own: %s; ranks on CPUs need MPI: start them by mpirun -n %d, after make mpi",
			a.Why, l.Size)}
	}
	return l.mpi(o)
}

// meet has the ranks find out how all can be connected. By MPI's launchers they meet by MPI; group is that then.
func (l Launch) meet(o ConnectOptions) (group Communicator, a answer, err error) {
	id := func() ([]byte, error) { return o.Direct.ID() }
	noMPI := error(nil)
	if l.By == OpenMPI || l.By == MPICH {
		if group, noMPI = l.mpi(o); noMPI == nil {
			a, err = meetIn(group, o.Why, id)
			return group, a, err
		}
	}
	switch {
	case noMPI != nil && o.Direct == nil:
		err = noMPI
	case o.File != "":
		a, err = l.meetFile(o.File, o.Why, id, startPatience*o.Patience)
	case l.Host != "":
		a, err = l.meetTCP(o.Why, id, startPatience*o.Patience)
	default:
		err = &kindError{ErrUnavailable, fmt.Sprintf("ranks of %s on several machines do not know where rank 0 is: set MASTER_ADDR to its machine, or VPPS_COMM_FILE to a file that all see", l.By)}
		if noMPI != nil {
			err = &kindError{ErrUnavailable, fmt.Sprintf("%v; without it: %v", noMPI, err)}
		}
	}
	return nil, a, err
}

// mpi is the group of all, by MPI.
func (l Launch) mpi(o ConnectOptions) (Communicator, error) {
	c, err := NewMPI(o.MPI, o.Patience)
	if err == nil && (c.Rank() != l.Rank || c.Size() != l.Size) {
		err = &kindError{ErrUnavailable, fmt.Sprintf("%s has started rank %d of %d, to MPI this is rank %d of %d: build the plug-in against the MPI of the launcher (make mpi MPICC=...); "+
			"srun connects ranks with --mpi=pmix or --mpi=pmi2, as its MPI needs", l.By, l.Rank, l.Size, c.Rank(), c.Size())}
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// meetIn has the ranks of a group meet in it.
func meetIn(c Communicator, cannot string, id func() ([]byte, error)) (a answer, err error) {
	said, err := c.AllGather(wordsOfText(cannot))
	if err != nil {
		return a, err
	}
	r := &roll{callers: make([]caller, len(said))}
	for rank := range said {
		r.callers[rank] = caller{Protocol: protocol, Rank: rank, Cannot: textOfWords(said[rank])}
	}
	var mine []uint32
	if c.Rank() == 0 {
		text, err := json.Marshal(r.answer(id))
		if err != nil {
			return a, err
		}
		mine = wordsOfText(string(text))
	}
	if said, err = c.AllGather(mine); err == nil {
		err = json.Unmarshal([]byte(textOfWords(said[0])), &a)
	}
	if err == nil {
		err = a.failure()
	}
	return a, err
}

// wordsOfText is a text as words, a byte each: it is short.
func wordsOfText(text string) []uint32 {
	words := make([]uint32, len(text))
	for i := range len(text) {
		words[i] = uint32(text[i])
	}
	return words
}

func textOfWords(words []uint32) string {
	text := make([]byte, len(words))
	for i, w := range words {
		text[i] = byte(w)
	}
	return string(text)
}
