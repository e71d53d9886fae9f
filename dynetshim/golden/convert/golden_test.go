// Runs the recorded results of DyNet in testdata through the C++ front-end: hands them,
// decompressed, to build/golden. (Here, not beside the program: Go wants no C++ files in a
// package without cgo.)
package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestRecordedResults(t *testing.T) {
	program, err := filepath.Abs("../../../build/golden")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Skip("skipped: needs build/golden (make)")
	}
	files, err := filepath.Glob("../testdata/*.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata holds no recorded results (%v)", err)
	}
	device := os.Getenv("VPPS_DEVICE")
	if device == "" {
		device = "cpu"
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".gz"), func(t *testing.T) {
			cmd := exec.Command(program, "--device", device)
			cmd.Stdin = bytes.NewReader(decompressed(t, file))
			out, err := cmd.CombinedOutput()
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			t.Log(lines[len(lines)-1])
			if err != nil {
				t.Errorf("build/golden: %v\n%s", err, out)
			}
		})
	}
}

func decompressed(t *testing.T, file string) []byte {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return text
}
