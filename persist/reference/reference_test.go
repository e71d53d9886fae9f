package reference

import (
	"fmt"
	"math"
	"testing"

	"libvpps/bridge"
	"libvpps/bridge/ops"
)

func TestEveryOperationHasARule(t *testing.T) {
	for op, info := range ops.Table {
		if info.Name != "" && rules[op].value == nil {
			t.Errorf("%s has no rule", info.Name)
		}
		if info.Name != "" && info.Args != 0 && proposals[ops.Code(op)] == nil {
			t.Errorf("%s is never drawn in random graphs", info.Name)
		}
	}
}

// check holds a graph's gradients to central differences and returns how many it compared.
func check(t *testing.T, g *RandomGraph) int {
	t.Helper()
	s := g.Surroundings()
	values, err := Evaluate(g.Graph, s, g.Loss)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Differentiate(g.Graph, s, g.Loss, values)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for id, p := range g.Params {
		for e := range p.Values {
			want, err := Difference(g.Graph, s, g.Loss, values, uint32(id), e)
			if err != nil {
				t.Fatal(err)
			}
			if have := gradient(g, d, uint32(id), e); math.Abs(have-want) > 1e-6*(1+math.Abs(want)) {
				t.Fatalf("parameter %d, element %d: gradient %g, differences say %g\n%s", id, e, have, want, describe(g.Graph))
			} else if want != 0 {
				compared++
			}
		}
	}
	return compared
}

// gradient of a parameter that also stands in the graph as a constant: differences see
// both, so such a parameter is counted whole only where it is trained.
func gradient(g *RandomGraph, d *Gradients, id uint32, e int) float64 {
	for i, op := range g.Graph.Op {
		if (op == ops.ConstParameter || op == ops.ConstLookup) && g.Graph.AttrsOf(uint32(i))[0] == id {
			return constGradient(g, d, uint32(i), e)
		}
	}
	if d.Params[id] == nil {
		return 0
	}
	return d.Params[id][e]
}

// constGradient is what a constant parameter's gradient would be.
func constGradient(g *RandomGraph, d *Gradients, node uint32, e int) float64 {
	dy := d.Nodes[node]
	if g.Graph.Op[node] == ops.ConstParameter {
		return dy[e]
	}
	size, sum := g.Graph.DimOf(node).Batch(), 0.0
	at := g.Graph.AttrsOf(node)[1]
	for b, row := range g.Graph.Inputs[at:][:len(dy)/size] {
		if e/size == int(row) {
			sum += dy[b*size+e%size]
		}
	}
	return sum
}

func describe(g *bridge.Graph) string {
	s := ""
	for i := range uint32(g.Len()) {
		s += fmt.Sprintf("%3d %s%v %s %v\n", i, g.Op[i], g.ArgsOf(i), g.DimOf(i), g.AttrsOf(i))
	}
	return s
}

func TestGradientsOfEveryOperation(t *testing.T) {
	for op := range ops.Table {
		c := ops.Code(op)
		if proposals[c] == nil {
			continue
		}
		t.Run(c.String(), func(t *testing.T) {
			seen, compared := 0, 0
			for seed := range uint64(20) {
				g, err := Random(seed, Options{Nodes: 9, Ops: []ops.Code{c, c, ops.Tanh, ops.ConstantPlusX}})
				if err != nil {
					t.Fatal(err)
				}
				for _, o := range g.Graph.Op {
					if o == c {
						seen++
					}
				}
				compared += check(t, g)
			}
			if seen < 7 || compared < 15 {
				t.Errorf("%d nodes and %d gradients: too few to tell", seen, compared)
			}
		})
	}
}

func TestGradientsOfRandomGraphs(t *testing.T) {
	compared, nodes := 0, 0
	counts := map[ops.Code]int{}
	for seed := range uint64(150) {
		g, err := Random(seed, Options{Random: seed%2 == 0})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		nodes += g.Graph.Len()
		for _, op := range g.Graph.Op {
			counts[op]++
		}
		compared += check(t, g)
	}
	for op, info := range ops.Table {
		if info.Name != "" && counts[ops.Code(op)] < 3 {
			t.Errorf("%s is in random graphs only %d times", info.Name, counts[ops.Code(op)])
		}
	}
	t.Logf("%d nodes, %d gradients compared", nodes, compared)
}

func TestTheSameSeedMakesTheSameGraph(t *testing.T) {
	a, err := Random(7, Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Random(7, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(a.Words) != fmt.Sprint(b.Words) || fmt.Sprint(a.Params) != fmt.Sprint(b.Params) {
		t.Error("two graphs of seed 7 differ")
	}
}
