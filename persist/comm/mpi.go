package comm

/*
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "load_mpi.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unsafe"
)

// MPI, by a plug-in that is loaded at run time. It is compiled against the machine's MPI (make mpi).

// NewMPI makes this process a rank of its MPI program, as mpirun or srun has started it. A call waits for the other ranks
// for as long as patience at most. file is the plug-in; "": libvpps_mpi.so next to the library, or where the linker
// looks. There is one group in a process: a second call gives the same rank of it.
func NewMPI(file string, patience time.Duration) (Communicator, error) {
	if patience <= 0 {
		return nil, &kindError{ErrArgument, fmt.Sprintf("a group that waits %v for a rank: the time must be above 0", patience)}
	}
	world.Lock()
	defer world.Unlock()
	if world.peers != nil {
		return world.peers, nil
	}
	text := newText()
	defer text.free()
	name := C.CString(file)
	defer C.free(unsafe.Pointer(name))
	if C.vpps_load_mpi(name, text.at, textSize) != 0 {
		return nil, noPlugIn(text)
	}
	var rank, size C.int
	if C.vpps_mpi_begin(&rank, &size, text.at, textSize) != C.VPPS_MPI_DONE {
		return nil, &kindError{ErrUnavailable, fmt.Sprintf("MPI does not start: %s", text)}
	}
	stop := (*C.int)(C.calloc(1, C.sizeof_int)) // for as long as the process
	world.peers = &peers{rank: int(rank), size: int(size), patience: patience, to: mpi{stop}}
	return world.peers, nil
}

func noPlugIn(why text) error {
	return &kindError{ErrUnavailable, fmt.Sprintf("the plug-in for MPI: %s; make mpi builds it, VPPS_MPI names it", why)}
}

// FindMPI tells the MPI that NewMPI would take and the plug-in's file, or why there is none. It starts nothing.
func FindMPI(file string) (string, error) {
	text := newText()
	defer text.free()
	name := C.CString(file)
	defer C.free(unsafe.Pointer(name))
	if C.vpps_find_mpi(name, text.at, textSize) != 0 {
		return "", noPlugIn(text)
	}
	found, library, _ := strings.Cut(text.String(), "\n")
	library, _, _ = strings.Cut(library, "\n")
	library, _, _ = strings.Cut(library, ",")
	if library == "" {
		library = "an MPI that does not tell its version"
	}
	return fmt.Sprintf("%s (%s)", strings.Join(strings.Fields(library), " "), found), nil
}

// world is the process's group.
var world struct {
	sync.Mutex
	*peers
}

// mpi is the plug-in's transport.
type mpi struct{ stop *C.int }

func (m mpi) exchange(list []message, patience time.Duration) (o outcome) {
	if len(list) == 0 {
		return o
	}
	text := newText()
	defer text.free()
	n := C.size_t(len(list))
	messages := (*C.vpps_mpi_message)(C.calloc(n, C.sizeof_vpps_mpi_message))
	if messages == nil {
		o.err = errors.New("no memory for messages")
		return o
	}
	all := unsafe.Slice(messages, len(list))
	for i, x := range list {
		all[i].words, all[i].count, all[i].peer = (*C.uint32_t)(unsafe.SliceData(x.words)), C.int(len(x.words)), C.int(x.peer)
		if x.receive {
			all[i].receive = 1
		}
	}
	result := C.vpps_mpi_move(messages, n, C.double(patience.Seconds()), m.stop, text.at, textSize)
	for i := range list {
		list[i].done = all[i].done != 0
	}
	switch result {
	case C.VPPS_MPI_DONE:
		C.free(unsafe.Pointer(messages))
	case C.VPPS_MPI_LATE:
		o.late = true
	case C.VPPS_MPI_TOLD:
		o.told = text.String()
	case C.VPPS_MPI_STOPPED:
		o.err = errors.New("this rank has aborted")
	default:
		o.err = errors.New(text.String())
	}
	return o
}

func (m mpi) tell(text string) {
	C.vpps_mpi_stop(m.stop)
	what := C.CString(text)
	defer C.free(unsafe.Pointer(what))
	C.vpps_mpi_say(what)
}

// textSize is how much the plug-in may tell.
const textSize = 1024

// text is C memory for that.
type text struct{ at *C.char }

func newText() text           { return text{(*C.char)(C.calloc(1, textSize))} }
func (t text) String() string { return C.GoString(t.at) }
func (t text) free()          { C.free(unsafe.Pointer(t.at)) }
