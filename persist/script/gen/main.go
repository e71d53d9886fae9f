// Command gen writes the kernel's isa.h from the instruction table.
package main

import (
	"log"
	"os"

	"libvpps/persist/script"
)

func main() {
	if err := os.WriteFile("../../jit/kernel/isa.h", script.Header(), 0o644); err != nil {
		log.Fatal(err)
	}
}
