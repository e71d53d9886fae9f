package schedule

import (
	"encoding/binary"
	mathbits "math/bits"
	"slices"

	"libvpps/persist/isa"
)

// Fusing: runs of element-wise items of a cluster over vectors of one length become chains,
// whose values stay with the threads that compute them.

// maxOperations bounds a chain, so that several items of one have room in an instruction.
const maxOperations = 64

// chain is the one being formed: its pieces and the vectors that they work on.
type chain struct {
	first      Item // all there is to it if it has one piece
	pieces     int
	operations int
	n          uint32
	slots      int
	at         [isa.MaxSlots]uint32
	how        [isa.MaxSlots]uint8     // the slot's byte in the instruction
	table      [2 * isa.MaxSlots]uint8 // slots by their vectors' addresses: 1 + slot, 0 empty
	key        []uint32                // of each piece: its signature, and its vectors' slots, a byte each

	view        uint32               // how long the vectors of its views are; 0: it has none
	step        [isa.MaxSlots]uint32 // how far a slot's vectors are from one another, or inOneRun
	batch, most uint32               // how many vectors a view must have, 0: any number up to most

	recent [64]recentChain // by the key's hash
}

// recentChain is a chain's key and signature.
type recentChain struct {
	key []uint32
	sig uint32
}

// fusing says how an item becomes a part of a chain.
type fusing uint8

const (
	unfused   fusing = iota // it does not
	Operation               // as one operation
	chained                 // as several: it is a chain
	ofViews                 // as one operation of views
)

func fusingOf(words []uint32) fusing {
	switch isa.Opcode(words[0]) {
	case isa.Map:
		return Operation
	case isa.Chain:
		return chained
	case isa.Strided:
		if isView(words) {
			return ofViews
		}
	}
	return unfused
}

// FuseAll groups and fuses the items of all clusters, but for those of views: clusters with these are fused once more.
func (s *Schedule) FuseAll() {
	s.GroupItems()
	s.fuseViews(0, 0)
	list := s.sorted[:0]
	for c := range s.Clusters {
		if x := &s.Clusters[c]; x.Parent == int32(c) {
			first := len(list)
			list = s.appendFused(list, uint32(c))
			x.Items = int32(len(list) - first)
			if !slices.ContainsFunc(list[first:], func(it Item) bool { return s.Sigs.Fuses[it.Sig] == ofViews }) {
				x.Kind |= Fused
			}
		}
	}
	s.Items, s.sorted = list, s.Items
}

// appendFused appends the items of a cluster, by which they are grouped, fused unless the plan wants them single or there is
// nothing to fuse. They are in an order in which they could run one by one.
func (s *Schedule) appendFused(list []Item, c uint32) []Item {
	switch items := s.itemsOf(c); {
	case s.Plan.CPU || s.Clusters[c].Kind&(Single|Fused) != 0:
		return append(list, items...)
	case len(items) == 1:
		list = append(list, items[0])
		list[len(list)-1].Sub = 0
		return list
	default:
		if s.scattered(items) {
			slices.SortStableFunc(items, func(x, y Item) int { return int(x.Sub - y.Sub) })
		}
		return s.fuse(list, items)
	}
}

// scattered reports whether an item that does not fuse comes after what waits longer: it would be an instruction of its own,
// although it need not wait. A Sum is one anyway. It is not so if neighbours fuse, node by node: chains of several nodes at a
// time would be less alike.
func (s *Schedule) scattered(items []Item) bool {
	latest, found := int32(0), false
	for i := range items {
		it := &items[i]
		found = found || it.Sub < latest && it.Sig != RawSig && !s.fuses(it)
		latest = max(latest, it.Sub)
	}
	for i := 1; found && i < len(items); i++ {
		found = !s.fuses(&items[i-1]) || !s.fuses(&items[i])
	}
	return found
}

// fuse appends the items of a cluster, fused. The cluster's order is new: what is not element-wise and waits for nothing comes
// first, then chains and the rest one after another.
func (s *Schedule) fuse(list, items []Item) []Item {
	c, order := &s.chain, int32(-1)
	c.pieces = 0
	for i := range items {
		if it := &items[i]; it.Sub == 0 && !s.fuses(it) {
			order = 0
			break
		}
	}
	last := int32(-1) // of the items before, when they were not element-wise: their order then
	for i := range items {
		it := &items[i]
		if s.fuses(it) {
			if c.pieces > 0 && s.extendChain(it) {
				continue
			}
			list = s.closeChain(list, order)
			order++
			last = -1
			c.first, c.pieces = *it, 1
			continue
		}
		if it.Sub > 0 {
			list = s.closeChain(list, order)
			if it.Sub != last {
				order++
				last = it.Sub
			}
		}
		list = append(list, *it)
		if it.Sub > 0 {
			list[len(list)-1].Sub = order
		}
	}
	return s.closeChain(list, order)
}

