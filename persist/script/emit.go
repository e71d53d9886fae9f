package script

// Writing the script: clusters get processors, items are sorted by level, processor, order and
// signature, and runs of the same signature become instructions.

import "slices"

// emitter is the memory of the last stage.
type emitter struct {
	proc      []int32  // of a cluster
	loads     []int32  // of a level: cost per processor
	perm, alt []uint32 // items in order
	keys      []uint32
	count     []uint32
	streams   [][]uint32
	joined    []bool // processors that took part in the level
	members   []int32
	plan      holderTable
	clusters  []uint32 // by level
	matrixAlt []matrixItem
	outerSeen []outerSeen
}

// outerSeen is a gradient that an Outer of this build stores first.
type outerSeen struct {
	key uint64
	sig uint32
}

// holderTable is who holds which matrix, in ascending order of processors.
type holderTable struct {
	of      any
	holders [][]int32
}

func (b *Builder) holdersOf(m int32) []int32 {
	if b.plan.of != any(b.r.Plan) {
		b.plan.of = b.r.Plan
		b.plan.holders = b.plan.holders[:0]
		for i := range b.r.Plan.Matrices {
			var h []int32
			for _, p := range b.r.Plan.Of(i) {
				h = append(h, int32(p.Processor))
			}
			slices.Sort(h)
			b.plan.holders = append(b.plan.holders, slices.Compact(h))
		}
	}
	return b.plan.holders[m]
}

func (b *Builder) holders(m int32) int { return len(b.holdersOf(m)) }

// emit writes b.out.Script.
func (b *Builder) emit() {
	processors := b.r.Plan.Processors
	for len(b.streams) < processors {
		b.streams = append(b.streams, nil)
	}
	for p := range processors {
		b.streams[p] = b.streams[p][:0]
	}
	b.joined = resize(b.joined, processors)
	levels := int(b.maxLevel) + 1
	b.outerSeen = b.outerSeen[:0]
	b.sortMatrices()
	b.assign(levels, processors)
	b.sortItems(levels, processors)
	barriers := b.writeLevels(levels, processors)
	b.assemble(processors, barriers)
}

// sortMatrices orders product items by level and signature, those of equal ones as they came.
func (b *Builder) sortMatrices() {
	b.matrixAlt = resize(b.matrixAlt, len(b.matrices))
	b.countingSort(len(b.sigs.start), b.matrices, b.matrixAlt, func(x *matrixItem) uint32 { return x.sig })
	b.countingSort(int(b.maxLevel)+1, b.matrixAlt, b.matrices, func(x *matrixItem) uint32 { return uint32(x.level) })
}

// countingSort writes from to to in the order of a key below buckets, equal keys as they came.
func (b *Builder) countingSort(buckets int, from, to []matrixItem, key func(*matrixItem) uint32) {
	b.count = resize(b.count, buckets+1)
	clear(b.count)
	for i := range from {
		b.count[key(&from[i])+1]++
	}
	for i := range buckets {
		b.count[i+1] += b.count[i]
	}
	for i := range from {
		k := key(&from[i])
		to[b.count[k]] = from[i]
		b.count[k]++
	}
}

// assign gives every cluster, level by level, to the processor with the least load.
func (b *Builder) assign(levels, processors int) {
	n := len(b.parent)
	b.proc = resize(b.proc, n)
	// Clusters with items, in order of level: counting sort.
	b.count = resize(b.count, levels+1)
	clear(b.count)
	for c := range int32(n) {
		if b.parent[c] == c && b.ccost[c] > 0 {
			b.count[b.clevel[c]+1]++
		}
	}
	for l := range levels {
		b.count[l+1] += b.count[l]
	}
	b.clusters = resize(b.clusters, int(b.count[levels]))
	for c := range int32(n) {
		if b.parent[c] == c && b.ccost[c] > 0 {
			l := b.clevel[c]
			b.clusters[b.count[l]] = uint32(c)
			b.count[l]++
		}
	}
	b.loads = resize(b.loads, processors)
	matrix, last := 0, int32(-1)
	heap := loadHeap{b.loads, resize(b.members, processors)}
	for _, c := range b.clusters {
		if l := b.clevel[c]; l != last {
			clear(b.loads)
			for matrix < len(b.matrices) && b.matrices[matrix].level <= l {
				if b.matrices[matrix].level == l {
					for _, p := range b.holdersOf(int32(b.sigs.of(b.matrices[matrix].sig)[3])) {
						b.loads[p] += 2
					}
				}
				matrix++
			}
			heap.init()
			last = l
		}
		b.proc[c] = heap.add(b.ccost[c])
	}
	b.members = heap.order
}

// loadHeap finds the least loaded processor, the lowest number among equals.
type loadHeap struct {
	load  []int32
	order []int32
}

