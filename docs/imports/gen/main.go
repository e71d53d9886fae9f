// Command gen draws docs/packages.svg.
package main

import (
	"log"
	"os"

	"libvpps/docs/imports"
)

func main() {
	g, err := imports.Read("../..")
	if err == nil {
		err = os.WriteFile("../packages.svg", g.Draw(), 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
}
