package script

import (
	"fmt"
	"slices"

	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/schedule"
)

// Collecting a template's items from the builder of its small graph: every address becomes what it stands for.

// isSymbolic reports whether an instance tells an item's factor or one of its addresses: it is no part of a chain.
func (b *Builder) isSymbolic(it schedule.Item) bool {
	return isSymbolicFactor(b.Sigs.Of(it.Sig)[4]) || slices.ContainsFunc(b.Addresses(&it), b.isPicked)
}

// entryOf is what an address of the small graph stands for.
func (l *cellLowering) entryOf(at uint32) word {
	if l.b.isPicked(at) {
		x := l.entryOf(at % pickWindow)
		return word{l.pickedFrom(x.entry, l.b.picks[at/pickWindow-1]), x.add}
	}
	if at >= l.first {
		return word{atBase, at - l.first}
	}
	if at < firstAddress {
		return word{atNowhere, at}
	}
	k, _ := slices.BinarySearchFunc(l.ranges, at, func(r rangeOf, at uint32) int {
		if r.end <= at {
			return -1
		}
		return 1
	})
	return word{l.ranges[k].entry, at - l.ranges[k].from}
}

// operandOf is what an address in a segment stands for.
func (l *cellLowering) operandOf(seg isa.Segment, at uint32) (word, error) {
	c := l.c
	switch seg {
	case isa.SegAct, isa.SegParam:
		return l.entryOf(at), nil
	case isa.SegTable:
		if i := at - symbolicInput; int(i) < len(c.inputs) {
			return word{c.atInputs() + i, 0}, nil
		}
		return l.entryOf(at), nil
	case isa.SegInput:
		for k := len(l.offsets) - 1; k >= 0; k-- {
			if at >= l.offsets[k] {
				return word{c.atConstants() + uint32(k), at - l.offsets[k]}, nil
			}
		}
	}
	return word{}, fmt.Errorf("segment %d in a template", seg)
}

// collect makes the template's items of what the small graph's builder has.
func (l *cellLowering) collect() error {
	t, c := l.b, l.c
	if err := l.joinReaders(); err != nil {
		return err
	}
	if l.joins {
		t.FuseAll()
	}
	if err := l.collectSigs(); err != nil {
		return err
	}
	l.collectClusters()
	for _, list := range c.sources {
		for i := range list {
			if s := &list[i]; s.in >= 0 {
				s.in = l.where[t.Find(s.in)]
			}
		}
	}
	for i := range t.Items {
		it := &t.Items[i]
		k, at := l.placeOf(it.Cluster)
		first := uint32(len(c.words))
		if err := l.collectWords(it); err != nil {
			return err
		}
		in := &c.clusters[k][at]
		in.items, in.top = in.items+1, max(in.top, it.Sub)
		x := cellItem{cluster: int32(at), sub: it.Sub, sig: uint32(l.sig[it.Sig]), first: first, count: uint32(len(c.words)) - first}
		if x.pooled = it.Sig == schedule.RawSig || x.count > schedule.FewWords; !x.pooled {
			copy(x.few[:], c.words[first:]) // those that there are not are nowhere
		}
		c.items[k] = append(c.items[k], x)
	}
	for _, m := range t.Products {
		k, level := l.phaseOf(m.Level)
		x, err := l.collectMatrix(level, &m)
		if err != nil {
			return err
		}
		c.matrices[k] = append(c.matrices[k], x)
	}
	for _, m := range t.Outers {
		x, err := l.collectMatrix(schedule.AtTheEnd, &m)
		if err != nil {
			return err
		}
		c.outers = append(c.outers, x)
	}
	for _, r := range t.RowSrc {
		x := cellRow{param: uint32(r.Key >> 32), input: uint32(r.Key) - symbolicInput, shift: r.Shift}
		for _, s := range t.RowPool[r.First : r.First+r.Count] {
			x.sources = append(x.sources, cellSource{word: l.entryOf(s.At), count: s.Count, apart: s.Apart, in: -1})
		}
		c.rows = append(c.rows, x)
	}
	for _, s := range t.ParamSrc {
		return fmt.Errorf("a gradient of parameter %d in a template", s.Param)
	}
	for _, x := range c.picks {
		if x.entry >= c.atExits() && x.entry < c.atParams() {
			return fmt.Errorf("a pick of what another instance gives")
		}
	}
	l.collectLevels()
	l.collectGroups()
	if c.part.keepsValues() {
		l.collectValues()
	}
	return nil
}

