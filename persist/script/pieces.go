package script

// The backward part of a large sentence by pieces. Sentences are dealt out to goroutines as they are; where there are
// fewer than goroutines, the gradients of one are lowered by several: once it is known in which level and cluster and
// where each gradient comes about, nodes of different clusters have nothing more to do with one another. So a piece is
// a range of nodes that no cluster reaches over. While pieces are lowered, the part's forward items are finished.
//
// Not for a CPU's virtual processors, which need its cores themselves.

import (
	"libvpps/bridge/ops"
	"libvpps/persist/crew"
	"libvpps/persist/memory"
	"libvpps/persist/schedule"
)

// pieceMemory is the memory of a part whose backward part is lowered by pieces.
type pieceMemory struct {
	wanted int        // how many; 0: it is not
	cuts   []uint32   // descending: piece k has the nodes from cuts[k] to the cut before
	low    []uint32   // by cluster, the first node whose gradient it forms
	list   []*Builder // one for each cut

	first, end uint32 // as a piece: its nodes
}

// wantPieces says which parts are lowered by pieces: as many as goroutines that the part is a fair share of the work for.
func (b *Builder) wantPieces() {
	list := b.division.list
	nodes := int(b.division.tail.first - list[0].first)
	for _, p := range list {
		n := int(p.end - p.first)
		p.pieces.wanted = min(crew.MostGoroutines*n/nodes, n/partNodes)
		if p.pieces.wanted < 2 || len(list) >= crew.MostGoroutines || b.Wide.On || b.r.Plan.CPU {
			p.pieces.wanted = 0
		}
	}
}

// placeGradients finds out where the gradients of all nodes come about, and where they are cut into pieces.
func (b *Builder) placeGradients(level int32) {
	b.groupGradients(level)
	b.levelGradients()
	for v := b.end; v > b.first; {
		if v--; !b.wants[v] {
			continue
		}
		if at := b.passAt[v]; at != NoOffset {
			b.s.Grad[v] = b.s.Grad[b.passFrom[v]] + at
		} else if op := b.g.Op[v]; op != ops.Parameter && op != ops.Lookup { // these have one only perhaps, which nobody reads
			b.s.Grad[v] = b.Alloc(b.size(v))
		}
	}
	b.cutPieces()
}

// cutPieces finds cuts, as near below equal pieces as they are.
func (b *Builder) cutPieces() {
	x := &b.pieces
	x.low, x.cuts = memory.Resize(x.low, len(b.Clusters)), x.cuts[:0]
	for v := b.end; v > b.first; {
		if v--; b.wants[v] {
			x.low[b.gcluster[v]] = v
		}
	}
	x.low[schedule.Elsewhere] = b.end
	reach, nodes := b.end, int(b.end-b.first) // reach: the first node of the clusters so far
	for v := b.end; v > b.first; {
		if v--; b.wants[v] {
			reach = min(reach, x.low[b.gcluster[v]])
		}
		if int(b.end-v)*x.wanted >= nodes*(len(x.cuts)+1) && reach >= v || v == b.first {
			x.cuts = append(x.cuts, v)
		}
	}
}

// lowerPieces lowers the pieces of all parts that have some, in memory from top on, and finishes those parts.
func (b *Builder) lowerPieces(top uint32) {
	whole, all := b.division.whole[:0], b.division.pieces[:0]
	for _, p := range b.division.list {
		if p.pieces.wanted > 0 {
			whole, all = append(whole, p), p.appendPieces(all)
		}
		top = max(top, p.Limit)
	}
	b.division.whole, b.division.pieces = whole, all
	if len(whole) == 0 {
		return
	}
	for k, q := range all {
		q.InChunks(b.division.list[0].Chunk, len(all))
		q.ChunksFrom(top, k)
	}
	b.crew.Share(len(whole)+len(all), func(k int) {
		if k < len(whole) {
			whole[k].outerOfShared()
			whole[k].finishPart()
			return
		}
		q := all[k-len(whole)]
		q.lowerGradients(q.pieces.first, q.pieces.end)
		q.finishPart()
	})
}

// appendPieces appends a Builder for each piece of the part, the last nodes' first.
func (b *Builder) appendPieces(all []*Builder) []*Builder {
	from, end := len(all), b.end
	for k, first := range b.pieces.cuts {
		q := b.newPart(k, b.nodeRange)
		q.useStart, q.uses, q.blevel, q.bcluster = b.useStart, b.uses, b.blevel, b.bcluster
		q.Ends, q.Mixed, q.pieces.first, q.pieces.end = b.Ends, b.Mixed, first, end
		all, end = append(all, q), first
	}
	b.pieces.list = all[from:]
	return all
}
