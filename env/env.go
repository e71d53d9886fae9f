// Package env reads the environment variables VPPS_*: one table has them all, with what they may be.
// They are as they were when the library was loaded. A process that runs with more rights than its
// user, a setuid program for example, has none of them.
package env

/*
#include <sys/auxv.h>
*/
import "C"

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Variable is one of the table.
type Variable struct {
	Name     string
	Kind     Kind
	Min, Max float64 // of Count and Seconds
	Meaning  string
}

// Kind says what a variable's value may be. What names a device, plan or file is checked where that is opened.
type Kind int

const (
	Text       Kind = iota
	Switch          // 0 or 1
	Count           // a whole number from Min to Max
	Seconds         // a number above Min, at most Max
	Device          // cpu, cuda, cuda:N or auto
	Library         // a file to load; without a folder the linker looks for it
	Level           // off, info or debug
	Connection      // nccl or mpi
	Format          // fp32 or bf16
)

// words are the values of variables that take one of few.
var words = map[Kind][]string{Level: {"off", "info", "debug"}, Connection: {"nccl", "mpi"}, Format: {"fp32", "bf16"}}

// secure reports whether the process has rights that its user has not.
var secure = func() bool { return C.getauxval(C.AT_SECURE) != 0 }

// Secure reports whether the process has rights that its user has not. It then follows no variable to files.
func Secure() bool { return secure() }

// get is a variable's value, "" if it is not set or may not be read.
func get(name string) string {
	if !slices.ContainsFunc(Variables, func(v Variable) bool { return v.Name == name }) {
		panic(name + " is not in the table of variables")
	}
	if secure() {
		return ""
	}
	return os.Getenv(name)
}

// String is the value of a variable of any kind, "" if it is not set.
func String(name string) string { return get(name) }

// Launcher is the value of a variable by which a launcher tells a process its place among others: RANK, for example.
func Launcher(name string) string {
	if secure() {
		return ""
	}
	return os.Getenv(name)
}

// On reports whether a switch is on, or otherwise if it is not set to 0 or 1.
func On(name string, otherwise bool) bool {
	switch get(name) {
	case "1":
		return true
	case "0":
		return false
	}
	return otherwise
}

// Word is the value of a variable that takes one of few, "" if it is not set to one of these.
func Word(name string) string {
	v := get(name)
	i := slices.IndexFunc(Variables, func(v Variable) bool { return v.Name == name })
	if !slices.Contains(words[Variables[i].Kind], v) {
		return ""
	}
	return v
}

// Number is the value of a count or of seconds, or otherwise if it is not set to one.
func Number(name string, otherwise float64) float64 {
	v := get(name)
	i := slices.IndexFunc(Variables, func(v Variable) bool { return v.Name == name })
	if x, ok := Variables[i].number(v); ok {
		return x
	}
	return otherwise
}

func (v *Variable) number(value string) (float64, bool) {
	x, err := strconv.ParseFloat(value, 64)
	if v.Kind == Count {
		n, e := strconv.ParseUint(value, 10, 63)
		x, err = float64(n), e
	}
	return x, err == nil && x >= v.Min && x <= v.Max && (v.Kind == Count || x > v.Min)
}

// problem says why a value is not one that the variable may have, "" if it is.
func (v *Variable) problem(value string) string {
	switch v.Kind {
	case Switch:
		if value != "0" && value != "1" {
			return "it takes 0 or 1"
		}
	case Count:
		if _, ok := v.number(value); !ok {
			return fmt.Sprintf("it takes a whole number from %.0f to %.0f", v.Min, v.Max)
		}
	case Seconds:
		if _, ok := v.number(value); !ok {
			return fmt.Sprintf("it takes a number of seconds above %g, at most %g", v.Min, v.Max)
		}
	case Level, Connection, Format:
		if all := words[v.Kind]; !slices.Contains(all, value) {
			last := len(all) - 1
			return fmt.Sprintf("it takes %s or %s", strings.Join(all[:last], ", "), all[last])
		}
	case Library:
		if _, err := os.Stat(value); err != nil && strings.Contains(value, "/") {
			return "there is no such file"
		}
	}
	return ""
}

// Problems says, a line each, which variables are not read: values that are malformed, and names
// that begin like ours and are none of them.
func Problems() (lines []string) {
	if secure() {
		return nil
	}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "VPPS_") || value == "" {
			continue
		}
		i := slices.IndexFunc(Variables, func(v Variable) bool { return v.Name == name })
		if i < 0 {
			if !slices.ContainsFunc(ofTests, func(p string) bool { return strings.HasPrefix(name, p) }) {
				lines = append(lines, fmt.Sprintf("libvpps: there is no variable %s: did you mean %s?", name, nearest(name)))
			}
		} else if why := Variables[i].problem(value); why != "" {
			lines = append(lines, fmt.Sprintf("libvpps: %s=%s, %s, is ignored: %s", name, value, Variables[i].Meaning, why))
		}
	}
	slices.Sort(lines)
	return lines
}

// nearest is the variable whose name takes the fewest changes of letters.
func nearest(name string) (best string) {
	least := 1 << 30
	for i := range Variables {
		if d := distance(name, Variables[i].Name); d < least {
			least, best = d, Variables[i].Name
		}
	}
	return best
}

// distance counts letters to be replaced, inserted or removed.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
