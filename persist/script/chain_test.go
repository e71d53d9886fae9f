package script_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"libvpps/persist/isa"
)

// chain makes a random chain of vectors in the given segments. As single maps it takes a vector of n
// elements for every slot and item, the first at single.
type chain struct {
	n          int
	slots      []uint32 // without ChainRead and ChainWritten where that is not drawn
	operations []uint32
	items      [][]uint32
}

func (g *instructions) chain() *chain {
	c := &chain{n: 1 + g.rng.IntN(150), slots: make([]uint32, 1+g.rng.IntN(isa.MaxSlots))}
	if g.rng.IntN(2) == 0 {
		c.n = 1 + g.rng.IntN(40)
	}
	valued := []uint32{0}
	for s, segment := range g.segments(len(c.slots)) {
		c.slots[s] = uint32(segment)
		if s == 0 || g.rng.IntN(2) == 0 {
			c.slots[s] |= isa.ChainRead
			valued = append(valued, uint32(s))
		}
	}
	some := func() uint32 { return valued[g.rng.IntN(len(valued))] }
	for range 1 + g.rng.IntN(20) {
		fn, in := isa.Fn(g.rng.IntN(int(isa.Fns))), [3]uint32{}
		for k := range isa.FnTable[fn].Arity {
			in[k] = some()
		}
		dst, acc := g.rng.Uint32N(uint32(len(c.slots))), g.rng.IntN(4) == 0
		if acc {
			dst = some()
		}
		c.operations = append(c.operations, isa.ChainOp(fn, dst, in[0], in[1], in[2], acc), isa.Float(0.5+g.rng.Float32()), isa.Float(2))
		valued = append(valued, dst)
		if g.rng.IntN(2) == 0 {
			c.slots[dst] |= isa.ChainWritten
		}
	}
	for range 1 + g.rng.IntN(3) {
		item := make([]uint32, len(c.slots))
		for s, w := range c.slots {
			if w >= isa.ChainRead {
				item[s] = g.memory(isa.Segment(w&15), c.n)
			} else {
				item[s] = g.rng.Uint32() // nobody asks for it
			}
		}
		c.items = append(c.items, item)
	}
	return c
}

func (c *chain) do(a *isa.Assembler, flags uint32) {
	a.Chain(0, flags, c.n, c.slots, c.operations, c.items...)
}

// doSingly appends the same as maps in segment state, which nobody else uses, and copies.
func (c *chain) doSingly(a *isa.Assembler) {
	copies := func(slot int, in bool) {
		for i, item := range c.items {
			dst, src := isa.Segment(c.slots[slot]&15), isa.SegState
			to, from := item[slot], c.single(slot, i)
			if in {
				dst, src, to, from = src, dst, from, to
			}
			a.Do(0, isa.Map, uint8(isa.Copy), isa.Sync, []uint32{isa.Segs(dst, src), uint32(c.n), 0, 0}, []uint32{to, from})
		}
	}
	for s, w := range c.slots {
		if w&isa.ChainRead != 0 {
			copies(s, true)
		}
	}
	state := isa.Segs(isa.SegState, isa.SegState, isa.SegState, isa.SegState)
	for o := c.operations; len(o) > 0; o = o[3:] {
		fn, flags := isa.Fn(o[0]), uint32(isa.Sync)
		if o[0]>>28 != 0 {
			flags |= isa.Acc
		}
		for i := range c.items {
			var item []uint32
			for k := range 1 + isa.FnTable[fn].Arity {
				item = append(item, c.single(int(o[0]>>(8+5*k)&31), i))
			}
			a.Do(0, isa.Map, uint8(fn), flags, []uint32{state, uint32(c.n), o[1], o[2]}, item)
		}
	}
	for s, w := range c.slots {
		if w&isa.ChainWritten != 0 {
			copies(s, false)
		}
	}
}

// single is where a slot of an item is in segment state.
func (c *chain) single(slot, item int) uint32 { return uint32((item*len(c.slots) + slot) * c.n) }

// A chain leaves what its operations leave as single maps, bit for bit, and nothing else.
func TestAChainIsItsMaps(t *testing.T) {
	e := newExecutor(t, 1)
	rng := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		g := newInstructions(t, rng)
		c, chained, single := g.chain(), isa.NewAssembler(1), isa.NewAssembler(1)
		c.do(chained, g.flags(isa.Sync))
		c.doSingly(single)
		if err := e.SetPlan(g.plan); err != nil {
			t.Fatal(err)
		}
		var before [isa.Segments][]float32
		seed := rng.Uint64()
		have, want := runOn(t, e, chained.Script(), seed, nil, &before), runOn(t, e, single.Script(), seed, nil, &before)
		for seg := range isa.SegInput {
			for i := range want[seg] {
				if h, w := math.Float32bits(have[seg][i]), math.Float32bits(want[seg][i]); h != w {
					t.Fatalf("%s+%d is %x, but %x by single maps: %s", seg, i, h, w, firstOf(chained.Script()))
				}
			}
		}
	}
}
