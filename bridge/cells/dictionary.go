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
	longest       = 256     // nodes of a template
)

// Dictionary is the templates that were learnt. It is used by one goroutine at a time.
type Dictionary struct {
	// Templates are the patterns found so far, each at its ID; single nodes come with the first graph that has one. A
	// place is nil if its template was forgotten.
	Templates []*Template

	keys    keyTable
	present []int32       // keys of the present nodes
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

// begin finds the keys of a stretch.
func (d *Dictionary) begin(g *bridge.Graph, from, to uint32) {
	if len(d.keys.numbers) > mostKeys || len(d.Templates) > mostKeys {
		*d = Dictionary{graphs: d.graphs}
	}
	d.present = d.keys.keysOf(g, from, to, d.present[:0])
	for len(d.byKey) <= len(d.keys.numbers) {
		d.byKey, d.loose = append(d.byKey, nil), append(d.loose, nil)
	}
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
	keys := d.present[v-from:]
	for _, t := range d.byKey[keys[0]] {
		if t.fits(keys) && t.bind(g, v, p) {
			return t
		}
	}
	return nil
}

// fits reports whether the nodes' keys are a template's.
func (t *Template) fits(keys []int32) bool {
	if len(keys) < len(t.Nodes) {
		return false
	}
	for k := range t.Nodes {
		if keys[k] != t.Nodes[k].key {
			return false
		}
	}
	return true
}

// bind appends the instance that begins at node v, whose keys are the template's. False: arguments differ.
func (t *Template) bind(g *bridge.Graph, v uint32, p *Program) bool {
	first, slots := len(p.Args), uint32(0)
	for k := range t.Nodes {
		args := g.ArgsOf(v + uint32(k))
		for i, want := range t.Nodes[k].Args {
			a := args[i]
			switch {
			case want.Kind == Inner:
				if a != v+want.At {
					p.Args = p.Args[:first]
					return false
				}
			case want.Kind == Outer && (a >= v || want.At < slots && p.Args[first+int(want.At)] != a):
				p.Args = p.Args[:first]
				return false
			case want.Kind == Outer && want.At == slots:
				p.Args = append(p.Args, a)
				slots++
			}
		}
	}
	x := Instance{t, v, uint32(first), uint32(len(p.Constants))}
	if t.Constants > 0 {
		p.Constants = t.appendConstants(p.Constants, g, v)
	}
	p.Instances = append(p.Instances, x)
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
	list := &d.loose[d.present[v-from]]
	for _, t := range *list {
		if t.bind(g, v, p) {
			return t
		}
	}
	t := newTemplate(g, d.present[v-from:], v, v+1)
	*list = append(*list, t)
	d.add(t)
	t.bind(g, v, p)
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
