package persist

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
)

// profiling opens models with clocks: on one processor a graph is lowered by instances, on the stand-in node by node.
var profiling = map[string]func(t *testing.T) *model{
	"by instances": func(t *testing.T) *model { return onThreads(t, 1) },
	"node by node": func(t *testing.T) *model { m, _ := onGPU(t); m.addMatrix(); return m },
}

// eachProfiled calls f with a model of each kind.
func eachProfiled(t *testing.T, f func(t *testing.T, m *model)) {
	for name, open := range profiling {
		t.Run(name, func(t *testing.T) {
			m := open(t)
			require.NoError(t, m.measure(Options{Profile: true}))
			f(t, m)
		})
	}
}

// recurrent records sentences of so many steps h = tanh(h * row + w), with the rows in turn, from a square
// on, each followed by the sum of M*h's elements, and the sum of these.
func recurrent(sentences ...uint32) (w *bridge.Words, loss uint32) {
	var inputs []uint32
	nodes := [][]uint32{op(ops.Parameter, dim2, paramW), op(ops.Parameter, 3, paramM)}
	add := func(code ops.Code, dim uint32, rest ...uint32) uint32 {
		nodes = append(nodes, op(code, dim, rest...))
		return uint32(len(nodes) - 1)
	}
	row := func() uint32 {
		inputs = append(inputs, uint32(len(inputs)%4))
		return add(ops.Lookup, dim2, paramTable, uint32(len(inputs)-1))
	}
	losses := []uint32{uint32(len(sentences))}
	for _, steps := range sentences {
		h := add(ops.Square, dim2, row())
		for range steps {
			x := row()
			h = add(ops.Tanh, dim2, add(ops.Sum, dim2, 2, add(ops.CwiseMultiply, dim2, h, x), 0))
		}
		losses = append(losses, add(ops.SumElements, dim1, add(ops.MatrixMultiply, dim3, 1, h)))
	}
	loss = add(ops.Sum, dim1, losses...)
	w = words(true, inputs, nodes...)
	w.Dims = append(w.Dims, dim(3, 2))
	return w, loss
}

// cellOf is how the cell of recurrent is called. The first three steps of each sentence are another cell.
const cellOf = "LookupNode+CwiseMultiply+Sum+… (4 nodes, parameter 0)"

// train has a model learn from so many batches with four sentences of 45 steps together, 33 of which are cells.
func train(t *testing.T, m *model, batches int) {
	h := m.by(isa.Adam)
	for k := range uint32(batches) {
		g := m.NewGraph()
		w, loss := recurrent(5, 20-k, 3, 17+k)
		_, err := h.FB(g, w, loss)
		require.NoError(t, err)
		g.Close()
	}
}

// sharesOf are the shares of all that a model did.
func sharesOf(t *testing.T, m *model) (operations, cells []share) {
	times, err := m.Times()
	require.NoError(t, err)
	return m.shares(&times.Clocks)
}

// named is the share of a name, or nil.
func named(list []share, name string) *share {
	for i := range list {
		if list[i].name == name {
			return &list[i]
		}
	}
	return nil
}

func TestSharesAddUpToWhatWasMeasured(t *testing.T) {
	eachProfiled(t, func(t *testing.T, m *model) {
		train(t, m, 5)
		times, err := m.Times()
		require.NoError(t, err)
		want := 0.0
		for _, r := range times.Clocks.Rows() {
			want += r.NS
		}
		operations, cells := m.shares(&times.Clocks)
		for _, list := range [][]share{operations, cells} {
			have := 0.0
			for i := range list {
				have += list[i].ns()
			}
			require.InEpsilon(t, want, have, 1e-9)
			for _, name := range []string{"update", "load", "between instructions", "gradients of parameters"} {
				require.NotNil(t, named(list, name), name)
			}
			require.Nil(t, named(list, "other"), "all else is some node's")
		}
		for _, o := range []ops.Code{ops.Lookup, ops.CwiseMultiply, ops.Sum, ops.Tanh, ops.MatrixMultiply, ops.SumElements} {
			s := named(operations, o.String())
			require.NotNil(t, s, o)
			require.NotZero(t, s.count, o)
			if o != ops.Lookup && o != ops.Sum { // their gradients are passed on as they are
				require.Positive(t, s.spent[isa.InBackward], o)
			}
			require.Zero(t, s.spent[isa.InUpdate], o)
		}
		require.EqualValues(t, 5*45, named(operations, "Tanh").count)
		require.EqualValues(t, 5*4, named(operations, "MatrixMultiply").count)
		require.Positive(t, named(operations, "MatrixMultiply").spent[isa.InGradients], "outer products are the product's")
	})
}