// joinReaders makes one cluster of those that read the gradient of an output first, as one of them then can add it up.
func (l *cellLowering) joinReaders() error {
	t, c := l.b, l.c
	if !l.joins {
		return nil
	}
	first := make([]int32, len(c.wantedAt)) // 1 added
	for i := range t.Items {
		it := &t.Items[i]
		in := t.Find(it.Cluster)
		if k, _ := l.phaseOf(t.Clusters[in].Level); k == 0 {
			continue
		}
		from := len(c.words)
		if err := l.collectWords(it); err != nil {
			return err
		}
		for _, w := range c.words[from:] {
			if w.entry < c.atExits() || w.entry >= c.atParams() {
				continue
			}
			f := &first[w.entry-c.atExits()]
			if *f == 0 {
				*f = in + 1
				continue
			}
			switch o := t.Find(*f - 1); {
			case t.Clusters[in].Level < t.Clusters[o].Level:
				*f = in + 1
			case t.Clusters[in].IsSpread() || t.Clusters[o].IsSpread():
			case in != o && t.Clusters[in].Level == t.Clusters[o].Level && t.CostOf(in)+t.CostOf(o) <= clusterCost:
				in = t.Union(in, o)
			}
		}
		c.words = c.words[:from]
	}
	return nil
}

// collectValues lists where the nodes' values are, and what nodes keep besides.
func (l *cellLowering) collectValues() {
	t, c := l.b, l.c
	for k, v := range l.node {
		c.values = append(c.values, l.entryOf(t.s.Value[v]))
		if t.s.Aux[v] != NoOffset {
			c.aux = append(c.aux, cellValue{uint32(k), l.entryOf(t.s.Aux[v])})
		}
	}
}

// phaseOf says whether a level is of the forward (0) or the backward part, and which one of it.
func (l *cellLowering) phaseOf(level int32) (k int, at int32) {
	if end := l.b.Ends[isa.InForward]; l.r.Backward && level > end {
		return 1, level - end - 1
	}
	return 0, level
}

// collectClusters lists the clusters that have items.
func (l *cellLowering) collectClusters() {
	t, c := l.b, l.c
	l.where = memory.Extend(l.where[:0], len(t.Clusters), -1)
	for i := range t.Clusters {
		x := &t.Clusters[i]
		if x.Parent != int32(i) || x.Items == 0 {
			continue
		}
		k, level := l.phaseOf(x.Level)
		l.where[i] = int32(len(c.clusters[k]))
		c.clusters[k] = append(c.clusters[k], cellCluster{level: level, cost: x.Cost, kind: x.Kind, spread: x.IsSpread()})
	}
}

// placeOf is the phase and number of the cluster that an item is in.
func (l *cellLowering) placeOf(cluster int32) (k int, at int32) {
	i := l.b.Find(cluster)
	k, _ = l.phaseOf(l.b.Clusters[i].Level)
	return k, l.where[i]
}

// collectWords appends the words of an item.
func (l *cellLowering) collectWords(it *schedule.Item) error {
	t, c := l.b, l.c
	add := func(seg, at uint32) error {
		w, err := l.operandOf(isa.Segment(seg&15), at)
		c.words = append(c.words, w)
		return err
	}
	if it.Sig == schedule.RawSig { // a Sum
		return l.collectSum(t.Pool[it.Words[0]:])
	}
	sig := t.Sigs.Of(it.Sig)
	words, op := t.Addresses(it), isa.Opcode(sig[0])
	n := len(words)
	labelled := op == isa.Row && isa.RowTable[isa.RowFn(sig[0]>>8)].Label
	for i, w := range words {
		switch last := i == n-1; {
		case last && labelled && w-symbolicInput >= uint32(len(c.inputs)):
			c.words = append(c.words, word{atNowhere, w})
		case last && labelled:
			c.words = append(c.words, word{c.atInputs() + w - symbolicInput, 0})
		case last && op == isa.Random:
			c.words = append(c.words, word{atStart, l.templateNode(w)})
		case op == isa.Chain:
			if err := add(sig[4+i/4]>>(8*(i%4)), w); err != nil {
				return err
			}
		default:
			if err := add(sig[2]>>(4*i), w); err != nil {
				return err
			}
		}
	}
	return nil
}

