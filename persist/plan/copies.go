package plan

import "slices"

// addCopies has further processors hold matrices in registers that the kernel has anyway, because others
// hold something there: up to most copies of a matrix, 0 being any number, matrix by matrix in turn. The copies of a
// matrix share the products of one level, so that fewer processors wait for few.
func (p *Plan) addCopies(arrays, slots []int, next, most int) {
	parts := make([][]Partition, len(p.Matrices))
	for m := range p.Matrices {
		parts[m] = slices.Clone(p.Of(m))
		p.Matrices[m].Copies = 1
	}
	for added := true; added; {
		added = false
		for m := range p.Matrices {
			x := &p.Matrices[m]
			if most > 0 && x.Copies >= most {
				continue
			}
			first := parts[m][:len(parts[m])/x.Copies]
			taken := free(arrays, slots, next, parts[m], len(first), p.RowsPerWarp*iterations(x.Cols))
			if taken == nil {
				continue
			}
			for k, q := range taken {
				c := first[k]
				c.Processor, c.Slot, c.Copy = q, slots[q], x.Copies
				parts[m] = append(parts[m], c)
				slots[q]++
			}
			next = (taken[len(taken)-1] + 1) % len(slots)
			x.Copies++
			added = true
		}
	}
	p.Partitions, p.First = nil, []int{0}
	for _, list := range parts {
		p.Partitions = append(p.Partitions, list...)
		p.First = append(p.First, len(p.Partitions))
	}
	p.rankHolders()
}

// free is the first so many processors from next on that hold nothing of have and whose next register array is there
// and large enough, nil if they are fewer.
func free(arrays, slots []int, next int, have []Partition, count, floats int) []int {
	n := len(slots)
	holds := make([]bool, n)
	for _, x := range have {
		holds[x.Processor] = true
	}
	var list []int
	for k := range n {
		q := (next + k) % n
		if s := slots[q]; !holds[q] && s < len(arrays) && arrays[s] >= floats {
			if list = append(list, q); len(list) == count {
				return list
			}
		}
	}
	return nil
}
