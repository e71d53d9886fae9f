package script

import "libvpps/persist/isa"

// The stream of a CPU's only processor. There are no barriers, and nothing is fused. So it is written level by level,
// and nobody asks which items belong together.

// alone reports whether one processor of a CPU executes all, and no part was lowered by itself.
func (b *emitter) alone() bool {
	return b.Plan.CPU && b.Plan.Processors == 1 && len(b.Parts) == 0 && len(b.Library) == 0
}

// appendAlone appends the stream.
func (b *emitter) appendAlone(words []uint32, levels int, ends []uint32) []uint32 {
	words = isa.Align(words)
	x := words[isa.HeadWords:]
	x[isa.ProcStart], x[isa.ProcRank], x[isa.ProcGroup], x[isa.ProcOwn], x[isa.ProcPieces] = uint32(len(words)), 0, 1, 0, 0
	w := streamWriter{b: b, streamMemory: &b.writers[0], words: words, start: len(words)}
	from := uint32(0)
	for l := range levels {
		if l == int(b.Cut) {
			w.words = isa.Align(append(w.words, uint32(isa.Halt)))
			x := w.words[isa.HeadWords:]
			x[isa.ProcOwn], x[isa.ProcPieces] = uint32(len(w.words)), uint32(isa.Pieces(len(w.words)-w.start))
			w.start = len(w.words)
		}
		first, end := len(w.words), ends[l]
		w.products(&b.levels[l])
		if len(b.closing.Parts) > 0 && l >= int(b.closing.First) {
			w.words = b.closing.Append(w.words, w.start, 0, l)
		}
		if w.write(b.Items[from:end]); len(w.words) > first {
			w.words[first] |= b.levels[l].phase
		}
		from = end
	}
	return append(w.words, uint32(isa.Halt))
}
