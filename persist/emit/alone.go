package emit

import "libvpps/persist/isa"

// The stream of a CPU's only processor. There are no barriers, and nothing is fused. So it is written level by level,
// and nobody asks which items belong together.

// alone reports whether one processor of a CPU executes all.
func (e *Emitter) alone() bool {
	return e.Plan.CPU && e.Plan.Processors == 1 && len(e.Library) == 0
}

// appendAlone appends the stream.
func (e *Emitter) appendAlone(words []uint32, levels int, ends []uint32) []uint32 {
	words = isa.Align(words)
	x := words[isa.HeadWords:]
	x[isa.ProcStart], x[isa.ProcOwn], x[isa.ProcPieces] = uint32(len(words)), 0, 0
	w := streamWriter{e: e, words: words, start: len(words)}
	from := uint32(0)
	for l := range levels {
		if l == int(e.Cut) {
			w.words = isa.Align(append(w.words, uint32(isa.Halt)))
			x := w.words[isa.HeadWords:]
			x[isa.ProcOwn], x[isa.ProcPieces] = uint32(len(w.words)), uint32(isa.Pieces(len(w.words)-w.start))
			w.start = len(w.words)
		}
		first, end := len(w.words), ends[l]
		w.products(&e.levels[l])
		if len(e.Closing.Parts) > 0 && l >= int(e.Closing.First) {
			w.words = e.Closing.Append(w.words, w.start, 0, l)
		}
		if w.write(e.Items[from:end]); len(w.words) > first {
			w.words[first] |= e.levels[l].phase
		}
		from = end
	}
	return append(w.words, uint32(isa.Halt))
}
