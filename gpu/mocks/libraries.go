package mocks

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// fakes are the stand-ins: their sources in gpu/testdata/fakecuda.
var fakes = map[string][]string{
	"libcuda.so.1":   {"all.c", "some.c"},
	"libnvrtc.so.12": {"nvrtc.c"},
	"libnccl.so.2":   {"nccl.c"},
}

// Library compiles a stand-in for the driver (libcuda.so.1), NVRTC (libnvrtc.so.12) or NCCL (libnccl.so.2) into a folder. A
// variable has to name it.
func Library(dir, name string) (file string, err error) {
	top, err := os.Getwd() // of a test: its package's folder
	for ; err == nil && top != "/"; top = filepath.Dir(top) {
		if _, missing := os.Stat(filepath.Join(top, "go.mod")); missing == nil {
			break
		}
	}
	file = filepath.Join(dir, name)
	args := []string{"-shared", "-fPIC", "-w", "-O1", "-o", file, "-I" + filepath.Join(top, "gpu/cudaload")}
	for _, source := range fakes[name] {
		args = append(args, filepath.Join(top, "gpu/testdata/fakecuda", source))
	}
	out, err := exec.Command("cc", append(args, "-ldl")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("compiling the stand-in %s: %w: %s", name, err, out)
	}
	return file, nil
}
