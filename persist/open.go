package persist

import (
	"strings"

	"libvpps/gpu"
	"libvpps/persist/cuda"
)

// open makes the executor of a device.
func open(o Options) (Executor, error) {
	switch {
	case o.Device == "cpu":
		return openCPU(o)
	case o.Device == "" || o.Device == "auto":
		if x, err := openCUDA(0); err == nil {
			return x, nil
		}
		return openCPU(o)
	case o.Device == "cuda":
		return openCUDA(0)
	case strings.HasPrefix(o.Device, "cuda:"):
		n := 0
		for _, c := range o.Device[5:] {
			if c < '0' || c > '9' || n > 1000 {
				return nil, wrong(ErrArgument, "device %q: write cpu, cuda, cuda:N or auto", o.Device)
			}
			n = 10*n + int(c-'0')
		}
		return openCUDA(n)
	}
	return nil, wrong(ErrArgument, "device %q: write cpu, cuda, cuda:N or auto", o.Device)
}

// openCUDA makes the executor of a GPU, if there is one and a compiler for it.
func openCUDA(ordinal int) (Executor, error) {
	driver, err := gpu.OpenDriver()
	if err != nil {
		return nil, wrong(ErrUnsupported, "device cuda:%d: %v", ordinal, err)
	}
	n, err := driver.DeviceCount()
	if err != nil || ordinal >= n {
		return nil, wrong(ErrUnsupported, "device cuda:%d: there are %d devices (%v)", ordinal, n, err)
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
	x, err := cuda.New(dev, compiler, waitSeconds())
	if err != nil {
		dev.Close()
		return nil, wrong(ErrDevice, "device cuda:%d: %v", ordinal, err)
	}
	return x, nil
}
