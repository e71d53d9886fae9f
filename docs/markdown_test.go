package docs

// A reader of the Markdown that our pages are written in: enough to hold prose to rules and to follow links.

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// block is a paragraph, a list item, a heading or a cell of a table, as a reader sees it: links are their text,
// code and pictures are one word.
type block struct {
	line int // of its first line
	kind blockKind
	text string
}

type blockKind int

const (
	prose blockKind = iota
	heading
	cell
)

// page is a Markdown file.
type page struct {
	path   string
	blocks []block
	lines  map[int]string // lines of prose as a reader sees them, by number
	links  []string       // targets
}

var (
	comment  = regexp.MustCompile(`(?s)<!--.*?-->`)
	picture  = regexp.MustCompile(`!\[([^\]]*)\]\(([^)\s]+)\)`)
	link     = regexp.MustCompile(`\[([^\]]*)\]\(([^)\s]+)\)`)
	code     = regexp.MustCompile("``.+?``|`[^`]+`")
	listItem = regexp.MustCompile(`^\s*([-*]|\d+\.)\s+`)
	rule     = regexp.MustCompile(`^\|[\s:|-]+\|$`)
	fence    = regexp.MustCompile("^\\s*```")
)

// readPage reads a page; code blocks, comments and rules of tables are left out.
func readPage(t *testing.T, path string) *page {
	t.Helper()
	p := pageOf(read(t, path))
	p.path = path
	return p
}

func pageOf(text string) *page {
	p := &page{lines: map[int]string{}}
	text = comment.ReplaceAllStringFunc(text, func(c string) string { return strings.Repeat("\n", strings.Count(c, "\n")) })
	inCode, open := false, false // open: the last block goes on in the next line
	for i, line := range strings.Split(text, "\n") {
		number := i + 1
		if fence.MatchString(line) {
			inCode, open = !inCode, false
			continue
		}
		trimmed := strings.TrimSpace(line)
		if inCode || trimmed == "" || rule.MatchString(trimmed) || !open && strings.HasPrefix(line, "    ") && !listItem.MatchString(line) {
			open = open && inCode
			continue
		}
		for _, expression := range []*regexp.Regexp{picture, link} {
			for _, m := range expression.FindAllStringSubmatch(code.ReplaceAllString(line, "x"), -1) {
				p.links = append(p.links, m[2])
			}
		}
		switch {
		case strings.HasPrefix(line, "#"):
			p.blocks = append(p.blocks, block{number, heading, seen(strings.TrimLeft(line, "# "))})
			open = false
		case strings.HasPrefix(trimmed, "|"):
			for _, c := range strings.Split(strings.ReplaceAll(strings.Trim(trimmed, "|"), `\|`, " "), "|") {
				p.blocks = append(p.blocks, block{number, cell, seen(c)})
			}
			open = false
		case !open || listItem.MatchString(line):
			p.blocks = append(p.blocks, block{number, prose, seen(listItem.ReplaceAllString(line, ""))})
			p.lines[number], open = seen(line), true
		default:
			last := &p.blocks[len(p.blocks)-1]
			last.text += " " + seen(line)
			p.lines[number] = seen(line)
		}
	}
	return p
}

// seen is a text as it is shown. Code keeps its length, and is one word.
func seen(text string) string {
	text = picture.ReplaceAllString(text, "$1")
	text = link.ReplaceAllString(text, "$1")
	text = code.ReplaceAllStringFunc(text, func(c string) string {
		return strings.Repeat("x", max(1, len([]rune(strings.Trim(c, "`")))))
	})
	return strings.TrimSpace(strings.NewReplacer("**", "", "*", "").Replace(text))
}

var ends = regexp.MustCompile(`[.!?][)"]?(\s+|$)`)

// sentences splits a block's text at full stops.
func sentences(text string) (all []string) {
	for {
		at := ends.FindStringIndex(text)
		if at == nil {
			break
		}
		all = append(all, text[:at[1]])
		text = text[at[1]:]
	}
	if strings.TrimSpace(text) != "" {
		all = append(all, text)
	}
	return all
}

// words counts what has a letter or digit in it.
func words(sentence string) (n int) {
	for _, w := range strings.Fields(sentence) {
		if strings.ContainsFunc(w, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			n++
		}
	}
	return n
}

var notInAnchors = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

// anchor is the name of a heading in links.
func anchor(heading string) string {
	return strings.ReplaceAll(notInAnchors.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// anchors lists those of a page. Code in headings counts with its letters.
func anchors(t *testing.T, path string) map[string]bool {
	names := map[string]bool{}
	inCode := false
	for _, line := range strings.Split(read(t, path), "\n") {
		if fence.MatchString(line) {
			inCode = !inCode
		} else if !inCode && strings.HasPrefix(line, "#") {
			text := link.ReplaceAllString(strings.TrimSpace(strings.TrimLeft(line, "#")), "$1")
			names[anchor(strings.NewReplacer("`", "", "*", "").Replace(text))] = true
		}
	}
	return names
}

// pagesBelow lists the Markdown files of folders.
func pagesBelow(t *testing.T, patterns ...string) (paths []string) {
	t.Helper()
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no pages in %s: %v", pattern, err)
		}
		paths = append(paths, found...)
	}
	return paths
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
