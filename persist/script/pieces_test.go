package script

import (
	"libvpps/persist/schedule"
	"testing"
)

// A part's pieces are all its nodes, and no cluster that forms gradients has nodes of several.
func TestPiecesAreWholeClusters(t *testing.T) {
	defer PartNodes(PartNodes(2))
	cut := 0
	for seed := range uint64(80) {
		r := sentences(t, seed, 1+int(seed%3))
		if r == nil {
			continue
		}
		var b Builder
		if _, err := b.Build(r); err != nil {
			t.Fatal(err)
		}
		if len(b.Parts) == 0 {
			continue
		}
		for _, p := range b.division.list {
			if p.pieces.wanted == 0 {
				continue
			}
			end := p.end
			pieceOf := map[int32]int{}
			for k, q := range p.pieces.list {
				if q.pieces.end != end || q.pieces.first >= end {
					t.Fatalf("seed %d: piece %d is nodes %d to %d, the one before begins at %d", seed, k, q.pieces.first, q.pieces.end, end)
				}
				end = q.pieces.first
				for v := q.pieces.first; v < q.pieces.end; v++ {
					c := p.gcluster[v]
					if !p.wants[v] || c == schedule.Elsewhere {
						continue
					}
					if before, ok := pieceOf[c]; ok && before != k {
						t.Errorf("seed %d: cluster %d has nodes of pieces %d and %d", seed, c, before, k)
					}
					pieceOf[c] = k
				}
			}
			if end != p.first {
				t.Errorf("seed %d: the last piece begins at node %d, the part at %d", seed, end, p.first)
			}
			if len(p.pieces.list) > 1 {
				cut++
			}
		}
	}
	if cut < 20 {
		t.Errorf("only %d parts were cut", cut)
	}
}
