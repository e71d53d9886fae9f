package script

import (
	"libvpps/bridge/cells"
	"libvpps/bridge/ops"
)

// What is known of a template and the same for all its instances: what it reads, and how it was lowered. None of it may depend
// on earlier graphs, since a script must not.

// templateInfo is what a Builder knows of a template.
type templateInfo struct {
	variants []*loweredCell
	depends  []dependence
	shapes   []inputRun // input words that the shape of items depends on
	inputs   []inputRun // all input words
	numbers  []uint32   // constants that are numbers
	params   []uint32   // nodes that are parameters
	reads    []paramUse
	draws    bool // of random numbers
	of       *cells.Template
}

// dependence says which nodes depend on a parameter if some slots do.
type dependence struct {
	slots uint64
	nodes []bool
}

// paramUse is a parameter that a template reads, only from the left of products or otherwise, too.
type paramUse struct {
	id        uint32
	otherwise bool
}

// inputRun is the input words that a node reads.
type inputRun struct{ constant, count uint32 }

// info is what is known of a template.
func (b *Builder) info(t *cells.Template) *templateInfo {
	m := &b.cells
	for t.ID >= len(m.infos) {
		m.infos = append(m.infos, nil)
	}
	if x := m.infos[t.ID]; x != nil && x.of == t {
		return x
	}
	x := &templateInfo{of: t}
	constant := uint32(0)
	for k := range t.Nodes {
		n := &t.Nodes[k]
		for _, a := range ops.Table[n.Op].Attrs {
			if !cells.Own(a.Kind) {
				continue
			}
			use, count := cells.InputWords(n.Op, &n.Dim, n.Attrs)
			if a.Kind == ops.Float {
				x.numbers, count = append(x.numbers, constant), 0
			}
			if use == cells.ShapesItems && count > 0 {
				x.shapes = append(x.shapes, inputRun{constant, count})
			}
			if count > 0 { // else the offset may be anything
				x.inputs = append(x.inputs, inputRun{constant, count})
			}
			constant++
		}
		x.draws = x.draws || draws(n.Op)
		if n.Op == ops.Parameter || n.Op == ops.ConstParameter {
			x.params = append(x.params, uint32(k))
		}
		for j, a := range n.Args {
			if a.Kind == cells.Param || a.Kind == cells.ConstParam {
				x.readsParam(a.At, !isLeftOf(n.Op, j))
			}
		}
	}
	m.infos[t.ID] = x
	return x
}

// readsParam notes a use of a parameter.
func (x *templateInfo) readsParam(id uint32, otherwise bool) {
	for i := range x.reads {
		if u := &x.reads[i]; u.id == id {
			u.otherwise = u.otherwise || otherwise
			return
		}
	}
	x.reads = append(x.reads, paramUse{id, otherwise})
}

// dependent is which nodes depend on a parameter, if some slots do.
func (x *templateInfo) dependent(slots uint64) []bool {
	for i := range x.depends {
		if x.depends[i].slots == slots {
			return x.depends[i].nodes
		}
	}
	nodes := make([]bool, len(x.of.Nodes))
	for k := range nodes {
		n := &x.of.Nodes[k]
		nodes[k] = n.Op == ops.Parameter || n.Op == ops.Lookup
		for _, a := range n.Args {
			switch a.Kind {
			case cells.Inner:
				nodes[k] = nodes[k] || nodes[a.At]
			case cells.Outer:
				nodes[k] = nodes[k] || slots>>min(a.At, 63)&1 != 0
			case cells.Param:
				nodes[k] = true
			}
		}
	}
	x.depends = append(x.depends, dependence{slots, nodes})
	return nodes
}
