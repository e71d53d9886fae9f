package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGeneratorReproducesTheFiles(t *testing.T) {
	total := 0
	for name, want := range files() {
		path := filepath.Join("..", name)
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s is not what the generator writes: run go run ./cpp_examples/data/gen -dir cpp_examples/data", path)
		}
		total += len(got)
	}
	if total > 400_000 {
		t.Errorf("the sample files have %d bytes, more than 400,000", total)
	}
}

// A classifier that sees the words but not the tree must not solve the task: the demo
// would show nothing.
func TestBagOfWordsStaysPoor(t *testing.T) {
	train, dev := bags(files()["train.txt"]), bags(files()["dev.txt"])
	const epochs, rate = 30, 0.05
	best := 0.0
	m := newBagModel()
	for range epochs {
		for _, b := range train {
			m.learn(b, rate)
		}
		best = max(best, m.accuracy(dev))
	}
	t.Logf("bag of words: %.1f %% on the training trees, %.1f %% held out at its best epoch; largest class %.1f %%",
		100*m.accuracy(train), 100*best, 100*largestClass(dev))
	if best > 0.70 {
		t.Errorf("a bag of words reaches %.1f %%, more than 70 %%: the sentences need more scope", 100*best)
	}
}

// bag is a sentence as the model sees it.
type bag struct {
	label int
	words []string
}

func bags(text string) []bag {
	var bs []bag
	for line := range strings.Lines(text) {
		b := bag{label: int(line[1] - '0')}
		for _, field := range strings.Fields(line) {
			if word := strings.TrimRight(field, ")"); !strings.HasPrefix(word, "(") {
				b.words = append(b.words, word)
			}
		}
		bs = append(bs, b)
	}
	return bs
}
