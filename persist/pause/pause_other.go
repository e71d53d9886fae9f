//go:build !amd64

package pause

//go:noinline
func pause() {}
