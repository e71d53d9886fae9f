package persist

// DyNet's calls by instances of templates: forward, the value of a node in the middle of a graph, backward, update.

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/cpu"
)

// The model of these tests: matrices W and U {8,8}, a vector b {8} and a table of 64 rows {8}.
const (
	callsW = iota
	callsU
	callsB
	callsTable
	callsParams
)

// The dims of its graphs.
const (
	callsScalar = iota
	callsVector
	callsMatrix
)

func callsModel(t *testing.T, processors int) *model {
	t.Helper()
	x, err := cpu.New(1, processors, 5)
	require.NoError(t, err)
	m := &model{T: t, Engine: newEngine(x, 1)}
	m.verify = true
	t.Cleanup(m.Close)
	c, err := m.NewCollection(0)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	for id, d := range []bridge.Dim{dim(8, 8), dim(8, 8), dim(8), dim(8, 64)} {
		values := make([]float32, d.Size())
		for i := range values {
			values[i] = rng.Float32() - 0.5
		}
		_, err = m.NewParameter(c, "", d, id == callsTable, values)
		require.NoError(t, err)
	}
	return m
}

// recorder records a recurrent network in pieces, one a step: h = tanh(b + W h + U x) with dropout, whose loss is a
// part of the sum at the end. Words of the table may come twice.
type recorder struct {
	bridge.Words
	nodes uint32
	state uint32   // the node h
	terms []uint32 // of the loss
	ends  []uint32 // by step: its last node
}

func (r *recorder) add(code ops.Code, dim uint32, rest ...uint32) uint32 {
	r.Nodes = append(r.Nodes, op(code, dim, rest...)...)
	r.NodeCount++
	r.nodes++
	return r.nodes - 1
}

// begin records the parameters.
func (r *recorder) begin() {
	r.Dims = []bridge.Dim{dim(1), dim(8), dim(8, 8)}
	r.add(ops.Parameter, callsMatrix, callsW)
	r.add(ops.Parameter, callsMatrix, callsU)
	r.add(ops.Parameter, callsVector, callsB)
	r.state = r.add(ops.Constant, callsVector, bits(0.25)[0])
}

// step records a step with a word.
func (r *recorder) step(word uint32) {
	at := uint32(len(r.Inputs))
	r.Inputs = append(r.Inputs, word, word%8)
	x := r.add(ops.Lookup, callsVector, callsTable, at)
	x = r.add(ops.Dropout, callsVector, x, bits(0.25)[0])
	h := r.add(ops.AffineTransform, callsVector, 5, 2, 0, r.state, 1, x)
	r.state = r.add(ops.Tanh, callsVector, h)
	r.terms = append(r.terms, r.add(ops.PickNegLogSoftmax, callsScalar, r.state, at+1))
	r.ends = append(r.ends, r.nodes-1)
}

// loss records the sum.
func (r *recorder) loss() uint32 {
	return r.add(ops.Sum, callsScalar, append([]uint32{uint32(len(r.terms))}, r.terms...)...)
}

// take is what was recorded since the last call.
func (r *recorder) take() *bridge.Words {
	w := r.Words
	r.Nodes, r.NodeCount, r.Dims = nil, 0, nil
	return &w
}

// network is a graph of some words: all of it, evaluated after every so many steps; 0: only at the end.
func (m *model) network(list []uint32, every int) (loss uint32, values [][]float32) {
	m.Helper()
	r := &recorder{}
	m.graph = m.NewGraph()
	r.begin()
	for i, word := range list {
		r.step(word)
		if every > 0 && (i+1)%every == 0 {
			last := r.ends[len(r.ends)-1]
			m.value1(r.take(), last)
		}
	}
	loss = r.loss()
	m.value1(r.take(), loss)
	for n := range loss + 1 {
		values = append(values, m.value(n, m.graph.wire.DimOf(n).Size()))
	}
	return loss, values
}

