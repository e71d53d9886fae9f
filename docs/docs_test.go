// Package docs holds the documents to what they speak of.
package docs

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The README's program is the example that is built and run.
func TestTheReadmeHasTheMinimalProgram(t *testing.T) {
	program := "```cpp\n" + read(t, "../cpp_examples/minimal.cc") + "```\n"
	if !strings.Contains(read(t, "../README.md"), program) {
		t.Error("README.md does not hold cpp_examples/minimal.cc as it is")
	}
}

var link = regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	for _, path := range []string{"../README.md", "ARCHITECTURE.md", "RATIONALE.md", "COMPATIBILITY.md"} {
		for _, m := range link.FindAllStringSubmatch(read(t, path), -1) {
			to := m[1]
			if strings.Contains(to, "://") {
				continue
			}
			if strings.HasPrefix(path, "../") {
				to = "../" + to
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}
