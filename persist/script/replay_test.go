package script_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"libvpps/bridge"
	"libvpps/persist/example"
	"libvpps/persist/finish"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/schedule"
	"libvpps/persist/script"
)

// Writes scripts with all that running them needs to files, for test/replay: into the folder
// VPPS_REPLAY, or one that is thrown away. A file is words: the number of processors,
// matrices, partitions and script words; the matrices; where each matrix's and processor's
// partitions begin; the partitions; the script; then each segment's length and contents.
func TestReplayFiles(t *testing.T) {
	dir := os.Getenv("VPPS_REPLAY")
	if dir == "" {
		dir = t.TempDir()
	}
	example, err := example.OwnExample()
	if err != nil {
		t.Fatal(err)
	}
	writeReplay(t, filepath.Join(dir, "handmade"), example.Script, example.Plan, example.Memory)
	s, p := forestScript(t, 3, 4)
	writeReplay(t, filepath.Join(dir, "forest"), s, p, liveMemory(s))
	for seed := range uint64(40) {
		s, p := script.Scheduled(t, seed)
		writeReplay(t, filepath.Join(dir, fmt.Sprintf("random%d", seed)), s, p, liveMemory(s))
	}
}

// forestScript is one fb of a Tree-LSTM, hidden size 20, on a few trees.
func forestScript(t *testing.T, trees, processors int) (*isa.Script, *plan.Plan) {
	g, params, matrices := newForest(t, trees, 20)
	p, err := plan.Sliced(matrices, processors)
	if err != nil {
		t.Fatal(err)
	}
	return trainingScript(t, g, params, p), p
}

// trainingScript is one update of all parameters with a graph's last node as the loss.
func trainingScript(t *testing.T, g *bridge.Graph, params []schedule.Param, p *plan.Plan) *isa.Script {
	t.Helper()
	ids := make([]uint32, len(params))
	for i := range ids {
		ids[i] = uint32(i)
	}
	var b script.Builder
	built, err := b.Build(&script.Request{Apart: true, Graph: g, State: &script.State{}, Params: params, Plan: p, Node: uint32(g.Len() - 1),
		Forward: true, Needed: true, Backward: true, Tensors: true,
		Update: &finish.Apply{Params: ids, All: ids, Rate: 0.1, Threshold: 5}})
	if err != nil {
		t.Fatal(err)
	}
	return &built.Script
}

// liveMemory makes segments as long as the script's tensors need: what is live before the
// launch holds numbers, the rest the sentinel.
func liveMemory(s *isa.Script) (m [isa.Segments][]float32) {
	rng := rand.New(rand.NewPCG(7, 7))
	table := s.Words[s.Words[isa.HeadTensors]:s.Words[isa.HeadTensorEnd]]
	for ; len(table) > 0; table = table[isa.TensorWords:] {
		seg, from, n := isa.Segment(table[0]&255), table[1], table[2]
		if seg == isa.SegInput {
			continue // a part of the script
		}
		for uint32(len(m[seg])) < from+n {
			m[seg] = append(m[seg], math.Float32frombits(isa.Sentinel))
		}
		if table[0]>>8&isa.LiveIn != 0 {
			for i := range n {
				m[seg][from+i] = 0.1 + 0.8*rng.Float32()
			}
		}
	}
	return m
}

func writeReplay(t *testing.T, path string, s *isa.Script, p *plan.Plan, memory [isa.Segments][]float32) {
	device := s.Words[:s.Words[isa.HeadDevice]]
	firstBlock, blocks := p.AllGradientBlocks()
	w := []uint32{uint32(p.Processors), uint32(len(p.Matrices)), uint32(len(p.Partitions)), uint32(len(blocks)), uint32(len(device))}
	for _, m := range p.Matrices {
		w = append(w, uint32(m.Rows), uint32(m.Cols), m.Offset)
	}
	var parts []uint32
	for m := range p.Matrices {
		for q := range p.Processors {
			w = append(w, uint32(len(parts)/3))
			for _, x := range p.Of(m) {
				if x.Processor == q {
					parts = append(parts, uint32(x.Row), uint32(x.Rows), uint32(x.Rank))
				}
			}
		}
	}
	w = append(append(w, uint32(len(parts)/3)), parts...)
	for _, x := range firstBlock {
		w = append(w, uint32(x))
	}
	for _, b := range blocks {
		w = append(w, uint32(b.Row), uint32(b.Rows), uint32(b.Column), uint32(b.Columns))
	}
	w = append(w, device...)
	for _, values := range memory {
		w = append(w, uint32(len(values)))
		for _, v := range values {
			w = append(w, math.Float32bits(v))
		}
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := binary.Write(f, binary.LittleEndian, w); err != nil {
		t.Fatal(err)
	}
}
