package cudaload

// NVRTC, the run-time compiler: where it is looked for, and compiling with it.

/*
#include <stdlib.h>
#include "driver.h"
#include "nvrtc.h"

static const char *file_of(const struct nvrtc *l) { return vpps_file_of((void *)l->nvrtcVersion); }
static nvrtcResult version(const struct nvrtc *l, int *major, int *minor) { return l->nvrtcVersion(major, minor); }
static nvrtcResult n_archs(const struct nvrtc *l, int *n) { return l->nvrtcGetNumSupportedArchs(n); }
static nvrtcResult archs(const struct nvrtc *l, int *a) { return l->nvrtcGetSupportedArchs(a); }
static const char *explain(const struct nvrtc *l, nvrtcResult r) { return l->nvrtcGetErrorString(r); }
*/
import "C"

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"libvpps/env"
)

// newestKnown is the newest major version of NVRTC that is looked for by name.
const newestKnown = 15

// NVRTC is an opened run-time compiler; it stays open until the process ends.
// Its methods may be called from several goroutines.
type NVRTC struct {
	File         string // as it was opened
	Major, Minor int
	Archs        []int // compute capabilities it makes machine code for: 70, 80, 90, ...
	lib          *C.struct_nvrtc
}

// OpenNVRTC opens the newest NVRTC that is not newer than the driver's CUDA major
// version (0: any) and that makes code for all of archs. The environment variable
// VPPS_NVRTC names the file to take instead of searching.
func OpenNVRTC(driverMajor int, archs ...int) (*NVRTC, error) {
	var failed []error
	files := []string{env.String("VPPS_NVRTC")}
	if files[0] == "" {
		files = candidates(driverMajor)
	}
	for _, file := range files {
		n, err := open(file)
		if err == nil {
			for _, a := range archs {
				if !slices.Contains(n.Archs, a) {
					err = fmt.Errorf("%s: NVRTC %d.%d makes no code for sm_%d", file, n.Major, n.Minor, a)
				}
			}
		}
		if err == nil {
			return n, nil
		}
		failed = append(failed, err)
	}
	return nil, fmt.Errorf("no usable NVRTC (CUDA's run-time compiler): install the CUDA toolkit or the Python package nvidia-cuda-nvrtc, or set VPPS_NVRTC to the file libnvrtc.so.N\n%w",
		errors.Join(failed...))
}

// candidates lists what to try, the newest version first.
func candidates(driverMajor int) []string {
	major := driverMajor
	if major <= 0 {
		major = newestKnown
	}
	var sonames []string
	for ; major >= 12; major-- {
		sonames = append(sonames, fmt.Sprintf("libnvrtc.so.%d", major))
	}
	sonames = append(sonames, "libnvrtc.so.11.2") // the name of all of 11.2 ... 11.8

	return libraryFiles(sonames, "cu[0-9]*/lib", "cuda_nvrtc/lib") // CUDA >= 13, CUDA 12
}

func open(file string) (*NVRTC, error) {
	if dir := filepath.Dir(file); dir != "." {
		// NVRTC opens its libnvrtc-builtins by bare name. When it was itself
		// opened by path, that only works if the builtins are open already.
		builtins, _ := filepath.Glob(filepath.Join(dir, "libnvrtc-builtins.so.*"))
		for _, b := range builtins {
			C.vpps_preload(text(b))
		}
	}
	n := &NVRTC{File: file, lib: new(C.struct_nvrtc)}
	var msg [512]C.char
	if C.vpps_open_nvrtc(text(file), n.lib, &msg[0], C.size_t(len(msg))) != 0 {
		return nil, errors.New(C.GoString(&msg[0]))
	}
	var major, minor, count C.int
	if r := C.version(n.lib, &major, &minor); r != 0 {
		return nil, n.failure("ask for its version", r)
	}
	n.Major, n.Minor = int(major), int(minor)
	if r := C.n_archs(n.lib, &count); r != 0 {
		return nil, n.failure("ask for its architectures", r)
	}
	if count > 0 {
		list := make([]C.int, count)
		if r := C.archs(n.lib, &list[0]); r != 0 {
			return nil, n.failure("ask for its architectures", r)
		}
		for _, a := range list {
			n.Archs = append(n.Archs, int(a))
		}
	}
	return n, nil
}

// Path is the file that was opened, with its folder where the linker found it.
func (n *NVRTC) Path() string {
	if path := C.GoString(C.file_of(n.lib)); path != "" {
		return path
	}
	return n.File
}

func (n *NVRTC) failure(doing string, r C.nvrtcResult) error {
	err := fmt.Errorf("%s with %s: %s (%d)", doing, n.File, C.GoString(C.explain(n.lib, r)), int(r))
	if r == C.VPPS_NVRTC_OUT_OF_MEMORY {
		return fmt.Errorf("%w: %w", syscall.ENOMEM, err)
	}
	return err
}

// Compile turns a CUDA C++ source into machine code (a cubin, an ELF file) for the
// real architecture that the options name (--gpu-architecture=sm_90). name is what
// messages call the source. The log is the compiler's, also when it fails.
func (n *NVRTC) Compile(name, src string, options []string) (image []byte, log string, err error) {
	var pinned runtime.Pinner
	defer pinned.Unpin()
	opts := make([]*C.char, len(options)+1)
	for i, o := range options {
		opts[i] = text(o)
		pinned.Pin(opts[i])
	}

	var cimage, clog, step *C.char
	var size C.size_t
	r := C.vpps_compile(n.lib, text(name), text(src), C.int(len(options)), &opts[0], &cimage, &size, &clog, &step)
	defer C.free(unsafe.Pointer(cimage))
	defer C.free(unsafe.Pointer(clog))
	log = strings.TrimRight(C.GoString(clog), "\n")
	if r != 0 {
		return nil, log, n.failure(fmt.Sprintf("compile %s (%s)", name, C.GoString(step)), r)
	}
	if size == 0 {
		return nil, log, fmt.Errorf("compile %s: NVRTC made no machine code: name a real architecture with --gpu-architecture=sm_NN", name)
	}
	return C.GoBytes(unsafe.Pointer(cimage), C.int(size)), log, nil
}
