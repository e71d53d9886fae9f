package isa_test

import (
	"bytes"
	"os"
	"testing"

	"libvpps/persist/isa"
)

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	for path, want := range map[string][]byte{
		"magic.go":                   isa.MagicFile(),
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

func TestAnotherInstructionSetHasAnotherMagicNumber(t *testing.T) {
	file, before := isa.MagicFile(), isa.Formats[isa.Fill]
	defer func() { isa.Formats[isa.Fill] = before }()
	isa.Formats[isa.Fill].Fields = append([]string{"more"}, before.Fields...)
	if bytes.Equal(isa.MagicFile(), file) {
		t.Error("a field more, and the magic number is the same")
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
