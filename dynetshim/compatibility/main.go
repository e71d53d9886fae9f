// Command compatibility writes the table of DyNet's names in docs/COMPATIBILITY.md from names.txt, which says of each
// name whether the bundled headers have it.
//
//	go run ./dynetshim/compatibility                writes the page
//	go run ./dynetshim/compatibility -dynet FOLDER  first brings names.txt to the headers in FOLDER; needs doxygen
//
// A test holds names.txt against the bundled headers.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

const (
	names    = "dynetshim/compatibility/names.txt"
	document = "docs/COMPATIBILITY.md"
)

func main() {
	dynet := flag.String("dynet", "", "a folder with DyNet's headers: dynet.h and others")
	flag.Parse()
	if err := run(*dynet); err != nil {
		fmt.Fprintln(os.Stderr, "compatibility:", err)
		os.Exit(1)
	}
}

func run(dynet string) error {
	all, err := readNames(names)
	if err != nil {
		return err
	}
	if dynet != "" {
		if all, err = fromHeaders(all, dynet); err != nil {
			return err
		}
		if err := writeNames(names, all); err != nil {
			return err
		}
	}
	b, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	text, err := put(string(b), page(all))
	if err != nil {
		return err
	}
	return os.WriteFile(document, []byte(text), 0o644)
}

// fromHeaders brings the table to the headers in a folder. New names have the state that the compiler tells.
func fromHeaders(all []entry, folder string) ([]entry, error) {
	theirs, err := readHeaders(folder)
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(folder, "*.h"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("no headers in %s", folder)
	}
	var headers, list []string
	for _, p := range paths {
		headers = append(headers, filepath.Base(p))
	}
	all = update(all, theirs, headers)
	for _, e := range all {
		list = append(list, e.name)
	}
	not, err := missing(".", list)
	if err != nil {
		return nil, err
	}
	var kept []entry
	for _, e := range all {
		if e.state == "?" {
			if e.state = "yes"; not[e.name] {
				e.state = "no"
			}
		}
		kept = append(kept, e)
	}
	// Members of classes that turned out to be absent.
	return update(kept, theirs, headers), nil
}
