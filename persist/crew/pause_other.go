//go:build !amd64

package crew

//go:noinline
func pause() {}
