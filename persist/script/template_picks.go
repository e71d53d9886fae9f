package script

// Picked addresses of a template. Where a PickElement reads depends on an input word, which every instance has its own of.
// In the small graph such an address is one of what is picked from, plus a multiple of a number so large that no other
// address is.

// pickWindow is that number. Addresses of a template that picks are below it.
const pickWindow = 1 << 26

// mostPicks is how many multiples of it there are. One node takes up to cells.MostPicked of them.
const mostPicks = 1<<32/pickWindow - 2

// pick is which input word times which step.
type pick struct{ input, step uint32 }

// picked is what is added to an address from which something is picked.
func (b *Builder) picked(word, step uint32) uint32 {
	x := pick{word - symbolicInput, step}
	for i, p := range b.picks {
		if p == x {
			return uint32(i+1) * pickWindow
		}
	}
	b.picks = append(b.picks, x)
	return uint32(len(b.picks)) * pickWindow
}

// isPicked reports whether an address is a picked one.
func (b *Builder) isPicked(at uint32) bool {
	return len(b.picks) > 0 && at >= pickWindow && at != NoOffset
}

// pickedFrom is the table's entry of a picked address.
func (l *cellLowering) pickedFrom(entry uint32, p pick) uint32 {
	c, x := l.c, cellPick{entry, p.input, p.step}
	for i := range c.picks {
		if c.picks[i] == x {
			return c.atPicks() + uint32(i)
		}
	}
	c.picks = append(c.picks, x)
	return c.atPicks() + uint32(len(c.picks)-1)
}

// fillPicks fills in the picked addresses of a table that is filled in otherwise.
func (c *loweredCell) fillPicks(t []uint32) {
	at := c.atPicks()
	for i, x := range c.picks {
		t[at+uint32(i)] = t[x.entry] + t[c.atInputs()+x.input]*x.step
	}
}
