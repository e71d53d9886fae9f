package plan

import (
	"fmt"
	"strconv"
	"strings"
)

// Settings restrict the plans on a GPU. A zero leaves the choice to the library.
type Settings struct {
	RowsPerWarp int // pins the rows a warp holds
	Processors  int // the most processors, each on an SM of its own
	Copies      int // the most copies of a matrix; 1 is the paper's plan
	Profile     int // 1: chooses by measuring real batches
	Registers   int // the most registers of a thread that hold weights
	Shared      int // the most KB of shared memory of a processor, with those in which the routines work
	Partials    int // the most floats of a transposed product's partial results; with more it reads its matrix from memory
}

// ParseSettings reads the form "rpw=2,processors=64,profile=1", in any order and number.
func ParseSettings(text string) (s Settings, err error) {
	numbers := map[string]struct {
		to  *int
		max int
	}{"rpw": {&s.RowsPerWarp, maxRows}, "copies": {&s.Copies, 1 << 16}, "processors": {&s.Processors, 1 << 16}, "profile": {&s.Profile, 1},
		"registers": {&s.Registers, 255}, "shared": {&s.Shared, 1 << 16}, "partials": {&s.Partials, 1 << 30}}
	for _, part := range strings.Split(text, ",") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		x, ok := numbers[name]
		if !ok {
			return Settings{}, fmt.Errorf("plan %q: %q is unknown: give rpw=N, copies=N, processors=N, profile=1, registers=N, shared=N or partials=N, separated by commas", text, name)
		}
		if *x.to, err = strconv.Atoi(value); err != nil || *x.to < 0 || *x.to > x.max {
			return Settings{}, fmt.Errorf("plan %q: %s is %q: give a number up to %d, 0 to let it be chosen", text, name, value, x.max)
		}
	}
	return s, nil
}
