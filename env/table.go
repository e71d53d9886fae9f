package env

// Variables is every variable that libvpps reads, in the manual's order (vpps.h).
var Variables = []Variable{
	{"VPPS_DEVICE", Device, 0, 0, "the device where the program names none"},
	{"VPPS_THREADS", Count, 1, 1024, "threads of the CPU executor"},
	{"VPPS_WAIT_SECONDS", Seconds, 0, 1e6, "how long a virtual processor waits for another, and a rank for other ranks"},
	{"VPPS_CACHE_DIR", Text, 0, 0, "where compiled kernels are kept"},
	{"VPPS_SNAPSHOT_BATCHES", Count, 0, 1<<32 - 1, "updates from one snapshot of the parameters to the next"},
	{"VPPS_NVRTC", Library, 0, 0, "the library file of NVRTC"},
	{"VPPS_LIBCUDA", Library, 0, 0, "the library file of the driver"},
	{"VPPS_MPI", Library, 0, 0, "the plug-in for MPI"},
	{"VPPS_NCCL", Library, 0, 0, "the library file of NCCL"},
	{"VPPS_PORT", Count, 1, 65535, "the port where ranks meet"},
	{"VPPS_COMM_FILE", Text, 0, 0, "the file by which ranks meet"},
	{"VPPS_COMM", Connection, 0, 0, "what connects ranks"},
	{"VPPS_COMM_GRADIENTS", Format, 0, 0, "how ranks exchange gradients"},
	{"VPPS_PLAN", Text, 0, 0, "how plans are chosen"},
	{"VPPS_LOG", Level, 0, 0, "how much is told of what happens"},
	{"VPPS_MERGE", Switch, 0, 0, "whether equal nodes of a batch are evaluated once"},
	{"VPPS_TIMES", Switch, 0, 0, "whether the device's time is measured"},
	{"VPPS_PROFILE", Switch, 0, 0, "whether processors note what takes how long"},
	{"VPPS_TRACE", Text, 0, 0, "the file of a timeline"},
	{"VPPS_VERIFY", Switch, 0, 0, "whether scripts are proved sound before they run"},
	{"VPPS_CHECK", Switch, 0, 0, "whether operands are checked while scripts run"},
}

// ofTests begins the names of variables that only tests of this repository read.
var ofTests = []string{"VPPS_TEST_", "VPPS_FAKE_", "VPPS_REPLAY"}
