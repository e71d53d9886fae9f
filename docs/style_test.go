package docs

import (
	"fmt"
	"strings"
	"testing"
)

// How pages for users are written.
const (
	mostWords = 25  // of a sentence
	meanWords = 15  // of a page's sentences
	longest   = 120 // characters of a line of prose
	widest    = 200 // characters of a table's cell
)

// problems lists where a page breaks the rules.
func (p *page) problems() (found []string) {
	say := func(line int, format string, a ...any) {
		found = append(found, fmt.Sprintf("%s:%d: ", p.path, line)+fmt.Sprintf(format, a...))
	}
	total, count := 0, 0
	for _, b := range p.blocks {
		if n := len([]rune(b.text)); b.kind == cell && n > widest {
			say(b.line, "a cell of %d characters, at most %d: make a list of it", n, widest)
		}
		for _, s := range sentences(b.text) {
			n := words(s)
			if n > mostWords {
				say(b.line, "a sentence of %d words, at most %d: %s", n, mostWords, strings.TrimSpace(s))
			}
			if b.kind == prose && n > 0 {
				total, count = total+n, count+1
			}
		}
	}
	for number, line := range p.lines {
		if n := len([]rune(line)); n > longest {
			say(number, "a line of %d characters, at most %d", n, longest)
		}
	}
	if count > 0 && float64(total) > meanWords*float64(count) {
		say(1, "sentences have %.1f words on average, at most %d", float64(total)/float64(count), meanWords)
	}
	return found
}

func TestPagesForUsersArePlain(t *testing.T) {
	for _, path := range pagesBelow(t, "../README.md", "../CHANGELOG.md", "ARCHITECTURE.md", "CHECKPOINT.md", "CONTRIBUTING.md", "INSTRUCTIONS.md", "REFERENCE.md",
		"../SECURITY.md", "BENCHMARKS.md", "COMPATIBILITY.md", "RATIONALE.md", "figures/*.md", "manual/*.md") {
		for _, problem := range readPage(t, path).problems() {
			t.Error(problem)
		}
	}
}

// The rules are broken where they should be.
func TestTheRulesOfStyleFindWhatBreaksThem(t *testing.T) {
	long := strings.Repeat("word ", mostWords+1)
	for _, c := range []struct {
		name, text, problem string
	}{
		{"a sentence over two lines", "One " + long[:40] + "\n" + long + ".\n", "a sentence of"},
		{"a list's item", "- " + long + "\n", "a sentence of"},
		{"a sentence in a cell", "| a | " + long + " |\n", "a sentence of"},
		{"a wide cell", "| a | " + strings.Repeat("long. ", widest/5) + " |\n", "a cell of"},
		{"a long line", strings.Repeat("A line. ", longest/7) + "\n", "a line of"},
		{"long sentences", strings.Repeat("word ", meanWords+1) + ".\n", "on average"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if found := fmt.Sprint(pageOf(c.text).problems()); !strings.Contains(found, c.problem) {
				t.Errorf("not found: %s", found)
			}
		})
	}
	for _, text := range []string{
		"```sh\n" + long + long + long + "\n```\n",
		"A [short text](" + strings.Repeat("long", longest) + ").\n",
		"Few words. " + "Few words.\n\n- An item\n- another item\n",
		"`a b c d e f g h i j k l m n o p q r s t u v w x y z` is one word.\n",
		"<!-- " + long + "\n" + long + "-->\nA word.\n",
	} {
		if found := pageOf(text).problems(); found != nil {
			t.Errorf("%q: %v", text, found)
		}
	}
}
