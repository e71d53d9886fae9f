package main

import (
	"bytes"
	"os"
	"testing"
)

// Go's build cache sees headers in a package's own folder only, so there is a copy.
func TestTheCopyOfTheHeaderIsEqual(t *testing.T) {
	want, err := os.ReadFile("../include/vpps.h")
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("vpps.h")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Error("capi/vpps.h differs from include/vpps.h: copy it")
	}
}
