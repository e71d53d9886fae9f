package mocks

import (
	"testing"

	"libvpps/gpu"
)

// NVRTC compiles a stand-in for NVRTC and opens it: it takes any source and makes a cubin that has
// the engine's kernel by name and does nothing (gpu/testdata/fakecuda/nvrtc.c). VPPS_NVRTC names
// it until the test ends.
func NVRTC(t testing.TB) gpu.Compiler {
	t.Helper()
	lib, err := Library(t.TempDir(), "libnvrtc.so.12")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("VPPS_NVRTC", lib)
	c, err := gpu.OpenCompiler(0)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
