package comm

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// launchOf reads variables that are written "NAME=value NAME=value".
func launchOf(variables string) (Launch, error) {
	set := map[string]string{}
	for _, v := range strings.Fields(variables) {
		name, value, _ := strings.Cut(v, "=")
		set[name] = value
	}
	return ReadLaunch(func(name string) string { return set[name] })
}

const (
	byTorchrun = "RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=first MASTER_PORT=400 "
	byOpenMPI  = "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_RANK=1 "
	byMPICH    = "PMI_RANK=2 PMI_SIZE=3 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=1 "
	bySrun     = "SLURM_PROCID=5 SLURM_NTASKS=7 SLURM_STEP_NUM_TASKS=7 SLURM_LOCALID=1 SLURM_NODEID=2 SLURM_JOB_ID=1234567 SLURM_STEP_ID=8 " +
		"SLURM_STEP_NODELIST=gpu[03-05,09],b SLURM_STEP_TASKS_PER_NODE=2(x3),1 "
)

func TestEachLauncherIsRead(t *testing.T) {
	for _, c := range []struct {
		variables string
		want      Launch
	}{
		{"", Launch{Size: 1, LocalSize: 1}},
		{byTorchrun, Launch{Torchrun, 3, 4, 1, 2, "first", 401, ""}},
		{byTorchrun + "TORCHELASTIC_RUN_ID=job TORCHELASTIC_RESTART_COUNT=2", Launch{Torchrun, 3, 4, 1, 2, "first", 401, "job"}},
		{"RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2", Launch{Torchrun, 0, 2, 0, 2, "127.0.0.1", 29501, ""}},
		{byOpenMPI, Launch{OpenMPI, 1, 2, 1, 2, "127.0.0.1", 29501, ""}},
		// What torchrun of PyTorch 2.15 and srun of SLURM 22.05 have set.
		{"GROUP_RANK=0 GROUP_WORLD_SIZE=1 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=32937 RANK=1 ROLE_NAME=default ROLE_RANK=1 " +
			"ROLE_WORLD_SIZE=2 TORCHELASTIC_MAX_RESTARTS=0 TORCHELASTIC_RESTART_COUNT=0 TORCHELASTIC_RUN_ID=06312f51 TORCHELASTIC_USE_AGENT_STORE=True " +
			"TORCH_NCCL_ASYNC_ERROR_HANDLING=1 WORLD_SIZE=2", Launch{Torchrun, 1, 2, 1, 2, "localhost", 32938, "06312f51"}},
		{"SLURM_CPUS_ON_NODE=2 SLURM_GTIDS=0,1 SLURM_JOBID=1 SLURM_JOB_CPUS_PER_NODE=2 SLURM_JOB_ID=1 SLURM_JOB_NODELIST=vm SLURM_JOB_NUM_NODES=1 " +
			"SLURM_LAUNCH_NODE_IPADDR=127.0.0.1 SLURM_LOCALID=1 SLURM_NNODES=1 SLURM_NODEID=0 SLURM_NODELIST=vm SLURM_NPROCS=2 SLURM_NTASKS=2 SLURM_PROCID=1 " +
			"SLURM_SRUN_COMM_HOST=127.0.0.1 SLURM_SRUN_COMM_PORT=36721 SLURM_STEPID=0 SLURM_STEP_ID=0 SLURM_STEP_LAUNCHER_PORT=36721 SLURM_STEP_NODELIST=vm " +
			"SLURM_STEP_NUM_NODES=1 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_TASKS_PER_NODE=2 SLURM_TASKS_PER_NODE=2", Launch{Srun, 1, 2, 1, 2, "vm", 20001, "1.0"}},
		{byMPICH, Launch{MPICH, 2, 3, 0, 1, "", 29501, ""}},
		{byMPICH + "MASTER_ADDR=there MASTER_PORT=9", Launch{MPICH, 2, 3, 0, 1, "there", 10, ""}},
		{bySrun, Launch{Srun, 5, 7, 1, 2, "gpu03", 24567, "1234567.8"}},
		{bySrun + "MASTER_ADDR=there MASTER_PORT=9", Launch{Srun, 5, 7, 1, 2, "there", 10, "1234567.8"}},
	} {
		l, err := launchOf(c.variables)
		require.NoError(t, err, c.variables)
		require.Equal(t, c.want, l, c.variables)
	}
}

