// Command gen writes the sample trees of the Tree-LSTM demo: invented film reviews as
// labelled binary trees in the Stanford Sentiment Treebank's format. What a sentence
// means depends on what negates what, so counting its words is not enough.
//
//	go run ./cpp_examples/data/gen -dir cpp_examples/data
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	seed       = 20180902
	trainTrees = 2000
	devTrees   = 400
)

func main() {
	dir := flag.String("dir", ".", "where train.txt and dev.txt are written")
	flag.Parse()
	for name, text := range files() {
		if err := os.WriteFile(filepath.Join(*dir, name), []byte(text), 0o644); err != nil {
			fmt.Fprintf(os.Stderr, "gen: %v: name an existing, writable folder with -dir\n", err)
			os.Exit(1)
		}
	}
}

// files returns the sample files by name. No sentence occurs twice.
func files() map[string]string {
	g := &generator{random: splitmix(seed)}
	seen := map[string]bool{}
	some := func(n int) string {
		var b strings.Builder
		for n > 0 {
			line := g.review().String()
			if seen[line] || len(strings.Fields(line)) > 60 {
				continue
			}
			seen[line] = true
			b.WriteString(line)
			b.WriteByte('\n')
			n--
		}
		return b.String()
	}
	train := some(trainTrees)
	return map[string]string{"train.txt": train, "dev.txt": some(devTrees)}
}
