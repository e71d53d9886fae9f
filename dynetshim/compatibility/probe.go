package main

// Asks the compiler what the bundled headers have.

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// probe is C++ that compiles if and only if the headers have a name.
func probe(k int, name string) string {
	class, member, isMember := strings.Cut(name, "::")
	switch {
	case strings.HasSuffix(name, ".h"):
		return fmt.Sprintf("#if !__has_include(\"dynet/%s\")\n#error none\n#endif", name)
	case strings.HasPrefix(name, "DYNET_"):
		return fmt.Sprintf("#ifndef %s\n#error none\n#endif", name)
	case name == "mp":
		return fmt.Sprintf("namespace p%d = dynet::mp;", k)
	case isMember:
		return fmt.Sprintf("struct p%d : dynet::%s { using dynet::%s::%s; };", k, class, class, member)
	}
	return fmt.Sprintf("namespace p%d { using dynet::%s; }", k, name)
}

var failedProbe = regexp.MustCompile(`(?m)^probe(\d+):\d+:.*error`)

// missing says which names the headers below root, the repository, do not have.
func missing(root string, names []string) (map[string]bool, error) {
	var b bytes.Buffer
	headers, err := filepath.Glob(filepath.Join(root, "dynetshim/include/dynet/*.h"))
	if err != nil || len(headers) == 0 {
		return nil, fmt.Errorf("no headers below %s: %v", root, err)
	}
	for _, h := range headers {
		fmt.Fprintf(&b, "#include \"dynet/%s\"\n", filepath.Base(h))
	}
	for k, name := range names {
		fmt.Fprintf(&b, "#line 1 \"probe%d\"\n%s\n", k, probe(k, name))
	}
	compiler := os.Getenv("CXX")
	if compiler == "" {
		compiler = "g++"
	}
	run := exec.Command(compiler, "-std=c++11", "-fmax-errors=0", "-fsyntax-only", "-I"+filepath.Join(root, "include"),
		"-I"+filepath.Join(root, "dynetshim/include"), "-x", "c++", "-")
	if strings.Contains(filepath.Base(compiler), "clang") {
		run.Args[2] = "-ferror-limit=0"
	}
	run.Stdin = &b
	out, err := run.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	not := map[string]bool{}
	for _, m := range failedProbe.FindAllSubmatch(out, -1) {
		k, err := strconv.Atoi(string(m[1]))
		if err != nil {
			return nil, err
		}
		not[names[k]] = true
	}
	if err != nil && len(not) == 0 {
		return nil, fmt.Errorf("%s: %v\n%s", compiler, err, out)
	}
	return not, nil
}