// Launchers are started by others: the innermost counts.
func TestTheInnermostLauncherCounts(t *testing.T) {
	for _, c := range []struct{ variables, by string }{
		{byTorchrun + byOpenMPI + byMPICH + bySrun, Torchrun},
		{byOpenMPI + byMPICH + bySrun, OpenMPI},
		{byMPICH + bySrun, MPICH},
		{"PMI_RANK=5 PMI_SIZE=7 " + bySrun, Srun},                            // srun --mpi=pmi2
		{"RANK=gold " + byOpenMPI, OpenMPI},                                  // a variable of something else
		{"SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_LOCALID=0 SLURM_JOB_ID=1", ""}, // a batch script
		{"RANK=3", ""}, // likewise
		{"WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=3 SLURM_STEP_NODELIST=gpu[03-05]", ""}, // likewise
	} {
		l, err := launchOf(c.variables)
		require.NoError(t, err, c.variables)
		require.Equal(t, c.by, l.By, c.variables)
	}
}

func TestMalformedLaunchesAreErrors(t *testing.T) {
	for _, c := range []struct{ variables, why string }{
		{byTorchrun + "RANK=4", "started by torchrun: RANK=4: needs a whole number from 0 to 3"},
		{byTorchrun + "RANK=-1", "RANK=-1"},
		{byTorchrun + "WORLD_SIZE=0", "WORLD_SIZE=0"},
		{byTorchrun + "WORLD_SIZE=many", "WORLD_SIZE=many"},
		{byTorchrun + "WORLD_SIZE=99999999999999999999", "WORLD_SIZE="},
		{byTorchrun + "LOCAL_RANK=2", "LOCAL_RANK=2: needs a whole number from 0 to 1"},
		{byTorchrun + "LOCAL_WORLD_SIZE=5", "LOCAL_WORLD_SIZE=5"},
		{"RANK=0 WORLD_SIZE=2", "LOCAL_WORLD_SIZE=: needs a whole number from 1 to 2"},
		{byTorchrun + "MASTER_PORT=65535", "MASTER_PORT=65535"},
		{byTorchrun + "MASTER_PORT=http", "MASTER_PORT=http"},
		{bySrun + "SLURM_NODEID=4", "has no node 4"},
		{bySrun + "SLURM_STEP_TASKS_PER_NODE=2(xx3)", "has no node 2"},
		{bySrun + "SLURM_LOCALID=2", "SLURM_LOCALID=2: needs a whole number from 0 to 1"},
		{"PMIX_RANK=1", "set RANK, WORLD_SIZE"},
	} {
		_, err := launchOf(c.variables)
		require.ErrorIs(t, err, ErrArgument, c.variables)
		require.ErrorContains(t, err, c.why, c.variables)
	}
}

func TestListsOfSLURM(t *testing.T) {
	for list, first := range map[string]string{"": "", "a": "a", "a,b": "a", "a[1-3]": "a1", "a[07,9],b": "a07", "a[1]-ib,c": "a1-ib", "a,b[1-2]": "a"} {
		require.Equal(t, first, firstNode(list), list)
	}
	for _, list := range []string{"", "x", "2(x", "0", "2(x0)", "-1"} {
		_, ok := tasksOf(list, 0)
		require.False(t, ok, list)
	}
	n, ok := tasksOf("2(x3),1", 3)
	require.True(t, ok)
	require.Equal(t, 1, n)
}
