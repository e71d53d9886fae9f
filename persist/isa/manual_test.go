package isa_test

import (
	"bytes"
	"os"
	"testing"

	"libvpps/persist/isa"
)

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	for path, want := range map[string][]byte{
		"../../jit/kernel/isa.h":     isa.Header(),
		"../../docs/INSTRUCTIONS.md": isa.Manual(),
	} {
		have, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have, want) {
			t.Errorf("%s is stale: run go generate ./persist/isa", path)
		}
	}
}

func TestEveryInstructionIsDescribed(t *testing.T) {
	for _, f := range isa.Formats {
		if f.Doc == "" {
			t.Errorf("%s has no description", f.Name)
		}
	}
	for _, f := range isa.FnTable {
		if f.Doc == "" {
			t.Errorf("%s has no description", f.Name)
		}
	}
}