// clear forgets the gradients of all parameters.
func (m *model) clear() {
	m.Helper()
	for id := range uint32(callsParams) {
		require.NoError(m, m.ScaleParameter(id, Gradient, 0))
	}
}

// fourteen are words of which none comes twice.
var fourteen = []uint32{3, 1, 4, 15, 9, 2, 6, 5, 35, 8, 7, 32, 38, 46}

// Values and gradients have the same bits however often a program asks for values in between, and whatever was learnt.
func TestValuesInTheMiddleOfAGraph(t *testing.T) {
	for _, processors := range []int{1, 2} {
		var values [][]float32
		var gradients [callsParams][]float32
		for _, every := range []int{0, 1, 3, 5} {
			m := callsModel(t, processors)
			for round := range 12 {
				m.Seed(7)
				before := m.Statistics()
				loss, have := m.network(fourteen, every)
				require.NoError(t, m.graph.Backward(nil, loss, false))
				if after := m.Statistics(); round == 11 && every == 0 && processors == 1 {
					require.LessOrEqual(t, after.Loose-before.Loose, uint64(6), "learnt by now")
					require.Less(t, after.Instances-before.Instances, uint64(30))
				}
				require.False(t, m.graph.formed && processors == 1, "by instances")
				if values == nil {
					values = have
				}
				tolerance := 0.0
				if processors > 1 { // some calls go node by node, which adds products up as they are ready
					tolerance = 1e-5
				}
				for n := range values {
					require.InDeltaSlice(t, values[n], have[n], tolerance, "node %d", n)
				}
				for id := range uint32(callsParams) {
					g := m.read(id, Gradient)
					if gradients[id] == nil {
						gradients[id] = g
					}
					require.InDeltaSlice(t, gradients[id], g, tolerance, "parameter %d, a value every %d steps, round %d", id, every, round)
				}
				m.clear()
				m.graph.Close()
			}
		}
	}
}

// Equal steps of one call are evaluated once, and of several calls they are not: gradients differ in rounding alone.
func TestEqualCellsOfOneCall(t *testing.T) {
	list := []uint32{3, 3, 3, 5, 5, 3}
	gradients := map[int][]float32{}
	for _, every := range []int{0, 1} {
		m := callsModel(t, 1)
		for range 4 {
			m.Seed(7)
			r := &recorder{}
			m.graph = m.NewGraph()
			r.begin()
			for i, word := range list {
				r.Inputs = append(r.Inputs, word, word%8)
				x := r.add(ops.Lookup, callsVector, callsTable, uint32(len(r.Inputs)-2))
				h := r.add(ops.AffineTransform, callsVector, 3, 2, 0, x)
				h = r.add(ops.Tanh, callsVector, h)
				r.terms = append(r.terms, r.add(ops.PickNegLogSoftmax, callsScalar, h, uint32(len(r.Inputs)-1)))
				if every > 0 && i%2 == 1 {
					m.value1(r.take(), r.nodes-1)
				}
			}
			loss := r.loss()
			m.value1(r.take(), loss)
			m.clear()
			require.NoError(t, m.graph.Backward(nil, loss, false))
			m.graph.Close()
		}
		gradients[every] = append(m.read(callsW, Gradient), m.read(callsTable, Gradient)...)
	}
	require.InDeltaSlice(t, gradients[0], gradients[1], 1e-5)
}

