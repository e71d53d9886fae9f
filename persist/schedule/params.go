package schedule

// Param is what lowering must know of a parameter.
type Param struct {
	Lookup  bool
	Offset  uint32  // in segment param, or table for a lookup table
	Size    uint32  // elements
	Row     uint32  // elements of one row of a table
	Column  uint32  // elements of the first column, of a table's row
	Factor  float32 // weight decay factor that reading multiplies by
	Matrix  int32   // its matrix in the plan, -1: none
	Updated bool    // trainers change it

	// The gradient at present: none, of some rows (Rows), or of all elements.
	Pending bool
	Rows    []uint32 // rows of a table with a pending gradient, ascending
}
