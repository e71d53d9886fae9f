package emit

import "libvpps/persist/isa"

// The stream of a CPU's only processor. There are no barriers, and nothing is fused. So it is written level by level,
// and nobody asks which items belong together.

// alone reports whether one processor of a CPU executes all.
func (e *Emitter) alone() bool {
	return e.Plan.CPU && e.Plan.Processors == 1
}

// appendAlone appends the stream.
func (e *Emitter) appendAlone(words []uint32, levels int, ends []uint32) []uint32 {
	words = isa.Align(words)
	words[isa.HeadWords+isa.ProcStart] = uint32(len(words))
	w := streamWriter{e: e, words: words, start: len(words)}
	from := uint32(0)
	for l := range levels {
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
