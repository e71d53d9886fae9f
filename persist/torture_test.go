package persist

// Long tests of random things. "go test" runs each for a moment; test/torture/run gives them minutes and a seed:
//
//	go test -tags cuda ./persist -run TestRandomGraphs -seconds 600 -seed 7

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

var (
	tortureSeconds = flag.Float64("seconds", 0, "how long each test of random things takes; 0: a moment")
	tortureSeed    = flag.Uint64("seed", 1, "where tests of random things begin")
	tortureOnly    = flag.Int64("only", -1, "of a test of random things run only this round")
)

// rounds calls round with numbers from 0 on, each of which is all that the round depends on besides the seed: it takes
// moment, or as long as the flag says. A round that fails ends the test and says how to repeat it.
func rounds(t *testing.T, moment time.Duration, figures func() string, round func(n uint64)) {
	t.Helper()
	if *tortureOnly >= 0 {
		round(uint64(*tortureOnly))
		return
	}
	length := moment
	if *tortureSeconds > 0 {
		length = time.Duration(*tortureSeconds * float64(time.Second))
	}
	const every = 30 * time.Second
	begin := time.Now()
	told := begin
	for n := uint64(0); n == 0 || time.Since(begin) < length; n++ {
		func() {
			done := false
			defer func() {
				if !done {
					fmt.Printf("to repeat: go test -tags cuda ./persist -run '^%s$' -seed %d -only %d\n", t.Name(), *tortureSeed, n)
				}
			}()
			round(n)
			done = !t.Failed()
		}()
		if t.Failed() {
			t.FailNow()
		}
		if *tortureSeconds > 0 && time.Since(told) > every {
			told = time.Now()
			fmt.Printf("  %4.0f s: %s\n", time.Since(begin).Seconds(), figures())
		}
	}
	fmt.Printf("figures: %s: %s, %.0f s\n", t.Name(), figures(), time.Since(begin).Seconds())
}

// source is the randomness of a round.
func source(n uint64) *rand.Rand { return rand.New(rand.NewPCG(*tortureSeed, n)) }
