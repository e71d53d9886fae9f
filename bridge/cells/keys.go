package cells

import (
	"encoding/binary"
	"slices"

	"libvpps/bridge"
	"libvpps/bridge/ops"
)

// keyTable numbers what nodes are: equal numbers stand for the same operation, dim, attributes, number and dims of
// arguments, and parameters among them. Attributes of an instance's own do not count, nor does which nodes the other
// arguments are.
type keyTable struct {
	numbers map[string]int32
	dims    map[bridge.Dim]uint32
	dimOf   []uint32                // numbers of the present graph's dims,
	present []bridge.Dim            // which these are
	recent  [1 << recentBits]recent // by a hash: the number found there last
	words   []uint32                // of the present node
}

// recent is a node of few words and its number, 0: none.
type recent struct {
	words  [fewWords]uint32
	count  uint8
	number int32
}

const fewWords, recentBits = 23, 10

// parameterWord marks a word as no number of a dim.
const parameterWord = 1 << 31

// begin numbers the dims of a graph.
func (t *keyTable) begin(g *bridge.Graph) {
	if t.numbers == nil {
		t.numbers, t.dims = map[string]int32{}, map[bridge.Dim]uint32{}
	}
	known := 0 // graphs one after another have mostly the same
	for known < min(len(g.Dims), len(t.present)) && g.Dims[known] == t.present[known] {
		known++
	}
	t.dimOf, t.present = t.dimOf[:known], t.present[:known]
	for _, d := range g.Dims[known:] {
		n, ok := t.dims[d]
		if !ok {
			n = uint32(len(t.dims))
			t.dims[d] = n
		}
		t.dimOf, t.present = append(t.dimOf, n), append(t.present, d)
	}
}

// keyOf is node v's key.
func (t *keyTable) keyOf(g *bridge.Graph, v uint32) int32 {
	op, args := g.Op[v], g.ArgsOf(v)
	w := append(t.words[:0], uint32(op)|uint32(len(args))<<8, t.dimOf[g.Dim[v]])
	list := ops.Table[op].Attrs // empty for Windows, which has attributes
	for k, x := range g.AttrsOf(v) {
		if k >= len(list) || !Own(list[k].Kind) {
			w = append(w, x)
		}
	}
	for _, a := range args {
		w = append(w, t.dimOf[g.Dim[a]])
		if o := g.Op[a]; isParameter(o) {
			w = append(w, parameterWord|uint32(o), g.AttrsOf(a)[0])
		}
	}
	t.words = w
	h := uint64(0)
	for _, x := range w {
		h = (h + uint64(x)) * 0x9E3779B97F4A7C15
	}
	r := &t.recent[h>>(64-recentBits)]
	if int(r.count) == len(w) && slices.Equal(r.words[:len(w)], w) {
		return r.number
	}
	n := t.number(w)
	if len(w) <= fewWords {
		copy(r.words[:], w)
		r.count, r.number = uint8(len(w)), n
	}
	return n
}

// number is the number of a node's words.
func (t *keyTable) number(w []uint32) int32 {
	var b []byte
	for _, x := range w {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	n, ok := t.numbers[string(b)]
	if !ok {
		n = int32(len(t.numbers)) + 1
		t.numbers[string(b)] = n
	}
	return n
}
