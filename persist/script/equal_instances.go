package script

import (
	"slices"

	"libvpps/bridge/ops"
)

// Common subexpressions: instances that compute the same are evaluated once.

// findEqualInstance is the first instance that computes the same as instance i.
func (b *Builder) findEqualInstance(i uint32) uint32 {
	m, p := &b.cells, b.r.Cells
	x := &p.Instances[i]
	h := uint32(x.Template.ID)
	for _, a := range m.argsOf(x) {
		h = (h ^ a.instance<<8 ^ a.node) * 0x9E3779B1
		h ^= h >> 15
	}
	constants := p.ConstantsOf(x)
	for _, r := range m.list[i].info.inputs {
		for _, w := range b.g.Inputs[constants[r.constant]:][:r.count] {
			h = (h ^ w) * 0x9E3779B1
			h ^= h >> 15
		}
	}
	for _, k := range m.list[i].info.numbers {
		h = (h ^ constants[k]) * 0x9E3779B1
		h ^= h >> 15
	}
	mask := uint32(len(m.equal) - 1)
	for at := h & mask; ; at = (at + 1) & mask {
		o := m.equal[at]
		if o == 0 {
			m.equal[at] = i + 1
			return i
		}
		if b.equalInstances(o-1, i) {
			return o - 1
		}
	}
}

// equalInstances reports whether two instances compute the same.
func (b *Builder) equalInstances(i, j uint32) bool {
	m, p := &b.cells, b.r.Cells
	x, y := &p.Instances[i], &p.Instances[j]
	if x.Template != y.Template || !slices.Equal(m.argsOf(x), m.argsOf(y)) {
		return false
	}
	c, d := p.ConstantsOf(x), p.ConstantsOf(y)
	for _, r := range m.list[i].info.inputs {
		if !slices.Equal(b.g.Inputs[c[r.constant]:][:r.count], b.g.Inputs[d[r.constant]:][:r.count]) {
			return false
		}
	}
	for _, k := range m.list[i].info.numbers {
		if c[k] != d[k] {
			return false
		}
	}
	if !b.r.Forward { // what an earlier call evaluated once
		n := uint32(len(x.Template.Nodes))
		return slices.Equal(b.s.Value[x.Start:][:n], b.s.Value[y.Start:][:n])
	}
	return true
}

// draws reports whether every node of an operation has numbers of its own.
func draws(op ops.Code) bool {
	switch op {
	case ops.RandomNormal, ops.RandomBernoulli, ops.RandomUniform, ops.RandomGumbel, ops.Dropout, ops.GaussianNoise:
		return true
	}
	return false
}