// fuses reports whether an item may be a part of a chain.
func (s *Schedule) fuses(it *Item) bool {
	switch s.Sigs.Fuses[it.Sig] {
	case unfused:
		return false
	case ofViews:
		return s.chain.joinsViews(s.Sigs.Of(it.Sig))
	}
	return s.Stays == nil || !s.Stays(*it)
}

// Addresses are an item's words.
func (s *Schedule) Addresses(it *Item) []uint32 {
	if n := int(s.Sigs.Width[it.Sig]); n > FewWords {
		return s.Pool[it.Words[0]:][:n]
	}
	return it.Words[:s.Sigs.Width[it.Sig]]
}

// lengthOf is how long the vectors of an item that fuses are.
func (s *Schedule) lengthOf(it *Item) uint32 {
	w := s.Sigs.Of(it.Sig)
	switch s.Sigs.Fuses[it.Sig] {
	case chained:
		return w[2]
	case ofViews:
		return w[6] * w[7]
	}
	return w[3]
}

// extendChain adds an item to the chain. False: it does not go with those before. Most chains stay one item: the first
// one's vectors are looked at when a second one comes.
func (s *Schedule) extendChain(it *Item) bool {
	c := &s.chain
	if c.pieces == 1 {
		if c.n = s.lengthOf(&c.first); s.lengthOf(it) != c.n {
			return false
		}
		c.pieces, c.slots, c.operations, c.view, c.key = 0, 0, 0, 0, c.key[:0]
		clear(c.table[:])
		if !s.addToChain(&c.first) { // its own vectors overlap
			c.pieces = 1
			return false
		}
	}
	return s.lengthOf(it) == c.n && s.addToChain(it)
}

// addToChain adds an item of the chain's length. False: it does not go with those before.
func (s *Schedule) addToChain(it *Item) bool {
	if s.Sigs.Fuses[it.Sig] == chained {
		return s.addWholeChain(it)
	}
	c, words := &s.chain, s.Sigs.Of(it.Sig) // of a Map: opcode, length, segments, n, p, q
	in := int(s.Sigs.Width[it.Sig]) - 1
	if c.slots+1+in > isa.MaxSlots || c.operations == maxOperations {
		return false
	}
	addresses, before, view := s.Addresses(it), c.slots, c.view
	views := s.Sigs.Fuses[it.Sig] == ofViews
	if views {
		if view > 0 && view != words[6] {
			return false
		}
		c.view = words[6]
	}
	var slot [5]uint32
	for k := 1; k <= in; k++ {
		slot[k] = c.slotOf(uint8(words[2]>>(4*k)&15), addresses[k], stepIn(words, views, k))
	}
	dst := c.slotOf(uint8(words[2]&15), addresses[0], stepIn(words, views, 0))
	if (s.Mixed || c.view > 0) && c.overlaps(before, 1<<dst) {
		c.slots, c.view = before, view
		return false
	}
	for i := before; i < c.slots; i++ {
		c.how[i] |= isa.ChainRead
	}
	acc := words[0]>>16&isa.Acc != 0
	if int(dst) >= before && !acc && !slices.Contains(slot[1:1+in], dst) {
		c.how[dst] &^= isa.ChainRead
	}
	c.how[dst] |= isa.ChainWritten
	slot[0] = dst
	c.add(it.Sig, slot[:1+in], 1)
	return true
}

// add notes a piece of so many operations, with its vectors' slots.
func (c *chain) add(sig uint32, slots []uint32, operations int) {
	c.key = append(c.key, sig)
	for k, s := range slots {
		if k%4 == 0 {
			c.key = append(c.key, 0)
		}
		c.key[len(c.key)-1] |= s << (8 * (k % 4))
	}
	c.pieces, c.operations = c.pieces+1, c.operations+operations
}

// addWholeChain adds an item that is a chain to the chain. False: it does not go with those before.
func (s *Schedule) addWholeChain(it *Item) bool {
	c, words, at := &s.chain, s.Sigs.Of(it.Sig), s.Addresses(it) // opcode, length, n, operations, a byte a slot, the operations
	operations := int(words[3])
	if c.slots+len(at) > isa.MaxSlots || c.operations+operations > maxOperations {
		return false
	}
	how := func(k int) uint8 { return uint8(words[4+k/4] >> (8 * (k % 4))) }
	before, written := c.slots, uint32(0)
	var slot [isa.MaxSlots]uint32
	for k, a := range at {
		slot[k] = c.slotOf(how(k)&15, a, inOneRun)
		written |= uint32(how(k)/isa.ChainWritten&1) << slot[k]
	}
	if (s.Mixed || c.view > 0) && written != 0 && c.overlaps(before, written) {
		c.slots = before
		return false
	}
	for k, i := range slot[:len(at)] {
		if int(i) < before {
			c.how[i] |= how(k) & isa.ChainWritten
		} else {
			c.how[i] |= how(k)
		}
	}
	c.add(it.Sig, slot[:len(at)], operations)
	return true
}

