package persist

import (
	"errors"
	"fmt"
	"strings"

	"libvpps/env"
	"libvpps/gpu"
	"libvpps/log"
	"libvpps/persist/cpu"
	"libvpps/persist/cuda"
	"libvpps/persist/executor"
	"libvpps/persist/plan"
)

// Each launch on its way has a slot of its own, and words for its result.
var _ = [1]struct{}{}[cuda.Slots-resultSlots]

// open makes the executor of a device.
func open(o Options) (executor.Executor, error) {
	env.Warn()
	plans := o.Plan
	if plans == "" {
		plans = env.String("VPPS_PLAN")
	}
	settings, err := plan.ParseSettings(plans)
	if err != nil {
		return nil, wrong(ErrArgument, "%v", err)
	}
	auto := o.Device == "" || o.Device == "auto"
	if name := env.String("VPPS_DEVICE"); auto && name != "" {
		if _, ok := deviceNumber(name); !ok {
			return nil, wrong(ErrArgument, "VPPS_DEVICE=%s: write cpu, cuda, cuda:N or auto", name)
		}
	}
	n, ok := deviceNumber(o.Device)
	if auto || o.Device == "cuda" {
		n = o.gpu
	}
	switch {
	case !ok:
		return nil, wrong(ErrArgument, "device %q: write cpu, cpu:N, cuda, cuda:N or auto", o.Device)
	case strings.HasPrefix(o.Device, "cpu"):
		return openNumberedCPU(o, n)
	case !auto:
		return openCUDA(n, settings, o.Version)
	}
	x, err := openCUDA(n, settings, o.Version)
	if err == nil {
		return x, nil
	}
	why, _, _ := strings.Cut(err.Error(), "\n")
	log.Infof("fallback", "the CPU is taken: %s", why)
	c, failed := openCPU(o)
	if failed == nil && !errors.Is(err, errNoGPU) {
		c = instead{c.(*cpu.Executor), why}
	}
	return c, failed
}

// deviceNumber is the number in the name of a GPU or of an engine on the CPU, 0 without one; false: it is no name of a
// device.
func deviceNumber(name string) (n int, ok bool) {
	kind, number, numbered := strings.Cut(name, ":")
	if !numbered {
		return 0, name == "" || name == "auto" || name == "cpu" || name == "cuda"
	}
	if kind != "cpu" && kind != "cuda" {
		return 0, false
	}
	for _, c := range number {
		if c < '0' || c > '9' || n > 1000 {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, number != ""
}

// numbered is a further engine's CPU.
type numbered struct {
	*cpu.Executor
	n int
}

// Describe tells it from the CPU of other engines.
func (x numbered) Describe() string {
	return fmt.Sprintf("cpu:%d: %s", x.n, strings.TrimPrefix(x.Executor.Describe(), "cpu: "))
}

// openNumberedCPU makes the executor of the n-th engine on the CPU.
func openNumberedCPU(o Options, n int) (executor.Executor, error) {
	x, err := openCPU(o)
	if err == nil && n > 0 {
		x = numbered{x.(*cpu.Executor), n}
	}
	return x, err
}

// errNoGPU: there is no driver, or no device that the program may see.
var errNoGPU = fmt.Errorf("no GPU: %w", ErrUnsupported)

// instead is the CPU in place of a GPU that there is, but that cannot be used.
type instead struct {
	*cpu.Executor
	why string
}

// Describe says what runs, and why not the GPU.
func (i instead) Describe() string { return i.Executor.Describe() + "; not " + i.why }

// openCUDA makes the executor of a GPU, if there is one and a compiler for it.
func openCUDA(ordinal int, settings plan.Settings, version string) (executor.Executor, error) {
	driver, err := gpu.OpenDriver()
	if err != nil {
		return nil, wrong(errNoGPU, "device cuda:%d: %v", ordinal, err)
	}
	n, err := driver.DeviceCount()
	if err != nil {
		return nil, wrong(ErrDevice, "device cuda:%d: %v", ordinal, err)
	}
	if ordinal >= n {
		return nil, wrong(ErrUnsupported, "device cuda:%d: there are %d (CUDA_VISIBLE_DEVICES selects and renumbers them): name one from 0 to %d, or cpu", ordinal, n, n-1)
	}
	dev, err := driver.Open(ordinal)
	if err != nil {
		return nil, wrong(ErrDevice, "device cuda:%d: %v", ordinal, err)
	}
	info := dev.Info()
	compiler, err := gpu.OpenCompiler(info.DriverVersion/1000, 10*info.Major+info.Minor)
	if err != nil {
		dev.Close()
		return nil, wrong(ErrUnsupported, "device cuda:%d: %v", ordinal, err)
	}
	x, err := cuda.New(dev, compiler, waitSeconds(), settings, version)
	if err != nil {
		dev.Close()
		return nil, wrong(ErrDevice, "device cuda:%d: %v", ordinal, err)
	}
	return x, nil
}
