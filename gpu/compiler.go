package gpu

import "libvpps/gpu/cudaload"

// OpenCompiler finds NVRTC: the newest that is not newer than the driver's CUDA
// major version (driverMajor; 0 where there is no driver: the newest of all) and
// that makes code for all the compute capabilities named (70, 90, ...). It looks
// at VPPS_NVRTC (a file, then nothing else is tried), the linker's search path,
// CUDA_HOME, CUDA_PATH, /usr/local/cuda, /opt/cuda and Python's packages.
func OpenCompiler(driverMajor int, archs ...int) (Compiler, error) {
	n, err := cudaload.OpenNVRTC(driverMajor, archs...)
	if err != nil {
		return nil, err
	}
	return nvrtc{n}, nil
}

type nvrtc struct{ lib *cudaload.NVRTC }

func (c nvrtc) Version() (major, minor int) { return c.lib.Major, c.lib.Minor }
func (c nvrtc) Archs() []int                { return c.lib.Archs }
func (c nvrtc) Compile(name, src string, options []string) ([]byte, string, error) {
	return c.lib.Compile(name, src, options)
}

// File is the library's.
func (c nvrtc) File() string { return c.lib.Path() }
