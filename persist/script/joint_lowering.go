package script

import (
	"libvpps/persist/isa"
	"libvpps/persist/memory"
	"libvpps/persist/schedule"
)

// Lowering of joint products (joint.go).

// lowerByHeight lowers the nodes by descending height, and those of one height in their order: then each comes after
// its arguments, which are not lower, and a joint product's last node after the operands of all.
func (b *Builder) lowerByHeight() error {
	x := &b.joints
	b.sortByHeight()
	for _, v := range x.order {
		if k := x.of[v]; k < 0 {
			if err := b.evaluateNode(v); err != nil {
				return err
			}
		} else if p := &x.products[k]; p.waiting > 1 {
			p.waiting--
		} else if err := b.lowerJoint(p); err != nil {
			return err
		}
	}
	return nil
}

// sortByHeight lists the needed nodes by descending height, by counting. The others have no value.
func (b *Builder) sortByHeight() {
	x, top, n := &b.joints, uint32(0), 0
	for v := b.first; v < b.end; v++ {
		if b.need[v] {
			top, n = max(top, x.heights[v]), n+1
		} else {
			b.s.Value[v] = NoOffset
		}
	}
	x.starts, x.order = memory.Resize(x.starts, int(top)+2), memory.Resize(x.order, n)
	clear(x.starts)
	for v := b.first; v < b.end; v++ {
		if b.need[v] {
			x.starts[top-x.heights[v]+1]++
		}
	}
	for k := range top {
		x.starts[k+1] += x.starts[k]
	}
	for v := b.first; v < b.end; v++ {
		if b.need[v] {
			at := &x.starts[top-x.heights[v]]
			x.order[*at] = v
			*at++
		}
	}
}

// lowerJoint forms a joint product after all its operands. If one of these is a part of another value, they may lie
// elsewhere: then each node has its own product.
func (b *Builder) lowerJoint(p *joint) error {
	if p.formed = b.sideBySide(p); !p.formed {
		for _, v := range p.nodes {
			if err := b.evaluateNode(v); err != nil {
				return err
			}
		}
		return nil
	}
	level := int32(0)
	if p.bias != NoOffset {
		level = b.ready(p.bias)
	}
	for _, v := range p.nodes {
		level = max(level, b.ready(b.operandOf(v)))
		b.output(v)
		b.s.Resident[v] = false
	}
	b.attribute(isa.InForward, p.nodes[0])
	b.productInTiles(p.term, p.columns, b.value(p.nodes[0]), b.value(p.right), level, 0, p.bias)
	for _, v := range p.nodes {
		b.spots[v] = spot{level, -1, 0}
	}
	return nil
}

// operandOf is the right side of node v, which has one product.
func (b *Builder) operandOf(v uint32) uint32 {
	args := b.g.ArgsOf(v)
	return args[len(args)-1]
}

// sideBySide reports whether the operands of a joint product lie one after the other.
func (b *Builder) sideBySide(p *joint) bool {
	at := b.value(p.right)
	for _, v := range p.nodes {
		right := b.operandOf(v)
		if b.value(right) != at {
			return false
		}
		at.At += uint32(b.size(right))
	}
	return true
}

// joinGradients reserves places side by side for the gradients of the nodes of joint products. One that is a part of
// another gradient has its place there: such a node has a transposed product of its own.
func (b *Builder) joinGradients() {
	for k := range b.joints.products {
		p := &b.joints.products[k]
		all := p.nodes
		p.nodes, p.columns = p.nodes[:0], 0
		for _, v := range all {
			b.joints.of[v] = -1
			if !p.formed || !b.wants[v] || !b.wants[b.operandOf(v)] {
				continue
			}
			if _, _, passed := b.passedOn(v); !passed {
				p.nodes, p.columns = append(p.nodes, v), p.columns+b.columns(v)
			}
		}
		m := &b.r.Plan.Matrices[p.matrix]
		if len(p.nodes) < 2 || !b.columnsInTiles(p.matrix, int(p.columns), int(p.columns)*m.Cols) {
			continue
		}
		at := b.Alloc(int(p.columns) * m.Rows)
		p.gradients, p.level = at, -1
		for _, v := range p.nodes {
			b.joints.of[v], b.s.Grad[v] = int32(k), at
			at += uint32(b.size(v))
		}
	}
}

// jointOf is the joint product that node v's gradient is multiplied in, nil: there is none.
func (b *Builder) jointOf(v uint32) *joint {
	if x := &b.joints; len(x.products) > 0 && x.of[v] >= 0 {
		return &x.products[x.of[v]]
	}
	return nil
}

// jointFormed is the level of the last gradient that a joint product is multiplied by. When the first operand asks for
// it, it is known: levels are found by descending forward level, and all nodes of the product come after all its
// operands.
func (b *Builder) jointFormed(p *joint) int32 {
	if p.level < 0 {
		for _, v := range p.nodes {
			p.level = max(p.level, b.blevel[b.formedIn(v)])
		}
	}
	return p.level
}

// transposedOfJoint is node c's part of the transposed joint product, which the first operand that asks for it adds.
// Gradients may be lowered later than that: where and in which level they are is known.
func (b *Builder) transposedOfJoint(p *joint, c uint32) schedule.Source {
	if p.sums.Count == 0 {
		p.sums = b.transposedInTiles(p.left, p.columns, schedule.At(isa.SegAct, p.gradients), b.jointFormed(p)+1)
	}
	m, s := &b.r.Plan.Matrices[p.matrix], p.sums
	s.At += (b.s.Grad[c] - p.gradients) / uint32(m.Rows) * uint32(m.Cols)
	return s
}
