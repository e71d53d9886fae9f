package persist

import "time"

var start = time.Now()

// now is nanoseconds since the library was loaded.
func now() uint64 { return uint64(time.Since(start)) }
