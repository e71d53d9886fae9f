package script

import (
	"fmt"
	mathbits "math/bits"
	"slices"

	"libvpps/bridge"
	"libvpps/bridge/cells"
	"libvpps/bridge/ops"
	"libvpps/persist/finish"
	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/plan"
	"libvpps/persist/schedule"
)

// Scheduling instances. A graph is a list of instances of templates, each lowered once (template.go). Three passes
// over them find what is needed, the levels forward, and, from the last to the first, the levels backward; the items of
// a template are copied with the instance's addresses.

// cellParams is what is known of the parameters of the present graph.
type cellParams struct {
	node []cellParamNode // by id
	ids  []uint32        // those that nodes mention
}

// cellParamNode is a parameter's first node.
type cellParamNode struct {
	mentioned bool
	otherwise bool // it is read other than from the left of a product
	kept      bool
	node      uint32
	op        ops.Code
	segment   isa.Segment
	dim       bridge.Dim
}

// present is an instance of the present graph.
type present struct {
	info           *templateInfo
	same           uint32 // the first instance that is equal, itself mostly
	lowered        *loweredCell
	needed, wanted nodeSet
	slots          uint64
	level          int32
	base           uint32
	out            uint32 // its outputs are outputs[out:][:lowered.outputs]
}

// slotValue is what a slot reads: a node of an instance, or one of the graph that an earlier call evaluated.
type slotValue struct{ instance, node uint32 }

// outputAt is the output that is node k of an instance.
func (m *cellMemory) outputAt(y *present, k uint32) *output {
	return &m.outputs[y.out+y.lowered.output[k]]
}

// earlier stands for an instance: the node is the graph's.
const earlier = NoOffset

// output is a node of an instance that others read or give a gradient to.
type output struct {
	formedBy
	first, last uint32 // of its gradient's sources; 0: none
}

// gradientSource is one gradient that comes back to an output.
type gradientSource struct {
	schedule.Source
	formedBy
	next uint32
}

// mostVariants is how many variants of a template are kept.
const mostVariants = 256

// usualPerShape is how many nodes a graph has to have for each shape of items. To lower a node for a shape takes 10 to 35 µs,
// and instances save 0.1 to 0.3 µs a node.
const usualPerShape = 64

// cellMemory is the memory of scheduling instances.
type cellMemory struct {
	plan     *plan.Plan // that the templates were lowered for
	params   cellParams
	infos    []*templateInfo // by template
	lowering cellLowering
	list     []present
	owner    []uint32    // by node
	args     []slotValue // of p.Args
	equal    []uint32    // hash table of instances, 1 added
	outputs  []output
	seed     uint32 // address of the loss's gradient
	returned []gradientSource
	table    []uint32
	exits    []formedBy
	levels   []int32 // by group: of the part that is being added
	joined   []joinedTo
	apart    []bool // by exit: its sum has a cluster of its own
	sums     []exitSum
	ends     []int32           // of these, the next orders
	summed   []schedule.Source // that these sum up
	shifts   []int32           // by cluster
	shape    []byte            // of one instance
	copied   []byte            // parameters of one instance
	shapes   map[string]bool   // of all instances, with their templates
}

// manyLoose is the share of nodes outside all templates, one in so many, above which several processors had better not
// wait for one another at each of them.
const manyLoose = 8

// mostParameters is how many parameters symbolicFactor can tell apart.
const mostParameters = 1 << 21

// schedulable reports whether a request is lowered by instances.
func (b *Builder) schedulable() bool {
	r := b.r
	if r.Cells == nil || r.Full || r.Nodes || len(r.Params) >= mostParameters || r.Backward && b.isParameter(r.Node) {
		return false
	}
	if fb := r.Backward && r.Needed && !r.Copy && r.State.Done == 0; r.Forward && (r.Backward || r.Needed) && !fb && !r.Split {
		return false
	}
	if !r.Plan.CPU {
		return (!b.Wide.On || len(b.ofAll) == 0 && InCells(r)) && b.fewShapes()
	}
	return (r.Plan.Processors == 1 || r.Cells.Loose*manyLoose <= int(r.Node+1-b.firstInCells()) && !b.Wide.On) && b.fewShapes()
}

