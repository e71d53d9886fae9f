package main

import (
	"debug/dwarf"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// describe reads a header as the C compiler does: macros from the preprocessor, types from debug information.
func describe(header string) (abi, error) {
	a := abi{}
	macros, err := preprocess(header, "-dM")
	if err != nil {
		return nil, err
	}
	text, err := preprocess(header, "-P")
	if err != nil {
		return nil, err
	}
	version := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^#define (VPPS_\w+) (.+)$`).FindAllStringSubmatch(macros, -1) {
		if name, ok := strings.CutPrefix(m[1], "VPPS_VERSION_"); ok {
			version[name] = m[2]
		} else {
			a["macro "+m[1]] = m[2]
		}
	}
	a["soname"] = "libvpps.so." + version["MAJOR"]
	if version["MAJOR"] == "0" {
		a["soname"] += "." + version["MINOR"]
	}
	var c strings.Builder
	fmt.Fprintf(&c, "#include %q\n", header)
	for _, f := range regexp.MustCompile(`\bvpps_\w+\s*\(`).FindAllString(text, -1) {
		name := strings.TrimRight(f, " (\n")
		fmt.Fprintf(&c, "__typeof__(&%s) function_%s;\n", name, name)
	}
	return a, a.addTypes(c.String())
}

func compiler() string {
	if cc := os.Getenv("CC"); cc != "" {
		return cc
	}
	return "cc"
}

func preprocess(header, flag string) (string, error) {
	out, err := exec.Command(compiler(), "-E", flag, header).Output()
	if err != nil {
		return "", fmt.Errorf("%s -E %s %s: %w", compiler(), flag, header, err)
	}
	return string(out), nil
}

// addTypes adds the types of a C program, and the functions of its variables function_NAME.
func (a abi) addTypes(program string) error {
	dir, err := os.MkdirTemp("", "abi")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	object := filepath.Join(dir, "types.o")
	cc := exec.Command(compiler(), "-g", "-fno-eliminate-unused-debug-types", "-I.", "-x", "c", "-c", "-", "-o", object)
	cc.Stdin = strings.NewReader(program)
	if out, err := cc.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cc, err, out)
	}
	file, err := elf.Open(object)
	if err != nil {
		return err
	}
	defer file.Close()
	data, err := file.DWARF()
	if err != nil {
		return err
	}
	for r := data.Reader(); ; {
		entry, err := r.Next()
		if entry == nil || err != nil {
			return err
		}
		name, _ := entry.Val(dwarf.AttrName).(string)
		offset, typed := entry.Val(dwarf.AttrType).(dwarf.Offset)
		if !typed || entry.Tag != dwarf.TagTypedef && entry.Tag != dwarf.TagVariable {
			continue
		}
		t, err := data.Type(offset)
		if err != nil {
			return errors.Join(errors.New(name), err)
		}
		if function, ok := strings.CutPrefix(name, "function_"); ok {
			a["function "+function] = strings.TrimPrefix(t.String(), "*")
		} else if strings.HasPrefix(name, "vpps_") {
			a.addType(name, t)
		}
	}
}

func (a abi) addType(name string, t dwarf.Type) {
	switch t := t.(type) {
	case *dwarf.StructType:
		if t.Incomplete {
			a["struct "+name] = "opaque"
			return
		}
		a["struct "+name] = fmt.Sprint("size ", t.ByteSize)
		for _, f := range t.Field {
			a["member "+name+"."+f.Name] = fmt.Sprintf("offset %d, %s", f.ByteOffset, f.Type)
		}
	case *dwarf.EnumType:
		for _, v := range t.Val {
			a["constant "+v.Name] = fmt.Sprint(v.Val)
		}
	default:
		a["type "+name] = t.String()
	}
}