// A backward by instances leaves gradients of nodes to the first question. Nodes of one parameter have each their own.
func TestGradientsOfNodesAreFormedWhenAskedFor(t *testing.T) {
	m := callsModel(t, 1)
	trainer, err := m.NewTrainer(TrainerOptions{LearningRate: 0.1}, []uint32{callsW, callsU, callsB, callsTable})
	require.NoError(t, err)
	for round := range 6 {
		r := &recorder{}
		m.graph = m.NewGraph()
		r.begin()
		for _, word := range fourteen {
			r.step(word)
		}
		second := r.add(ops.Parameter, callsMatrix, callsW)
		x := r.add(ops.MatrixMultiply, callsVector, second, r.state)
		r.terms = append(r.terms, r.add(ops.SumElements, callsScalar, x))
		loss := r.loss()
		require.NoError(t, m.graph.Backward(r.take(), loss, false))
		require.False(t, m.graph.formed)
		pending := m.read(callsW, Gradient)
		if round%2 == 1 {
			_, err = trainer.Update()
			require.NoError(t, err)
		}
		have := gradients(t, m.graph)
		require.True(t, m.graph.formed)
		if round%2 == 0 {
			require.Equal(t, pending, m.read(callsW, Gradient), "the question changes no parameter's gradient")
			_, err = trainer.Update()
			require.NoError(t, err)
		}
		for i, x := range pending {
			require.InDelta(t, x, have[0][i]+have[second][i], 1e-4)
		}
		require.NotZero(t, have[second])
		require.NotEqual(t, have[0], have[second])
		require.NoError(t, m.graph.NodeGradients(nil, loss))
		for n, g := range gradients(t, m.graph) {
			if n != 3 { // depends on no parameter, which a backward that is not full leaves out
				require.InDeltaSlice(t, g, have[n], 1e-5, "node %d", n)
			}
		}
		m.graph.Close()
	}
}

// Nodes that come after an update read what parameters are now, those before it keep their values; a parameter may be
// made in between.
func TestNodesAddedAfterAnUpdate(t *testing.T) {
	for _, factor := range []float32{1, 0} {
		m := callsModel(t, 1)
		r := &recorder{}
		m.graph = m.NewGraph()
		r.begin()
		r.step(3)
		loss := r.loss()
		require.NoError(t, m.graph.Backward(r.take(), loss, false))
		old, before := m.read(callsW, Values), m.value(r.state, 8)
		trainer, err := m.NewTrainer(TrainerOptions{LearningRate: factor}, []uint32{callsW, callsB})
		require.NoError(t, err)
		_, err = trainer.Update()
		require.NoError(t, err)
		id, err := m.NewParameter(0, "late", dim(8, 8), false, old)
		require.NoError(t, err)

		now := r.add(ops.Parameter, callsMatrix, callsW)
		late := r.add(ops.Parameter, callsMatrix, id)
		var products []uint32
		for _, matrix := range []uint32{0, now, late} {
			products = append(products, r.add(ops.MatrixMultiply, callsVector, matrix, r.state))
		}
		m.value1(r.take(), loss)
		require.NoError(t, m.graph.Forward(nil, products[2], false))
		require.Equal(t, before, m.value(r.state, 8))
		want := func(matrix []float32) (y []float32) {
			for i := range 8 {
				sum := float32(0)
				for k := range 8 {
					sum += matrix[i+8*k] * before[k]
				}
				y = append(y, sum)
			}
			return y
		}
		require.InDeltaSlice(t, want(old), m.value(products[0], 8), 1e-6)
		require.InDeltaSlice(t, want(m.read(callsW, Values)), m.value(products[1], 8), 1e-6)
		require.InDeltaSlice(t, want(old), m.value(products[2], 8), 1e-6)
		if factor > 0 {
			require.NotEqual(t, m.value(products[0], 8), m.value(products[1], 8))
		}
	}
}

// A piece that fails leaves the graph as it was, and its error names the node.
func TestAFailedPiece(t *testing.T) {
	m := callsModel(t, 1)
	for range 4 {
		r := &recorder{}
		m.graph = m.NewGraph()
		r.begin()
		r.step(1)
		first := m.value1(r.take(), r.ends[0])
		good := *r
		r.step(2)
		r.step(64) // is no row
		require.ErrorContains(t, m.graph.Value(r.take(), r.ends[2], make([]float32, 1)), "node 14 (LookupNode): row 64 of a table of 64 rows")
		require.Equal(t, first, m.value1(nil, r.ends[0]))
		*r = good
		r.step(2)
		r.step(63)
		loss := r.loss()
		m.value1(r.take(), loss)
		require.Equal(t, first, m.value1(nil, r.ends[0]))
		require.NoError(t, m.graph.Backward(nil, loss, false))
		m.graph.Close()
	}
}

