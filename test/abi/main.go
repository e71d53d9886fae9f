// Abi holds the C interface against its record, vpps.abi: functions, layouts of structs, constants. A program that was
// linked to one libvpps.so runs with every later one of the same SONAME, so within a SONAME the interface only grows.
//
//	go run ./test/abi           says what differs, and fails if something does
//	go run ./test/abi -record   writes the record; refuses what needs another SONAME (make abi)
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
)

const record = "test/abi/vpps.abi"

func main() {
	write := flag.Bool("record", false, "write "+record)
	flag.Parse()
	if err := run(*write); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(write bool) error {
	now, err := describe("include/vpps.h")
	if err != nil {
		return err
	}
	text, err := os.ReadFile(record)
	if write && os.IsNotExist(err) {
		return os.WriteFile(record, []byte(now.String()), 0o644)
	}
	if err != nil {
		return fmt.Errorf("%w: run make abi", err)
	}
	breaks, additions := compare(parse(string(text)), now)
	switch {
	case len(breaks) > 0:
		return fmt.Errorf("include/vpps.h breaks programs that are linked to %s:\n  %s\nKeep what was, or raise VPPS_VERSION_MINOR"+
			" (from 1.0 on _MAJOR) and the SONAME in packaging/ with it, and run make abi.\nBefore the version's release:"+
			" delete %s and run make abi", now["soname"], strings.Join(breaks, "\n  "), record)
	case write:
		return os.WriteFile(record, []byte(now.String()), 0o644)
	case len(additions) > 0:
		return fmt.Errorf("include/vpps.h has what its record, %s, has not:\n  %s\nRun make abi, and commit the record",
			record, strings.Join(additions, "\n  "))
	}
	return nil
}