// firstInCells is the first node of the instances.
func (b *Builder) firstInCells() uint32 { return b.r.Cells.Instances[0].Start }

// evaluateInstances finds what backward needs of the instances, and lowers forward by them.
func (b *Builder) evaluateInstances() error {
	if d := b.g.DimOf(b.r.Node); b.r.Backward && d.Size() != 1 {
		return fault(b.r.Node, b.g.Op[b.r.Node], "backward starts from a scalar, but its dim is %v", *d)
	}
	m := &b.cells
	if m.plan != b.r.Plan {
		m.plan, m.infos = b.r.Plan, nil
	}
	m.list = memory.Resize(m.list, len(b.r.Cells.Instances))
	m.outputs, m.returned = m.outputs[:0], append(m.returned[:0], gradientSource{})
	if err := b.findDependence(); err != nil {
		return err
	}
	if err := b.lowerParameters(); err != nil {
		return err
	}
	if err := b.findNeeded(); err != nil {
		return err
	}
	if b.r.Forward {
		if err := b.forwardInstances(); err != nil {
			return err
		}
	}
	b.out.Values = b.Top - b.r.Base
	if b.r.Forward && b.r.Backward {
		b.reportLoss()
	}
	if b.r.Backward {
		b.seedLoss()
	} else {
		b.countInstances()
	}
	b.Ends[isa.InForward] = b.MaxLevel
	return nil
}

// seedLoss puts the gradient of the loss, which is 1, into memory.
func (b *Builder) seedLoss() {
	b.cells.seed = b.Alloc(1)
	b.attribute(isa.InForward, b.r.Node)
	b.Fill(b.NewCluster(0), 0, 1, 1, b.cells.seed)
	b.attribute(isa.InForward, nobody)
}

// mention notes a parameter node.
func (b *Builder) mention(v uint32) {
	id := b.g.AttrsOf(v)[0]
	p := &b.cells.params
	if x := &p.node[id]; !x.mentioned {
		*x = cellParamNode{mentioned: true, node: v, op: b.g.Op[v], dim: *b.g.DimOf(v)}
		p.ids = append(p.ids, id)
	}
}

// findDependence finds which instances' slots depend on a parameter, who owns which node, and which parameters are
// read how.
func (b *Builder) findDependence() error {
	m, p := &b.cells, b.r.Cells
	for _, id := range m.params.ids {
		if int(id) < len(m.params.node) {
			m.params.node[id] = cellParamNode{}
		}
	}
	m.params.ids = m.params.ids[:0]
	m.params.node = memory.Extend(m.params.node, len(b.r.Params), cellParamNode{})
	m.owner, m.args = memory.Resize(m.owner, b.g.Len()), memory.Resize(m.args, len(p.Args))
	for _, v := range b.r.Before {
		b.mention(v)
	}
	first, merges := b.firstInCells(), !b.r.Apart
	if merges {
		m.equal = memory.Resize(m.equal, 1<<mathbits.Len(uint(2*len(m.list))))
		clear(m.equal)
	}
	for i := range p.Instances {
		x := &p.Instances[i]
		t := x.Template
		y := &m.list[i]
		*y = present{info: b.info(t)}
		for k, a := range p.SlotsOf(x) {
			if a < first {
				m.args[x.Args+uint32(k)] = slotValue{earlier, a}
				continue
			}
			if b.r.Backward && b.grads[a] {
				y.slots |= 1 << min(k, 63)
			}
			o := m.owner[a]
			m.args[x.Args+uint32(k)] = slotValue{m.list[o].same, a - p.Instances[o].Start}
		}
		if y.same = uint32(i); merges && !y.info.draws && i < len(m.list)-1 {
			y.same = b.findEqualInstance(uint32(i))
		}
		owner := m.owner[x.Start:][:len(t.Nodes)]
		for k := range owner {
			owner[k] = uint32(i)
		}
		if b.r.Backward {
			copy(b.grads[x.Start:], y.info.dependent(y.slots))
		}
		for _, k := range y.info.params {
			b.mention(x.Start + k)
		}
		for _, u := range y.info.reads {
			q := &m.params.node[u.id]
			if !q.mentioned {
				return fmt.Errorf("parameter %d has no node", u.id)
			}
			q.otherwise = q.otherwise || u.otherwise
		}
	}
	return nil
}

