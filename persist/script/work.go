package script

import (
	"sync"

	"libvpps/bridge/cells"
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
	"libvpps/persist/memory"
)

// Whose work scripts are. Clocks tell how long the instructions of a kind took, but an instruction has items of many
// nodes. So, if a request asks for it, lowering notes what each node's items cost. A template's items are counted once,
// when it is lowered, and each of its instances adds them.

// Work is the costs of scripts by whose they are. All builders of an engine may add to it.
type Work struct {
	mu      sync.Mutex
	owners  []Owner
	rows    map[Owner]uint32
	cells   map[*cells.Template][]uint32 // by node: its row
	tallies []*tally
}

// Owner is an operation of a cell.
type Owner struct {
	Cell *cells.Template // nil: outside all learnt ones
	Op   ops.Code
}

// Costs is what items cost, in the units of sigTable.costs, by phase and opcode.
type Costs [isa.Phases][isa.Opcodes]float64

// Owned is what there is of an owner: nodes, instances of the cell, and costs.
type Owned struct {
	Owner
	Nodes, Instances uint64
	Costs
}

// tally is a builder's part of Work.
type tally struct {
	of    *Work
	row   []uint32 // by node
	owned []Owned  // by row

	node                    uint32 // whose what is added from now on is, or nobody
	phase                   isa.Phase
	items, matrices, outers int // so many of the builder's are counted
}

// Owned is the work so far. No script is being written.
func (w *Work) Owned() []Owned {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]Owned, len(w.owners))
	for k, o := range w.owners {
		all[k].Owner = o
	}
	for _, t := range w.tallies {
		for k := range t.owned {
			x, to := &t.owned[k], &all[k]
			to.Nodes, to.Instances = to.Nodes+x.Nodes, to.Instances+x.Instances
			for p := range x.Costs {
				for op, c := range x.Costs[p] {
					to.Costs[p][op] += c
				}
			}
		}
	}
	return all
}

// begin makes t, or a new one, the tally for a request; nil: none is asked for.
func (t *tally) begin(r *Request) *tally {
	w := r.Work
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if t == nil || t.of != w {
		t = w.newTally()
	}
	t.row = t.row[:0]
	if r.Graph == nil {
		return t
	}
	if r.Cells != nil {
		for v := range r.Cells.Instances[0].Start {
			t.row = append(t.row, w.rowOf(Owner{nil, r.Graph.Op[v]}))
		}
		for i := range r.Cells.Instances {
			t.row = w.appendRows(t.row, r.Cells.Instances[i].Template)
		}
	}
	for v := len(t.row); v < r.Graph.Len(); v++ {
		t.row = append(t.row, w.rowOf(Owner{nil, r.Graph.Op[v]}))
	}
	t.enlarge(len(w.owners))
	if r.Forward {
		t.see(r)
	}
	return t
}

// see counts the nodes and instances of a graph.
func (t *tally) see(r *Request) {
	for v := uint32(r.State.Done); v <= r.Node; v++ {
		t.owned[t.row[v]].Nodes++
	}
	if r.Cells != nil {
		for i := range r.Cells.Instances {
			t.owned[t.row[r.Cells.Instances[i].Start]].Instances++
		}
	}
}

func (t *tally) enlarge(rows int) { t.owned = memory.Extend(t.owned, rows, Owned{}) }

func (w *Work) newTally() *tally {
	t := &tally{of: w, node: nobody}
	w.tallies = append(w.tallies, t)
	return t
}

func (w *Work) rowOf(o Owner) uint32 {
	k, known := w.rows[o]
	if !known {
		if w.rows == nil {
			w.rows, w.cells = map[Owner]uint32{}, map[*cells.Template][]uint32{}
		}
		k = uint32(len(w.owners))
		w.owners, w.rows[o] = append(w.owners, o), k
	}
	return k
}

// appendRows appends the rows of a template's nodes. A template of one node was not learnt.
func (w *Work) appendRows(to []uint32, t *cells.Template) []uint32 {
	if len(t.Nodes) == 1 {
		return append(to, w.rowOf(Owner{nil, t.Nodes[0].Op}))
	}
	rows, known := w.cells[t]
	if !known {
		for k := range t.Nodes {
			rows = append(rows, w.rowOf(Owner{t, t.Nodes[k].Op}))
		}
		w.cells[t] = rows
	}
	return append(to, rows...)
}

// attribute says whose work, in which phase, is what is added from now on.
func (b *Builder) attribute(p isa.Phase, v uint32) {
	if b.tally != nil {
		b.tally.count(b)
		b.tally.phase, b.tally.node = p, v
	}
}

// restart forgets what was added: it is counted, or is nobody's.
func (t *tally) restart(b *Builder) {
	t.items, t.matrices, t.outers = len(b.Items), len(b.Products), len(b.Outers)
}

// count counts what was added.
func (t *tally) count(b *Builder) {
	if t.node != nobody {
		c := &t.owned[t.row[t.node]].Costs
		for i := t.items; i < len(b.Items); i++ {
			it := &b.Items[i]
			c[t.phase][isa.Opcode(b.SignatureOf(it)[0])] += float64(b.ItemCost(it))
		}
		for _, x := range b.Products[t.matrices:] {
			c[t.phase][isa.Opcode(b.Sigs.Of(x.Sig)[0])] += b.ProductCost(x.Sig)
		}
		for _, x := range b.Outers[t.outers:] {
			c[isa.InGradients][isa.Outer] += b.ProductCost(x.Sig)
		}
	}
	t.restart(b)
}

// cellWork is what a node of a lowered template costs.
type cellWork struct {
	row    uint32
	phase  isa.Phase
	opcode isa.Opcode
	cost   float64
}

// tallyTemplate has a template's small graph counted, if b's are.
func (l *cellLowering) tallyTemplate(b *Builder) {
	if l.b.tally = nil; b.tally == nil {
		return
	}
	nodes := l.c.template.Nodes
	t := &tally{of: b.tally.of, node: nobody, row: make([]uint32, l.g.Len()), owned: make([]Owned, len(nodes)+1)}
	for v := range t.row {
		t.row[v] = uint32(len(nodes)) // parameters, slots, gradients' exits
	}
	for k, v := range l.node {
		if v >= l.shared {
			t.row[v] = uint32(k)
		}
	}
	l.b.tally = t
}

// collectWork lists what the template's nodes cost.
func (l *cellLowering) collectWork() {
	t := l.b.tally
	if t == nil {
		return
	}
	t.count(l.b)
	t.of.mu.Lock()
	rows := t.of.appendRows(nil, l.c.template)
	t.of.mu.Unlock()
	for k, row := range rows {
		for p := range t.owned[k].Costs {
			for op, cost := range t.owned[k].Costs[p] {
				if cost > 0 {
					l.c.work = append(l.c.work, cellWork{row, isa.Phase(p), isa.Opcode(op), cost})
				}
			}
		}
	}
}

// countInstances counts the work of the present instances.
func (b *Builder) countInstances() {
	if b.tally == nil {
		return
	}
	for i := range b.cells.list {
		if c := b.cells.list[i].lowered; c != nil {
			for _, x := range c.work {
				b.tally.owned[x.row].Costs[x.phase][x.opcode] += x.cost
			}
		}
	}
}