func (h *loadHeap) init() {
	for i := range h.order {
		h.order[i] = int32(i)
	}
	for i := len(h.order)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h *loadHeap) less(x, y int32) bool {
	if h.load[x] != h.load[y] {
		return h.load[x] < h.load[y]
	}
	return x < y
}

func (h *loadHeap) down(i int) {
	for {
		m := i
		for k := 2*i + 1; k <= 2*i+2 && k < len(h.order); k++ {
			if h.less(h.order[k], h.order[m]) {
				m = k
			}
		}
		if m == i {
			return
		}
		h.order[i], h.order[m] = h.order[m], h.order[i]
		i = m
	}
}

// add puts cost on the least loaded processor and returns it.
func (h *loadHeap) add(cost int32) int32 {
	p := h.order[0]
	h.load[p] += cost
	h.down(0)
	return p
}

// sortItems orders items by level, processor, order in the cluster and signature: counting
// sorts from the least significant key up.
func (b *Builder) sortItems(levels, processors int) {
	n := len(b.items)
	b.perm, b.alt, b.keys = resize(b.perm, n), resize(b.alt, n), resize(b.keys, n)
	maxSub := int32(0)
	for i := range b.items {
		it := &b.items[i]
		it.cluster = b.find(it.cluster)
		b.perm[i] = uint32(i)
		maxSub = max(maxSub, it.sub)
	}
	// Two keys at a time where the buckets are few enough.
	sigs, subs := uint32(len(b.sigs.start)), uint32(maxSub)+1
	if uint64(sigs)*uint64(subs) <= 1<<16 {
		b.sortBy(int(sigs*subs), func(it *item) uint32 { return uint32(it.sub)*sigs + it.sig })
	} else {
		b.sortBy(int(sigs), func(it *item) uint32 { return it.sig })
		b.sortBy(int(subs), func(it *item) uint32 { return uint32(it.sub) })
	}
	if p := uint32(processors); uint64(levels)*uint64(p) <= 1<<17 {
		b.sortBy(levels*processors, func(it *item) uint32 { return uint32(b.clevel[it.cluster])*p + uint32(b.proc[it.cluster]) })
	} else {
		b.sortBy(processors, func(it *item) uint32 { return uint32(b.proc[it.cluster]) })
		b.sortBy(levels, func(it *item) uint32 { return uint32(b.clevel[it.cluster]) })
	}
}

func (b *Builder) sortBy(buckets int, key func(*item) uint32) {
	b.count = resize(b.count, buckets+1)
	clear(b.count)
	for i, x := range b.perm {
		k := key(&b.items[x])
		b.keys[i] = k
		b.count[k+1]++
	}
	for i := range buckets {
		b.count[i+1] += b.count[i]
	}
	for i, x := range b.perm {
		k := b.keys[i]
		b.alt[b.count[k]] = x
		b.count[k]++
	}
	b.perm, b.alt = b.alt, b.perm
}

// writeLevels writes all levels into the streams and returns the number of barriers.
//
// Who takes part in a level first waits for the level before it, and so, through those who
// took part there, for all earlier ones.
func (b *Builder) writeLevels(levels, processors int) int {
	at, matrix := 0, 0
	barriers := 0
	var before []int32 // the members of the level before
	for l := range int32(levels) {
		clear(b.joined)
		first, firstMatrix := at, matrix
		for at < len(b.perm) && b.clevel[b.items[b.perm[at]].cluster] == l {
			b.joined[b.proc[b.items[b.perm[at]].cluster]] = true
			at++
		}
		for matrix < len(b.matrices) && b.matrices[matrix].level == l {
			for _, p := range b.holdersOf(int32(b.sigs.of(b.matrices[matrix].sig)[3])) {
				b.joined[p] = true
			}
			matrix++
		}
		members := b.membersNow(processors)
		if len(members) == 0 {
			continue
		}
		if len(before) > 0 {
			if len(before) > 1 || len(members) > 1 || before[0] != members[0] {
				for _, p := range before {
					b.streams[p] = append(b.streams[p], uint32(Signal), 3, uint32(barriers))
				}
				for _, p := range members {
					if len(before) > 1 || before[0] != p {
						b.streams[p] = append(b.streams[p], uint32(Wait), 4, uint32(barriers), uint32(len(before)))
					}
				}
				barriers++
			}
		}
		b.writeMatrices(firstMatrix, matrix)
		b.writeItems(first, at)
		before = append(before[:0], members...)
	}
	for p := range processors {
		b.streams[p] = append(b.streams[p], uint32(Halt))
	}
	return barriers
}

func (b *Builder) membersNow(processors int) []int32 {
	b.members = b.members[:0]
	for p := range processors {
		if b.joined[p] {
			b.members = append(b.members, int32(p))
		}
	}
	return b.members
}

