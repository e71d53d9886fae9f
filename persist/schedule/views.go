package schedule

import "libvpps/persist/isa"

// Views: a part of each of several vectors that lie at equal distances, such as the same rows of all batch elements. An
// element-wise Strided between such views and whole vectors is a part of a chain like a Map. The chain has an item for each
// of the vectors then. Without that, copies would stand before and after it.

// leastView is how long the vectors of a view are, at least: a warp's elements.
const leastView = 32

// mostViews bounds the items that a chain with views becomes, where no pieces share them.
const mostViews = 16

// isView reports whether the words of a Strided are of views.
func isView(w []uint32) bool {
	if w[3]&0xFFFF != 2 || w[6] < leastView || isa.FnTable[isa.Fn(w[0]>>8)].Arity > 3 {
		return false
	}
	for at := 8; at < len(w); at += 2 { // strides of each operand
		if w[at] != 1 {
			return false
		}
	}
	return true
}

// fuseViews says which views are fused: those of batch vectors. If batch is 0, those of up to most.
func (s *Schedule) fuseViews(batch, most uint32) { s.chain.batch, s.chain.most = batch, most }

// joinsViews reports whether as many views as a signature has may be fused.
func (c *chain) joinsViews(words []uint32) bool {
	if c.batch > 0 {
		return words[7] == c.batch
	}
	return words[7] <= c.most
}

// inOneRun is the step of a slot whose vectors follow one another.
const inOneRun = ^uint32(0)

// stepIn is how far the vectors of an instruction's k-th operand are from one another.
func stepIn(words []uint32, views bool, k int) uint32 {
	if views {
		return words[9+2*k]
	}
	return inOneRun
}

// stepOf is how far a slot's vectors are from one another.
func (c *chain) stepOf(slot int) uint32 {
	if c.step[slot] == inOneRun {
		return c.view
	}
	return c.step[slot]
}

// viewsMeet reports whether elements of two slots are the same, or might be.
func (c *chain) viewsMeet(s, o int) bool {
	if c.at[s] < c.at[o] {
		s, o = o, s
	}
	x, y, d := c.stepOf(s), c.stepOf(o), c.at[s]-c.at[o]
	if (c.n/c.view-1)*y+c.view <= d {
		return false
	}
	return x != y || x == 0 || d%x < c.view || d%x > x-c.view
}

// appendViews appends what a chain with views is: an item for each vector or, with a batched cluster, one that pieces share.
func (s *Schedule) appendViews(list []Item, it Item) []Item {
	c := &s.chain
	if c.batch > 0 {
		s.Wide.viewed = append(s.Wide.viewed, viewed{len(list), uint32(len(s.Pool))})
		for k := range max(c.slots, FewWords) {
			s.Pool = append(s.Pool, c.stepOf(k))
		}
		return append(list, s.withVectors(it))
	}
	for range c.n / c.view {
		list = append(list, s.withVectors(it))
		for k := range c.slots {
			c.at[k] += c.stepOf(k)
		}
	}
	return list
}
