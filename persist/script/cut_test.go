package script_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"libvpps/persist/isa"
	"libvpps/persist/verify"
)

// entryOf is the entry of a processor in the processor table.
func entryOf(s *isa.Script, processor int) []uint32 {
	return s.Words[isa.HeadWords+processor*isa.ProcWords:][:isa.ProcWords]
}

// What a processor goes on with is checked like what it begins with.
func TestWhereAProcessorGoesOnIsChecked(t *testing.T) {
	s, p := forestOn(t, library(1, nil))
	if err := verify.Verify(s, p); err != nil {
		t.Fatal(err)
	}
	const q = 1
	processor := fmt.Sprintf("processor %d", q)
	for want, damage := range map[string]func(entry []uint32){
		"pieces long, not 99":                 func(entry []uint32) { entry[isa.ProcPieces] = 99 },
		processor + ": it goes on at":         func(entry []uint32) { entry[isa.ProcOwn] = entry[isa.ProcStart] },
		"not between its first":               func(entry []uint32) { entry[isa.ProcOwn] = s.Words[isa.HeadCounters] },
		processor + ": it goes on at w":       func(entry []uint32) { entry[isa.ProcOwn] = 0 },
		processor + ": it has no second part": func(entry []uint32) { entry[isa.ProcOwn], entry[isa.ProcPieces] = 0, 0 },
	} {
		damaged := &isa.Script{Words: slices.Clone(s.Words), Library: s.Library}
		damage(entryOf(damaged, q))
		if err := verify.Verify(damaged, p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}
