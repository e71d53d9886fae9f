package script_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/finish"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
	"libvpps/persist/schedule"
	"libvpps/persist/script"
)

// dim is that of so many batch elements.
func dim(batch uint32, d ...uint32) bridge.Dim {
	x := bridge.Dim{Nd: uint32(len(d)), Bd: batch}
	copy(x.D[:], d)
	return x
}

// A column is made of the same column of the arguments, or a node has no columns. In square matrices rows are as many.
func TestWhichNodesHaveColumns(t *testing.T) {
	const square, column, row, vector, wide = 1, 2, 3, 4, 5
	dims := []bridge.Dim{dim(1, 4, 4), square: dim(3, 4, 4), column: dim(3, 4, 1), row: dim(3, 1, 4), vector: dim(3, 4), wide: dim(3, 4, 8)}
	for _, c := range []struct {
		op      ops.Code
		dim     uint32
		attrs   []uint32
		args    []uint32 // dims of inputs
		columns uint32
	}{
		{ops.Tanh, square, nil, []uint32{square}, 4},
		{ops.Tanh, wide, nil, []uint32{wide}, 8},
		{ops.CwiseSum, square, nil, []uint32{square, row}, 4},
		{ops.CwiseSum, square, nil, []uint32{square, column}, 1},
		{ops.CwiseSum, square, nil, []uint32{row, column}, 1},
		{ops.AddVectorToAllColumns, square, nil, []uint32{square, vector}, 1},
		{ops.MomentDimension, vector, []uint32{1, 1, 0, 0}, []uint32{square}, 4},
		{ops.MomentDimension, vector, []uint32{2, 1, 0, 0}, []uint32{square}, 1},
		{ops.SumDimension, vector, []uint32{2, 0}, []uint32{wide}, 1},
		{ops.Softmax, square, []uint32{0}, []uint32{square}, 4},
		{ops.Softmax, square, []uint32{1}, []uint32{square}, 1},
		{ops.LogSoftmax, square, nil, []uint32{square}, 4},
		{ops.LogSoftmax, vector, nil, []uint32{vector}, 1},
		{ops.PickRange, row, []uint32{1, 2, 0}, []uint32{square}, 4},
		{ops.PickRange, square, []uint32{4, 8, 1}, []uint32{wide}, 1},
		{ops.Concatenate, wide, []uint32{1}, []uint32{square, square}, 1},
		{ops.Transpose, square, []uint32{0x01}, []uint32{square}, 1},
		{ops.MatrixMultiply, square, nil, []uint32{square, square}, 1},
		{ops.Reshape, row, nil, []uint32{vector}, 4},
		{ops.Reshape, row, nil, []uint32{column}, 4}, // memory is the same
	} {
		r := trainingWith(t, dims, func(f *forest) {
			for range 32 * 3 {
				f.input(isa.Float(0.5))
			}
			f.add(ops.Parameter, 0, []uint32{0})
			var args []uint32
			for _, x := range c.args {
				args = append(args, f.add(ops.Input, x, []uint32{0}))
			}
			f.add(c.op, c.dim, c.attrs, args...)
		})
		r.Tensors, r.Backward, r.Result = true, false, script.NoOffset
		var b script.Builder
		scriptOf(t, &b, r, nil)
		require.Equal(t, c.columns, script.ColumnsApart(&b, r.Node), "%s of %v", ops.Table[c.op].Name, c.args)
	}
}

// normalized trains a matrix that multiplies 32 columns of each batch element. Results get mean 0 and deviation 1, column by
// column. It multiplies their tanh again or, if crossed, all columns of a batch element are multiplied by one another.
func normalized(t *testing.T, batch uint32, crossed bool) *script.Request {
	const rows, columns = 64, 32
	const whole, mean, row, all, loss, square, turned = 1, 2, 3, 4, 5, 6, 7
	dims := []bridge.Dim{dim(1, rows, rows), whole: dim(batch, rows, columns), mean: dim(batch, columns),
		row: dim(batch, 1, columns), all: dim(batch, 1), loss: dim(1, 1), square: dim(batch, columns, columns),
		turned: dim(batch, columns, rows)}
	r := trainingWith(t, dims, func(f *forest) {
		rng := rand.New(rand.NewPCG(1, uint64(batch)))
		for range batch * rows * columns {
			f.input(isa.Float(2*rng.Float32() - 1))
		}
		p := f.add(ops.Parameter, 0, []uint32{0})
		x := f.add(ops.MatrixMultiply, whole, nil, p, f.add(ops.Input, whole, []uint32{0}))
		means := func(x uint32) uint32 {
			return f.add(ops.Reshape, row, nil, f.add(ops.MomentDimension, mean, []uint32{1, 1, 0, 0}, x))
		}
		centred := f.add(ops.CwiseSum, whole, nil, x, f.add(ops.Negate, row, nil, means(x)))
		variance := f.add(ops.ConstantPlusX, row, []uint32{isa.Float(0.1)}, means(f.add(ops.Square, whole, nil, centred)))
		y := f.add(ops.CwiseQuotient, whole, nil, centred, f.add(ops.Sqrt, row, nil, variance))
		y = f.add(ops.Tanh, whole, nil, y)
		if !crossed {
			y = f.add(ops.MatrixMultiply, whole, nil, p, y)
		} else {
			y = f.add(ops.MatrixMultiply, square, nil, f.add(ops.Transpose, turned, []uint32{0x01}, y), y)
		}
		sum := f.add(ops.SumElements, all, nil, y)
		f.add(ops.SumDimension, loss, []uint32{0, 1}, sum)
	})
	r.Params[0].Matrix, r.Tensors, r.Update = 0, true, &finish.Apply{Params: []uint32{0}, All: []uint32{0}}
	r.Plan = sliced(t, []plan.Matrix{{Param: 0, Rows: rows, Cols: rows, Copies: 1}}, 132)
	return r
}

// A minibatch of few large elements is divided by their columns, as long as these have nothing to do with one another. It
// trains to the same bits as undivided, and no level more is needed than for many elements, which are not divided so.
func TestMinibatchesAreDividedByColumns(t *testing.T) {
	for _, crossed := range []bool{false, true} {
		var b script.Builder
		scriptOf(t, &b, normalized(t, 70, crossed), nil)
		require.Zero(t, script.DividedByColumns(&b))
		levels := script.Levels(&b)
		for _, batch := range []uint32{2, 16, 64} {
			r := normalized(t, batch, crossed)
			divided := scriptOf(t, &b, r, nil)
			require.LessOrEqual(t, script.Levels(&b), levels, "%d batch elements, crossed %v", batch, crossed)
			if n := script.DividedByColumns(&b); crossed {
				require.LessOrEqual(t, n, 1, "the input alone") // only a product reads it
			} else {
				require.Greater(t, n, 2, "%d batch elements", batch)
			}
			const never = 1 << 30
			r.State, r.Wide = &script.State{}, schedule.Wideness{Batched: never, Single: never, Piece: never, Terms: never, Columns: never}
			nearlyAlike(t, 0, r, scriptOf(t, &b, r, nil), divided, 0)
		}
	}
}
