package script

import (
	"fmt"
	"math"

	"libvpps/persist/memory"
)

// errFull is of a batch whose values and gradients do not fit segment act.
var errFull = fmt.Errorf("%w: the batch needs more than 16 GiB of activations: use a smaller batch", memory.ErrExhausted)

// errLong is of a script that 32-bit addresses cannot reach the end of.
var errLong = fmt.Errorf("%w: the batch needs a script of more than 16 GiB: use a smaller batch", memory.ErrExhausted)

// highest is the first float of segment act that is not used: addresses are rounded up.
const highest = math.MaxUint32 - 64
