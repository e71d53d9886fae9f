package script

import (
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
