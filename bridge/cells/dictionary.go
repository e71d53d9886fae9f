package cells

import (
	"cmp"
	"slices"

	"libvpps/bridge"
	"libvpps/bridge/ops"
)

// Bounds of a dictionary's memory.
const (
	mostSamples   = 8       // graphs that it learns from at once
	mostNodes     = 20000   // nodes of them
	mostOfOne     = 8000    // nodes of one of them
	mostTemplates = 512     // the least recently found ones go
	mostKeys      = 1 << 16 // then it begins anew
	Longest       = 256     // nodes of a template
)

// Dictionary is the templates that were learnt. It is used by one goroutine at a time.
type Dictionary struct {
	// Templates are the patterns found so far, each at its ID; single nodes come with the first graph that has one. A
	// place is nil if its template was forgotten.
	Templates []*Template

	keys    keyTable
	present []int32       // keys of the present nodes; 0: not known yet
	byKey   [][]*Template // by the key of the first node: learnt templates, the longest first
	loose   [][]*Template // by key: templates of a single node
	graphs  uint64        // that were matched
	learnt  []*Template   // in no order
	free    []int         // IDs
	samples []*sample     // that templates are learnt from, in order
	seen    evidence

	lessons uint64 // how often it learnt
	futile  uint64 // of the last ones, how many in a row gained nothing
	due     uint64 // nodes that are left over until it learns again
}

// freeLessons is how often it learns whatever that costs. A program's first graphs may differ.
const freeLessons = mostSamples

// Find lists the instances in nodes [from, to) of a graph, a stretch that was recorded in one go. It learns from the
// stretch if nodes are left over.
func (d *Dictionary) Find(g *bridge.Graph, from, to uint32, p *Program) {
	d.graphs++
	d.begin(g, from, to)
	d.match(g, from, to, p)
	if p.Loose <= 1 { // the sum of the losses
		return
	}
	before := p.Loose
	if d.due > uint64(before) {
		d.due -= uint64(before)
		return
	}
	d.learn(g, from, to)
	d.match(g, from, to, p)
	d.owe(p.Loose*2 > before)
}

// owe says when to learn again. Learning takes some time for each node of the samples, and a node that is left over
// costs about as much each time: so learning waits until as many were. What gains nothing becomes rare.
func (d *Dictionary) owe(futile bool) {
	d.lessons++
	if d.futile++; !futile {
		d.futile = 0
	}
	if d.due = 0; futile || d.lessons >= freeLessons {
		for _, s := range d.samples {
			d.due += uint64(len(s.keys))
		}
		d.due <<= min(d.futile, 20)
	}
}

// begin prepares for a stretch.
func (d *Dictionary) begin(g *bridge.Graph, from, to uint32) {
	if len(d.keys.numbers) > mostKeys || len(d.Templates) > mostKeys {
		*d = Dictionary{graphs: d.graphs}
	}
	d.keys.begin(g)
	d.present = slices.Grow(d.present[:0], int(to-from))[:to-from]
	clear(d.present)
}

// keyAt is the key of node v of the present stretch, which begins at node from.
func (d *Dictionary) keyAt(g *bridge.Graph, from, v uint32) int32 {
	k := &d.present[v-from]
	if *k == 0 {
		*k = d.keys.keyOf(g, v)
		for len(d.byKey) <= int(*k) {
			d.byKey, d.loose = append(d.byKey, nil), append(d.loose, nil)
		}
	}
	return *k
}

// match lists the instances of the present stretch.
func (d *Dictionary) match(g *bridge.Graph, from, to uint32, p *Program) {
	p.Instances, p.Args, p.Constants, p.Loose = p.Instances[:0], p.Args[:0], p.Constants[:0], 0
	for v := from; v < to; {
		t := d.longestAt(g, from, v, p)
		if t == nil {
			t = d.single(g, from, v, p)
			p.Loose++
		}
		t.used = d.graphs
		v += uint32(len(t.Nodes))
	}
}

// longestAt appends the instance of the longest learnt template that begins at node v, or returns nil.
func (d *Dictionary) longestAt(g *bridge.Graph, from, v uint32, p *Program) *Template {
	for _, t := range d.byKey[d.keyAt(g, from, v)] {
		if d.bind(t, g, from, v, p) {
			return t
		}
	}
	return nil
}

// bind appends the instance of a template that begins at node v. False: its nodes are others. Keys of nodes that are those of
// the template are known then: to compare a node takes less time than to find its key.
func (d *Dictionary) bind(t *Template, g *bridge.Graph, from, v uint32, p *Program) bool {
	keys, b := d.present[v-from:], binding{t, g, d.keys.dimOf, v, p, len(p.Args)}
	if len(keys) < len(t.Nodes) {
		return false
	}
	for k := range t.Nodes {
		n, u := &t.Nodes[k], v+uint32(k)
		known := keys[k] == n.key
		if !known && (keys[k] != 0 || !n.isLike(g, u, b.dimOf)) || !b.argsOf(u, n, known) {
			p.Args = p.Args[:b.first]
			return false
		}
		keys[k] = n.key
	}
	x := Instance{t, v, uint32(b.first), uint32(len(p.Constants))}
	if t.Constants > 0 {
		p.Constants = t.appendConstants(p.Constants, g, v)
	}
	p.Instances = append(p.Instances, x)
	return true
}

