package persist

import (
	"fmt"
	mathbits "math/bits"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"libvpps/env"
	"libvpps/gpu"
	"libvpps/persist/comm"
	"libvpps/persist/executor"
)

// Ranks that a launcher has started: which device each has, and how they are connected.

// launch is this process's place among those that its launcher has started.
func launch() (comm.Launch, error) {
	l, err := comm.ReadLaunch(env.Launcher)
	if err != nil {
		return l, wrong(ErrArgument, "%v", err)
	}
	l.Port = int(env.Number("VPPS_PORT", float64(l.Port)))
	return l, nil
}

// LaunchedGroup makes this process a rank of those that its launcher has started: torchrun, mpirun or srun. Without a
// launcher it is the only one. Ranks whose devices are GPUs are connected by NCCL, others by MPI, unless VPPS_COMM names one
// of both. A rank waits seconds for the others at most, 0: VPPS_WAIT_SECONDS; some times as long for their start.
func (e *Engine) LaunchedGroup(seconds float64) (comm.Communicator, error) {
	patience, err := patienceOf(seconds)
	if err != nil {
		return nil, err
	}
	l, err := launch()
	if err != nil {
		return nil, err
	}
	o := comm.ConnectOptions{Patience: patience, MPI: env.String("VPPS_MPI"), File: env.String("VPPS_COMM_FILE")}
	switch by := env.Word("VPPS_COMM"); {
	case l.Size == 1:
	case by == "mpi":
		o.Why = "VPPS_COMM=mpi"
	default:
		o.Only = by == "nccl"
		o.Direct, o.Why = e.direct(patience)
	}
	return l.Connect(o)
}

// direct is the connection of the engine's GPU to others, or why there is none.
func (e *Engine) direct(patience time.Duration) (d comm.Direct, why string) {
	device, _, _ := strings.Cut(e.Describe(), ": ")
	if !strings.HasPrefix(device, "cuda:") {
		return nil, "its device is a CPU"
	}
	if err := comm.FindNCCL(); err != nil {
		return nil, err.Error()
	}
	n, _ := deviceNumber(device)
	return byNCCL{n, patience}, ""
}

// byNCCL connects a GPU.
type byNCCL struct {
	device   int
	patience time.Duration
}

func (byNCCL) ID() ([]byte, error) { return comm.NCCLID() }

func (d byNCCL) Join(id []byte, rank, size int) (comm.Communicator, error) {
	return comm.NewNCCL(comm.NCCL{Device: d.device, Rank: rank, Size: size, ID: id, Patience: d.patience, Attentive: manyProcessors})
}

// ofRank chooses what nothing names: the process's own GPU, its share of the cores, a timeline's file of its own.
func (o Options) ofRank() (Options, error) {
	l, err := launch()
	if err != nil || l.Size == 1 {
		return o, err
	}
	if o.Device == "" || o.Device == "auto" || o.Device == "cuda" {
		if o.gpu, err = gpuOfRank(l, visibleGPUs()); err != nil {
			return o, err
		}
	}
	o.cores = coresOfRank(runtime.NumCPU(), coresOf(os.Getppid()), l.LocalSize)
	if o.Threads == 0 && env.Number("VPPS_THREADS", 0) == 0 {
		o.Threads = min(o.cores, usualThreads)
	}
	if o.Trace == "" {
		o.Trace = env.String("VPPS_TRACE")
	}
	if o.Trace != "" && l.Rank > 0 {
		o.Trace += fmt.Sprintf(".%d", l.Rank)
	}
	return o, nil
}

// takeShare leaves other ranks' cores to them, where the device is a GPU: those who write scripts for it look for work all the
// time, and if they are more than there are cores, whoever is wanted waits for milliseconds. One core is left to threads that
// are in the driver. A program that sets GOMAXPROCS has chosen by itself.
func (o Options) takeShare(x executor.Executor) {
	if o.cores == 0 || !strings.HasPrefix(x.Describe(), "cuda:") || os.Getenv("GOMAXPROCS") != "" {
		return
	}
	if n := max(1, o.cores-1); runtime.GOMAXPROCS(0) > n {
		runtime.GOMAXPROCS(n)
	}
}

// gpuOfRank is the GPU with the process's number on this machine. If it sees one only, it is that: its launcher may have
// given each process its own.
func gpuOfRank(l comm.Launch, visible int) (int, error) {
	if visible <= 1 {
		return 0, nil
	}
	if l.Local >= visible {
		return 0, wrong(ErrUnsupported, "%s has started %d ranks on this machine, and there are %d GPUs: start as many ranks as GPUs, or name a device (VPPS_DEVICE=cuda:N or cpu)",
			l.By, l.LocalSize, visible)
	}
	return l.Local, nil
}

// visibleGPUs is how many there are, 0 without a driver.
func visibleGPUs() int {
	driver, err := gpu.OpenDriver()
	if err != nil {
		return 0
	}
	n, _ := driver.DeviceCount()
	return n
}

// coresOfRank is how many threads a process should have: own are the cores that it may use, launcher's those of the
// process that has started it and others, which share them. Some launchers bind each process to its cores, others do not.
func coresOfRank(own, launchers, ranks int) int {
	if launchers == 0 {
		launchers = own
	}
	return max(1, min(own, launchers/ranks))
}

// coresOf is how many cores a process may use, 0 if that cannot be told.
func coresOf(pid int) (n int) {
	var mask [128]uint64
	_, _, failed := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, uintptr(pid), unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
	if failed != 0 {
		return 0
	}
	for _, word := range mask {
		n += mathbits.OnesCount64(word)
	}
	return n
}
