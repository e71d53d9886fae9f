// Package docs holds the documents to what they speak of.
package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The README's program is the example that is built and run.
func TestTheReadmeHasTheMinimalProgram(t *testing.T) {
	program := "```cpp\n" + read(t, "../cpp_examples/minimal.cc") + "```\n"
	if !strings.Contains(read(t, "../README.md"), program) {
		t.Error("README.md does not hold cpp_examples/minimal.cc as it is")
	}
}

// Links within the repository lead to a file, and to a heading that it has.
func TestLinksLeadSomewhere(t *testing.T) {
	count := 0
	for _, path := range pagesBelow(t, "../*.md", "*.md", "manual/*.md", "figures/*.md", "../bench/journal/*.md") {
		for _, target := range readPage(t, path).links {
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			file, name, named := strings.Cut(target, "#")
			to := filepath.Join(filepath.Dir(path), file)
			if file == "" {
				to = path
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: %v", path, err)
			} else if named && strings.HasSuffix(to, ".md") && !anchors(t, to)[name] {
				t.Errorf("%s: %s has no heading #%s", path, to, name)
			}
			count++
		}
	}
	if count < 50 {
		t.Errorf("only %d links were found", count)
	}
}
