package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// An abi has a line for each thing of the interface: "member vpps_dim.nd" is "offset 0, uint32_t".
type abi map[string]string

func (a abi) String() string {
	var b strings.Builder
	b.WriteString("# The interface of include/vpps.h, written by make abi: a change needs the next SONAME, but for additions.\n")
	for _, key := range slices.Sorted(maps.Keys(a)) {
		fmt.Fprintf(&b, "%s: %s\n", key, a[key])
	}
	return b.String()
}

func parse(text string) abi {
	a := abi{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); ok && !strings.HasPrefix(line, "#") {
			a[key] = value
		}
	}
	return a
}

// compare lists what programs linked to the library of old would trip over with that of now, and what is new or has
// grown. A new SONAME breaks nobody.
func compare(old, now abi) (breaks, additions []string) {
	renamed := old["soname"] != now["soname"]
	for _, key := range slices.Sorted(maps.Keys(old)) {
		value, there := now[key]
		switch {
		case value == old[key] && there:
		case renamed || there && mayChange(old, now, key):
			additions = append(additions, fmt.Sprintf("%s: %s, was %s", key, value, old[key]))
		case there:
			breaks = append(breaks, fmt.Sprintf("%s: %s, was %s", key, value, old[key]))
		default:
			breaks = append(breaks, fmt.Sprintf("%s is gone, was: %s", key, old[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if _, there := old[key]; there {
			continue
		}
		text := key + ": " + now[key]
		if !renamed && !mayAppear(old, now, key) {
			breaks = append(breaks, text+", in a struct that programs have allocated without it")
		} else {
			additions = append(additions, text)
		}
	}
	return breaks, additions
}

// mayChange: a struct that begins with struct_size may grow, and initialisers are compiled into programs.
func mayChange(old, now abi, key string) bool {
	if name, ok := strings.CutPrefix(key, "struct "); ok {
		return guarded(old, name) && size(now, name) > size(old, name)
	}
	return strings.HasPrefix(key, "macro ") && strings.HasSuffix(key, "_INIT")
}

// mayAppear: anything but a member that old programs' structs have no room for, or room that they do not set: the
// padding at a struct's end counts in its struct_size.
func mayAppear(old, now abi, key string) bool {
	member, ok := strings.CutPrefix(key, "member ")
	if !ok {
		return true
	}
	name, _, _ := strings.Cut(member, ".")
	if _, there := old["struct "+name]; !there {
		return true
	}
	var offset int
	fmt.Sscanf(now[key], "offset %d", &offset)
	return guarded(old, name) && offset >= size(old, name)
}

func guarded(a abi, name string) bool {
	return strings.HasPrefix(a["member "+name+".struct_size"], "offset 0,")
}

func size(a abi, name string) (n int) {
	fmt.Sscanf(a["struct "+name], "size %d", &n)
	return n
}
