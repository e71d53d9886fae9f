// Package cells finds the patterns that recur in graphs.
//
// A program builds its graphs from few patterns: the cell of a network, a classifier, a loss. A Template is such a
// pattern, a stretch of consecutive nodes. An Instance is one occurrence of a template. A node outside all patterns is
// an instance of a template of its own. So a graph of thousands of nodes is a list of some hundred instances, and what
// holds for a template need not be found out for each node again.
//
// A Dictionary learns templates from the graphs that it sees. It counts and never measures time: the same graphs
// in the same order give the same templates.
package cells

import (
	"slices"

	"libvpps/bridge"
	"libvpps/bridge/ops"
)

// Argument says which node is an argument of a template's node.
type Argument struct {
	Kind ArgumentKind
	At   uint32 // Inner: the node's number in the template; Outer: the number of the slot; Param, ConstParam: the id
}

// ArgumentKind is the kind of an argument.
type ArgumentKind uint8

// Kinds of arguments.
const (
	Inner      ArgumentKind = iota // a node of the instance
	Outer                          // a node before the instance, one of its arguments
	Param                          // a parameter node, wherever it is
	ConstParam                     // one that gets no gradient
)

// Node is a node of a template.
type Node struct {
	Op    ops.Code
	Args  []Argument
	Attrs []uint32 // 0 where instances have words of their own
	Dim   bridge.Dim

	key       int32
	dim       uint32 // the number of Dim
	Constants int    // attribute words that each instance has its own of
}

// Template is a pattern of nodes.
type Template struct {
	ID        int // in Dictionary.Templates
	Nodes     []Node
	Slots     int // how many nodes outside an instance reads
	Constants int // words that each instance has its own of, in the order of the nodes' attributes
	SlotDims  []bridge.Dim

	slotDims []uint32 // their numbers
	used     uint64   // the last graph that it was found in
}

// Instance is an occurrence of a template: nodes [Start, Start+len(Nodes)).
type Instance struct {
	Template  *Template
	Start     uint32
	Args      uint32 // its slots are Program.Args[Args:][:Template.Slots]
	Constants uint32 // its own attribute words are Program.Constants[Constants:][:Template.Constants]
}

// Program is a graph, or a stretch of one, as a list of instances. Together they cover every node once, in order.
type Program struct {
	Instances []Instance
	Args      []uint32
	Constants []uint32
	Loose     int // nodes outside all learnt templates
}

// SlotsOf are the nodes outside that an instance reads.
func (p *Program) SlotsOf(x *Instance) []uint32 { return p.Args[x.Args:][:x.Template.Slots] }

// ConstantsOf are the attribute words that are an instance's own.
func (p *Program) ConstantsOf(x *Instance) []uint32 {
	return p.Constants[x.Constants:][:x.Template.Constants]
}

// Own reports whether each instance has attribute words of a kind of its own: offsets of input words, and numbers. Neither
// decides what the items of a template are.
func Own(k ops.Kind) bool { return k == ops.Offset || k == ops.Float }

// Name lists the operations of a template.
func (t *Template) Name() string {
	var b []byte
	for i := range t.Nodes {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(b, t.Nodes[i].Op.String()...)
	}
	return string(b)
}

// newTemplate is the pattern of nodes [from, to) of a graph with the given keys and numbers of dims.
func newTemplate(g *bridge.Graph, keys []int32, dimOf []uint32, from, to uint32) *Template {
	t := &Template{}
	slots := map[uint32]uint32{}
	for v := from; v < to; v++ {
		n := Node{Op: g.Op[v], Dim: *g.DimOf(v), dim: dimOf[g.Dim[v]], key: keys[v-from], Attrs: slices.Clone(g.AttrsOf(v))}
		for k, a := range ops.Table[n.Op].Attrs {
			if Own(a.Kind) {
				n.Attrs[k] = 0
				n.Constants++
			}
		}
		for _, a := range g.ArgsOf(v) {
			switch id, ok := parameter(g, a); {
			case ok:
				kind := Param
				if g.Op[a] == ops.ConstParameter {
					kind = ConstParam
				}
				n.Args = append(n.Args, Argument{kind, id})
			case a >= from:
				n.Args = append(n.Args, Argument{Inner, a - from})
			default:
				slot, known := slots[a]
				if !known {
					slot = uint32(len(slots))
					slots[a] = slot
					t.SlotDims, t.slotDims = append(t.SlotDims, *g.DimOf(a)), append(t.slotDims, dimOf[g.Dim[a]])
				}
				n.Args = append(n.Args, Argument{Outer, slot})
			}
		}
		t.Constants += n.Constants
		t.Nodes = append(t.Nodes, n)
	}
	t.Slots = len(slots)
	return t
}

// same reports whether two templates are the same pattern.
func (t *Template) same(o *Template) bool {
	return slices.EqualFunc(t.Nodes, o.Nodes, func(x, y Node) bool { return x.key == y.key && slices.Equal(x.Args, y.Args) })
}

// parameter is the id of the parameter that a node is.
func parameter(g *bridge.Graph, v uint32) (id uint32, ok bool) {
	if isParameter(g.Op[v]) {
		return g.AttrsOf(v)[0], true
	}
	return 0, false
}

func isParameter(op ops.Code) bool { return op == ops.Parameter || op == ops.ConstParameter }
