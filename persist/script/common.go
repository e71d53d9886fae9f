package script

// What all processors of a class do alike: they wait, multiply and signal. It is written once, and copied into their
// streams between the levels where a processor has something else to do besides.

// common is the classes' streams.
type common struct {
	loads  []int32  // by class and level: what its products there cost, 0: it has none
	words  []uint32 // of all classes
	starts []uint32 // by class and level, where in words its section begins; one more than there are
	shifts []shift
	at     []uint32 // by class and level, where in shifts those of the section begin; one more than there are
}

// shift is a word that says how far apart two holders' results are; each has that times its own rank.
type shift struct {
	word uint32
	part int32 // of the matrix
}

// writeCommon writes the sections of all classes.
func (b *Builder) writeCommon(levels int) {
	x := &b.common
	x.starts, x.at, x.shifts = x.starts[:0], x.at[:0], x.shifts[:0]
	w := streamWriter{b: b, streamMemory: &b.writers[0], words: x.words[:0]}
	for c, p := range b.plan.first {
		w.p = p
		for l := range levels {
			x.starts, x.at = append(x.starts, uint32(len(w.words))), append(x.at, uint32(len(x.shifts)))
			if x.loads[c*levels+l] == 0 {
				continue
			}
			first, level := len(w.words), &b.levels[l]
			w.enter(level)
			w.products(level)
			x.shifts = append(x.shifts, w.shifts...)
			w.leave(level, first)
		}
	}
	x.starts, x.at, x.words = append(x.starts, uint32(len(w.words))), append(x.at, uint32(len(x.shifts))), w.words
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
