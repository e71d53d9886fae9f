// Command gen writes ops.h, the C view of the operation table.
package main

import (
	"log"
	"os"

	"libvpps/bridge/ops"
)

func main() {
	if err := os.WriteFile("ops.h", ops.Header(), 0o644); err != nil {
		log.Fatal(err)
	}
}
