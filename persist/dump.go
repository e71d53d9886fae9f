package persist

import "libvpps/persist/isa"

// disassembly is a script as text, "" before the first.
func disassembly(s *isa.Script) string {
	if len(s.Words) == 0 {
		return ""
	}
	return isa.Disassemble(s)
}
