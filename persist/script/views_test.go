package script

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/persist/isa"
	"libvpps/persist/schedule"
	"libvpps/persist/verify"
)

// The gates of a minibatch's LSTM are parts of one vector of each batch element. Chains read them where they are, and write
// their gradients there, which nothing fills before: as far as a chain has slots. One of the eight copies a step is left.
func TestGatesOfAMinibatchAreNotCopied(t *testing.T) {
	const hidden, steps = 64, 5
	for _, batch := range []uint32{2, 64} { // one processor's work, and many processors'
		r := recurrent(t, 1000, hidden, batch, 1, steps)
		r.Tensors = true
		var b Builder
		built, err := b.Build(r)
		require.NoError(t, err)
		require.NoError(t, verify.Verify(&built.Script, r.Plan))
		text := isa.Disassemble(&built.Script)
		found := func(pattern string) int { return len(regexp.MustCompile(pattern).FindAllString(text, -1)) }
		pieces := int(min(batch, 32))
		require.Zero(t, found(`strided\.copy .*sizes=\[64 \d+\] strides0=\[1 \d+\] strides1=\[1 256\]`), "batch %d", batch)
		require.LessOrEqual(t, found(`strided\.copy .*sizes=\[64 \d+\] strides0=\[1 256\]`), steps*pieces, "batch %d", batch)
		require.Zero(t, found(`fill .*n=256 `), "batch %d", batch)
		require.NotZero(t, found(`chain .*n=64 .* = copy s`), "batch %d", batch)
	}
}

// A bias is added to each batch element in each step. Its gradient is one sum of all of these, which no step's levels know of.
func TestABiasGradientOfAMinibatchIsOneSum(t *testing.T) {
	const vocabulary, hidden, steps = 1000, 64, 5
	for _, batch := range []int{2, 64, mostVectors + 44} {
		r := recurrent(t, vocabulary, hidden, uint32(batch), 1, steps)
		r.Tensors = true
		var b Builder
		built, err := b.Build(r)
		require.NoError(t, err)
		require.NoError(t, verify.Verify(&built.Script, r.Plan))
		found := len(regexp.MustCompile(fmt.Sprintf(`sum .*dst=grad\+\d+ runs=%d `, batch<<16|steps)).FindAllString(isa.Disassemble(&built.Script), -1))
		inOne := 0
		if batch <= mostVectors {
			inOne = (vocabulary+schedule.PieceOf-1)/schedule.PieceOf + 4*hidden/schedule.PieceOf
		}
		require.Equal(t, inOne, found, "batch %d", batch)
	}
}
