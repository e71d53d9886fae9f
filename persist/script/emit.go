package script

import (
	"math"
	"slices"

	"libvpps/persist/crew"
	"libvpps/persist/finish"
	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/plan"
	"libvpps/persist/schedule"
)

// Writing the script: items are grouped by cluster and fused, clusters get processors, the items of a level and
// processor are sorted by order and signature, and runs of the same signature become instructions.

// task is a schedule with what else its script depends on.
type task struct {
	*schedule.Schedule
	holders      *plan.Holders
	crew         *crew.Crew
	closing      *finish.Closing
	params       []schedule.Param
	formsVectors bool     // products form the vectors that they read
	inputs       []uint32 // the graph's input words, if the script reads any
	tensors      []uint32 // the tensor table
	space        []uint32 // memory for the script, if it is enough; nil: the emitter's own
}

// emitter writes scripts.
type emitter struct {
	task
	words    []uint32 // of the latest script, in memory of its own
	count    []uint32
	places   []int32 // of byLevel: the processors
	visits   []visit // by processor and level
	balances [crew.MostGoroutines]balance
	starts   []uint32 // of a processor's visits
	seen     []int32  // by processor: the last level in which it is known to take part
	writers  [crew.MostGoroutines]streamMemory
	levels   []levelPlan
	runs     []run
	common   common
	groups
	byLevel []uint32 // clusters by level, but for those of groups
	products
	outerSeen []outerSeen
}

// balance is the memory of assigning the clusters of some levels.
type balance struct {
	loads []int32 // of a level: cost per processor before its clusters
	heap  loadHeap
}

// visit is what a processor does in a level besides what all of its class do: a cluster. Or it is none, and it does
// not wait.
type visit struct {
	level   int32
	cluster uint32 // noCluster: none; closes: its part of the norm or the update
}

const (
	noCluster = math.MaxUint32
	closes    = math.MaxUint32 - 1
)

// outerSeen is a gradient that an Outer of this build stores first.
type outerSeen struct {
	key uint64
	sig uint32
}

// emit writes a script.
func (b *emitter) emit(t task) []uint32 {
	b.task = t
	processors := b.Plan.Processors
	levels := int(b.MaxLevel) + 1
	b.outerSeen = b.outerSeen[:0]
	if b.alone() {
		b.gatherProducts()
		b.planRuns(levels)
		ends := b.OrderByLevel(levels)
		return b.assemble(processors, 0, func(w []uint32) []uint32 { return b.appendAlone(w, levels, ends) })
	}
	b.SettleBatched()
	b.GroupItems()
	b.Fuse()
	b.CutBatched()
	b.gatherProducts()
	b.planRuns(levels)
	b.shareCopies()
	b.sortClusters(levels)
	b.planClasses(levels)
	b.assign(levels, processors)
	b.planMembers(levels, processors)
	barriers := b.planBarriers(levels)
	b.writeCommon(levels)
	b.planVisits(levels, processors)
	return b.assemble(processors, barriers, func(w []uint32) []uint32 { return b.appendStreams(w, levels, processors) })
}

// assign gives every cluster, level by level, to the processor with the least load. Goroutines share the levels.
func (b *emitter) assign(levels, processors int) {
	b.places = memory.Resize(b.places, len(b.byLevel))
	pieces := min(len(b.balances), 1+len(b.byLevel)>>11) // a few clusters are assigned at once
	b.crew.Share(pieces, func(k int) {
		b.assignSome(&b.balances[k], b.levelOf(k, pieces), b.levelOf(k+1, pieces), processors)
	})
}

// levelOf is the first cluster in byLevel, of the level that so many of n parts of it end in.
func (b *emitter) levelOf(part, n int) int {
	at := len(b.byLevel) * part / n
	for at > 0 && at < len(b.byLevel) && b.Clusters[b.byLevel[at]].Level == b.Clusters[b.byLevel[at-1]].Level {
		at--
	}
	return at
}

// fewClusters is how many clusters of a level a processor beside groups takes at most, which spares them.
const fewClusters = 16

