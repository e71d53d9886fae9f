package bridge_test

import (
	"encoding/binary"
	"testing"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/reference"
)

// pack and unpack turn words into the bytes that the fuzzer works on.
func pack(words []uint32) []byte {
	b := make([]byte, 0, 4*len(words))
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

func unpack(b []byte) []uint32 {
	words := make([]uint32, len(b)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return words
}

func packDims(dims []bridge.Dim) []byte {
	var words []uint32
	for i := range dims {
		words = append(append(words, dims[i].Nd, dims[i].Bd), dims[i].D[:]...)
	}
	return pack(words)
}

func unpackDims(b []byte) []bridge.Dim {
	words := unpack(b)
	dims := make([]bridge.Dim, len(words)/9)
	for i := range dims {
		w := words[9*i:]
		dims[i].Nd, dims[i].Bd = w[0], w[1]
		copy(dims[i].D[:], w[2:9])
	}
	return dims
}

// FuzzAppend: whatever the words, Append returns a graph that can be trusted or an error
// that leaves the graph as it was.
func FuzzAppend(f *testing.F) {
	params := make([]*reference.RandomGraph, 0, 8)
	for seed := range uint64(8) {
		g, err := reference.Random(seed, reference.Options{Random: true, Nodes: 20})
		if err != nil {
			f.Fatal(err)
		}
		params = append(params, g)
		f.Add(pack(g.Words.Nodes), g.Words.NodeCount, packDims(g.Words.Dims), pack(g.Words.Inputs), uint8(seed))
	}
	f.Fuzz(func(t *testing.T, nodes []byte, count int, dims, inputs []byte, which uint8) {
		if count > len(nodes) {
			return // nothing to learn, and it would only be slow to say so
		}
		w := bridge.Words{Nodes: unpack(nodes), NodeCount: count, Dims: unpackDims(dims), Inputs: unpack(inputs)}
		var g bridge.Graph
		p := params[int(which)%len(params)].Parameter
		if err := g.Append(&w, p); err != nil {
			if g.Len() != 0 || len(g.Args) != 0 || len(g.Attrs) != 0 || len(g.Dims) != 0 {
				t.Errorf("refused with %q, but something is left", err)
			}
			return
		}
		checkGraph(t, &g)
		n := g.Len()
		more := bridge.Words{Nodes: []uint32{0xff}, NodeCount: 1, Inputs: w.Inputs}
		if err := g.Append(&more, p); err == nil || g.Len() != n {
			t.Errorf("an unknown operation left %d nodes behind %d, error %v", g.Len(), n, err)
		}
	})
}

// checkGraph checks what everybody behind the decoder relies on.
func checkGraph(t *testing.T, g *bridge.Graph) {
	t.Helper()
	for i := range uint32(g.Len()) {
		if !g.Op[i].Known() {
			t.Fatalf("node %d: %s", i, g.Op[i])
		}
		d := g.DimOf(i)
		if n := d.Size(); n < 1 || n > bridge.MaxTensor {
			t.Fatalf("node %d has %d elements", i, n)
		}
		for _, a := range g.ArgsOf(i) {
			if a >= i {
				t.Fatalf("node %d has argument %d", i, a)
			}
		}
		if have, want := len(g.AttrsOf(i)), len(ops.Table[g.Op[i]].Attrs); have != want {
			t.Fatalf("node %d has %d attributes, not %d", i, have, want)
		}
	}
}