// What is picked may differ from graph to graph, and from instance to instance of one template.
func TestPicks(t *testing.T) {
	m := callsModel(t, 1)
	rng := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		r := &recorder{}
		m.graph = m.NewGraph()
		r.begin()
		pick := func(dim, from, axis, index uint32) uint32 {
			r.Inputs = append(r.Inputs, index)
			return r.add(ops.PickElement, dim, from, axis, uint32(len(r.Inputs)-1), 1)
		}
		type picked struct{ node, from, at, n, step uint32 }
		var picks []picked
		for range 5 {
			r.step(rng.Uint32N(64))
			i, row, column, k := rng.Uint32N(8), rng.Uint32N(8), rng.Uint32N(8), rng.Uint32N(8)
			ofState := pick(callsScalar, r.state, 0, i)
			rows, columns := pick(callsVector, 0, 0, row), pick(callsVector, 1, 1, column)
			ofPick := pick(callsScalar, columns, 0, k)
			both := r.add(ops.DotProduct, callsScalar, rows, columns)
			r.terms = append(r.terms, ofState, ofPick, both)
			picks = append(picks, picked{ofState, r.state, i, 1, 1}, picked{rows, 0, row, 8, 8},
				picked{columns, 1, 8 * column, 8, 1}, picked{ofPick, columns, k, 1, 1})
		}
		loss := r.loss()
		require.NoError(t, m.graph.Backward(r.take(), loss, false))
		require.False(t, m.graph.formed, "by instances")
		for _, p := range picks {
			from, have := m.value(p.from, m.graph.wire.DimOf(p.from).Size()), m.value(p.node, int(p.n))
			for e := range p.n {
				require.Equal(t, from[p.at+e*p.step], have[e])
			}
		}
		pending := [][]float32{m.read(callsW, Gradient), m.read(callsU, Gradient), m.read(callsB, Gradient)}
		for node, g := range gradients(t, m.graph)[:len(pending)] { // formed node by node
			require.InDeltaSlice(t, g, pending[node], 1e-4)
		}
		m.clear()
		m.graph.Close()
	}
}

// Graphs whose items have another shape with other input words train alike by instances and, as they have few nodes for each
// shape, node by node.
func TestFewNodesForEachShape(t *testing.T) {
	m := callsModel(t, 1)
	instances := 0
	for round := range uint32(80) {
		r := &recorder{}
		m.graph = m.NewGraph()
		r.begin()
		m.perShape = int(1 - round/40)
		list := []uint32{round % 8, (round%8 + 1 + round/8%7) % 8}
		for range 2 {
			r.step(round % 64)
			r.Inputs = append(r.Inputs, list...)
			n := uint32(len(list))
			x := r.add(ops.RestrictedLogSoftmax, callsVector, r.state, uint32(len(r.Inputs))-n, n)
			r.Inputs = append(r.Inputs, list[0])
			r.terms = append(r.terms, r.add(ops.PickElement, callsScalar, x, 0, uint32(len(r.Inputs)-1), 1))
		}
		loss := r.loss()
		require.NoError(t, m.graph.Backward(r.take(), loss, false))
		if !m.graph.formed {
			instances++
			require.Equal(t, 1, m.perShape)
		}
		for node, g := range gradients(t, m.graph)[:3] {
			require.InDeltaSlice(t, g, m.read(uint32(node), Gradient), 1e-4)
		}
		m.clear()
		m.graph.Close()
	}
	require.Greater(t, instances, 30)
}
