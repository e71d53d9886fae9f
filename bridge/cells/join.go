package cells

// piece is nodes [from, to) of a sample; content stands for their keys.
type piece struct {
	content  uint64
	from, to uint32
}

// pair is the contents of two neighbours.
type pair [2]uint64

// joiner counts neighbours in the pieces of all samples.
type joiner struct {
	samples  []*sample
	pieces   [][]piece
	matrices map[uint64]map[uint32]bool // by content

	count         map[uint64]int
	pairs         map[pair]int
	apart         map[pair]bool // once the second read no value of the first
	lasting       map[pair]bool // once another one read a value of the first
	after, before map[uint64]uint64
	alone         map[uint64]bool // by content: its items have another shape with other input words
}

// anything stands for several contents, or a piece that is not joined.
const anything = 0

// join joins neighbours of which the second reads a value of the first, wherever they are neighbours: first where the
// first is always followed by the second, then where the second always comes after the first and nothing else reads
// the first's values. The most frequent pairs are joined first. No template has a matrix twice: what is repeated
// is an instance of its own.
func join(samples []*sample, pieces [][]piece) {
	j := joiner{samples: samples, pieces: pieces, matrices: map[uint64]map[uint32]bool{}, alone: map[uint64]bool{}}
	strict := true
	for range 64 { // each round joins at least one pair, and some are long
		j.look(strict)
		if !j.round(strict) {
			if !strict {
				return
			}
			strict = false
			continue
		}
		strict = true
	}
}

// look counts the present neighbours.
func (j *joiner) look(strict bool) {
	j.count, j.pairs = map[uint64]int{}, map[pair]int{}
	j.apart, j.lasting = map[pair]bool{}, map[pair]bool{}
	j.after, j.before = map[uint64]uint64{}, map[uint64]uint64{}
	only := func(m map[uint64]uint64, k, x uint64) {
		if old, ok := m[k]; ok && old != x {
			x = anything
		}
		m[k] = x
	}
	for k, l := range j.pieces {
		s := j.samples[k]
		for i, x := range l {
			j.count[x.content]++
			if j.matrices[x.content] == nil {
				j.matrices[x.content] = s.matricesOf(x)
				j.alone[x.content] = s.shapes[x.from]
			}
			next, last := uint64(anything), i+1 == len(l)
			if !last {
				y := l[i+1]
				next = y.content
				p := pair{x.content, next}
				j.pairs[p]++
				j.apart[p] = j.apart[p] || !s.reads(x, y)
				j.lasting[p] = !strict && (j.lasting[p] || s.lasts(x, y.to))
				only(j.before, next, x.content)
			}
			if !last || !s.cut {
				only(j.after, x.content, next)
			}
			if i == 0 {
				only(j.before, x.content, anything)
			}
		}
	}
}

// joins reports whether neighbours with the contents of p are joined.
func (j *joiner) joins(p pair, strict bool) bool {
	if p[0] == p[1] || p[0] == anything || p[1] == anything || j.alone[p[0]] || j.alone[p[1]] || j.apart[p] || j.count[p[0]] < 2 {
		return false
	}
	if j.after[p[0]] != p[1] && (strict || j.before[p[1]] != p[0] || j.lasting[p] || 2*j.pairs[p] < j.count[p[0]]) {
		return false
	}
	for m := range j.matrices[p[0]] {
		if j.matrices[p[1]][m] {
			return false
		}
	}
	return true
}

// round joins the most frequent pairs, and reports whether there were any.
func (j *joiner) round(strict bool) bool {
	most := 0
	for p, n := range j.pairs {
		if n > most && j.joins(p, strict) {
			most = n
		}
	}
	if most == 0 {
		return false
	}
	for k, l := range j.pieces {
		out := l[:0]
		for i := 0; i < len(l); i++ {
			x := l[i]
			if i+1 < len(l) {
				y := l[i+1]
				p := pair{x.content, y.content}
				if y.to-x.from <= Longest && 2*j.pairs[p] >= most && j.joins(p, strict) {
					x = piece{j.samples[k].content(x.from, y.to), x.from, y.to}
					i++
				}
			}
			out = append(out, x)
		}
		j.pieces[k] = out
	}
	return true
}

// reads reports whether a node of y reads one of x, the piece before it.
func (s *sample) reads(x, y piece) bool {
	for _, a := range s.args[s.start[y.from]:s.start[y.to]] {
		if a >= x.from && a < x.to {
			return true
		}
	}
	return false
}

// lasts reports whether a value of a piece is read by a node from end on.
func (s *sample) lasts(x piece, end uint32) bool {
	for _, u := range s.lastUse[x.from:x.to] {
		if u >= end {
			return true
		}
	}
	return false
}

// matricesOf is the parameters that nodes of a piece multiply by from the left.
func (s *sample) matricesOf(x piece) map[uint32]bool {
	m := map[uint32]bool{}
	for _, id := range s.left[x.from:x.to] {
		if id > 0 {
			m[id-1] = true
		}
	}
	return m
}