// Of a graph with nearly all elements in one operation, that is the first.
func TestADominantOperationComesFirst(t *testing.T) {
	eachProfiled(t, func(t *testing.T, m *model) {
		id, err := m.NewParameter(0, "large", dim(20000), false, nil)
		require.NoError(t, err)
		h := m.by(isa.SGD)
		for range 100 { // so that what the machine does besides does not count
			g := m.NewGraph()
			w := words(true, bits(1, 1), op(ops.Parameter, 3, id), op(ops.Erf, 3, 0), op(ops.Erf, 3, 1), op(ops.Erf, 3, 2), op(ops.SumElements, dim1, 3))
			w.Dims = append(w.Dims, dim(20000))
			_, err := h.FB(g, w, 4)
			require.NoError(t, err)
			g.Close()
		}
		operations, _ := sharesOf(t, m)
		for len(operations) > 0 && operations[0].name[0] >= 'a' { // nobody's: waiting, update
			operations = operations[1:]
		}
		require.Equal(t, "Erf", operations[0].name)
		require.EqualValues(t, 300, operations[0].count)
	})
}

// A cell that is learnt in the first batch has one row, however often and in how many batches it is found.
func TestACellIsOneRow(t *testing.T) {
	eachProfiled(t, func(t *testing.T, m *model) {
		train(t, m, 6)
		_, cells := sharesOf(t, m)
		found := named(cells, cellOf)
		require.NotNil(t, found, cells)
		require.EqualValues(t, 6*33, found.count)
		require.Positive(t, found.spent[isa.InForward])
		require.Positive(t, found.spent[isa.InBackward])
		m.learnAnew() // as after a checkpoint was read
		train(t, m, 2)
		_, again := sharesOf(t, m)
		require.Len(t, again, len(cells))
		require.EqualValues(t, 8*33, named(again, cellOf).count)
	})
}

// Values alone are nodes', too; no cells are looked for.
func TestSharesOfForwardAlone(t *testing.T) {
	eachProfiled(t, func(t *testing.T, m *model) {
		g := m.NewGraph()
		w, loss := recurrent(6)
		require.NoError(t, g.Forward(w, loss, false))
		operations, cells := sharesOf(t, m)
		require.EqualValues(t, 6, named(operations, "Tanh").count)
		require.Positive(t, named(operations, "Tanh").spent[isa.InForward])
		require.NotNil(t, named(cells, "outside cells"))
		g.Close()
	})
}

// The tables and the timeline have them.
func TestSharesAreTold(t *testing.T) {
	for name, open := range profiling {
		t.Run(name, func(t *testing.T) {
			lines := listen(t, 0)
			m := open(t)
			file := filepath.Join(t.TempDir(), "timeline")
			require.NoError(t, m.measure(Options{Profile: true, Trace: file}))
			train(t, m, 3)
			m.Close()
			const numbers = `^profile: +\d+\.\d% +\d+\.\d{4} +\d+\.\d% +\d+\.\d% +`
			require.Len(t, saying(*lines, numbers+`135 +\d+\.\d\d  Tanh$`), 1)
			require.Len(t, saying(*lines, numbers+`99 +\d+\.\d\d  `+regexp.QuoteMeta(cellOf)+"$"), 1)
			require.Len(t, saying(*lines, numbers+`update$`), 2)
			spans := eventsOf(t, file)
			require.Len(t, spans["Tanh"], 1)
			require.Equal(t, operationTrack, spans["Tanh"][0].Tid)
			require.Equal(t, cellTrack, spans[cellOf][0].Tid)
		})
	}
}

// Without a profile nobody asks whose work a script is.
func TestWithoutAProfileNothingIsCounted(t *testing.T) {
	m := onThreads(t, 1)
	require.NoError(t, m.measure(Options{}))
	train(t, m, 2)
	require.Nil(t, m.costs)
}