// assignSome assigns the clusters [from, end) of byLevel, which are whole levels. Where products form their vectors, who
// is in no group executes what is not products, so that the others have a stream in common.
func (b *emitter) assignSome(x *balance, from, end, processors int) {
	x.loads, x.heap = memory.Resize(x.loads, processors), memory.Resize(x.heap, processors)
	for from < end {
		level, n := b.Clusters[b.byLevel[from]].Level, 1
		for from+n < end && b.Clusters[b.byLevel[from+n]].Level == level {
			n++
		}
		r := &b.levels[level].runs
		switch places := b.places[from : from+n]; {
		case b.formsVectors && n <= fewClusters*len(b.holders.Unshared) && level <= b.Ends[isa.InBackward]:
			for k := range places {
				places[k] = b.holders.Unshared[k%len(b.holders.Unshared)]
			}
			from += n
			continue
		case r[0] < r[1]:
			b.loadProducts(x.loads, int(level))
			x.heap.init(x.loads)
		default:
			x.heap.clear()
		}
		for k := range n {
			cost := b.Clusters[b.byLevel[from+k]].Cost
			if besides := r[0] < r[1] && b.Plan.RowsPerWarp > 0; besides {
				if cost *= gpuWork; level == b.OuterLevel {
					cost += gpuSum
				}
			}
			b.places[from+k] = x.heap.add(cost)
		}
		from += n
	}
}

// What a cluster next to products costs on a GPU, where it mostly waits for memory: gpuWork for each unit of its own cost,
// and a sum next to outer products gpuSum besides. A product's item costs 2. Measured with TD-RNN, 4 µs next to 0.06 an
// item.
const gpuSum, gpuWork = 64, 8

// loadProducts makes loads those of a level's products.
func (b *emitter) loadProducts(loads []int32, level int) {
	for p, c := range b.holders.Class {
		loads[p] = b.common.loads[int(c)*len(b.levels)+level]
	}
}

// sortClusters lists the clusters with items in order of level, but for those of groups: counting sort.
func (b *emitter) sortClusters(levels int) {
	b.count = memory.Resize(b.count, levels+1)
	clear(b.count)
	for c := range b.Clusters {
		if x := &b.Clusters[c]; x.IsListed(c) {
			b.count[x.Level+1]++
		}
	}
	for l := range levels {
		b.count[l+1] += b.count[l]
	}
	b.byLevel = memory.Resize(b.byLevel, int(b.count[levels]))
	for c := range b.Clusters {
		if x := &b.Clusters[c]; x.IsListed(c) {
			b.byLevel[b.count[x.Level]] = uint32(c)
			b.count[x.Level]++
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

// clear makes it hold all processors without a load.
func (h loadHeap) clear() {
	for p := range h {
		h[p] = uint64(p)
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

// assemble puts header, lists, streams, counters, inputs and tensors behind one another.
func (b *emitter) assemble(processors, barriers int, appendStreams func(w []uint32) []uint32) []uint32 {
	w := b.space
	if w == nil {
		w = b.words
	}
	w = append(w[:0], make([]uint32, isa.ListsAt(processors))...)
	w[isa.HeadMagic], w[isa.HeadProcessors], w[isa.HeadBarriers] = isa.Magic, uint32(processors), uint32(barriers)
	w[isa.HeadLists] = uint32(len(w))
	w = slices.Grow(w, b.listWords)[:len(w)+b.listWords]
	b.fillLists(w[len(w)-b.listWords:])
	w[isa.HeadListEnd] = uint32(len(w))
	w = appendStreams(w)
	for len(w)%isa.BarrierStride != 0 {
		w = append(w, 0)
	}
	w[isa.HeadCounters] = uint32(len(w))
	for range barriers * isa.BarrierStride {
		w = append(w, 0)
	}
	w[isa.HeadInputs] = uint32(len(w))
	w = append(w, b.inputs...)
	for len(w)%4 != 0 {
		w = append(w, 0)
	}
	w[isa.HeadDevice], w[isa.HeadTensors] = uint32(len(w)), uint32(len(w))
	w = append(w, b.tensors...)
	w[isa.HeadTensorEnd] = uint32(len(w))
	if b.space == nil {
		b.words = w
	}
	return w
}
