package cells

import (
	"libvpps/bridge"
	"libvpps/bridge/ops"
)

// Learning. Cells are the maximal stretches of nodes that no context ever leaves or enters in two ways: the unitigs of
// a de Bruijn graph over the nodes' keys. New evidence only adds cuts. Then neighbours that belong together are joined
// (join.go).

// context is the keys of three nodes one after another; 0 stands for no node.
type context [3]int32

// several stands for more than one key.
const several = int32(-1)

// evidence is the only key that was seen after, or before, each context, or several.
type evidence struct{ after, before map[context]int32 }

// sample is a stretch of nodes that is learnt from. Its nodes are counted from its first.
type sample struct {
	keys    []int32
	start   []uint32 // node v's arguments are args[start[v]:start[v+1]], without parameters and nodes before the sample
	args    []uint32
	lastUse []uint32 // by node: the last node that reads it
	left    []uint32 // by node: the parameter that it multiplies by from the left, plus 1; 0: none
	hashes  []uint64 // of the keys of the first nodes, of n+1
	cut     bool     // nodes after it are left out
	sum     bool     // its last node adds up many, and belongs to no template
	shapes  []bool   // by node: its items have another shape with other input words
}

// learn learns templates from the present stretch, nodes [from, to).
func (d *Dictionary) learn(g *bridge.Graph, from, to uint32) {
	for v := from; v < to; v++ {
		d.keyAt(g, from, v)
	}
	s := newSample(g, from, min(to, from+mostOfOne), d.present)
	s.cut = to-from > mostOfOne
	d.remember(s)
	d.seen.add(s)
	pieces := make([][]piece, len(d.samples))
	for k, s := range d.samples {
		pieces[k] = d.seen.pieces(s)
	}
	join(d.samples, pieces)
	count := map[uint64]int{}
	for _, l := range pieces {
		for _, x := range l {
			count[x.content]++
		}
	}
	done := map[uint64]int{}
	for _, x := range pieces[len(pieces)-1] {
		// Pieces of one content differ in their arguments, mostly not: a few of each are looked at.
		if count[x.content] < 2 || s.sum && x.to == uint32(len(s.keys)) || done[x.content] >= mostVariants {
			continue
		}
		done[x.content]++
		d.adopt(newTemplate(g, d.present[x.from:], d.keys.dimOf, from+x.from, from+x.to))
	}
	d.forget()
}

// mostVariants is how many occurrences of one content become templates, if their arguments differ.
const mostVariants = 8

// remember adds a sample; the oldest go.
func (d *Dictionary) remember(s *sample) {
	d.samples = append(d.samples, s)
	nodes := 0
	for _, x := range d.samples {
		nodes += len(x.keys)
	}
	for len(d.samples) > mostSamples || nodes > mostNodes && len(d.samples) > 1 {
		nodes -= len(d.samples[0].keys)
		d.samples = append(d.samples[:0], d.samples[1:]...)
	}
}

func newSample(g *bridge.Graph, from, to uint32, keys []int32) *sample {
	n := to - from
	s := &sample{keys: append([]int32(nil), keys[:n]...), start: make([]uint32, 1, n+1), lastUse: make([]uint32, n),
		left: make([]uint32, n), shapes: make([]bool, n), hashes: make([]uint64, n+1)}
	for v := range n {
		op, args := g.Op[from+v], g.ArgsOf(from+v)
		s.shapes[v] = hasShapes(g, from+v)
		for k, a := range args {
			if id, ok := parameter(g, a); ok {
				if op == ops.MatrixMultiply && k == 0 || op == ops.AffineTransform && k%2 == 1 {
					s.left[v] = id + 1
				}
			} else if a >= from {
				s.args = append(s.args, a-from)
				s.lastUse[a-from] = v
			}
		}
		s.start = append(s.start, uint32(len(s.args)))
		s.hashes[v+1] = s.hashes[v]*base + uint64(uint32(s.keys[v]))
	}
	s.sum = n > 0 && g.Op[to-1] == ops.Sum
	return s
}

const base = 0x9E3779B97F4A7C15

// content stands for the keys of nodes [from, to).
func (s *sample) content(from, to uint32) uint64 {
	power := uint64(1)
	for range to - from {
		power *= base
	}
	return s.hashes[to] - s.hashes[from]*power + uint64(to-from)
}

// at is the key of node i, 0 outside.
func (s *sample) at(i int) int32 {
	if i < 0 || i >= len(s.keys) {
		return 0
	}
	return s.keys[i]
}

// mostContexts bounds the evidence.
const mostContexts = 1 << 18

// add notes the keys before and after each context of a sample.
func (e *evidence) add(s *sample) {
	if e.after == nil || len(e.after) > mostContexts {
		e.after, e.before = map[context]int32{}, map[context]int32{}
	}
	note := func(m map[context]int32, c context, key int32) {
		if old, ok := m[c]; !ok {
			m[c] = key
		} else if old != key {
			m[c] = several
		}
	}
	gaps := len(s.keys)
	if s.cut {
		gaps -= len(context{}) // the keys after it are not known
	}
	for i := 0; i <= gaps; i++ {
		note(e.after, s.contextBefore(i), s.at(i))
		note(e.before, s.contextFrom(i), s.at(i-1))
	}
}

// contextBefore is the keys of the three nodes before node i, contextFrom of node i and the two after it.
func (s *sample) contextBefore(i int) context { return context{s.at(i - 3), s.at(i - 2), s.at(i - 1)} }
func (s *sample) contextFrom(i int) context   { return context{s.at(i), s.at(i + 1), s.at(i + 2)} }

// pieces cuts a sample before each node that could have come after, or have had before it, something else.
func (e *evidence) pieces(s *sample) []piece {
	var out []piece
	from := 0
	end := func(to int) {
		if to > from {
			out = append(out, piece{s.content(uint32(from), uint32(to)), uint32(from), uint32(to)})
		}
		from = to
	}
	for i := 1; i < len(s.keys); i++ {
		if e.after[s.contextBefore(i)] == several || e.before[s.contextFrom(i)] == several || i-from >= Longest || s.shapes[i-1] || s.shapes[i] || s.sum && i == len(s.keys)-1 {
			end(i)
		}
	}
	end(len(s.keys))
	if s.sum {
		out[len(out)-1].content = anything
	}
	return out
}
