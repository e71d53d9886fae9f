//go:build race

package script

func init() { racing = true }
