package main

// The table of names: a file of tab-separated lines, and a page.

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// entry is a name of DyNet, without "dynet::", or a header.
type entry struct {
	header, name string
	state        string // yes, no, different
	reason       string // empty for yes
}

func readNames(path string) (all []entry, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	header := ""
	for n, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields, indented := strings.CutPrefix(line, "\t")
		if !indented {
			header = line
			continue
		}
		f := strings.Split(fields, "\t")
		if header == "" || len(f) < 2 || len(f) > 3 {
			return nil, fmt.Errorf("%s:%d: not a name, a state and a reason with tabs between: %q", path, n+1, line)
		}
		e := entry{header: header, name: f[0], state: f[1]}
		if len(f) == 3 {
			e.reason = f[2]
		}
		all = append(all, e)
	}
	return all, nil
}

func writeNames(path string, all []entry) error {
	var b strings.Builder
	b.WriteString("# The names of DyNet's headers, and whether the bundled headers have them. \"make compatibility\" adds names and takes away\n" +
		"# those that DyNet no longer has; reasons are written by hand. The last section is DyNet's headers for its own use.\n")
	header := ""
	for _, e := range all {
		if e.header != header {
			header = e.header
			b.WriteString(header + "\n")
		}
		b.WriteString(strings.TrimRight("\t"+e.name+"\t"+e.state+"\t"+e.reason, "\t") + "\n")
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

// ownUse is the section of headers whose names are not listed.
const ownUse = "for its own use"

// update brings the table to what DyNet declares: what is kept keeps its state and reason, what is new has state "?".
func update(all []entry, theirs declared, headers []string) []entry {
	known := map[string]entry{}
	for _, e := range all {
		known[e.name] = e
	}
	var now []entry
	add := func(header, name string) {
		e, ok := known[name]
		if !ok {
			e = entry{state: "?"}
		}
		e.header, e.name = header, name
		now = append(now, e)
	}
	for name, d := range theirs {
		if class, _, member := strings.Cut(name, "::"); !inside.MatchString(d.header) && !(member && known[class].state == "no") {
			add(d.header, name)
		}
	}
	for _, h := range headers {
		if inside.MatchString(h) {
			add(ownUse, h)
		}
	}
	slices.SortFunc(now, func(a, b entry) int {
		if a.header != b.header && (a.header == ownUse || b.header == ownUse) {
			if a.header == ownUse {
				return 1
			}
			return -1
		}
		return strings.Compare(a.header+"\t"+a.name, b.header+"\t"+b.name)
	})
	return now
}

// page is the part of the document that is made from the table.
func page(all []entry) string {
	var b strings.Builder
	count := map[string]int{}
	for _, e := range all {
		if e.header != ownUse {
			count[e.state]++
		}
	}
	fmt.Fprintf(&b, "%d names are there, %d are there and differ, %d are not there. Members of a class that is not there are not listed.\n",
		count["yes"], count["different"], count["no"])
	header := ""
	for _, e := range all {
		if e.header != header {
			header = e.header
			title := "`" + header + "`"
			if header == ownUse {
				title = "Headers for DyNet's own use"
			}
			fmt.Fprintf(&b, "\n### %s\n\n| name | there? | why |\n| --- | --- | --- |\n", title)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", e.name, e.state, e.reason)
	}
	return b.String()
}

const (
	begin = "<!-- names: written by make compatibility -->"
	end   = "<!-- end of names -->"
)

// put replaces the part of a document between the marks.
func put(document, part string) (string, error) {
	before, rest, ok := strings.Cut(document, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", fmt.Errorf("the document has no %s or no %s", begin, end)
	}
	return before + begin + "\n\n" + part + "\n" + end + after, nil
}
