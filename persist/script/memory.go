package script

import (
	"errors"
	"fmt"
	"math"
)

// ErrMemory is the kind of an error of memory that has run out, on the host or the device.
var ErrMemory = errors.New("out of memory")

// errFull is of a batch whose values and gradients do not fit segment act.
var errFull = fmt.Errorf("%w: the batch needs more than 16 GiB of activations: use a smaller batch", ErrMemory)

// errLong is of a script that 32-bit addresses cannot reach the end of.
var errLong = fmt.Errorf("%w: the batch needs a script of more than 16 GiB: use a smaller batch", ErrMemory)

// highest is the first float of segment act that is not used: addresses are rounded up.
const highest = math.MaxUint32 - 64
