// Command gen writes what is made from the instruction table: the kernel's isa.h, its magic number and
// the manual.
package main

import (
	"log"
	"os"

	"libvpps/persist/isa"
)

func main() {
	for path, text := range map[string][]byte{
		"magic.go":                   isa.MagicFile(),
		"../../jit/kernel/isa.h":     isa.Header(),
		"../../docs/INSTRUCTIONS.md": isa.Manual(),
	} {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
