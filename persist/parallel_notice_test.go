package persist

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/persist/isa"
)

func TestNoticesArriveAsTheyWereSent(t *testing.T) {
	for _, n := range []notice{
		{},
		{call: joining, failed: numericFailure, why: "batch 7: its loss is not finite"},
		{call: summingLoss, number: 2.5, there: true},
		{call: stepping, number: 3, trainer: 2, options: TrainerOptions{Rule: isa.AMSGrad, LearningRate: 1, Clipping: true, Threshold: 2, Sparse: true, Collection: 3,
			Momentum: 4, Rho: 5, Epsilon: 6, Beta1: 7, Beta2: 8},
			gradients: []pendingRows{{whole: true}, {rows: []uint32{1, 5, math.MaxUint32}}, {}}},
	} {
		words := n.words()
		have, err := readNotice(words)
		require.NoError(t, err)
		for k := range n.gradients {
			n.gradients[k].rows = append([]uint32{}, n.gradients[k].rows...)
		}
		for k := range have.gradients {
			have.gradients[k].rows = append([]uint32{}, have.gradients[k].rows...)
		}
		require.Equal(t, n, have)
		for k := range words {
			_, err := readNotice(words[:k])
			require.ErrorIs(t, err, errNotice, "%d of %d words", k, len(words))
		}
		_, err = readNotice(append(words, 0))
		require.ErrorIs(t, err, errNotice)
	}
}

// Whatever another process sends is a notice or an error.
func FuzzNotices(f *testing.F) {
	n := notice{call: stepping, why: "text", gradients: []pendingRows{{whole: true}, {rows: []uint32{1, 2}}}}
	var bytes []byte
	for _, w := range n.words() {
		bytes = append(bytes, byte(w), byte(w>>8), byte(w>>16), byte(w>>24))
	}
	f.Add(bytes)
	f.Fuzz(func(t *testing.T, bytes []byte) {
		var words []uint32
		for at := 0; at+4 <= len(bytes); at += 4 {
			words = append(words, uint32(bytes[at])|uint32(bytes[at+1])<<8|uint32(bytes[at+2])<<16|uint32(bytes[at+3])<<24)
		}
		n, err := readNotice(words)
		if err != nil {
			require.ErrorIs(t, err, errNotice)
			return
		}
		again, err := readNotice(n.words())
		require.NoError(t, err)
		require.Equal(t, n.words(), again.words())
	})
}
