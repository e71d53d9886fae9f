package cells_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/cells"
	"libvpps/bridge/ops"
)

// recorder records a graph.
type recorder struct{ g bridge.Graph }

func newRecorder() *recorder {
	r := &recorder{}
	r.g.ArgStart, r.g.AttrStart = []uint32{0}, []uint32{0}
	return r
}

func vector(n uint32) bridge.Dim {
	return bridge.Dim{Nd: 1, Bd: 1, D: [bridge.MaxDims]uint32{n}}
}

var hidden, scalar = vector(8), vector(1)

func (r *recorder) add(op ops.Code, d bridge.Dim, attrs []uint32, args ...uint32) uint32 {
	g := &r.g
	k := slices.Index(g.Dims, d)
	if k < 0 {
		k = len(g.Dims)
		g.Dims = append(g.Dims, d)
	}
	g.Op, g.Dim = append(g.Op, op), append(g.Dim, uint32(k))
	g.Args, g.Attrs = append(g.Args, args...), append(g.Attrs, attrs...)
	g.ArgStart, g.AttrStart = append(g.ArgStart, uint32(len(g.Args))), append(g.AttrStart, uint32(len(g.Attrs)))
	return uint32(g.Len() - 1)
}

func (r *recorder) input(w uint32) uint32 {
	r.g.Inputs = append(r.g.Inputs, w)
	return uint32(len(r.g.Inputs) - 1)
}

func (r *recorder) parameter(id uint32) uint32 { return r.add(ops.Parameter, hidden, []uint32{id}) }

func (r *recorder) word(w uint32) uint32 { return r.add(ops.Lookup, hidden, []uint32{9, r.input(w)}) }

// cell is an inner cell of two nodes; parameters are where they were recorded last.
func (r *recorder) cell(b, w, u, x, h uint32) uint32 {
	return r.add(ops.Tanh, hidden, nil, r.add(ops.AffineTransform, hidden, nil, b, w, x, u, h))
}

func (r *recorder) loss(x uint32) uint32 {
	return r.add(ops.PickNegLogSoftmax, scalar, []uint32{r.input(1)}, x)
}

// chain is a recurrent sentence of some words, with a loss.
func (r *recorder) chain(words int) uint32 {
	b, w, u := r.parameter(0), r.parameter(1), r.parameter(2)
	h := r.add(ops.Tanh, hidden, nil, b)
	for i := range words {
		h = r.cell(b, w, u, r.word(uint32(i)), h)
	}
	return r.loss(h)
}

// find finds a graph's cells and checks that they are the graph.
func find(t *testing.T, d *cells.Dictionary, g *bridge.Graph, from, to int) *cells.Program {
	t.Helper()
	p := &cells.Program{}
	d.Find(g, uint32(from), uint32(to), p)
	same(t, g, from, to, p)
	return p
}

// same expands a program and compares it with nodes [from, to) of the graph.
func same(t *testing.T, g *bridge.Graph, from, to int, p *cells.Program) {
	t.Helper()
	v := uint32(from)
	for i := range p.Instances {
		x := &p.Instances[i]
		require.Equal(t, v, x.Start)
		slots, constants := p.SlotsOf(x), p.ConstantsOf(x)
		for k := range x.Template.Nodes {
			n := &x.Template.Nodes[k]
			require.Equal(t, g.Op[v], n.Op)
			require.Equal(t, *g.DimOf(v), n.Dim)
			attrs := slices.Clone(n.Attrs)
			for j, a := range ops.Table[n.Op].Attrs {
				if cells.Own(a.Kind) {
					attrs[j], constants = constants[0], constants[1:]
				}
			}
			require.Equal(t, slices.Clone(g.AttrsOf(v)), attrs)
			require.Len(t, n.Args, len(g.ArgsOf(v)))
			for j, a := range n.Args {
				is := g.ArgsOf(v)[j]
				switch a.Kind {
				case cells.Inner:
					require.Equal(t, is, x.Start+a.At)
				case cells.Outer:
					require.Equal(t, is, slots[a.At])
					require.Equal(t, *g.DimOf(is), x.Template.SlotDims[a.At])
				case cells.Param:
					require.Equal(t, []any{ops.Parameter, a.At}, []any{g.Op[is], g.AttrsOf(is)[0]})
				case cells.ConstParam:
					require.Equal(t, []any{ops.ConstParameter, a.At}, []any{g.Op[is], g.AttrsOf(is)[0]})
				}
			}
			v++
		}
		require.Empty(t, constants)
	}
	require.Equal(t, uint32(to), v)
}