// argsOf is what an instance's slots read.
func (m *cellMemory) argsOf(x *cells.Instance) []slotValue { return m.args[x.Args:][:x.Template.Slots] }

// lowerParameters lowers the parameters' first nodes, where an earlier call has not.
func (b *Builder) lowerParameters() error {
	m := &b.cells.params
	slices.Sort(m.ids)
	b.knowsOthers = true
	for _, v := range b.r.Keep { // kept as a parameter's first node is
		if b.isParameter(v) {
			m.node[b.g.AttrsOf(v)[0]].kept = true
		}
	}
	for _, id := range m.ids {
		x := &m.node[id]
		if b.r.Forward && int(x.node) >= b.s.Done {
			b.otherwise[x.node] = x.otherwise
			b.attribute(isa.InForward, x.node)
			b.lowerParameter(x.node, x.kept || b.r.Copy)
		} else if b.spots[x.node] = nowhere; b.s.Resident[x.node] != (b.r.Params[id].Matrix >= 0) {
			return fmt.Errorf("parameter %d has changed", id)
		}
		x.segment = b.s.Segment[x.node]
	}
	b.attribute(isa.InForward, nobody)
	return nil
}

// findNeeded finds, from the last instance to the first, which nodes others read and give gradients to, and the templates
// lowered for that.
func (b *Builder) findNeeded() error {
	m, p := &b.cells, b.r.Cells
	part := b.r.part()
	if part != forwardPart {
		y, loss := b.lastInstance()
		y.needed.add(loss)
		y.wanted.add(loss)
	}
	b.eachKept(func(_ uint32, y *present, k uint32) { y.needed.add(k) })
	for i := len(m.list) - 1; i >= 0; i-- {
		y, x := &m.list[i], &p.Instances[i]
		if y.needed == (nodeSet{}) && (!part.keepsValues() || y.same != uint32(i)) {
			continue
		}
		c, err := b.loweredFor(y, x, 0)
		if err != nil {
			return err
		}
		y.lowered = c
		for k, a := range m.argsOf(x) {
			if a.instance == earlier || part == bothParts && c.need[k] < 0 {
				continue
			}
			z := &m.list[a.instance]
			if part != backwardPart {
				z.needed.add(a.node)
			}
			if c.sources != nil && len(c.sources[k]) > 0 {
				z.needed.add(a.node)
				z.wanted.add(a.node)
			}
		}
	}
	return nil
}

// lastInstance is the instance that has the request's node, and which of its nodes that is.
func (b *Builder) lastInstance() (y *present, k uint32) {
	n := len(b.cells.list) - 1
	return &b.cells.list[n], b.r.Node - b.r.Cells.Instances[n].Start
}

// eachKept calls f for the nodes that are kept, but for parameters, with their instances and numbers there.
func (b *Builder) eachKept(f func(v uint32, y *present, k uint32)) {
	m, p := &b.cells, b.r.Cells
	for _, v := range b.r.Keep {
		if b.isParameter(v) {
			continue
		}
		i := m.owner[v]
		f(v, &m.list[m.list[i].same], v-p.Instances[i].Start)
	}
}

