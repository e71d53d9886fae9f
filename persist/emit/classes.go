package emit

import (
	"libvpps/persist/memory"
)

// What all processors of a class do alike: they wait, multiply and signal. It is written once, and copied into their
// streams between the levels where a processor has something else to do besides.

// classes is what there is of all classes.
type classes struct {
	loads   []int32 // by class and level: what it has there costs, 0: it has nothing
	streams []classStream
}

// classStream is the stream of a class.
type classStream struct {
	words  []uint32
	starts []uint32 // by level, where in words its section begins; one more than there are
	inner  []inner  // by level, which part of the section is neither waiting nor signalling
}

type inner struct{ from, to uint32 }

// writeClasses writes the sections of all classes.
func (e *Emitter) writeClasses(levels int) {
	x := &e.classes
	n := len(e.Holders.First)
	x.streams = memory.Extend(x.streams[:cap(x.streams)], n, classStream{})[:n]
	for c := range n {
		e.writeClass(c, levels)
	}
}

// writeClass writes the sections of class c.
func (e *Emitter) writeClass(c, levels int) {
	s := &e.classes.streams[c]
	s.starts, s.inner = s.starts[:0], s.inner[:0]
	w := streamWriter{e: e, p: e.Holders.First[c], words: s.words[:0]}
	loads := e.classes.loads[c*levels:][:levels]
	for l := range levels {
		s.starts = append(s.starts, uint32(len(w.words)))
		first, level := len(w.words), &e.levels[l]
		s.inner = append(s.inner, inner{uint32(first), uint32(first)})
		if loads[l] == 0 {
			continue
		}
		w.enter(level)
		part := &s.inner[len(s.inner)-1]
		part.from = uint32(len(w.words))
		w.products(level)
		part.to = uint32(len(w.words))
		w.leave(level, first)
	}
	s.starts, s.words = append(s.starts, uint32(len(w.words))), w.words
}

// copyInner appends what p's class does in a level, without waiting and signalling.
func (w *streamWriter) copyInner(level int) {
	s := &w.e.classes.streams[w.e.Holders.Class[w.p]]
	part := s.inner[level]
	w.words = append(w.words, s.words[part.from:part.to]...)
}

// copyClass appends what p's class does in levels [from, to).
func (w *streamWriter) copyClass(from, to int) {
	s := &w.e.classes.streams[w.e.Holders.Class[w.p]]
	w.words = append(w.words, s.words[s.starts[from]:s.starts[to]]...)
}
