package jit

// What measuring has found, kept beside the kernels and as well protected: a file that is damaged, of
// another model or not to be written only means that measuring is done again.

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"libvpps/gpu"
	"libvpps/jit/kernel"
)

// Choice is the plan that was the fastest, with its measurements.
type Choice struct {
	RowsPerWarp int
	Why         string
}

// ChoiceKey is the key of a choice: about says for which device and which plans it is. It changes with the
// compiler and with any of the kernel's sources.
func ChoiceKey(c gpu.Compiler, about string) string {
	major, minor := c.Version()
	h := sha256.New()
	fmt.Fprintf(h, "choice %d.%d\n%s\n", major, minor, about)
	for _, name := range append(slices.Clone(headers), "entry.h") {
		text, _ := kernel.Sources.ReadFile(name)
		h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Choice returns the plan chosen earlier, nil if there is none or its record is damaged.
func (c *Cache) Choice(key string) *Choice {
	var x Choice
	head, why, ok := strings.Cut(string(c.get(key+choiceSuffix)), "\n")
	if n, err := fmt.Sscanf(head, "rpw=%d", &x.RowsPerWarp); !ok || err != nil || n != 1 {
		return nil
	}
	x.Why = why
	return &x
}

// Choose keeps a choice.
func (c *Cache) Choose(key string, x Choice) {
	c.put(key+choiceSuffix, fmt.Appendf(nil, "rpw=%d\n%s", x.RowsPerWarp, x.Why))
}
