package script_test

import (
	"bytes"
	"os"
	"testing"

	"libvpps/persist/script"
)

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	for path, want := range map[string][]byte{
		"../../jit/kernel/isa.h":     script.Header(),
		"../../docs/INSTRUCTIONS.md": script.Manual(),
	} {
		have, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have, want) {
			t.Errorf("%s is stale: run go generate ./persist/script", path)
		}
	}
}

func TestEveryInstructionIsDescribed(t *testing.T) {
	for _, f := range script.Formats {
		if f.Doc == "" {
			t.Errorf("%s has no description", f.Name)
		}
	}
	for _, f := range script.FnTable {
		if f.Doc == "" {
			t.Errorf("%s has no description", f.Name)
		}
	}
}
