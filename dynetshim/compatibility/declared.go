package main

// Reads the names that headers declare, from doxygen's XML.

import (
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// declared is what a folder of headers declares for programs: for each name the signatures of its overloads, "" for
// what has none.
type declared map[string]*declaration

type declaration struct {
	header     string // the first by name, if several declare it
	signatures []string
}

// inside are DyNet's headers for its own use, whose names are not listed one by one.
var inside = regexp.MustCompile(`^(nodes-.*|nodes|param-nodes|aligned-mem-pool|cuda|cudnn-ops|dynet-helper|exec|functors|gpu-kernels|gpu-ops|` +
	`graph|matrix-multiply|sig|simd-functors|tensor-eigen|virtual-cudnn)\.h$`)

// readHeaders reads the headers of a folder as doxygen understands them: without compiling, so without what they include.
func readHeaders(folder string) (declared, error) {
	work, err := os.MkdirTemp("", "compatibility")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	settings := strings.Join([]string{"INPUT = " + folder, "FILE_PATTERNS = *.h", "OUTPUT_DIRECTORY = " + work, "GENERATE_XML = YES",
		"XML_PROGRAMLISTING = NO", "GENERATE_HTML = NO", "GENERATE_LATEX = NO", "EXTRACT_ALL = YES", "QUIET = YES", "WARNINGS = NO"}, "\n")
	run := exec.Command("doxygen", "-")
	run.Stdin = strings.NewReader(settings)
	if out, err := run.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("doxygen: %v\n%s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(work, "xml", "*.xml"))
	if err != nil {
		return nil, err
	}
	d := declared{}
	slices.Sort(files)
	for _, f := range files {
		if err := d.read(f); err != nil {
			return nil, fmt.Errorf("%s: %v", filepath.Base(f), err)
		}
	}
	for _, x := range d {
		slices.Sort(x.signatures)
		x.signatures = slices.Compact(x.signatures)
	}
	return d, nil
}

// What is used of doxygen's XML.
type (
	xmlFile struct {
		Compounds []xmlCompound `xml:"compounddef"`
	}
	xmlCompound struct {
		Kind     string      `xml:"kind,attr"`
		Access   string      `xml:"prot,attr"`
		Name     string      `xml:"compoundname"`
		Location xmlLocation `xml:"location"`
		Members  []xmlMember `xml:"sectiondef>memberdef"`
	}
	xmlMember struct {
		Kind     string      `xml:"kind,attr"`
		Access   string      `xml:"prot,attr"`
		Name     string      `xml:"name"`
		Location xmlLocation `xml:"location"`
		Params   []xmlParam  `xml:"param"`
		Values   []xmlValue  `xml:"enumvalue"`
		Strong   string      `xml:"strong,attr"`
	}
	xmlParam struct {
		Type xmlText `xml:"type"`
	}
	xmlText struct {
		Inner string `xml:",innerxml"`
	}
	xmlValue struct {
		Name string `xml:"name"`
	}
	xmlLocation struct {
		File string `xml:"file,attr"`
	}
)

func (d declared) read(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var f xmlFile
	if err := xml.Unmarshal(b, &f); err != nil {
		return err
	}
	for _, c := range f.Compounds {
		header := filepath.Base(c.Location.File)
		switch c.Kind {
		case "class", "struct":
			name, ours := strings.CutPrefix(c.Name, "dynet::")
			if !ours || c.Access != "public" || strings.ContainsAny(name, "<@:") {
				continue
			}
			d.add(name, header, "")
			for _, m := range c.Members {
				if m.Access == "public" && m.Name != name && m.Kind != "friend" && isMember.MatchString(m.Name) {
					d.member(name+"::", header, m)
				}
			}
		case "namespace":
			if inner, ok := strings.CutPrefix(c.Name, "dynet::"); ok && inner != "detail" {
				d.add(inner, header, "")
			}
			if c.Name == "dynet" {
				for _, m := range c.Members {
					d.member("", filepath.Base(m.Location.File), m)
				}
			}
		case "file":
			for _, m := range c.Members {
				if m.Kind == "define" && strings.HasPrefix(m.Name, "DYNET_") && !guard.MatchString(m.Name) {
					d.add(m.Name, header, "")
				}
			}
		}
	}
	return nil
}

var (
	// What doxygen takes for a member and is none: destructors, conversions, macros that it does not expand.
	isMember = regexp.MustCompile(`^([a-z_]\w*|operator *(\[\]|\(\)|[^\s\w]+)|[A-Z]\w*)$`)
	guard    = regexp.MustCompile(`_H_?$|_MACROS?_|_INST_`)
	tag      = regexp.MustCompile(`<[^>]*>`)
	space    = regexp.MustCompile(`\s+`)
)

func (d declared) member(scope, header string, m xmlMember) {
	if m.Name == "" || strings.ContainsAny(m.Name, "@ ") || strings.HasPrefix(m.Name, "DYNET_") || m.Name == "operator=" || strings.HasSuffix(m.Name, "_dev") {
		return // "_dev": DyNet's own halves of functions, for one device
	}
	signature := ""
	if m.Kind == "function" {
		var types []string
		for _, p := range m.Params {
			types = append(types, typeName(p.Type.Inner))
		}
		signature = "(" + strings.Join(types, ", ") + ")"
	}
	d.add(scope+m.Name, header, signature)
	for _, v := range m.Values {
		if m.Strong != "yes" {
			d.add(scope+v.Name, header, "")
		}
	}
}

// typeName writes a type in one way, whatever spaces and names the header uses.
func typeName(inner string) string {
	s := tag.ReplaceAllString(inner, "")
	s = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&", "unsigned int", "unsigned", "VariableIndex", "unsigned", "dynet::", "",
		"real", "float", "std::", "").Replace(s)
	s = space.ReplaceAllString(strings.TrimSpace(s), " ")
	if by, ok := strings.CutSuffix(s, "&"); ok { // a caller writes the same for a value
		s = strings.TrimSpace(strings.TrimPrefix(by, "const "))
	}
	return s
}

func (d declared) add(name, header, signature string) {
	x := d[name]
	if x == nil {
		x = &declaration{header: header}
		d[name] = x
	}
	x.header = min(x.header, header)
	x.signatures = append(x.signatures, signature)
}
