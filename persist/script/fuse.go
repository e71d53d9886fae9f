package script

import (
	"encoding/binary"
	"slices"

	"libvpps/persist/isa"
)

// Fusing: runs of element-wise items of a cluster over vectors of one length become chains,
// whose values stay with the threads that compute them.

// maxOperations bounds a chain, so that several items of one have room in an instruction.
const maxOperations = 64

// chain is the one being formed: its operations and the vectors that they work on.
type chain struct {
	first      item // all there is to it if it has one operation
	n          uint32
	slots      int
	at         [isa.MaxSlots]uint32
	how        [isa.MaxSlots]uint8     // the slot's byte in the instruction
	table      [2 * isa.MaxSlots]uint8 // slots by their vectors' addresses: 1 + slot, 0 empty
	operations []uint32

	recent [16]uint32 // signatures of chains, by numbers of slots and operations; 0: none
}

// fuse rewrites the items of all clusters, by which they are grouped, unless the plan wants them single or there is
// nothing to fuse. Those of each are in an order in which they could run one by one.
func (b *Builder) fuse() {
	clear(b.chain.recent[:])
	to := uint32(0)
	for from := uint32(0); int(from) < len(b.items); {
		c := b.items[from].cluster
		x := &b.clusters[c]
		b.grouped[c] = to
		next := from + uint32(x.items)
		switch {
		case b.r.Plan.CPU:
			to = next
		case x.kind&single != 0:
			to += uint32(copy(b.items[to:], b.items[from:next]))
		default:
			to = b.fuseCluster(from, next, to)
		}
		x.items, from = int32(to-b.grouped[c]), next
	}
	b.items = b.items[:to]
}

// fuseCluster rewrites the items [from, end) to what begins at to, and returns where that ends. The
// cluster's order is new: what is not element-wise and waits for nothing comes first, then chains and
// the rest one after another.
func (b *Builder) fuseCluster(from, end, to uint32) uint32 {
	if end == from+1 {
		b.items[to] = b.items[from]
		b.items[to].sub = 0
		return to + 1
	}
	c, order := &b.chain, int32(-1)
	c.operations = c.operations[:0]
	for i := from; i < end; i++ {
		if it := &b.items[i]; it.sub == 0 && !b.isMap(it) {
			order = 0
			break
		}
	}
	last := int32(-1) // of the items before, when they were not element-wise: their order then
	for i := from; i < end; i++ {
		it := b.items[i]
		if b.isMap(&it) {
			if len(c.operations) > 0 && b.extendChain(&it) {
				continue
			}
			to = b.closeChain(order, to)
			order++
			last = -1
			if !b.startChain(&it) {
				it.sub = order
				b.items[to] = it
				to++
			}
			continue
		}
		if it.sub == 0 {
			b.items[to] = it
			to++
			continue
		}
		to = b.closeChain(order, to)
		if it.sub != last {
			order++
			last = it.sub
		}
		it.sub = order
		b.items[to] = it
		to++
	}
	return b.closeChain(order, to)
}

func (b *Builder) isMap(it *item) bool { return b.sigs.isMap[it.sig] }

// startChain begins a chain with an item. False: its own vectors overlap.
func (b *Builder) startChain(it *item) bool {
	c := &b.chain
	c.first, c.slots, c.operations = *it, 0, c.operations[:0]
	clear(c.table[:])
	c.n = b.sigs.of(it.sig)[3]
	return b.extendChain(it)
}