// isLike reports whether node u has the operation, the number of arguments, the dim and the attributes of a template's node.
func (n *Node) isLike(g *bridge.Graph, u uint32, dimOf []uint32) bool {
	if g.Op[u] != n.Op || dimOf[g.Dim[u]] != n.dim || len(g.ArgsOf(u)) != len(n.Args) {
		return false
	}
	attrs := g.AttrsOf(u)
	if len(attrs) != len(n.Attrs) {
		return false
	}
	list := ops.Table[n.Op].Attrs
	for k, x := range attrs {
		if x != n.Attrs[k] && (k >= len(list) || !Own(list[k].Kind)) {
			return false
		}
	}
	return true
}

// binding is an instance that is compared with its template.
type binding struct {
	t     *Template
	g     *bridge.Graph
	dimOf []uint32
	v     uint32 // its first node
	p     *Program
	first int // where its slots begin in p.Args
}

// argsOf compares the arguments of node u with those of the template's node, and appends nodes outside to the slots. Dims of
// arguments inside are those of nodes that were compared before. If the key is known, so are all dims and parameters.
func (b *binding) argsOf(u uint32, n *Node, known bool) bool {
	args := b.g.ArgsOf(u)
	for i, want := range n.Args {
		a, same := args[i], true
		switch want.Kind {
		case Inner:
			same = a == b.v+want.At
		case Outer:
			if at := b.first + int(want.At); at < len(b.p.Args) {
				same = b.p.Args[at] == a
				break
			}
			same = a < b.v && (known || b.dimOf[b.g.Dim[a]] == b.t.slotDims[want.At] && !isParameter(b.g.Op[a]))
			b.p.Args = append(b.p.Args, a)
		case Param:
			same = known || b.g.Op[a] == ops.Parameter && b.g.AttrsOf(a)[0] == want.At
		case ConstParam:
			same = known || b.g.Op[a] == ops.ConstParameter && b.g.AttrsOf(a)[0] == want.At
		}
		if !same {
			return false
		}
	}
	return true
}

// appendConstants appends the attribute words that are the own ones of the instance that begins at node v.
func (t *Template) appendConstants(to []uint32, g *bridge.Graph, v uint32) []uint32 {
	for k := range t.Nodes {
		n := &t.Nodes[k]
		if n.Constants == 0 {
			continue
		}
		attrs := g.AttrsOf(v + uint32(k))
		for i, a := range ops.Table[n.Op].Attrs {
			if Own(a.Kind) {
				to = append(to, attrs[i])
			}
		}
	}
	return to
}

// single appends node v as an instance of a template of its own.
func (d *Dictionary) single(g *bridge.Graph, from, v uint32, p *Program) *Template {
	list := &d.loose[d.keyAt(g, from, v)]
	for _, t := range *list {
		if d.bind(t, g, from, v, p) {
			return t
		}
	}
	t := newTemplate(g, d.present[v-from:], d.keys.dimOf, v, v+1)
	*list = append(*list, t)
	d.add(t)
	d.bind(t, g, from, v, p)
	return t
}

// add gives a template an ID.
func (d *Dictionary) add(t *Template) {
	if n := len(d.free) - 1; n >= 0 {
		t.ID, d.free = d.free[n], d.free[:n]
		d.Templates[t.ID] = t
		return
	}
	t.ID = len(d.Templates)
	d.Templates = append(d.Templates, t)
}

// adopt makes a stretch of nodes a template that is looked for, if there is none like it.
func (d *Dictionary) adopt(t *Template) {
	list := d.byKey[t.Nodes[0].key]
	for _, old := range list {
		if old.same(t) {
			old.used = d.graphs
			return
		}
	}
	t.used = d.graphs
	d.add(t)
	d.learnt = append(d.learnt, t)
	list = append(list, t)
	slices.SortStableFunc(list, func(x, y *Template) int {
		return cmp.Or(cmp.Compare(len(y.Nodes), len(x.Nodes)), cmp.Compare(x.Slots, y.Slots))
	})
	d.byKey[t.Nodes[0].key] = list
}

// forget drops learnt templates that were not found for the longest time, until there are not too many.
func (d *Dictionary) forget() {
	if len(d.learnt) <= mostTemplates {
		return
	}
	slices.SortStableFunc(d.learnt, func(x, y *Template) int { return cmp.Compare(y.used, x.used) })
	for _, t := range d.learnt[mostTemplates:] {
		list := d.byKey[t.Nodes[0].key]
		i := slices.Index(list, t)
		d.byKey[t.Nodes[0].key] = slices.Delete(list, i, i+1)
		d.Templates[t.ID] = nil
		d.free = append(d.free, t.ID)
	}
	clear(d.learnt[mostTemplates:])
	d.learnt = d.learnt[:mostTemplates]
}
