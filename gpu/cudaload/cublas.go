package cudaload

// cuBLAS, the library of matrix products: where it is looked for, and multiplying with it.

/*
#include <stdlib.h>
#include "cublas.h"
#include "nvrtc.h" // vpps_preload

static const char *cublas_text(const struct cublas *l, int r) { return l->cublasGetStatusString ? l->cublasGetStatusString(r) : "failed"; }

#cgo nocallback vpps_cublas_gemm
*/
import "C"

import (
	"errors"
	"fmt"
	"path/filepath"

	"libvpps/env"
)

// CuBLAS is cuBLAS at work on a stream. Its methods are called by one goroutine at a time.
type CuBLAS struct {
	File    string // as it was opened
	Version int    // 120900 is 12.9
	lib     *C.struct_cublas
	handle  C.cublasHandle_t
	stream  Stream
}

// OpenCuBLAS opens the newest cuBLAS that is not newer than the driver's CUDA major version (0: any)
// and that works on the stream's device. The environment variable VPPS_CUBLAS names the file to take
// instead of searching.
func OpenCuBLAS(driverMajor int, stream Stream) (*CuBLAS, error) {
	var failed []error
	files := []string{env.String("VPPS_CUBLAS")}
	if files[0] == "" {
		files = cublasFiles(driverMajor)
	}
	var begun error // says more than where there is none
	for _, file := range files {
		b, found, err := openCuBLAS(file, stream)
		if err == nil {
			return b, nil
		}
		if failed = append(failed, err); found && begun == nil {
			begun = err
		}
	}
	if begun != nil {
		return nil, begun
	}
	return nil, fmt.Errorf("no usable cuBLAS: install the CUDA toolkit or the Python package nvidia-cublas, or set VPPS_CUBLAS to the file libcublas.so.N\n%w",
		errors.Join(failed...))
}

// cublasFiles lists what to try, the newest version first.
func cublasFiles(driverMajor int) []string {
	major := driverMajor
	if major <= 0 {
		major = newestKnown
	}
	var sonames []string
	for ; major >= 11; major-- {
		sonames = append(sonames, fmt.Sprintf("libcublas.so.%d", major))
	}
	return libraryFiles(sonames, "cu[0-9]*/lib", "cublas/lib") // CUDA >= 13, CUDA 12
}

// openCuBLAS opens a file and begins with it; found says that there is one.
func openCuBLAS(file string, stream Stream) (b *CuBLAS, found bool, err error) {
	if dir := filepath.Dir(file); dir != "." {
		// It names libcublasLt, which lies beside it, without a folder.
		beside, _ := filepath.Glob(filepath.Join(dir, "libcublasLt.so.*"))
		for _, l := range beside {
			C.vpps_preload(text(l))
		}
	}
	b = &CuBLAS{File: file, stream: stream, lib: new(C.struct_cublas)}
	var msg [512]C.char
	if C.vpps_open_cublas(text(file), b.lib, &msg[0], C.size_t(len(msg))) != 0 {
		return nil, false, errors.New(C.GoString(&msg[0]))
	}
	var version C.int
	if r := C.vpps_cublas_create(b.lib, stream.ctx(), stream.handle(), &b.handle, &version); r != 0 {
		return nil, true, fmt.Errorf("begin with %s: %w", file, b.failure(r))
	}
	b.Version = int(version)
	return b, true, nil
}

// failure is the error of a result that is not 0: the driver's, or cuBLAS's own.
func (b *CuBLAS) failure(r C.int) error {
	if r < 0 {
		return Error(-r)
	}
	return fmt.Errorf("%s (%d)", C.GoString(C.cublas_text(b.lib, r)), int(r))
}

// Gemm puts z (m x n) = alpha * x (m x k) * y (n x k)^T + beta * z on the stream, all in columns without gaps.
func (b *CuBLAS) Gemm(m, n, k int, alpha float32, x, y uint64, beta float32, z uint64) error {
	r := C.vpps_cublas_gemm(b.lib, b.stream.ctx(), b.handle, C.int(m), C.int(n), C.int(k), C.float(alpha), C.CUdeviceptr(x), C.CUdeviceptr(y), C.float(beta), C.CUdeviceptr(z))
	if r != 0 {
		return b.failure(r)
	}
	return nil
}

// Close gives back what it has on the device. The library stays open until the process ends.
func (b *CuBLAS) Close() error {
	if r := C.vpps_cublas_destroy(b.lib, b.stream.ctx(), b.handle); r != 0 {
		return b.failure(r)
	}
	return nil
}