// extendChain adds an item to the chain. False: it does not go with those before.
func (b *Builder) extendChain(it *item) bool {
	c, words := &b.chain, b.sigs.of(it.sig) // of a Map: opcode, length, segments, n, p, q
	in := int(b.sigs.width[it.sig]) - 1
	if words[3] != c.n || c.slots+1+in > isa.MaxSlots || len(c.operations) == isa.ChainOpWords*maxOperations {
		return false
	}
	addresses := it.words[:]
	if in+1 > fewWords {
		addresses = b.pool[it.words[0]:]
	}
	before := c.slots
	var slot [5]uint32
	for k := 1; k <= in; k++ {
		slot[k] = c.slotOf(uint8(words[2]>>(4*k)&15), addresses[k])
	}
	dst := c.slotOf(uint8(words[2]&15), addresses[0])
	if b.mixed && c.overlaps(before, dst) {
		c.slots = before
		return false
	}
	for s := before; s < c.slots; s++ {
		c.how[s] |= isa.ChainRead
	}
	acc := words[0]>>16&isa.Acc != 0
	if int(dst) >= before && !acc && !slices.Contains(slot[1:1+in], dst) {
		c.how[dst] &^= isa.ChainRead
	}
	c.how[dst] |= isa.ChainWritten
	c.operations = append(c.operations, isa.ChainOp(isa.Fn(words[0]>>8), dst, slot[1], slot[2], slot[3], acc), words[4], words[5])
	return true
}

// slotOf is the slot of a vector, a new one if it has none yet.
func (c *chain) slotOf(segment uint8, at uint32) uint32 {
	h := at * 0x9E3779B1 >> 26
	for ; c.table[h] != 0; h = (h + 1) % uint32(len(c.table)) {
		if s := c.table[h] - 1; c.at[s] == at && c.how[s]&15 == segment {
			return uint32(s)
		}
	}
	s := c.slots
	c.slots++
	c.table[h] = uint8(c.slots)
	c.at[s], c.how[s] = at, segment
	return uint32(s)
}

// overlaps reports whether a slot from the first new one on, or the one that is now written, overlaps with
// another and one of the two is written.
func (c *chain) overlaps(first int, dst uint32) bool {
	written := func(s int) bool { return s == int(dst) || c.how[s]&isa.ChainWritten != 0 }
	for s := range c.slots {
		if s < first && s != int(dst) {
			continue
		}
		for o := range c.slots {
			if d := c.at[s] - c.at[o]; d+c.n-1 < 2*c.n-1 && o != s && (c.how[s]^c.how[o])&15 == 0 && (written(s) || written(o)) {
				return true
			}
		}
	}
	return false
}

// closeChain writes the chain, if there is one, as an item at to, and returns where the next one goes.
func (b *Builder) closeChain(order int32, to uint32) uint32 {
	c := &b.chain
	if len(c.operations) == 0 {
		return to
	}
	it := c.first
	if len(c.operations) > isa.ChainOpWords {
		it.sig = b.chainSignature()
		if c.slots > fewWords {
			it.words = [fewWords]uint32{uint32(len(b.pool))}
			b.pool = append(b.pool, c.at[:c.slots]...)
		} else {
			copy(it.words[:], c.at[:c.slots])
		}
	}
	it.sub = order
	b.items[to] = it
	c.operations = c.operations[:0]
	return to + 1
}

// chainSignature is the signature of the chain's instruction. Neighbouring cells are alike: most are the
// last one of as many slots and operations.
func (b *Builder) chainSignature() uint32 {
	c := &b.chain
	clear(c.how[c.slots:])
	recent := &c.recent[(c.slots+len(c.operations))%len(c.recent)]
	if *recent == 0 || !c.is(b.sigs.of(*recent)) {
		w := append(b.sigs.buf[:0], firstWord(isa.Chain, uint8(c.slots), 0), 0, c.n, uint32(len(c.operations)/isa.ChainOpWords))
		for s := 0; s < c.slots; s += 4 {
			w = append(w, binary.LittleEndian.Uint32(c.how[s:]))
		}
		b.sigs.buf = append(w, c.operations...)
		*recent = b.sigs.intern(0)
	}
	return *recent
}

// is reports whether the words of a signature are the chain's.
func (c *chain) is(words []uint32) bool {
	kinds := (c.slots + 3) / 4
	if words[0] != firstWord(isa.Chain, uint8(c.slots), 0) || words[2] != c.n || len(words) != 4+kinds+len(c.operations) {
		return false
	}
	for k, w := range words[4 : 4+kinds] {
		if binary.LittleEndian.Uint32(c.how[4*k:]) != w {
			return false
		}
	}
	return slices.Equal(words[4+kinds:], c.operations)
}