// names lists a program's templates of several nodes, each once.
func names(p *cells.Program) (list []string) {
	for _, x := range p.Instances {
		if name := x.Template.Name(); len(x.Template.Nodes) > 1 && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

func TestACellIsFoundFromTheSecondOneOn(t *testing.T) {
	var d cells.Dictionary
	r := newRecorder()
	r.chain(7)
	p := find(t, &d, &r.g, 0, r.g.Len())
	require.Contains(t, names(p), "LookupNode AffineTransform Tanh")
	require.LessOrEqual(t, p.Loose, 5, "parameters, the first h, the loss: they occurred once")
	r = newRecorder()
	r.chain(11)
	require.Zero(t, find(t, &d, &r.g, 0, r.g.Len()).Loose)
}

// The sum of the losses has another number of terms in each batch: it is nobody's part.
func TestTheSumOfTheLossesStandsAlone(t *testing.T) {
	var d cells.Dictionary
	for batch := range 6 {
		r := newRecorder()
		var losses []uint32
		for k := range 2 + batch {
			losses = append(losses, r.chain(3+(batch+k)%4))
		}
		r.add(ops.Sum, scalar, nil, losses...)
		p := find(t, &d, &r.g, 0, r.g.Len())
		last := p.Instances[len(p.Instances)-1]
		require.Equal(t, "Sum", last.Template.Name())
		if batch > 2 {
			require.Equal(t, 1, p.Loose)
		}
	}
}

// A node whose items have another shape with other input words is a template of its own.
func TestNodesWithShapesStandAlone(t *testing.T) {
	var d cells.Dictionary
	for graph := range 4 {
		r := newRecorder()
		b, w, u := r.parameter(0), r.parameter(1), r.parameter(2)
		h := r.add(ops.Tanh, hidden, nil, b)
		for i := range 6 + graph {
			h = r.cell(b, w, u, r.word(uint32(i)), h)
			rows := r.input(uint32(i % 4))
			r.input(uint32(4 + i%3))
			y := r.add(ops.RestrictedLogSoftmax, hidden, []uint32{rows, 2}, h)
			h = r.add(ops.Tanh, hidden, nil, r.add(ops.Square, hidden, nil, y))
		}
		p := find(t, &d, &r.g, 0, r.g.Len())
		if graph == 0 {
			continue
		}
		require.Contains(t, names(p), "Square Tanh LookupNode AffineTransform Tanh")
		shaped := map[*cells.Template]bool{}
		for _, x := range p.Instances {
			if slices.ContainsFunc(x.Template.Nodes, func(n cells.Node) bool { return n.Op == ops.RestrictedLogSoftmax }) {
				require.Len(t, x.Template.Nodes, 1)
				shaped[x.Template] = true
			}
		}
		require.Len(t, shaped, 1, "its rows are each instance's own")
	}
}

// A program that asks for a value in the middle records in stretches.
func TestStretchesAreGraphsOfTheirOwn(t *testing.T) {
	var d cells.Dictionary
	var p *cells.Program
	for range 4 {
		r := newRecorder()
		b, w, u := r.parameter(0), r.parameter(1), r.parameter(2)
		h, from := r.add(ops.Tanh, hidden, nil, b), 0
		for i := range 6 {
			h = r.cell(b, w, u, r.word(uint32(i)), h)
			p = find(t, &d, &r.g, from, r.g.Len())
			from = r.g.Len()
		}
	}
	require.Len(t, p.Instances, 1)
	require.Equal(t, "LookupNode AffineTransform Tanh", p.Instances[0].Template.Name())
	require.Zero(t, p.Loose)
}

// Parameters that are recorded anew at each use are known by their ids.
func TestParametersInTheMiddle(t *testing.T) {
	var d cells.Dictionary
	var p *cells.Program
	for range 3 {
		r := newRecorder()
		h := r.word(1)
		for i := range 5 {
			h = r.cell(r.parameter(0), r.parameter(1), r.parameter(2), r.word(uint32(i)), h)
		}
		r.loss(h)
		p = find(t, &d, &r.g, 0, r.g.Len())
	}
	require.Zero(t, p.Loose)
	require.Contains(t, names(p), "ParameterNode ParameterNode ParameterNode LookupNode AffineTransform Tanh")
}

// Another parameter, dim, attribute or dim of an argument is another template; a constant parameter, too.
func TestWhatTellsTemplatesApart(t *testing.T) {
	other := vector(16)
	for name, change := range map[string]func(r *recorder, k int){
		"parameter": func(r *recorder, k int) {
			r.cell(r.parameter(0), r.parameter(uint32(1+k)), r.parameter(5), r.word(0), r.word(1))
		},
		"constant parameter": func(r *recorder, k int) {
			p := r.add([]ops.Code{ops.Parameter, ops.ConstParameter}[k], hidden, []uint32{0})
			r.add(ops.Tanh, hidden, nil, r.add(ops.CwiseMultiply, hidden, nil, p, r.word(0)))
		},
		"attribute": func(r *recorder, k int) {
			r.add(ops.Tanh, hidden, nil, r.add(ops.PickRange, hidden, []uint32{uint32(k), uint32(k) + 8, 0}, r.word(0)))
		},
		"attribute of an operation outside the wire format": func(r *recorder, k int) {
			windows := [][]uint32{{3, 1, 1, 1, 2, 4, 1, 0, 0}, {1, 3, 1, 1, 2, 4, 0, 1, 0}}
			r.add(ops.Tanh, hidden, nil, r.add(ops.Windows, hidden, windows[k], r.word(0)))
		},
		"dim": func(r *recorder, k int) {
			r.add(ops.Tanh, hidden, nil, r.add(ops.PickRange, hidden, []uint32{0, 8, 0}, r.add(ops.Input, []bridge.Dim{hidden, other}[k], []uint32{0})))
		},
	} {
		var d cells.Dictionary
		var last [2]*cells.Template
		for range 3 {
			for k := range last {
				r := newRecorder()
				for range 3 {
					change(r, k)
				}
				p := find(t, &d, &r.g, 0, r.g.Len())
				last[k] = p.Instances[len(p.Instances)-1].Template
			}
		}
		require.NotSame(t, last[0], last[1], name)
	}
}

// A program that multiplies by another number in each graph has as few templates as one that does not.
func TestNumbersMakeNoTemplates(t *testing.T) {
	var d cells.Dictionary
	known := 0
	for k := range uint32(1000) {
		r := newRecorder()
		x := r.word(0)
		for i := range uint32(3) {
			x = r.add(ops.HuberDistance, hidden, []uint32{k}, r.add(ops.ConstScalarMultiply, hidden, []uint32{3*k + i}, x), x)
		}
		r.add(ops.Hinge, scalar, []uint32{1000 - k, r.input(1)}, x)
		p := find(t, &d, &r.g, 0, r.g.Len())
		if k == 10 {
			known = len(d.Templates)
		} else if k > 10 {
			require.Zero(t, p.Loose)
			require.Len(t, d.Templates, known)
		}
	}
}

// Attention over a sentence makes a template for each length.
func TestATemplateForEachLength(t *testing.T) {
	var d cells.Dictionary
	loose := 0
	for k := range 40 {
		n := 3 + k%4
		r := newRecorder()
		w := r.parameter(0)
		var columns []uint32
		for i := range n {
			columns = append(columns, r.word(uint32(i)))
		}
		m := r.add(ops.Concatenate, bridge.Dim{Nd: 2, Bd: 1, D: [bridge.MaxDims]uint32{8, uint32(n)}}, []uint32{1}, columns...)
		h := w
		for range 4 {
			scores := r.add(ops.MatrixMultiply, vector(uint32(n)), nil, r.add(ops.Transpose, bridge.Dim{Nd: 2, Bd: 1, D: [bridge.MaxDims]uint32{uint32(n), 8}}, []uint32{1}, m), h)
			h = r.add(ops.Tanh, hidden, nil, r.add(ops.MatrixMultiply, hidden, nil, m, r.add(ops.Softmax, vector(uint32(n)), []uint32{0}, scores)))
		}
		r.loss(h)
		if p := find(t, &d, &r.g, 0, r.g.Len()); k >= 20 {
			loose += p.Loose
		}
	}
	require.Zero(t, loose)
}

// The templates that a dictionary learns depend on the graphs and their order only.
func TestTheSameGraphsTeachTheSame(t *testing.T) {
	var all [2][]string
	for k := range all {
		var d cells.Dictionary
		rng := rand.New(rand.NewPCG(1, 2))
		for range 30 {
			r := newRecorder()
			randomNodes(r, rng)
			p := find(t, &d, &r.g, 0, r.g.Len())
			for _, x := range p.Instances {
				all[k] = append(all[k], fmt.Sprint(x.Start, x.Template.ID, x.Template.Name()))
			}
		}
	}
	require.Equal(t, all[0], all[1])
}

// randomNodes records nodes that read any earlier ones: few patterns occur twice.
func randomNodes(r *recorder, rng *rand.Rand) {
	values := []uint32{r.parameter(0), r.word(3), r.parameter(1)}
	for range 5 + rng.IntN(60) {
		any := func() uint32 { return values[rng.IntN(len(values))] }
		var v uint32
		switch rng.IntN(7) {
		case 0:
			v = r.word(rng.Uint32N(5))
		case 1:
			v = r.parameter(rng.Uint32N(3))
		case 2:
			v = r.add(ops.Sum, hidden, nil, any(), any(), any())
		case 3:
			v = r.add(ops.CwiseMultiply, hidden, nil, any(), any())
		case 4:
			v = r.add(ops.AffineTransform, hidden, nil, any(), any(), any())
		default:
			v = r.add([]ops.Code{ops.Tanh, ops.Rectify}[rng.IntN(2)], hidden, nil, any())
		}
		values = append(values, v)
	}
}

// Whatever a graph is, its instances are the graph again: of random graphs, in random stretches.
func TestInstancesAreTheGraph(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 40 {
		var d cells.Dictionary
		learnt := 0
		for range 20 {
			r := newRecorder()
			for range 1 + rng.IntN(4) {
				seed := rng.Uint64N(3) // the same sentences come again
				randomNodes(r, rand.New(rand.NewPCG(seed, 1)))
			}
			for from := 0; from < r.g.Len(); {
				to := min(r.g.Len(), from+1+rng.IntN(r.g.Len()))
				p := find(t, &d, &r.g, from, to)
				learnt += to - from - p.Loose
				from = to
			}
		}
		require.Positive(t, learnt)
	}
}

// Graphs that are always new do not make a dictionary grow without bounds, nor learn at every one.
func TestADictionaryIsBounded(t *testing.T) {
	var d cells.Dictionary
	for k := range uint32(3000) {
		r := newRecorder()
		x := r.word(0)
		for i := range uint32(12) {
			x = r.add(ops.Tanh, hidden, nil, r.add(ops.PickRange, hidden, []uint32{k*4 + i%4, 0, 0}, x))
		}
		find(t, &d, &r.g, 0, r.g.Len())
	}
	require.Less(t, len(d.Templates), 100000)
	r := newRecorder()
	r.chain(5)
	for range 2000 { // learning has become rare
		find(t, &d, &r.g, 0, r.g.Len())
	}
	require.Zero(t, find(t, &d, &r.g, 0, r.g.Len()).Loose)
}
