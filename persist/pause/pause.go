// Package pause is what goroutines do between two looks at whether there is work.
package pause

// Briefly lets the rest of the core, and of the power that cores share, to others for a moment, where a processor has
// an instruction for that: who looks whether there is work does so between two of them. And it is a call in which the
// runtime can stop a goroutine, as it has to before it collects garbage: in a loop without one it interrupts the
// thread by signals until one comes at an instruction where it may, and on the thread of a C program none did.
//
//go:noinline
func Briefly() { pause() }
