//go:build !amd64

package script

// Pause is nothing where a processor has no such instruction.
func Pause() {}
