//go:build !amd64

package script

//go:noinline
func pause() {}
