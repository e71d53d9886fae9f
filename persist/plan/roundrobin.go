package plan

import "fmt"

// Device is what residency depends on.
type Device struct {
	Name           string
	Processors     int // CTAs, one an SM
	Warps          int // of a CTA
	RegistersPer   int // registers of a thread at most
	SetAside       int // registers a thread keeps for interpreting and staging
	SharedPerBlock int // bytes
}

// RoundRobin hands out partitions of Warps*rpw consecutive rows to the processors in turn (paper
// §III-A1). A matrix that does not fit into the registers any more is left out; the
// engine then multiplies with it from memory.
func RoundRobin(matrices []Matrix, d Device, rpw int) (*Plan, error) {
	if d.Processors < 1 || rpw < 1 {
		return nil, fmt.Errorf("plan: %d processors, %d rows per warp: at least one of each", d.Processors, rpw)
	}
	p := &Plan{Processors: d.Processors, First: []int{0}, RowsPerWarp: rpw, Warps: d.Warps, Budget: d.RegistersPer - d.SetAside, Shared: d.SharedPerBlock}
	used := make([]int, d.Processors)  // floats per thread
	slots := make([]int, d.Processors) // partitions
	next := 0
	for _, m := range matrices {
		rows := rpw * d.Warps
		parts := (m.Rows + rows - 1) / rows
		floats := rpw * ((m.Cols + 31) / 32)
		if !fits(used, next, parts, floats, p.Budget) || 8*d.Warps*((m.Cols+31)&^31) > d.SharedPerBlock {
			p.Left = append(p.Left, m)
			continue
		}
		index := len(p.Matrices)
		p.Matrices = append(p.Matrices, m)
		for k := range parts {
			q := (next + k) % d.Processors
			row := k * rows
			p.Partitions = append(p.Partitions, Partition{index, q, slots[q], row, min(rows, m.Rows-row)})
			slots[q]++
			used[q] += floats
		}
		next = (next + parts) % d.Processors
		p.First = append(p.First, len(p.Partitions))
	}
	for _, u := range used {
		p.Used = max(p.Used, u)
	}
	return p, nil
}

// fits reports whether parts more partitions from processor next on stay within the budget.
func fits(used []int, next, parts, floats, budget int) bool {
	n := len(used)
	for k := range min(parts, n) {
		here := (parts - k + n - 1) / n // partitions that this processor gets
		if used[(next+k)%n]+here*floats > budget {
			return false
		}
	}
	return true
}

// Candidates are the valid rows per warp: powers of two whose partitions fit the registers.
func Candidates(matrices []Matrix, d Device) []int {
	var list []int
	for rpw := 1; rpw <= 16; rpw *= 2 {
		p, err := RoundRobin(matrices, d, rpw)
		if err == nil && len(p.Left) == 0 {
			list = append(list, rpw)
		}
	}
	return list
}
