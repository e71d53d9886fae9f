package cells_test

import (
	"compress/gzip"
	"encoding/binary"
	"io"
	"os"
	"testing"

	"libvpps/bridge"
	"libvpps/bridge/cells"
	"libvpps/bridge/ops"
)

// applications are the benchmark programs, of which batches were recorded.
var applications = []string{"treelstm", "rvnn", "tdrnn", "tdlstm", "bilstm", "bilstm_char"}

// dump is a recorded batch and a model that fits it.
type dump struct {
	bridge.Words
	parameters map[uint32]*bridge.Dim
}

func (d *dump) parameter(id uint32) (*bridge.Dim, bool) {
	p := d.parameters[id]
	return p, p != nil && p.Nd == 7
}

// dumps are recorded batches of a benchmark program.
func dumps(b testing.TB, name string) (list []*dump) {
	f, err := os.Open("../../../shared/cells/dumps/" + name + ".bin.gz")
	if err != nil {
		b.Skip("skipped: needs recorded batches")
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		b.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		b.Fatal(err)
	}
	w := make([]uint32, len(raw)/4)
	for i := range w {
		w[i] = binary.LittleEndian.Uint32(raw[4*i:])
	}
	for len(w) > 0 {
		words := bridge.Words{NodeCount: int(w[1])}
		nw, nd, ni := w[2], w[3], w[4]
		w = w[6:]
		words.Nodes, w = w[:nw], w[nw:]
		for range nd {
			x := bridge.Dim{Nd: w[0], Bd: w[1]}
			copy(x.D[:], w[2:9])
			words.Dims = append(words.Dims, x)
			w = w[9:]
		}
		words.Inputs, w = w[:ni], w[ni:]
		list = append(list, &dump{words, parametersOf(&words)})
	}
	return list
}

// decoded are the graphs of these batches.
func decoded(b testing.TB, name string) (list []*bridge.Graph) {
	for _, d := range dumps(b, name) {
		g := &bridge.Graph{}
		if err := g.Append(&d.Words, d.parameter); err != nil {
			b.Fatal(err)
		}
		list = append(list, g)
	}
	return list
}

// parametersOf makes up parameters that fit the nodes that read them: tables have seven dimensions.
func parametersOf(w *bridge.Words) map[uint32]*bridge.Dim {
	known := map[uint32]*bridge.Dim{}
	for at := 0; at < len(w.Nodes); {
		op, d := ops.Code(w.Nodes[at]&0xff), w.Dims[w.Nodes[at]>>8]
		info := &ops.Table[op]
		args := info.Args
		if at++; args == ops.Variadic {
			args = int(w.Nodes[at])
			at++
		}
		switch attrs := w.Nodes[at+args:]; op {
		case ops.Parameter, ops.ConstParameter:
			known[attrs[0]] = &d
		case ops.Lookup, ops.ConstLookup:
			for ; d.Nd < 7; d.Nd++ {
				d.D[d.Nd] = 1
			}
			d.Bd, d.D[6] = 1, 1<<10
			known[attrs[0]] = &d
		}
		at += args + len(info.Attrs)
	}
	return known
}

// The cost of finding cells in recorded batches of the benchmark programs, and what was found.
func BenchmarkFind(b *testing.B) {
	for _, app := range applications {
		for _, batch := range []string{"1", "16"} {
			b.Run(app+batch, func(b *testing.B) {
				graphs := decoded(b, app+"."+batch)
				var d cells.Dictionary
				var p cells.Program
				nodes, instances, loose := 0, 0, 0
				find := func() {
					for _, g := range graphs {
						d.Find(g, 0, uint32(g.Len()), &p)
						nodes, instances, loose = nodes+g.Len(), instances+len(p.Instances), loose+p.Loose
					}
				}
				find()
				nodes, instances, loose = 0, 0, 0
				for b.Loop() {
					find()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(nodes), "ns/node")
				b.ReportMetric(float64(nodes)/float64(instances), "nodes/instance")
				b.ReportMetric(100*float64(loose)/float64(nodes), "%loose")
			})
		}
	}
}

// The cost of decoding the same batches.
func BenchmarkAppend(b *testing.B) {
	for _, app := range applications {
		for _, batch := range []string{"1", "16"} {
			b.Run(app+batch, func(b *testing.B) {
				batches := dumps(b, app+"."+batch)
				var g bridge.Graph
				nodes := 0
				for b.Loop() {
					for _, d := range batches {
						g.Reset()
						if err := g.Append(&d.Words, d.parameter); err != nil {
							b.Fatal(err)
						}
						nodes += d.NodeCount
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(nodes), "ns/node")
			})
		}
	}
}
