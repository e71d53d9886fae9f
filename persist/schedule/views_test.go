package schedule

import (
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/persist/isa"
	"libvpps/persist/plan"
)

// Two slots of a chain with views have an element in common only if this is said: tried for all places of a few sizes.
func TestViewsThatMeetAreFound(t *testing.T) {
	const view, count = 3, 4
	elements := func(at, step uint32) map[uint32]bool {
		all := map[uint32]bool{}
		for e := range uint32(count * view) {
			all[at+e/view*step+e%view] = true
		}
		return all
	}
	apart := 0
	for _, x := range []uint32{inOneRun, 0, 7, 12} {
		for _, y := range []uint32{inOneRun, 0, 7, 12} {
			for at := range uint32(60) {
				c := chain{view: view, n: view * count}
				c.at[0], c.step[0], c.at[1], c.step[1] = 30, x, at, y
				mine, met := elements(30, c.stepOf(0)), false
				for e := range elements(at, c.stepOf(1)) {
					met = met || mine[e]
				}
				if !c.viewsMeet(0, 1) {
					require.False(t, met, "steps %d and %d, %d", x, y, at)
					apart++
				} else if x == y {
					require.True(t, met, "step %d, %d", x, at)
				}
			}
		}
	}
	require.Greater(t, apart, 300)
}

// A view that does not go with the chain before it leaves that as it is: here it overlaps with what the chain has written.
func TestAViewThatDoesNotFitLeavesTheChain(t *testing.T) {
	s := Schedule{Plan: &plan.Plan{Processors: 132}}
	s.Clear()
	c := s.NewCluster(0)
	const view, count = 64, 4
	act := func(at uint32) Operand { return At(isa.SegAct, at) }
	s.Map1(c, 0, isa.Tanh, 0, 0, view*count, act(1024), act(0))
	s.Map1(c, 1, isa.Tanh, 0, 0, view*count, act(2048), act(1024))
	e := Element{Fn: isa.Copy, Kept: []Axis{{Size: view, Stride: [5]uint32{1, 1}}, {Size: count, Stride: [5]uint32{view, 2 * view}}}}
	e.Ops[0], e.Ops[1] = act(4096), act(2048-view)
	s.AddElement(&e, c, 2)
	s.GroupItems()
	s.fuseViews(0, mostViews)
	list := s.AppendItemsOf(nil, uint32(c))
	require.Len(t, list, 2)
	chain := s.SignatureOf(&list[0])
	require.Equal(t, isa.Chain, isa.Opcode(chain[0]))
	require.EqualValues(t, view*count, chain[2])
	require.Equal(t, isa.Strided, isa.Opcode(s.SignatureOf(&list[1])[0]))
}
