package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const recorded = `soname: libvpps.so.0.1
function vpps_f: func(*vpps_o) vpps_status
struct vpps_o: size 16
member vpps_o.struct_size: offset 0, uint32_t
member vpps_o.p: offset 8, *char
struct vpps_dim: size 8
member vpps_dim.nd: offset 0, uint32_t
constant VPPS_OK: 0
macro VPPS_O_INIT: { sizeof(vpps_o), 0 }
`

func TestWhatBreaksLinkedPrograms(t *testing.T) {
	for _, c := range []struct {
		name, change string
		breaks       int
		additions    int
	}{
		{"nothing", "", 0, 0},
		{"a function's type", "function vpps_f: func() vpps_status", 1, 0},
		{"a new function", "function vpps_g: func() vpps_status", 0, 1},
		{"a constant's value", "constant VPPS_OK: 1", 1, 0},
		{"a new constant", "constant VPPS_NEW: 7", 0, 1},
		{"a member that moves", "member vpps_o.p: offset 4, *char", 1, 0},
		{"a guarded struct grows", "struct vpps_o: size 24\nmember vpps_o.q: offset 16, uint32_t\nmacro VPPS_O_INIT: { sizeof(vpps_o), 0, 0 }", 0, 3},
		{"a guarded struct shrinks", "struct vpps_o: size 8", 1, 0},
		{"a member in a guarded struct's padding", "member vpps_o.q: offset 4, uint32_t", 1, 0},
		{"a struct without struct_size grows", "struct vpps_dim: size 16\nmember vpps_dim.x: offset 8, uint32_t", 2, 0},
		{"a new struct", "struct vpps_n: size 4\nmember vpps_n.x: offset 0, uint32_t", 0, 2},
		{"anything, with a new SONAME", "soname: libvpps.so.0.2\nconstant VPPS_OK: 1", 0, 2},
	} {
		now := parse(recorded + c.change)
		breaks, additions := compare(parse(recorded), now)
		require.Len(t, breaks, c.breaks, "%s: %q", c.name, breaks)
		require.Len(t, additions, c.additions, "%s: %q", c.name, additions)
	}
	old, now := parse(recorded), parse(recorded)
	delete(now, "function vpps_f")
	breaks, _ := compare(old, now)
	require.Equal(t, []string{"function vpps_f is gone, was: func(*vpps_o) vpps_status"}, breaks)
}

func TestARecordReadsBack(t *testing.T) {
	require.Equal(t, parse(recorded), parse(parse(recorded).String()))
}
