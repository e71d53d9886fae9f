package script

// Writing the script: clusters get processors, items are sorted by level, processor and cluster, fused,
// sorted by order and signature, and runs of the same signature become instructions.

import (
	"cmp"
	"slices"

	"libvpps/persist/plan"
)

// emitter is the memory of the last stage.
type emitter struct {
	roots     []uint32 // of a cluster: the one it became a part of
	at        []uint32 // of a root cluster: first its place, level * processors + processor, then where its next item goes
	loads     []int32  // of a level: cost per processor before its clusters
	heap      loadHeap
	sorted    []item
	count     []uint32
	chain     chain
	starts    []uint32 // of a level's and processor's items
	sorter    itemSorter
	levels    []levelPlan
	runs      []run
	joined    []bool // by level and processor: it takes part
	plan      holderTable
	byLevel   []uint32 // clusters by level
	matrixAlt []matrixItem
	lists     []uint32 // items of products, once for all who have them
	outerSeen []outerSeen
}

// outerSeen is a gradient that an Outer of this build stores first.
type outerSeen struct {
	key uint64
	sig uint32
}

// holderTable is who holds which matrix. Part m is the rows of matrix m; part m + the number of matrices is
// the columns of its transposed product, which are the rows' holders' unless it is read from memory.
type holderTable struct {
	of     *plan.Plan
	copies [][][]int32 // by part and copy: its holders, those of the first rows or columns first
	outers []int       // by matrix: how many copies have columns of its gradient to form
	rank   []int32     // by part and processor: its place among the holders of its copy, -1: none
	copy   []int32     // by part and processor: which copy
}

// update makes it the table of a plan.
func (t *holderTable) update(p *plan.Plan) {
	if t.of == p {
		return
	}
	n, parts := p.Processors, 2*len(p.Matrices)
	*t = holderTable{of: p, rank: extend(t.rank[:0], n*parts, -1), copy: extend(t.copy[:0], n*parts, 0)}
	for i := range p.Matrices {
		outers := 0
		for _, x := range p.Of(i) {
			if from, to := p.OuterColumns(&x); from < to {
				outers = max(outers, x.Copy+1)
			}
		}
		t.outers = append(t.outers, outers)
		t.addRows(p, i)
	}
	for i := range p.Matrices {
		if p.Residence(i).Columns > 0 {
			t.addColumns(p, i)
		} else {
			t.addRows(p, i)
		}
	}
}

// addRows adds a part whose holders are those of a matrix's rows.
func (t *holderTable) addRows(p *plan.Plan, m int) {
	copies := make([][]int32, max(1, p.Matrices[m].Copies))
	for _, x := range p.Of(m) {
		at := len(t.copies)*p.Processors + x.Processor
		if t.rank[at] < 0 {
			t.rank[at], t.copy[at] = int32(len(copies[x.Copy])), int32(x.Copy)
			copies[x.Copy] = append(copies[x.Copy], int32(x.Processor))
		}
	}
	t.copies = append(t.copies, copies)
}

// addColumns adds a part whose holders are who forms columns of a transposed product.
func (t *holderTable) addColumns(p *plan.Plan, m int) {
	var holders []int32
	for q := range p.Processors {
		if lo, hi := p.ColumnsOf(m, q); lo < hi {
			t.rank[len(t.copies)*p.Processors+q] = int32(len(holders))
			holders = append(holders, int32(q))
		}
	}
	t.copies = append(t.copies, [][]int32{holders})
}

// columnPart is the part of matrix m that transposed products work on.
func (b *Builder) columnPart(m int32) int32 { return m + int32(len(b.r.Plan.Matrices)) }

// partOf is the part that a product works on.
func (b *Builder) partOf(words []uint32) int32 {
	if Opcode(words[0]) == ProductT {
		return b.columnPart(int32(words[3]))
	}
	return int32(words[3])
}

// emit writes b.out.Script.
func (b *Builder) emit() {
	processors := b.r.Plan.Processors
	levels := int(b.maxLevel) + 1
	b.outerSeen = b.outerSeen[:0]
	b.sortMatrices()
	b.planRuns(levels)
	b.assign(levels, processors)
	b.sortItems()
	b.fuse(levels * processors)
	b.planMembers(levels, processors)
	barriers := b.planBarriers(levels)
	b.assemble(levels, processors, barriers)
}

// sortMatrices orders product items by level and signature, those of equal ones as they came.
func (b *Builder) sortMatrices() {
	b.matrixAlt = resize(b.matrixAlt, len(b.matrices))
	b.count = resize(b.count, max(len(b.sigs.start), int(b.maxLevel)+1)+1)
	countingSort(b.count[:len(b.sigs.start)+1], b.matrices, b.matrixAlt, func(x *matrixItem) uint32 { return x.sig })
	countingSort(b.count[:b.maxLevel+2], b.matrixAlt, b.matrices, func(x *matrixItem) uint32 { return uint32(x.level) })
	// Outer products come last, and those of a matrix together.
	bySig := func(x, y matrixItem) int { return cmp.Compare(x.sig, y.sig) }
	if !slices.IsSortedFunc(b.outers, bySig) {
		slices.SortStableFunc(b.outers, bySig)
	}
	b.matrices = append(b.matrices, b.outers...)
}

// countingSort writes from to to in the order of a key, equal keys as they came. Keys are below
// len(count)-1; count[k] is left as the end of key k.
func countingSort[T any](count []uint32, from, to []T, key func(*T) uint32) {
	clear(count)
	for i := range from {
		count[key(&from[i])+1]++
	}
	for i := range len(count) - 1 {
		count[i+1] += count[i]
	}
	for i := range from {
		k := key(&from[i])
		to[count[k]] = from[i]
		count[k]++
	}
}