// templateNode is the template's node that a node of the small graph is.
func (l *cellLowering) templateNode(v uint32) uint32 { return uint32(slices.Index(l.node, v)) }

// collectSum appends the words of a Sum, which is an instruction of its own.
func (l *cellLowering) collectSum(w []uint32) error {
	c := l.c
	n := w[1] & 0xffff
	for i := range n {
		seg, address := w[2]>>4, i >= schedule.SumHead
		switch i {
		case 5:
			seg, address = w[2], true
		case 8:
			seg, address = w[2]>>8, uint8(w[0]>>8) != uint8(isa.Copy)
		}
		if !address {
			c.words = append(c.words, word{atNowhere, w[i]})
			continue
		}
		x, err := l.operandOf(isa.Segment(seg&15), w[i])
		if err != nil {
			return err
		}
		c.words = append(c.words, x)
	}
	return nil
}

// collectMatrix makes a template's of a product's item.
func (l *cellLowering) collectMatrix(level int32, m *schedule.Product) (x cellMatrix, err error) {
	segs := l.b.Sigs.Of(m.Sig)[2]
	x = cellMatrix{level: level, sig: uint32(l.sig[m.Sig])}
	shift := 0
	if isa.Opcode(l.b.Sigs.Of(m.Sig)[0]) == isa.Outer {
		shift = 4
	}
	for i := range x.words {
		if x.words[i], err = l.operandOf(isa.Segment(segs>>(4*i+shift)&15), m.Words[i]); err != nil {
			return x, err
		}
	}
	return x, nil
}

// collectSigs lists the signatures, with what changes in them.
func (l *cellLowering) collectSigs() error {
	t, c := l.b, l.c
	l.sig = memory.Resize(l.sig, t.Sigs.Count())
	l.sig[schedule.RawSig] = schedule.RawSig
	c.sigs = append(c.sigs, cellSig{factor: -1, bias: -1}) // of whole instructions
	for i := uint32(1); int(i) < t.Sigs.Count()-1; i++ {
		w := slices.Clone(t.Sigs.Of(i))
		x := cellSig{words: w, cost: t.Sigs.Cost(i), factor: -1, bias: -1}
		switch isa.Opcode(w[0]) {
		case isa.Random:
			x.draws = true
		case isa.Product:
			if w[0]>>16&isa.Bias != 0 {
				e := l.entryOf(w[5])
				if e.entry < c.atParams() || e.entry >= c.atConstants() || e.add != 0 {
					return fmt.Errorf("a bias of a template is none of its parameters")
				}
				x.bias = int32(e.entry - c.atParams())
			}
		case isa.Outer:
			if isa.Segment(w[2]&15) != isa.SegGrad {
				return fmt.Errorf("an outer product of a template does not go to a parameter's gradient")
			}
		}
		if len(w) > 4 && isSymbolicFactor(w[4]) && isa.Opcode(w[0]) != isa.Random && isa.Opcode(w[0]) != isa.Chain {
			if id := int(w[4] & (mostParameters - 1)); id < len(l.all) {
				x.factor = int32(id)
			}
		}
		if x.numbers = l.numbersIn(w); x.numbers != nil {
			c.numbered = append(c.numbered, uint32(len(c.sigs)))
		}
		l.sig[i] = int32(len(c.sigs))
		c.sigs = append(c.sigs, x)
	}
	return nil
}

