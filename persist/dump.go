package persist

import (
	"strings"

	"libvpps/persist/script"
)

// disassembly is a script as text, "" before the first.
func disassembly(s *script.Script) string {
	if len(s.Words) == 0 {
		return ""
	}
	var b strings.Builder
	script.Disassemble(&b, s)
	return b.String()
}
