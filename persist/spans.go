package persist

import "slices"

// spans is free memory of a segment: runs of floats, ascending; no run is next to another.
type spans []freeSpan

type freeSpan struct{ at, n uint64 }

// take takes n floats out of the first run that has them.
func (s *spans) take(n uint64) (at uint64, ok bool) {
	for i := range *s {
		f := &(*s)[i]
		if f.n < n {
			continue
		}
		at = f.at
		if f.at, f.n = f.at+n, f.n-n; f.n == 0 {
			*s = slices.Delete(*s, i, i+1)
		}
		return at, true
	}
	return 0, false
}

// give makes n floats free.
func (s *spans) give(at, n uint64) {
	i, _ := slices.BinarySearchFunc(*s, at, func(f freeSpan, at uint64) int { return int(int64(f.at) - int64(at)) })
	*s = slices.Insert(*s, i, freeSpan{at, n})
	if i+1 < len(*s) && at+n == (*s)[i+1].at {
		(*s)[i].n += (*s)[i+1].n
		*s = slices.Delete(*s, i+1, i+2)
	}
	if i > 0 && (*s)[i-1].at+(*s)[i-1].n == at {
		(*s)[i-1].n += (*s)[i].n
		*s = slices.Delete(*s, i, i+1)
	}
}
