package schedule

import (
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/persist/isa"
	"libvpps/persist/plan"
)

// A bias was added to columns of sentences of different lengths. A sum of runs has sentences of one length, and of short ones
// few vectors are spelled out. Each source is added once, each piece in one cluster.
func TestSourcesOfDifferentLengthsAreSumsOfTheirOwn(t *testing.T) {
	const size = 100
	var src []Source
	vectors := map[uint32]int{}
	at := uint32(1000)
	add := func(count uint32, times int) {
		for range times {
			src = append(src, Source{at, count, size})
			for range count {
				vectors[at]++
				at += size
			}
		}
	}
	add(20, 7)
	add(1, 3)
	add(23, 4)
	add(20, 1)
	add(9, 2)
	s := Schedule{Plan: &plan.Plan{Processors: 132}}
	s.Clear()
	s.SumPieces(5, 0, At(isa.SegGrad, 4000), size, src)
	var runs [][2]uint32
	for i := range s.Items {
		w := s.SignatureOf(&s.Items[i])
		require.Equal(t, isa.Sum, isa.Opcode(w[0]))
		piece := w[5] - 4000
		require.EqualValues(t, 1+piece/PieceOf, s.Items[i].Cluster)
		require.Equal(t, i >= 2, w[0]>>16&isa.Acc != 0)
		if piece > 0 {
			continue
		}
		runs = append(runs, [2]uint32{w[6] & 0xFFFF, w[6] >> 16})
		for k, from := range w[SumHead : w[1]&0xFFFF] {
			each := uint32(1)
			if uint32(k) < w[6]&0xFFFF {
				each = w[6] >> 16
			}
			for e := range each {
				vectors[from+e*size]--
			}
		}
	}
	require.Equal(t, [][2]uint32{{4, 23}, {8, 20}}, runs)
	for at, left := range vectors {
		require.Zero(t, left, at)
	}
}
