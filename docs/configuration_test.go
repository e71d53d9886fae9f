package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"libvpps/env"
)

// rows is the first column of the tables below a heading, with what the row says.
func rows(t *testing.T, path, heading string) map[string]string {
	t.Helper()
	_, text, found := strings.Cut(read(t, path), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no heading %q", path, heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	all := map[string]string{}
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		first, rest, _ := strings.Cut(line[2:], " | ")
		for _, name := range code.FindAllString(first, -1) {
			name, _, _ = strings.Cut(strings.Trim(name, "`"), "=")
			if _, twice := all[name]; twice && name != "GPU:N" {
				t.Errorf("%s: %s has two rows", path, name)
			}
			all[name] = rest
		}
	}
	return all
}

// holds compares the rows of a table with the names that code has.
func holds(t *testing.T, path, heading string, want []string) {
	t.Helper()
	have := rows(t, path, heading)
	for _, name := range want {
		if _, ok := have[name]; !ok {
			t.Errorf("%s, %q, lacks %s", path, heading, name)
		}
	}
	for name := range have {
		if !slices.Contains(want, name) {
			t.Errorf("%s, %q, has %s, which the code has not", path, heading, name)
		}
	}
}

// names is what a pattern finds in a file between two texts.
func names(t *testing.T, path, from, to, pattern string) (found []string) {
	t.Helper()
	_, text, ok := strings.Cut(read(t, path), from)
	text, _, end := strings.Cut(text, to)
	if !ok || !end {
		t.Fatalf("%s: no %q with %q after it", path, from, to)
	}
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

func TestConfigurationHasEveryVariable(t *testing.T) {
	have := rows(t, "manual/configuration.md", "Variables")
	for _, v := range env.Variables {
		row, ok := have[v.Name]
		if !ok {
			t.Errorf("no row for %s, %s", v.Name, v.Meaning)
		}
		if v.Kind == env.Switch && !strings.HasPrefix(row, "`0`, `1` | ") {
			t.Errorf("%s is a switch: its values are `0`, `1`, not %s", v.Name, row)
		}
	}
	if len(have) != len(env.Variables) {
		t.Errorf("%d rows for %d variables", len(have), len(env.Variables))
	}
}

func TestConfigurationHasEveryFlagAndOption(t *testing.T) {
	const page = "manual/configuration.md"
	var flags []string
	for _, f := range names(t, "../dynetshim/src/init.cc", "bool known =", ";", `flag == "([a-z-]+)"`) {
		flags = append(flags, "--"+f)
	}
	holds(t, page, "Flags", append(flags, "GPU:N"))

	// In C++ they have the same names, but for the seed, which is DyNet's.
	inC := members(t, "vpps_engine_options")
	inCXX := names(t, "../include/vpps/options.hpp", "struct options {", "};", `(?m)^  [\w:]+ (\w+)(?: = \w+)?;`)
	slices.Sort(inCXX)
	inC = slices.DeleteFunc(inC, func(name string) bool { return name == "seed" })
	slices.Sort(inC)
	if !slices.Equal(inC, inCXX) {
		t.Errorf("vpps::options has %v, vpps_engine_options %v", inCXX, inC)
	}
	holds(t, page, "Options of the C interface",
		append(members(t, "vpps_engine_options"), members(t, "vpps_trainer_options")...))
	holds(t, "manual/experiments.md", "Pin a plan", names(t, "../persist/plan/settings.go", "numbers := map", "for _, part",
		`"(\w+)": *\{&s\.`))
}

// The variables that make takes from the command line: those with a default, and those that are read and never set.
func TestConfigurationHasEveryVariableOfMake(t *testing.T) {
	makefile := read(t, "../Makefile")
	makesOwn := []string{"MAKE", "MAKECMDGOALS", "MAKEFILE_LIST", "CURDIR", "AR"}
	var want []string
	for _, m := range regexp.MustCompile(`\$\(([A-Z_]+)\)`).FindAllStringSubmatch(makefile, -1) {
		name := m[1]
		set := regexp.MustCompile(`(?m)^(export |[^\t#\n]*: )?` + name + `\s*[:+]?=`).MatchString(makefile)
		byDefault := regexp.MustCompile(`(?m)^` + name + `\s*\?=`).MatchString(makefile)
		if (byDefault || !set) && !slices.Contains(makesOwn, name) && !slices.Contains(want, name) {
			want = append(want, name)
		}
	}
	holds(t, "manual/configuration.md", "Variables of make", want)
}

// members lists those of a struct of options in vpps.h, but for its size.
func members(t *testing.T, of string) []string {
	t.Helper()
	text := regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(read(t, "../include/vpps.h"), "")
	_, text, found := strings.Cut(text, "typedef struct "+of+" {")
	text, _, end := strings.Cut(text, "} "+of+";")
	if !found || !end {
		t.Fatalf("vpps.h has no struct %s", of)
	}
	var all []string
	for _, m := range regexp.MustCompile(`(\w+)[;,]`).FindAllStringSubmatch(text, -1) {
		if m[1] != "struct_size" {
			all = append(all, m[1])
		}
	}
	return all
}
