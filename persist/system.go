package persist

// The report on this machine, for programs that ask and for vpps-info.

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"libvpps/env"
	"libvpps/gpu"
	"libvpps/jit"
	"libvpps/jit/kernel"
	"libvpps/persist/comm"
	"libvpps/persist/plan"
)

// SystemReport says what was found of what a GPU needs, where compiled kernels are kept, which variables are set, and
// which device a program gets that names none. It opens devices for a moment.
func SystemReport(version string) string {
	var b strings.Builder
	line := func(what, format string, a ...any) {
		if what != "" {
			what += ":"
		}
		fmt.Fprintf(&b, "%-10s %s\n", what, strings.ReplaceAll(fmt.Sprintf(format, a...), "\n", "\n           "))
	}
	line("CPU", "%d cores, %s, %s", runtime.NumCPU(), runtime.GOARCH, kernel.Variant())
	describeGPUs(line)
	describeRanks(line)
	describeCache(line)
	describeVariables(line)
	describeChoice(line, version)
	return b.String()
}

func describeGPUs(line func(what, format string, a ...any)) {
	driver, err := gpu.OpenDriver()
	if err != nil {
		line("driver", "not usable: %v", err)
		describeNVRTC(line, nil)
		return
	}
	n, err := driver.DeviceCount()
	if err != nil {
		line("driver", "%s, but it counts no GPUs: %v", driver.File(), err)
	} else if n == 0 {
		line("driver", "%s, but there is no GPU (CUDA_VISIBLE_DEVICES selects them)", driver.File())
	} else {
		line("driver", "%s", driver.File())
	}
	var first *gpu.Info
	for i := range n {
		dev, err := driver.Open(i)
		if err != nil {
			line(fmt.Sprintf("GPU %d", i), "not usable: %v", err)
			continue
		}
		info := dev.Info()
		describeGPU(line, dev, &info)
		if first == nil {
			first = &info
		}
		dev.Close()
	}
	describeNVRTC(line, first)
}

func describeGPU(line func(what, format string, a ...any), dev gpu.Device, i *gpu.Info) {
	text := fmt.Sprintf("%s, sm_%d%d, %d SMs, %s", i.Name, i.Major, i.Minor, i.SMs, size(uint64(i.TotalMem)))
	if free, _, err := dev.MemInfo(); err == nil {
		text += fmt.Sprintf(", %s free", size(uint64(free)))
	}
	text += fmt.Sprintf("; the driver supports CUDA %d.%d", i.DriverVersion/1000, i.DriverVersion%1000/10)
	if !i.Cooperative {
		text += "; not usable: it cannot launch cooperative grids"
	}
	line(fmt.Sprintf("GPU %d", i.Ordinal), "%s", text)
}

// describeNVRTC looks for the compiler as opening the first GPU does, nil if there is none.
func describeNVRTC(line func(what, format string, a ...any), first *gpu.Info) {
	var driverMajor int
	var archs []int
	if first != nil {
		driverMajor, archs = first.DriverVersion/1000, []int{10*first.Major + first.Minor}
	}
	c, err := gpu.OpenCompiler(driverMajor, archs...)
	if err != nil {
		line("NVRTC", "not usable: %v", err)
		return
	}
	major, minor := c.Version()
	file := ""
	if x, ok := c.(interface{ File() string }); ok {
		file = x.File() + ", "
	}
	line("NVRTC", "%sversion %d.%d, for %v", file, major, minor, c.Archs())
}

// describeRanks looks for what connects ranks.
func describeRanks(line func(what, format string, a ...any)) {
	name, err := gpu.FindGroups()
	if err != nil {
		name = fmt.Sprintf("not usable, ranks on GPUs take MPI: %v", err)
	}
	line("NCCL", "%s", name)
	if name, err = comm.FindMPI(env.String("VPPS_MPI")); err != nil {
		name = fmt.Sprintf("not usable, ranks on CPUs need it: %v", err)
	}
	line("MPI", "%s", name)
}

func describeCache(line func(what, format string, a ...any)) {
	c := jit.OpenCache()
	if c.Dir == "" {
		line("cache", "none: %v", c.Err)
		return
	}
	files, bytes := c.Size()
	text := fmt.Sprintf("%s, %d files, %s of at most %s", c.Dir, files, size(uint64(bytes)), size(uint64(c.Max)))
	if why := c.Writable(); why != nil {
		text += fmt.Sprintf("; it cannot be written, so every start compiles: %v", why)
	}
	line("cache", "%s", text)
}

func describeVariables(line func(what, format string, a ...any)) {
	var set []string
	for _, v := range env.Variables {
		if value := env.String(v.Name); value != "" {
			set = append(set, v.Name+"="+value)
		}
	}
	for _, name := range []string{"CUDA_VISIBLE_DEVICES", "CUDA_HOME", "CUDA_PATH"} {
		if value, ok := os.LookupEnv(name); ok {
			set = append(set, name+"="+value)
		}
	}
	if len(set) == 0 {
		set = []string{"none of libvpps's is set"}
	}
	line("variables", "%s", strings.Join(set, "\n"))
	for _, problem := range env.Problems() {
		line("", "%s", problem)
	}
}

func describeChoice(line func(what, format string, a ...any), version string) {
	device := env.String("VPPS_DEVICE")
	x, err := open(Options{Device: device, Version: version})
	if err != nil {
		line("device", "none, a program that names none fails: %v", err)
		return
	}
	chosen := x.Describe()
	x.Close()
	line("device", "%s", chosen)
	if device != "" && device != "auto" || !strings.HasPrefix(chosen, "cpu: ") {
		return
	}
	if x, err = openCUDA(0, plan.Settings{}, version); err != nil {
		why, _, _ := strings.Cut(err.Error(), "\n")
		line("", "not %s", why)
		return
	}
	x.Close()
}
