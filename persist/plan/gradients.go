package plan

// Who forms which part of a matrix's gradient. On a GPU this does not depend on who holds the matrix, since outer products
// read their operands from memory.

// Block is some rows and columns of a matrix.
type Block struct{ Row, Rows, Column, Columns int }

// Grid is how a gradient is divided into blocks of Rows by Columns, the last of which may have fewer: Down of them cover a
// column of the matrix, and block k is below block k-1, or at the top of the next columns. The blocks of all matrices are
// dealt to the processors in turn: none has more than one block more than another. Processor First forms block 0.
type Grid struct{ Rows, Columns, Down, Count, First int }

// A processor forms two blocks at a time (jit/kernel/outer_blocks.h).
const tallBlock, wideRows, wideColumns = 64, 32, 128

// gridOf divides the gradient of a matrix into blocks of 64 by 64 elements, or of 32 by 128 if these are a tenth fewer: of an
// item they read more.
func gridOf(m *Matrix, first int) Grid {
	tall := Grid{Rows: tallBlock, Columns: tallBlock, First: first}
	wide := Grid{Rows: wideRows, Columns: wideColumns, First: first}
	tall.cover(m)
	if wide.cover(m); 10*wide.Count < 9*tall.Count {
		return wide
	}
	return tall
}

func (g *Grid) cover(m *Matrix) {
	g.Down = (m.Rows + g.Rows - 1) / g.Rows
	g.Count = g.Down * ((m.Cols + g.Columns - 1) / g.Columns)
}

// block is the k-th of a matrix.
func (g *Grid) block(m *Matrix, k int) Block {
	row, column := k%g.Down*g.Rows, k/g.Down*g.Columns
	return Block{row, min(g.Rows, m.Rows-row), column, min(g.Columns, m.Cols-column)}
}

// dealGradients divides the gradients of all matrices.
func (p *Plan) dealGradients() {
	first := 0
	for m := range p.Matrices {
		g := gridOf(&p.Matrices[m], first)
		p.Grids = append(p.Grids, g)
		first = (first + g.Count) % p.Processors
	}
}

// GradientBlocks appends to list what processor q forms of the gradient of matrix m. Without Grids, on a CPU, this is the
// rows that it holds.
func (p *Plan) GradientBlocks(list []Block, m, q int) []Block {
	x := &p.Matrices[m]
	if p.Grids == nil {
		for _, part := range p.Of(m) {
			if part.Processor == q {
				list = append(list, Block{part.Row, part.Rows, 0, x.Cols})
			}
		}
		return list
	}
	g := &p.Grids[m]
	for k := (q - g.First + p.Processors) % p.Processors; k < g.Count; k += p.Processors {
		list = append(list, g.block(x, k))
	}
	return list
}

// AllGradientBlocks lists the blocks of all matrices: those of matrix m and processor q are from first[m*Processors+q] on, up
// to the next ones.
func (p *Plan) AllGradientBlocks() (first []int, list []Block) {
	for m := range p.Matrices {
		for q := range p.Processors {
			first = append(first, len(list))
			list = p.GradientBlocks(list, m, q)
		}
	}
	return append(first, len(list)), list
}
