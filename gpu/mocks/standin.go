package mocks

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"libvpps/gpu"
)

// NVRTC compiles a stand-in for NVRTC and opens it: it takes any source and makes a cubin that has
// the engine's kernel by name and does nothing (gpu/testdata/fakecuda/nvrtc.c). VPPS_NVRTC names
// it until the test ends.
func NVRTC(t testing.TB) gpu.Compiler {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	lib := filepath.Join(t.TempDir(), "libnvrtc.so.12")
	source := filepath.Join(filepath.Dir(here), "..", "testdata", "fakecuda", "nvrtc.c")
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-Wall", "-o", lib, source).CombinedOutput(); err != nil {
		t.Fatalf("compiling the stand-in: %v: %s", err, out)
	}
	t.Setenv("VPPS_NVRTC", lib)
	c, err := gpu.OpenCompiler(0)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