// numbersIn lists the words of a signature that are numbers of an instance's own.
func (l *cellLowering) numbersIn(w []uint32) (list []cellNumber) {
	see := func(at int) {
		if k := w[at] - symbolicNumber; int(k) < l.c.template.Constants {
			list = append(list, cellNumber{at, l.c.atConstants() + k})
		}
	}
	switch op := isa.Opcode(w[0]); op {
	case isa.Fill, isa.Map, isa.Strided, isa.Row, isa.Random:
		for k, field := range isa.Formats[op].Fields {
			if field == "value" || field == "p" || field == "q" {
				see(2 + k)
			}
		}
	case isa.Chain:
		for at := len(w) - int(w[3])*isa.ChainOpWords; at < len(w); at += isa.ChainOpWords {
			see(at + 1)
			see(at + 2)
		}
	}
	return list
}

// collectLevels finds when slots are read, outputs are there, and gradients of outputs are read.
func (l *cellLowering) collectLevels() {
	t, c := l.b, l.c
	c.need = memory.Extend(c.need, c.template.Slots+len(c.params), -1)
	c.products = memory.Extend(c.products, c.template.Slots, -1)
	c.sumIn = memory.Extend(c.sumIn, len(c.wantedAt), -1)
	see := func(k int, level, cluster int32, w word) {
		if i := w.entry - c.atPicks(); w.entry >= c.atPicks() {
			w.entry = c.picks[i].entry
		}
		switch {
		case w.entry >= atSlots && w.entry < c.atExits():
			if k == 0 {
				c.readsSlot(int32(w.entry-atSlots), level, cluster)
			}
		case w.entry >= c.atParams() && w.entry < c.atConstants():
			if at := &c.need[uint32(c.template.Slots)+w.entry-c.atParams()]; k == 0 && (*at < 0 || level < *at) {
				*at = level
			}
		case w.entry >= c.atExits() && w.entry < c.atParams() && k == 1:
			at, in := &c.wantedAt[w.entry-c.atExits()], &c.sumIn[w.entry-c.atExits()]
			if level < *at {
				*at, *in = level, cluster
			} else if level == *at && cluster != *in {
				*in = -1
			}
		}
	}
	for k := range 2 {
		for _, it := range c.items[k] {
			in := it.cluster
			if c.clusters[k][in].spread {
				in = -1
			}
			for _, w := range c.words[it.first : it.first+it.count] {
				see(k, c.clusters[k][it.cluster].level, in, w)
			}
		}
		for _, m := range c.matrices[k] {
			for _, w := range m.words {
				see(k, m.level, -1, w)
			}
		}
	}
	for i := range c.matrices[0] {
		if bias := c.sigs[c.matrices[0][i].sig].bias; bias >= 0 {
			see(0, c.matrices[0][i].level, -1, word{c.atParams() + uint32(bias), 0})
		}
	}
	for _, m := range c.outers { // at the end, when all is there; but who reads a value needs its producer
		see(0, 1<<20, -1, m.words[1])
	}
	c.ready, c.value, c.formedIn = make([]int32, len(c.outs)), make([]uint32, len(l.node)), memory.Extend(c.formedIn, len(c.outs), -1)
	for i, k := range c.outs {
		v := l.node[k]
		if t.owns(v) {
			c.ready[i], c.value[k] = t.ready(v), l.entryOf(t.s.Value[v]).add
			if in := t.spots[v].cluster; in >= 0 {
				c.formedIn[i] = l.where[t.Find(in)]
			}
		}
	}
	for e, k := range c.exits {
		if c.derivatives[e].fn != isa.Copy {
			c.derivatives[e].y = l.entryOf(t.s.Value[l.node[k]])
		}
	}
}

// readsSlot notes that a cluster, or a product, -1, reads a slot in a level.
func (c *loweredCell) readsSlot(slot, level, cluster int32) {
	first := func(at *int32) {
		if *at < 0 || level < *at {
			*at = level
		}
	}
	first(&c.need[slot])
	if cluster < 0 {
		first(&c.products[slot])
	} else if r, n := (slotRead{slot, cluster}), len(c.reads); n == 0 || c.reads[n-1] != r {
		c.reads = append(c.reads, r)
	}
}