// slotOf is the slot of a vector, or of views that are so far from one another, a new one if it has none yet.
func (c *chain) slotOf(segment uint8, at, step uint32) uint32 {
	if step == c.view {
		step = inOneRun
	}
	h := at * 0x9E3779B1 >> 26
	for ; c.table[h] != 0; h = (h + 1) % uint32(len(c.table)) {
		if s := c.table[h] - 1; c.at[s] == at && c.how[s]&15 == segment && c.step[s] == step {
			return uint32(s)
		}
	}
	s := c.slots
	c.slots++
	c.table[h] = uint8(c.slots)
	c.at[s], c.how[s], c.step[s] = at, segment, step
	return uint32(s)
}

// overlaps reports whether a slot from the first new one on, or one of those that are now written, a bit each, overlaps
// with another and one of the two is written.
func (c *chain) overlaps(first int, written uint32) bool {
	now := written
	for s, how := range c.how[:c.slots] {
		written |= uint32(how/isa.ChainWritten&1) << s
	}
	all := uint32(1)<<c.slots - 1
	for left := all>>first<<first | now; left != 0; left &= left - 1 {
		s := mathbits.TrailingZeros32(left)
		others := written
		if written>>s&1 != 0 {
			others = all
		}
		for others &^= 1 << s; others != 0; others &= others - 1 {
			o := mathbits.TrailingZeros32(others)
			if (c.how[s]^c.how[o])&15 == 0 && c.meet(s, o) {
				return true
			}
		}
	}
	return false
}

// meet reports whether two slots of a segment have an element in common.
func (c *chain) meet(s, o int) bool {
	if c.view > 0 {
		return c.viewsMeet(s, o)
	}
	return c.at[s]-c.at[o]+c.n-1 < 2*c.n-1
}

// closeChain appends the chain, if there is one, as an item.
func (s *Schedule) closeChain(list []Item, order int32) []Item {
	c := &s.chain
	if c.pieces == 0 {
		return list
	}
	it, pieces := c.first, c.pieces
	it.Sub = order
	c.pieces = 0
	if pieces == 1 {
		return append(list, it)
	}
	if it.Sig = s.chainSignature(); c.view > 0 {
		return s.appendViews(list, it)
	}
	return append(list, s.withVectors(it))
}

// withVectors is the item with the chain's vectors.
func (s *Schedule) withVectors(it Item) Item {
	if c := &s.chain; c.slots > FewWords {
		it.Words = [FewWords]uint32{uint32(len(s.Pool))}
		s.Pool = append(s.Pool, c.at[:c.slots]...)
	} else {
		copy(it.Words[:], c.at[:c.slots])
	}
	return it
}

// chainSignature is the signature of the chain's instruction. Neighbouring cells are alike: most are one found before.
func (s *Schedule) chainSignature() uint32 {
	c := &s.chain
	recent := &c.recent[hash(c.key)%uint32(len(c.recent))]
	if !slices.Equal(recent.key, c.key) {
		clear(c.how[c.slots:])
		n := c.n
		if c.view > 0 {
			n = c.view
		}
		w := append(s.Sigs.buf[:0], FirstWord(isa.Chain, uint8(c.slots), 0), 0, n, uint32(c.operations))
		for i := 0; i < c.slots; i += 4 {
			w = append(w, binary.LittleEndian.Uint32(c.how[i:]))
		}
		s.Sigs.buf = s.appendOperations(w)
		*recent = recentChain{append(recent.key[:0], c.key...), s.Sigs.Intern(0)}
	}
	return recent.sig
}

// appendOperations appends the operations of the chain's pieces.
func (s *Schedule) appendOperations(w []uint32) []uint32 {
	for key := s.chain.key; len(key) > 0; {
		words, n := s.Sigs.Of(key[0]), int(s.Sigs.Width[key[0]])
		var slot [isa.MaxSlots]uint32
		for k := range n {
			slot[k] = key[1+k/4] >> (8 * (k % 4)) & 0xff
		}
		if s.Sigs.Fuses[key[0]] != chained {
			w = append(w, isa.ChainOp(isa.Fn(words[0]>>8), slot[0], slot[1], slot[2], slot[3], words[0]>>16&isa.Acc != 0), words[4], words[5])
		} else {
			for o := words[4+(n+3)/4:]; len(o) > 0; o = o[isa.ChainOpWords:] {
				w = append(w, isa.WithSlots(o[0], &slot), o[1], o[2])
			}
		}
		key = key[1+(n+3)/4:]
	}
	return w
}
