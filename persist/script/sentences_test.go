package script

import (
	"slices"
	"testing"

	"libvpps/bridge"
	"libvpps/bridge/ops"
)

// sentences is the request of a batch: several times the same random graph, with the parameters of the first, and
// a sum of the losses. It is nil if the seed's graph is not one to train with.
func sentences(t *testing.T, seed uint64, count int) *Request {
	t.Helper()
	r := requested(t, seed)
	if !r.Backward {
		return nil
	}
	from, to := r.Graph, &bridge.Graph{Dims: r.Graph.Dims, Inputs: r.Graph.Inputs}
	at := make([]uint32, from.Len())
	copyNode := func(v uint32) {
		at[v] = uint32(to.Len())
		var args []uint32
		for _, a := range from.ArgsOf(v) {
			args = append(args, at[a])
		}
		appendNode(to, from.Op[v], from.Dim[v], from.AttrsOf(v), args...)
	}
	shared := func(v uint32) bool { return seed%5 > 0 && from.Op[v] == ops.Parameter }
	for v := range r.Node + 1 {
		if shared(v) {
			copyNode(v)
		}
	}
	var losses []uint32
	for range count {
		for v := range r.Node + 1 {
			if !shared(v) {
				copyNode(v)
			}
		}
		losses = append(losses, at[r.Node])
	}
	appendNode(to, ops.Sum, from.Dim[r.Node], nil, losses...)
	r.Graph, r.Node = to, uint32(to.Len()-1)
	if seed%3 == 0 { // as weight decay leaves it
		for i := range r.Params {
			r.Params[i].Factor = 0.75
		}
	}
	return r
}

func appendNode(g *bridge.Graph, op ops.Code, dim uint32, attrs []uint32, args ...uint32) {
	if g.Len() == 0 {
		g.ArgStart, g.AttrStart = []uint32{0}, []uint32{0}
	}
	g.Op, g.Dim = append(g.Op, op), append(g.Dim, dim)
	g.Args, g.Attrs = append(g.Args, args...), append(g.Attrs, attrs...)
	g.ArgStart, g.AttrStart = append(g.ArgStart, uint32(len(g.Args))), append(g.AttrStart, uint32(len(g.Attrs)))
}

// Cuts are found where nothing but shared nodes crosses them, and parts are about equal.
func TestPartsAreWholeSentences(t *testing.T) {
	defer PartNodes(PartNodes(4))
	divided := 0
	for seed := range uint64(40) {
		const count = 2 * mostParts
		r := sentences(t, seed, count)
		if r == nil {
			continue
		}
		var b Builder
		if _, err := b.Build(r); err != nil {
			t.Fatal(err)
		}
		list := b.division.list
		if len(b.Parts) == 0 {
			continue
		}
		divided++
		if len(list) != mostParts {
			t.Errorf("seed %d: %d sentences make %d parts", seed, count, len(list))
		}
		first, sentence := list[0].first, int(r.Node)/count+1
		for _, p := range list {
			if n := int(p.end - p.first); p.first != first || n < sentence/2 || n > 3*sentence {
				t.Errorf("seed %d: a part is nodes %d to %d behind %d, a sentence has %d", seed, p.first, p.end, first, sentence)
			}
			first = p.end
			for v := p.first; v < p.end; v++ {
				if slices.ContainsFunc(r.Graph.ArgsOf(v), func(a uint32) bool { return a >= p.shared && a < p.first }) {
					t.Errorf("seed %d: node %d has arguments in another part", seed, v)
				}
			}
		}
	}
	if divided < 20 {
		t.Errorf("only %d batches were divided", divided)
	}
}
