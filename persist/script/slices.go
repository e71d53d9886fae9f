package script

import (
	"math"
	"slices"
)

// resize returns a slice of n elements, reusing s's memory; contents are undefined.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/2)
	}
	return s[:n]
}

// extend makes a slice at least n long; new elements are v.
func extend[T any](s []T, n int, v T) []T {
	old := len(s)
	if n <= old {
		return s
	}
	s = slices.Grow(s, n-old)[:n]
	for i := old; i < n; i++ {
		s[i] = v
	}
	return s
}

func bits(f float32) uint32 { return math.Float32bits(f) }

func float(w uint32) float32 { return math.Float32frombits(w) }
