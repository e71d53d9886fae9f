package comm

import (
	"fmt"
	"strconv"
	"strings"
)

// What launchers tell the processes that they start, in variables.

// Launch is this process's place among those that a launcher has started.
type Launch struct {
	By               string // the launcher; "": none, the process is alone
	Rank, Size       int
	Local, LocalSize int    // likewise among those on this machine
	Host             string // where rank 0 can be reached; "": nothing tells
	Port             int
	Run              string // tells this start from others that might meet it, if anything does
}

// Names of launchers.
const (
	Torchrun = "torchrun"
	OpenMPI  = "Open MPI"
	MPICH    = "MPICH"
	Srun     = "srun"
)

// launchers and their variables. The first of which a process has both rank and size is the one that has started it:
// launchers that are started by others come before those. A batch script of SLURM has no SLURM_STEP_NUM_TASKS: it is no
// rank.
var launchers = []struct{ name, rank, size, local, localSize string }{
	{Torchrun, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
	{OpenMPI, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
	{MPICH, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
	{Srun, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", ""},
}

// masterPort is torchrun's port where nothing names one.
const masterPort = 29500

// ReadLaunch reads the variables, which get returns, "" for those that are not set. Malformed ones are errors.
func ReadLaunch(get func(string) string) (Launch, error) {
	for _, x := range launchers {
		// srun --mpi=pmi2 sets MPICH's rank and size only.
		if get(x.rank) == "" || get(x.size) == "" || x.name == MPICH && get(x.local) == "" {
			continue
		}
		r := variables{get: get}
		l := Launch{By: x.name, Size: r.number(x.size, 1, mostProcesses), Host: get("MASTER_ADDR")}
		l.Rank = r.number(x.rank, 0, l.Size-1)
		if x.name == Srun {
			l.LocalSize = r.slurm(&l)
		} else {
			l.LocalSize = r.number(x.localSize, 1, l.Size)
		}
		l.Local = r.number(x.local, 0, l.LocalSize-1)
		if x.name != Srun {
			r.master(&l)
		}
		if r.err != nil {
			return Launch{}, &kindError{ErrArgument, fmt.Sprintf("started by %s: %v", x.name, r.err)}
		}
		return l, nil
	}
	if get("PMIX_RANK") != "" {
		return Launch{}, &kindError{ErrArgument, "PMIX_RANK is set by a launcher that does not tell how many ranks there are: " +
			"set RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE"}
	}
	return Launch{Size: 1, LocalSize: 1}, nil
}

// mostProcesses bounds a launch.
const mostProcesses = 1 << 20

// variables reads them, and keeps the first error.
type variables struct {
	get func(string) string
	err error
}

func (r *variables) number(name string, least, most int) int {
	n, err := strconv.Atoi(r.get(name))
	if (err != nil || n < least || n > most) && r.err == nil {
		r.err = fmt.Errorf("%s=%s: needs a whole number from %d to %d", name, r.get(name), least, most)
	}
	return n
}

// master is where rank 0 listens: on the port after torchrun's, on which its agent listens.
func (r *variables) master(l *Launch) {
	l.Port = masterPort + 1
	if r.get("MASTER_PORT") != "" {
		l.Port = r.number("MASTER_PORT", 1, 65534) + 1
	}
	if l.Host == "" && l.LocalSize == l.Size {
		l.Host = "127.0.0.1"
	}
	if l.By == Torchrun { // its count of restarts may differ between machines
		l.Run = r.get("TORCHELASTIC_RUN_ID")
	}
}

// slurm returns the step's tasks on this node, and sets where rank 0 listens: on its first node, on a port that jobs
// of one node seldom have in common.
func (r *variables) slurm(l *Launch) (localSize int) {
	l.Run = r.get("SLURM_JOB_ID") + "." + r.get("SLURM_STEP_ID")
	if r.get("MASTER_PORT") != "" {
		l.Port = r.number("MASTER_PORT", 1, 65534) + 1
	} else {
		job, _ := strconv.ParseUint(r.get("SLURM_JOB_ID"), 10, 64)
		l.Port = 20000 + int(job%10000)
	}
	if l.Host == "" {
		l.Host = firstNode(r.get("SLURM_STEP_NODELIST"))
	}
	n, ok := tasksOf(r.get("SLURM_STEP_TASKS_PER_NODE"), r.number("SLURM_NODEID", 0, mostProcesses))
	if !ok && r.err == nil {
		r.err = fmt.Errorf("SLURM_STEP_TASKS_PER_NODE=%s has no node %s", r.get("SLURM_STEP_TASKS_PER_NODE"), r.get("SLURM_NODEID"))
	}
	return n
}

// tasksOf reads a node's number of tasks in a list like "2(x3),1".
func tasksOf(list string, node int) (int, bool) {
	for _, item := range strings.Split(list, ",") {
		count, times, repeated := strings.Cut(strings.TrimSuffix(item, ")"), "(x")
		n, err := strconv.Atoi(count)
		k := 1
		if repeated && err == nil {
			k, err = strconv.Atoi(times)
		}
		if err != nil || n < 1 || k < 1 {
			return 0, false
		}
		if node < k {
			return n, true
		}
		node -= k
	}
	return 0, false
}

// firstNode is the first name in a list like "gpu[03-07,12],login1".
func firstNode(list string) string {
	end := strings.IndexAny(list, "[,")
	if end < 0 || list[end] == ',' {
		first, _, _ := strings.Cut(list, ",")
		return first
	}
	inside, after, _ := strings.Cut(list[end+1:], "]")
	after, _, _ = strings.Cut(after, ",")
	if number := strings.IndexAny(inside, "-,"); number >= 0 {
		inside = inside[:number]
	}
	return list[:end] + inside + after
}
