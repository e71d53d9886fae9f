package memory

import "slices"

// Slices whose memory is used again.

// Resize returns a slice of n elements, reusing s's memory; contents are undefined.
func Resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/2)
	}
	return s[:n]
}

// Extend makes a slice at least n long; new elements are v.
func Extend[T any](s []T, n int, v T) []T {
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
