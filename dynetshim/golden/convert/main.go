// Command convert turns recorded results of DyNet (JSON files of a folder) into the line
// format that build/golden reads, so that the C++ program needs no JSON.
//
//	go run ./dynetshim/golden/convert DIR | build/golden
//	go run ./dynetshim/golden/convert -testdata dynetshim/golden/testdata DIR
//
// A record is a line "case KIND FUNCTION NAME", lines of its content and a line "end".
// Each line is a word that says what it is, and values with spaces between. A tensor is
// its number of dimensions, the dimensions, the batch size and the values in storage
// order.
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

func main() {
	testdata := flag.String("testdata", "", "write the repository's own copy to this folder: compressed, only the functions that libvpps has")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "convert: one folder with recorded results is needed: convert DIR")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *testdata); err != nil {
		fmt.Fprintln(os.Stderr, "convert:", err)
		os.Exit(1)
	}
}

// sources are the files that are converted, each by its own function.
var sources = []struct {
	file    string
	convert func(w io.Writer, record []byte, wanted func(string) bool) error
}{
	{"ops.jsonl.gz", operation},
	{"builders.jsonl", builder},
	{"trainers.jsonl", trainerSteps},
	{"treelstm_sst.json", treeTrace},
	{"bilstm_wikiner.json", taggerTrace},
}

func run(dir, testdata string) error {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for _, s := range sources {
		text, err := read(filepath.Join(dir, s.file))
		if err != nil {
			return err
		}
		if testdata == "" {
			err = each(out, s.file, text, s.convert, func(string) bool { return true })
		} else {
			name, _, _ := strings.Cut(s.file, ".")
			err = compressed(filepath.Join(testdata, name+".gz"), func(w io.Writer) error {
				return each(w, s.file, text, s.convert, func(fn string) bool { return own[fn] })
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// each converts one file: a record a line, or the whole file.
func each(w io.Writer, file string, text []byte, convert func(io.Writer, []byte, func(string) bool) error, wanted func(string) bool) error {
	records := [][]byte{text}
	if strings.Contains(file, ".jsonl") {
		records = bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	}
	for n, r := range records {
		if err := convert(w, r, wanted); err != nil {
			return fmt.Errorf("%s: record %d: %w", file, n+1, err)
		}
	}
	return nil
}

// read returns a file's text, decompressed.
func read(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(path, ".gz") {
		return b, err
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return io.ReadAll(z)
}

// compressed writes a gzip file without a time stamp: the same input, the same bytes.
func compressed(path string, write func(io.Writer) error) error {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := write(z); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// ---- what the records have in common -------------------------------------------

// number is a float as it was printed: a JSON number, or "inf", "-inf", "nan".
type number string

func (n *number) UnmarshalJSON(b []byte) error {
	*n = number(bytes.Trim(b, `"`))
	return nil
}

type numbers []number

func (ns numbers) String() string {
	var b strings.Builder
	for _, n := range ns {
		b.WriteByte(' ')
		b.WriteString(string(n))
	}
	return b.String()
}

type tensor struct {
	Name   string
	Kind   string
	Dim    []int
	Batch  int
	Values numbers
}

func (t tensor) String() string {
	return fmt.Sprintf("%d%s %d%s", len(t.Dim), ints(t.Dim), max(t.Batch, 1), t.Values)
}

func ints(is []int) string {
	var b strings.Builder
	for _, i := range is {
		fmt.Fprintf(&b, " %d", i)
	}
	return b.String()
}

// attributes writes a call's other arguments: "attr NAME VALUE", or "list NAME VALUES".
// Expressions and notes are for people and stay behind.
func attributes(w io.Writer, attrs map[string]any) error {
	names := make([]string, 0, len(attrs))
	for name := range attrs {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		switch v := attrs[name].(type) {
		case []any:
			fmt.Fprintf(w, "list %s", name)
			for _, x := range v {
				if list, ok := x.([]any); ok { // one list per batch element
					fmt.Fprintf(w, " %d", len(list))
					for _, y := range list {
						fmt.Fprintf(w, " %v", y)
					}
					continue
				}
				fmt.Fprintf(w, " %v", x)
			}
			fmt.Fprintln(w)
		case bool:
			fmt.Fprintf(w, "attr %s %d\n", name, map[bool]int{true: 1}[v])
		case string:
			if name != "expr" {
				fmt.Fprintf(w, "attr %s %s\n", name, v)
			}
		case map[string]any: // a part with settings of its own
			fmt.Fprintf(w, "attr %s 1\n", name)
			inner := map[string]any{}
			for setting, value := range v {
				inner[name+"_"+setting] = value
			}
			if err := attributes(w, inner); err != nil {
				return err
			}
		case json.Number:
			fmt.Fprintf(w, "attr %s %s\n", name, v)
		default:
			return fmt.Errorf("attribute %s has the type %T: add it to attributes in convert", name, v)
		}
	}
	return nil
}

func decode(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(v)
}
