// Command gen writes the sample data of the examples: invented film reviews as labelled
// binary trees in the Stanford Sentiment Treebank's format, and invented news with tagged
// words. What a review means depends on what negates what, and which tag a name has on its
// neighbours, so counting words is not enough.
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
	trainNews  = 500
	devNews    = 150
)

func main() {
	dir := flag.String("dir", ".", "where train.txt, dev.txt and tags/ are written")
	flag.Parse()
	for name, text := range files() {
		os.Mkdir(filepath.Join(*dir, filepath.Dir(name)), 0o755) // else the file says it
		if err := os.WriteFile(filepath.Join(*dir, name), []byte(text), 0o644); err != nil {
			fmt.Fprintf(os.Stderr, "gen: %v: name an existing, writable folder with -dir\n", err)
			os.Exit(1)
		}
	}
}

// files returns the sample files by name. No sentence occurs twice.
func files() map[string]string {
	trees := &generator{random: splitmix(seed)}
	review := func() string { return trees.review().String() }
	news := (&generator{random: splitmix(seed)}).news
	seen := map[string]bool{}
	return map[string]string{
		"train.txt":      some(trainTrees, review, seen),
		"dev.txt":        some(devTrees, review, seen),
		"tags/train.txt": some(trainNews, news, seen),
		"tags/dev.txt":   some(devNews, news, seen),
	}
}

// some returns n new sentences, one a line.
func some(n int, sentence func() string, seen map[string]bool) string {
	var b strings.Builder
	for n > 0 {
		line := sentence()
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
