package script

// What all processors of a class do alike: they wait, multiply and signal. It is written once, and copied into their
// streams between the levels where a processor has something else to do besides.

// common is the classes' streams.
type common struct {
	loads  []int32  // by class and level: what it has there costs, 0: it has nothing
	words  []uint32 // of all classes
	starts []uint32 // by class and level, where in words its section begins; one more than there are
	inner  []inner  // by class and level, which part of the section is neither waiting nor signalling
	shifts []shift
	at     []uint32 // by class and level, where in shifts those of the section begin; one more than there are
	lists  []uint32 // the items of clusters in slices, which come behind the products' lists
}

type inner struct{ from, to uint32 }

// shift is a word that says how far apart two holders' results are; each has that times its own rank.
type shift struct {
	word uint32
	part int32 // of the matrix
}

// writeCommon writes the sections of all classes.
func (b *Builder) writeCommon(levels int) {
	x := &b.common
	x.starts, x.at, x.shifts, x.inner, x.lists = x.starts[:0], x.at[:0], x.shifts[:0], x.inner[:0], x.lists[:0]
	w := streamWriter{b: b, streamMemory: &b.writers[0], words: x.words[:0]}
	for c, p := range b.plan.first {
		w.p = p
		for l := range levels {
			x.starts, x.at = append(x.starts, uint32(len(w.words))), append(x.at, uint32(len(x.shifts)))
			first, level := len(w.words), &b.levels[l]
			x.inner = append(x.inner, inner{uint32(first), uint32(first)})
			if x.loads[c*levels+l] == 0 {
				continue
			}
			w.enter(level)
			part := &x.inner[len(x.inner)-1]
			part.from = uint32(len(w.words))
			w.products(level)
			w.ofGroup(c, l)
			part.to = uint32(len(w.words))
			x.shifts = append(x.shifts, w.shifts...)
			w.leave(level, first)
		}
	}
	x.starts, x.at, x.words = append(x.starts, uint32(len(w.words))), append(x.at, uint32(len(x.shifts))), w.words
}

// copyInner appends what p's class does in a level, without waiting and signalling.
func (w *streamWriter) copyInner(level, levels int) {
	x := &w.b.common
	k := int(w.b.plan.class[w.p])*levels + level
	part := x.inner[k]
	at := uint32(len(w.words))
	w.words = append(w.words, x.words[part.from:part.to]...)
	w.shift(at-part.from, x.shifts[x.at[k]:x.at[k+1]])
}

// copyCommon appends what p's class does in levels [from, to).
func (w *streamWriter) copyCommon(from, to, levels int) {
	x := &w.b.common
	first := int(w.b.plan.class[w.p]) * levels
	from, to = first+from, first+to
	if x.starts[from] == x.starts[to] {
		return
	}
	at := uint32(len(w.words))
	w.words = append(w.words, x.words[x.starts[from]:x.starts[to]]...)
	w.shift(at-x.starts[from], x.shifts[x.at[from]:x.at[to]])
}

// shift makes the shifts of products, which were written so many words earlier, those of p's results.
func (w *streamWriter) shift(by uint32, shifts []shift) {
	t := &w.b.plan
	for _, s := range shifts {
		w.words[s.word+by] *= uint32(t.rank[int(s.part)*len(t.class)+int(w.p)])
	}
}