// placeKept says where the values of kept nodes are.
func (b *Builder) placeKept() {
	b.eachKept(func(v uint32, y *present, k uint32) {
		b.s.Value[v], b.s.Segment[v] = y.base+y.lowered.value[k], isa.SegAct
	})
	for _, v := range b.r.Keep {
		if b.isParameter(v) {
			first := b.cells.params.node[b.g.AttrsOf(v)[0]].node
			b.s.Value[v], b.s.Segment[v] = b.s.Value[first], b.s.Segment[first]
		}
	}
}

// forwardInstances gives instances their levels and memory, and adds their forward items.
func (b *Builder) forwardInstances() error {
	m, p := &b.cells, b.r.Cells
	for i := range m.list {
		y, x := &m.list[i], &p.Instances[i]
		if y.lowered == nil {
			if y.same != uint32(i) && !b.r.Needed {
				b.shareValues(x, &p.Instances[y.same])
			}
			continue
		}
		if err := b.orderProductsOf(x, y); err != nil {
			return err
		}
		c := y.lowered
		b.takeInstance(y)
		for k := range c.params {
			if need := c.need[x.Template.Slots+k]; need >= 0 && c.params[k].segment == isa.SegAct {
				y.level = max(y.level, b.ready(m.params.node[c.params[k].id].node)-need)
			}
		}
		early := y.level
		b.levelForward(x, y)
		if err := b.fillTable(x, y); err != nil {
			return err
		}
		b.signatures(c)
		m.levels = m.levels[:0]
		for g := range c.groups[0] {
			if m.levels = append(m.levels, y.level); c.groups[0][g].depends == 0 {
				m.levels[g] = early
			}
		}
		b.placeOutputs(y, b.addItems(y, 0))
		b.placeValues(c, x.Start)
	}
	if b.r.Backward {
		b.placeLoss()
	}
	b.placeKept()
	return nil
}

// takeInstance reserves an instance's memory, and a place for each of its outputs.
func (b *Builder) takeInstance(y *present) {
	m := &b.cells
	y.base, y.out = b.Take(uint64(y.lowered.size)), uint32(len(m.outputs))
	if b.r.Tensors {
		for _, x := range y.lowered.tensors {
			b.Tensors = append(b.Tensors, uint32(isa.SegAct), y.base+x.at, x.size)
		}
	}
	m.outputs = memory.Extend(m.outputs, len(m.outputs)+int(y.lowered.outputs), output{})
}

// placeValues says where the values of an instance are that begins at a node and whose table is filled in, if they stay.
func (b *Builder) placeValues(c *loweredCell, start uint32) {
	s, t := b.s, b.cells.table
	for k, w := range c.values {
		v := start + uint32(k)
		s.Value[v], s.Segment[v], s.Resident[v] = t[w.entry]+w.add, isa.SegAct, false
		if n := &c.template.Nodes[k]; n.Op == ops.Parameter || n.Op == ops.ConstParameter {
			s.Segment[v], s.Resident[v] = b.cells.params.node[n.Attrs[0]].segment, b.r.Params[n.Attrs[0]].Matrix >= 0
		}
	}
	for _, x := range c.aux {
		s.Aux[start+x.node] = t[x.entry] + x.add
	}
}

// shareValues makes an instance's values those of one that is equal.
func (b *Builder) shareValues(x, same *cells.Instance) {
	s, n := b.s, uint32(len(x.Template.Nodes))
	copy(s.Value[x.Start:][:n], s.Value[same.Start:])
	copy(s.Segment[x.Start:][:n], s.Segment[same.Start:])
	copy(s.Aux[x.Start:][:n], s.Aux[same.Start:])
	copy(s.Resident[x.Start:][:n], s.Resident[same.Start:])
}

