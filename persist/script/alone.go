package script

import "libvpps/persist/isa"

// The stream of a CPU's only processor. There are no barriers, and nothing is fused. So it is written level by level,
// and nobody asks which items belong together.

// alone reports whether one processor of a CPU executes all, and no part was lowered by itself.
func (b *Builder) alone() bool {
	return b.r.Plan.CPU && b.r.Plan.Processors == 1 && len(b.division.taken) == 0 && len(b.out.Script.Library) == 0
}

// orderByLevel orders items by level, those of one as they came; count[l] is where level l ends.
func (b *Builder) orderByLevel(levels int) {
	b.count = resize(b.count, levels+1)
	count := b.count[:levels+1]
	clear(count)
	for i := range b.items {
		it := &b.items[i]
		it.cluster = b.find(it.cluster)
		count[b.clusters[it.cluster].level+1]++
	}
	for l := range levels {
		count[l+1] += count[l]
	}
	b.sorted = resize(b.sorted, len(b.items))
	for i := range b.items {
		at := &count[b.clusters[b.items[i].cluster].level]
		b.sorted[*at] = b.items[i]
		*at++
	}
	b.items, b.sorted = b.sorted, b.items
}

// appendAlone appends the stream.
func (b *Builder) appendAlone(words []uint32, levels int) []uint32 {
	words = isa.Align(words)
	x := words[isa.HeadWords:]
	x[isa.ProcStart], x[isa.ProcRank], x[isa.ProcGroup], x[isa.ProcOwn], x[isa.ProcPieces] = uint32(len(words)), 0, 1, 0, 0
	w := streamWriter{b: b, streamMemory: &b.writers[0], words: words, start: len(words)}
	from := uint32(0)
	for l := range levels {
		if l == int(b.cut) {
			w.words = isa.Align(append(w.words, uint32(isa.Halt)))
			x := w.words[isa.HeadWords:]
			x[isa.ProcOwn], x[isa.ProcPieces] = uint32(len(w.words)), uint32(isa.Pieces(len(w.words)-w.start))
			w.start = len(w.words)
		}
		first, end := len(w.words), b.count[l]
		w.products(&b.levels[l])
		if len(b.closing.parts) > 0 && l >= int(b.closing.first) {
			w.close(l)
		}
		if w.write(b.items[from:end]); len(w.words) > first {
			w.words[first] |= b.levels[l].phase
		}
		from = end
	}
	return append(w.words, uint32(isa.Halt))
}
