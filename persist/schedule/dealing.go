package schedule

// Wideness says from when on work is divided, in elements that are read or written.
type Wideness struct {
	Batched int // work of a node from which its batch elements are divided,
	Single  int // or its elements
	Piece   int // work that a piece has at least
	Terms   int // terms of a sum that a partial result has at least
	Columns int // that a matrix is multiplied by, from which all processors may share the product,
	Faster  int // if a holder of the matrix has more than so many times a processor's share
}

// UsualWidth divides what takes one of an H200's processors about as long as a barrier.
var UsualWidth = Wideness{Batched: 2048, Single: 16384, Piece: 1024, Terms: 64, Columns: 32, Faster: 1}

// wideMemory is the memory of dividing.
type wideMemory struct {
	On bool // the graph may have wide nodes
	Wideness
	items, some []Item
	unfolded    []Item
	extents     []extent
	words       []uint32
	cut         struct{ sig, axis, n, of uint32 } // the signature sig of an item of which n parts along an axis are those of signature of
	steps       []uint32                          // of one item's words
	viewed      []viewed                          // chains with views of the batched cluster that is cut
	Wholes      []whole                           // what items are that pieces share: their signature is its number
	wholeOf     []uint32                          // [signature]: the latest of wholes that is of it; 0: none
}

// IsLarge reports whether nodes of so many elements and batch elements may be wide.
func (w *Wideness) IsLarge(size int, batch uint32) bool {
	return size >= w.Single/4 || batch > 1 && size >= w.Batched/4
}
