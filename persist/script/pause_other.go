//go:build !amd64

package script

func pause() {}
