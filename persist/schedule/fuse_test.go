package schedule

import (
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/persist/isa"
	"libvpps/persist/plan"
)

// Pairs of an item that does not fuse and one that waits for it, pair by pair: all of the first kind are at one order, and what
// waits for them fuses. Chains that would be divided by their order stay as they came.
func TestPairsThatNeedNotWaitForEachOtherAreTwoOrders(t *testing.T) {
	s := Schedule{Plan: &plan.Plan{Processors: 132}}
	s.Clear()
	c := s.NewCluster(0)
	const pairs = 5
	for k := range uint32(pairs) {
		s.Fill(c, 1, 0, 16, 64*k)
		s.Map1(c, 2, isa.Copy, isa.Acc, 0, 1, At(isa.SegAct, 64*k+k), At(isa.SegAct, 1024+8*k))
	}
	s.GroupItems()
	list := s.AppendItemsOf(nil, uint32(c))
	require.Len(t, list, pairs+1)
	for i := range list[:pairs] {
		require.Equal(t, isa.Fill, isa.Opcode(s.SignatureOf(&list[i])[0]))
		require.Equal(t, list[0].Sub, list[i].Sub)
	}
	chain := s.SignatureOf(&list[pairs])
	require.Equal(t, isa.Chain, isa.Opcode(chain[0]))
	require.EqualValues(t, pairs, chain[3])
	require.Greater(t, list[pairs].Sub, list[0].Sub)

	s.Clear()
	c = s.NewCluster(0)
	for k := range uint32(3) {
		n := 64 + 64*int(k)
		s.Fill(c, 0, 0, 16, 8192+64*k)
		s.Map1(c, 1, isa.Tanh, 0, 0, n, At(isa.SegAct, 1024*k), At(isa.SegAct, 1024*k+512))
		s.Map1(c, 2, isa.Square, 0, 0, n, At(isa.SegAct, 1024*k+256), At(isa.SegAct, 1024*k))
	}
	s.GroupItems()
	require.Len(t, s.AppendItemsOf(nil, uint32(c)), 3+3)
}
