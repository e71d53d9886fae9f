package persist

import "strings"

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

func openCUDA(ordinal int) (Executor, error) {
	return nil, wrong(ErrUnsupported, "device cuda:%d: not yet", ordinal)
}