// placeLoss says where the loss is.
func (b *Builder) placeLoss() {
	y, k := b.lastInstance()
	b.s.Value[b.r.Node], b.s.Segment[b.r.Node] = y.base+y.lowered.value[k], isa.SegAct
	f := &b.cells.outputAt(y, k).formedBy
	if b.spots[b.r.Node] = (spot{f.ready - 1, f.cluster, f.sub}); f.cluster >= 0 { // where it is copied to the host, too
		b.Clusters[b.Find(f.cluster)].Kind &^= schedule.Fused
	}
}

// differentiateInstances gives instances their backward levels, from the last to the first, and adds their items.
func (b *Builder) differentiateInstances() error {
	m, p := &b.cells, b.r.Cells
	start := b.Ends[isa.InForward] + 1
	for i := range m.list {
		if y := &m.list[i]; y.lowered != nil && !b.r.Forward {
			b.takeInstance(y)
		}
	}
	last, loss := b.lastInstance()
	b.giveBack(m.outputAt(last, loss), gradientSource{Source: schedule.One(m.seed), formedBy: formedBy{start, -1, 0}})
	for i := len(m.list) - 1; i >= 0; i-- {
		y, x := &m.list[i], &p.Instances[i]
		c := y.lowered
		if c == nil || len(c.wantedAt) == 0 {
			continue
		}
		if err := b.fillTable(x, y); err != nil {
			return err
		}
		b.signatures(c)
		b.levelBackward(y, start)
		b.gradientsOfSlots(x, y, b.addItems(y, 1))
	}
	b.countInstances()
	return nil
}

// giveBack adds a source of an output's gradient.
func (b *Builder) giveBack(o *output, s gradientSource) {
	m := &b.cells
	n := uint32(len(m.returned))
	m.returned = append(m.returned, s)
	if o.first == 0 {
		o.first = n
	} else {
		m.returned[o.last].next = n
	}
	o.last = n
}

// gradientsOfSlots hands over what an instance, whose first backward cluster is given, leaves for others: outputs,
// parameters, rows of tables.
func (b *Builder) gradientsOfSlots(x *cells.Instance, y *present, first int32) {
	m, p, c, t := &b.cells, b.r.Cells, y.lowered, b.cells.table
	at := func(s *cellSource) schedule.Source {
		return schedule.Source{At: t[s.entry] + s.add, Count: s.count, Apart: s.apart}
	}
	when := func(s *cellSource) formedBy {
		if e := s.entry - c.atExits(); s.entry >= c.atExits() && s.entry < c.atParams() { // another's, handed on
			return m.exits[e]
		}
		f := formedBy{m.levels[s.group] + s.ready, -1, 0}
		if s.in >= 0 && b.joinsInstances() {
			f.cluster, f.sub = first+s.in, c.clusters[1][s.in].top+m.shifts[s.in]
		}
		return f
	}
	for k, a := range m.argsOf(x) {
		if c.sources == nil || len(c.sources[k]) == 0 {
			continue
		}
		o := m.outputAt(&m.list[a.instance], a.node)
		for i := range c.sources[k] {
			s := &c.sources[k][i]
			b.giveBack(o, gradientSource{Source: at(s), formedBy: when(s)})
		}
	}
	for i := range c.sums {
		b.ParamSrc = append(b.ParamSrc, finish.ParamSource{Param: c.sums[i].param, Source: at(&c.sums[i].cellSource)})
	}
	for i := range c.rows {
		r := &c.rows[i]
		first := uint32(len(b.RowPool))
		for j := range r.sources {
			b.RowPool = append(b.RowPool, at(&r.sources[j]))
		}
		in := &c.inputs[r.input]
		row := b.g.Inputs[p.ConstantsOf(x)[in.constant]+in.add]
		b.RowSrc = append(b.RowSrc, finish.RowSource{Key: uint64(r.param)<<32 | uint64(row), First: first, Count: uint32(len(r.sources)), Shift: r.shift})
	}
	b.Outers = c.appendMatrices(b.Outers, c.outers, []int32{0}, t)
}
