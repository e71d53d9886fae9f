// Package emit writes the script of a schedule: first the lists that processors share, then the stream of each processor,
// then counters and inputs. Items are grouped by cluster, and clusters get processors. The items of a level and
// processor are fused, and sorted by order and signature. Runs of the same signature become instructions. It knows of no graph.
package emit

import (
	"math"

	"libvpps/persist/finish"
	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/plan"
	"libvpps/persist/schedule"
)

// Task is a schedule with what else its script depends on.
type Task struct {
	*schedule.Schedule
	Holders *plan.Holders
	Closing *finish.Closing
	Params  []schedule.Param
	Inputs  []uint32 // the graph's input words, if the script reads any
	Tensors []uint32 // the tensor table
	Space   []uint32 // memory for the script, if it is enough; nil: the emitter's own
}

// Emitter writes scripts.
type Emitter struct {
	Task
	words     []uint32 // of the latest script, in memory of its own
	count     []uint32
	places    []int32 // of byLevel: the processors
	visits    []visit // by processor and level
	loads     []int32 // of a level: cost per processor before its clusters
	heap      loadHeap
	starts    []uint32 // of a processor's visits
	seen      []int32  // by processor: the last level in which it is known to take part
	levels    []levelPlan
	runs      []run
	listWords int
	classes   classes
	ByLevel   []uint32        // clusters by level
	costs     []int32         // of these
	ends      []uint32        // by level: where its clusters end
	items     []schedule.Item // of a level and processor
	sorter    itemSorter
	outerSeen []outerSeen
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

// Emit writes a script.
func (e *Emitter) Emit(t Task) []uint32 {
	e.Task = t
	processors := e.Plan.Processors
	levels := int(e.MaxLevel) + 1
	e.outerSeen = e.outerSeen[:0]
	if e.alone() {
		e.planRuns(levels)
		ends := e.OrderByLevel(levels)
		return e.assemble(processors, 0, func(w []uint32) []uint32 { return e.appendAlone(w, levels, ends) })
	}
	e.SettleBatched()
	e.GroupItems()
	e.CutBatched()
	e.planRuns(levels)
	e.sortClusters(levels)
	e.planClasses(levels)
	e.assign(processors)
	e.planMembers(levels, processors)
	barriers := e.planBarriers(levels)
	e.writeClasses(levels)
	e.planVisits(levels, processors)
	return e.assemble(processors, barriers, func(w []uint32) []uint32 { return e.appendStreams(w, levels, processors) })
}

// assign gives every cluster, level by level, to the processor with the least load.
func (e *Emitter) assign(processors int) {
	e.places = memory.Resize(e.places, len(e.ByLevel))
	e.loads, e.heap = memory.Resize(e.loads, processors), memory.Resize(e.heap, processors)
	from := uint32(0)
	for l, end := range e.ends {
		if from < end {
			e.assignLevel(l, e.costs[from:end], e.places[from:end])
		}
		from = end
	}
}

// assignLevel gives the clusters of a level, which cost so much, to processors.
func (e *Emitter) assignLevel(level int, costs, places []int32) {
	r, from := &e.levels[level].runs, 0
	if r[0] < r[1] {
		e.loadProducts(level)
	} else { // all processors are idle: one cluster each, as long as there are any
		from = copy(e.loads, costs)
		for k := range from {
			places[k] = int32(k)
		}
	}
	if from == len(costs) {
		return
	}
	e.heap.init(e.loads)
	for k, cost := range costs[from:] {
		if besides := r[0] < r[1] && e.Plan.RowsPerWarp > 0; besides {
			if cost *= gpuWork; level == int(e.OuterLevel) {
				cost += gpuSum
			}
		}
		places[from+k] = e.heap.add(cost)
	}
}

// On a GPU a cluster in a level with products mostly waits for memory. It costs gpuWork for each unit of its own cost. A sum
// in a level with outer products costs gpuSum more. A product's item costs 2. TD-RNN's clusters took 4 µs, and its items 0.06.
const gpuSum, gpuWork = 64, 8

// loadProducts makes loads those of a level's products.
func (e *Emitter) loadProducts(level int) {
	for p, c := range e.Holders.Class {
		e.loads[p] = e.classes.loads[int(c)*len(e.levels)+level]
	}
}

// sortClusters lists the clusters with items in order of level: counting sort.
func (e *Emitter) sortClusters(levels int) {
	e.count = memory.Resize(e.count, levels+1)
	clear(e.count)
	for c := range e.Clusters {
		if x := &e.Clusters[c]; x.IsListed(c) {
			e.count[x.Level+1]++
		}
	}
	for l := range levels {
		e.count[l+1] += e.count[l]
	}
	n := int(e.count[levels])
	e.ByLevel, e.costs = memory.Resize(e.ByLevel, n), memory.Resize(e.costs, n)
	for c := range e.Clusters {
		if x := &e.Clusters[c]; x.IsListed(c) {
			at := e.count[x.Level]
			e.ByLevel[at], e.costs[at] = uint32(c), x.Cost
			e.count[x.Level]++
		}
	}
	e.ends = append(e.ends[:0], e.count[:levels]...)
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

// assemble writes header, lists, streams, counters, inputs and tensors, in this order.
func (e *Emitter) assemble(processors, barriers int, appendStreams func(w []uint32) []uint32) []uint32 {
	w := e.Space
	if w == nil {
		w = e.words
	}
	w = append(w[:0], make([]uint32, isa.ListsAt(processors))...)
	w[isa.HeadMagic], w[isa.HeadProcessors], w[isa.HeadBarriers] = isa.Magic, uint32(processors), uint32(barriers)
	w[isa.HeadLists] = uint32(len(w))
	w = e.appendLists(w)
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
	w = append(w, e.Inputs...)
	for len(w)%4 != 0 {
		w = append(w, 0)
	}
	w[isa.HeadDevice], w[isa.HeadTensors] = uint32(len(w)), uint32(len(w))
	w = append(w, e.Tensors...)
	w[isa.HeadTensorEnd] = uint32(len(w))
	if e.Space == nil {
		e.words = w
	}
	return w
}
