package comm

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// wires is a direct connection of threads: whoever has the id of all joins them.
type wires struct {
	mu    sync.Mutex
	group []Communicator
}

func (w *wires) ID() ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	group, err := NewLocal(3, time.Minute)
	w.group = group
	return []byte("wires"), err
}

func (w *wires) Join(id []byte, rank, size int) (Communicator, error) {
	if string(id) != "wires" || size != 3 {
		panic("another group")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.group[rank], nil
}

// connectAll has all ranks connect at once.
func connectAll(all []Launch, options func(rank int) ConnectOptions) ([]Communicator, []error) {
	comms, errs := make([]Communicator, len(all)), make([]error, len(all))
	var wait sync.WaitGroup
	for rank, l := range all {
		wait.Go(func() { comms[rank], errs[rank] = l.Connect(options(rank)) })
	}
	wait.Wait()
	return comms, errs
}

func TestRanksConnectDirectlyIfAllCan(t *testing.T) {
	for _, file := range []string{"", t.TempDir() + "/ranks"} {
		w := &wires{}
		comms, errs := connectAll(launches(t, 3), func(int) ConnectOptions {
			return ConnectOptions{Patience: time.Minute, Direct: w, File: file}
		})
		for rank, c := range comms {
			require.NoError(t, errs[rank])
			require.Equal(t, rank, c.Rank())
			require.Equal(t, 3, c.Size())
		}
	}
}

func TestRanksThatCannotConnectAreToldWhy(t *testing.T) {
	w := &wires{}
	_, errs := connectAll(launches(t, 3), func(rank int) ConnectOptions {
		if rank == 2 {
			return ConnectOptions{Patience: time.Minute, Why: "its device is a CPU"}
		}
		return ConnectOptions{Patience: time.Minute, Direct: w}
	})
	for _, err := range errs {
		require.ErrorIs(t, err, ErrUnavailable)
		require.ErrorContains(t, err, "rank 2: its device is a CPU; ranks on CPUs need MPI: start them by mpirun -n 3")
	}
}

func TestAProgramThatIsAloneNeedsNothing(t *testing.T) {
	c, err := Launch{Size: 1}.Connect(ConnectOptions{Patience: time.Second, MPI: "/nowhere"})
	require.NoError(t, err)
	require.Equal(t, 1, c.Size())
}

func TestRanksOfMPIWithoutThePlugIn(t *testing.T) {
	all := launches(t, 2)
	for k := range all {
		all[k].By = OpenMPI
	}
	_, errs := connectAll(all, func(int) ConnectOptions {
		return ConnectOptions{Patience: time.Minute, MPI: "/nowhere/libvpps_mpi.so", Why: "its device is a CPU"}
	})
	for _, err := range errs {
		require.ErrorIs(t, err, ErrUnavailable)
		require.ErrorContains(t, err, "make mpi builds it")
	}
	w := &wires{}
	three := launches(t, 3) // with a place to meet they do without
	for k := range three {
		three[k].By = OpenMPI
	}
	_, errs = connectAll(three, func(int) ConnectOptions {
		return ConnectOptions{Patience: time.Minute, MPI: "/nowhere/libvpps_mpi.so", Direct: w}
	})
	require.NoError(t, errors.Join(errs...))
	nowhere := Launch{By: MPICH, Rank: 1, Size: 2, LocalSize: 1}
	_, err := nowhere.Connect(ConnectOptions{Patience: time.Minute, MPI: "/nowhere/libvpps_mpi.so", Direct: w})
	require.ErrorContains(t, err, "set MASTER_ADDR")
}

// VPPS_COMM=nccl has all ranks fail, where else they would be connected by MPI.
func TestRanksThatMayOnlyConnectDirectly(t *testing.T) {
	for _, l := range []string{Torchrun, Srun} {
		all := launches(t, 3)
		for k := range all {
			all[k].By = l
		}
		_, errs := connectAll(all, func(rank int) ConnectOptions {
			o := ConnectOptions{Patience: time.Minute, Only: true, MPI: "/nowhere/libvpps_mpi.so"}
			if o.Direct = (&wires{}); rank == 1 {
				o.Direct, o.Why = nil, "no GPU"
			}
			return o
		})
		for _, err := range errs {
			require.ErrorIs(t, err, ErrUnavailable)
			require.ErrorContains(t, err, "VPPS_COMM=nccl, and NCCL cannot connect all ranks: rank 1: no GPU")
		}
	}
}

func TestRanksMeetInAGroup(t *testing.T) {
	for _, cannot := range []string{"", "no GPU"} {
		group, err := NewLocal(3, time.Minute)
		require.NoError(t, err)
		var wait sync.WaitGroup
		for _, c := range group {
			wait.Go(func() {
				mine := ""
				if c.Rank() == 1 {
					mine = cannot
				}
				a, err := meetIn(c, mine, theID)
				if err != nil || (cannot == "") != (string(a.ID) == "an id") || cannot != "" && a.Why != "rank 1: no GPU" {
					t.Errorf("%+v %v", a, err)
				}
			})
		}
		wait.Wait()
	}
}