// assign gives every cluster, level by level, to the processor with the least load.
func (b *Builder) assign(levels, processors int) {
	b.sortClusters(levels)
	b.at = resize(b.at, len(b.clusters))
	b.starts = resize(b.starts, levels*processors+1)
	clear(b.starts)
	b.loads = resize(b.loads, processors)
	matrix, last := 0, int32(-1)
	heap := loadHeap(resize(b.heap, processors))
	for _, c := range b.byLevel {
		x := &b.clusters[c]
		if l := x.level; l != last {
			clear(b.loads)
			for ; matrix < len(b.runs) && b.runs[matrix].level <= l; matrix++ {
				if r := &b.runs[matrix]; r.level == l {
					for copy, holders := range b.plan.copies[r.part] {
						from, to := b.share(r, copy)
						for _, p := range holders {
							b.loads[p] += 2 * int32(to-from)
						}
					}
				}
			}
			heap.init(b.loads)
			last = l
		}
		at := x.level*int32(processors) + heap.add(x.cost)
		b.at[c] = uint32(at)
		b.starts[at+1] += uint32(x.items)
	}
	b.heap = heap
	for i := range levels * processors {
		b.starts[i+1] += b.starts[i]
	}
}

// sortClusters lists the clusters with items in order of level: counting sort.
func (b *Builder) sortClusters(levels int) {
	b.count = resize(b.count, levels+1)
	clear(b.count)
	for c := range b.clusters {
		if x := &b.clusters[c]; x.parent == int32(c) && x.cost > 0 {
			b.count[x.level+1]++
		}
	}
	for l := range levels {
		b.count[l+1] += b.count[l]
	}
	b.byLevel = resize(b.byLevel, int(b.count[levels]))
	for c := range b.clusters {
		if x := &b.clusters[c]; x.parent == int32(c) && x.cost > 0 {
			b.byLevel[b.count[x.level]] = uint32(c)
			b.count[x.level]++
		}
	}
}

// loadHeap finds the least loaded processor, the lowest number among equals: its elements are
// load<<32 | processor.
type loadHeap []uint64

// init makes it hold all processors.
func (h loadHeap) init(loads []int32) {
	for p, load := range loads {
		h[p] = uint64(load)<<32 | uint64(p)
	}
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h loadHeap) down(i int) {
	x := h[i]
	for {
		k := 2*i + 1
		if k >= len(h) {
			break
		}
		if k+1 < len(h) && h[k+1] < h[k] {
			k++
		}
		if h[k] >= x {
			break
		}
		h[i] = h[k]
		i = k
	}
	h[i] = x
}

// add puts cost on the least loaded processor and returns it.
func (h loadHeap) add(cost int32) int32 {
	p := int32(uint32(h[0]))
	h[0] += uint64(cost) << 32
	h.down(0)
	return p
}

// sortItems orders items by level, processor and cluster, those of a cluster as they came: in an order
// in which they could run one by one.
func (b *Builder) sortItems() {
	b.count = append(b.count[:0], b.starts...)
	for _, c := range b.byLevel {
		next := &b.count[b.at[c]]
		b.at[c] = *next
		*next += uint32(b.clusters[c].items)
	}
	b.roots = resize(b.roots, len(b.clusters))
	for c := range b.clusters {
		if parent := uint32(b.clusters[c].parent); parent == uint32(c) {
			b.roots[c] = parent
		} else {
			b.roots[c] = b.roots[parent] // which is an earlier cluster
		}
	}
	b.sorted = resize(b.sorted, len(b.items))
	for i := range b.items {
		at := &b.at[b.roots[b.items[i].cluster]]
		b.sorted[*at] = b.items[i]
		*at++
	}
	b.items, b.sorted = b.sorted, b.items
}

// listsAt is where in a script the lists begin.
func listsAt(processors int) int { return HeadWords + processors*ProcWords }

// assemble puts header, lists, streams, counters, inputs and tensors behind one another.
func (b *Builder) assemble(levels, processors, barriers int) {
	w := append(b.out.Script.Words[:0], make([]uint32, listsAt(processors))...)
	w[HeadMagic], w[HeadProcessors], w[HeadBarriers] = Magic, uint32(processors), uint32(barriers)
	w[HeadLists] = uint32(len(w))
	w = append(w, b.lists...)
	w[HeadListEnd] = uint32(len(w))
	for p := range processors {
		for len(w)%4 != 0 { // the GPU fetches 16 bytes at a time
			w = append(w, uint32(Halt))
		}
		at := HeadWords + p*ProcWords
		w[at+ProcStart], w[at+ProcRank], w[at+ProcGroup] = uint32(len(w)), 0, 1
		w = b.appendStream(w, p, levels, processors)
	}
	for len(w)%BarrierStride != 0 {
		w = append(w, 0)
	}
	w[HeadCounters] = uint32(len(w))
	for range barriers * BarrierStride {
		w = append(w, 0)
	}
	w[HeadInputs] = uint32(len(w))
	if b.g != nil && b.r.Forward {
		w = append(w, b.g.Inputs...)
	}
	for len(w)%4 != 0 {
		w = append(w, 0)
	}
	w[HeadDevice], w[HeadTensors] = uint32(len(w)), uint32(len(w))
	if b.r.Tensors {
		w = b.appendTensors(w)
	}
	w[HeadTensorEnd] = uint32(len(w))
	b.out.Script.Words = w
}