// writeMatrices writes a level's product items to every holder.
func (b *Builder) writeMatrices(from, to int) {
	for from < to {
		sig := b.matrices[from].sig
		end := from
		for end < to && b.matrices[end].sig == sig {
			end++
		}
		words := b.sigs.of(sig)
		for h, p := range b.holdersOf(int32(words[3])) {
			b.writeProduct(p, uint32(h), words, b.matrices[from:end])
		}
		from = end
	}
}

// writeProduct writes one holder's instructions of one signature.
func (b *Builder) writeProduct(p int32, holder uint32, words []uint32, items []matrixItem) {
	s := b.streams[p]
	room := (MaxWords - len(words)) / 2
	op := Opcode(words[0])
	shift := uint32(0)
	if op == ProductT {
		shift = holder * words[5]
	}
	for first := true; len(items) > 0; first = false {
		k := min(room, len(items))
		at := len(s)
		s = append(s, words...)
		s[at] |= Sync << 16
		s[at+1] = uint32(len(words)+2*k) | uint32(k)<<16
		switch op {
		case ProductT:
			s[at+5] = 0
		case Outer:
			if !first || b.accumulates(words) {
				s[at] |= Acc << 16
			}
		}
		for _, it := range items[:k] {
			s = append(s, b.pool[it.at]+shift, b.pool[it.at+1])
		}
		items = items[k:]
	}
	b.streams[p] = s
}

// accumulates reports whether an Outer adds to a gradient that is there: pending from an
// earlier backward, or just stored by the outer products of another segment's operands.
func (b *Builder) accumulates(words []uint32) bool {
	m := words[3]
	if b.r.Params[b.r.Plan.Matrices[m].Param].Pending && Segment(words[2]&15) == SegGrad {
		return true
	}
	key := uint64(words[2]&15)<<32 | uint64(words[5])
	for i := range b.outerSeen {
		if b.outerSeen[i].key == key {
			return b.outerSeen[i].sig != words[2]
		}
	}
	b.outerSeen = append(b.outerSeen, outerSeen{key, words[2]})
	return false
}

// writeItems writes a level's items, which are sorted.
func (b *Builder) writeItems(from, to int) {
	for from < to {
		it := &b.items[b.perm[from]]
		p := b.proc[it.cluster]
		end := from + 1
		sync := uint32(0)
		if s := b.streams[p]; len(s) > 0 && it.sub >= 0 {
			sync = b.needsSync(from, it)
		}
		if it.sig == rawSig {
			words := b.pool[it.at : it.at+b.pool[it.at+1]&0xFFFF]
			at := len(b.streams[p])
			b.streams[p] = append(b.streams[p], words...)
			b.streams[p][at] |= sync << 16
			from = end
			continue
		}
		for end < to {
			x := &b.items[b.perm[end]]
			if x.sig != it.sig || x.sub != it.sub || b.proc[x.cluster] != p {
				break
			}
			end++
		}
		b.writeRun(p, sync, from, end)
		from = end
	}
}

// needsSync: the first instruction of an order meets the threads before it.
func (b *Builder) needsSync(at int, it *item) uint32 {
	if at > 0 {
		x := &b.items[b.perm[at-1]]
		if x.sub == it.sub && b.proc[x.cluster] == b.proc[it.cluster] && b.clevel[x.cluster] == b.clevel[it.cluster] {
			return 0
		}
	}
	return Sync
}

// writeRun writes the items [from, to) of one signature as instructions.
func (b *Builder) writeRun(p int32, sync uint32, from, to int) {
	words := b.sigs.of(b.items[b.perm[from]].sig)
	n := ItemWords(Opcode(words[0]), uint8(words[0]>>8))
	room := (MaxWords - len(words)) / n
	s := b.streams[p]
	for from < to {
		k := min(room, to-from)
		at := len(s)
		s = append(s, words...)
		s[at] |= sync << 16
		s[at+1] = uint32(len(words)+n*k) | uint32(k)<<16
		for _, i := range b.perm[from : from+k] {
			w := b.items[i].at
			s = appendFew(s, b.pool[w:w+uint32(n)])
		}
		sync = 0
		from += k
	}
	b.streams[p] = s
}

// assemble puts header, streams, counters, inputs and tensors behind one another.
func (b *Builder) assemble(processors, barriers int) {
	w := b.out.Script.Words[:0]
	w = append(w, Magic, uint32(processors), uint32(barriers), 0, 0, 0, 0, 0)
	start := len(w) + processors*ProcWords
	// A stream begins at a multiple of 4 words: the GPU fetches 16 bytes at a time.
	for p := range processors {
		for start%4 != 0 {
			start++
		}
		w = append(w, uint32(start), 0, 1)
		start += len(b.streams[p])
	}
	for p := range processors {
		for len(w)%4 != 0 {
			w = append(w, uint32(Halt))
		}
		w = append(w, b.streams[p]...)
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
