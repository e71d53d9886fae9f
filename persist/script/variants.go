package script

// A template is lowered once for each of the surroundings that its instances have.

import (
	"cmp"
	"encoding/binary"
	"errors"

	"libvpps/bridge/cells"
	"libvpps/persist/isa"
	"libvpps/persist/schedule"
)

// variant says in which surroundings a template was lowered.
type variant struct {
	slots  uint64  // that depend on a parameter
	needed nodeSet // that others read
	wanted nodeSet // that a gradient comes back to
	copied string  // parameters, in the order in which they are read, two bytes each
	shape  string  // input words that the shape of the items depends on
	part   cellPart
	early  uint64            // slots that are there a level before others, with which products are added up
	wide   schedule.Wideness // zero: no node is wide
}

// nodeSet is nodes of a template.
type nodeSet [cells.Longest / 64]uint64

func (s *nodeSet) add(k uint32)      { s[k/64] |= 1 << (k % 64) }
func (s *nodeSet) has(k uint32) bool { return s[k/64]>>(k%64)&1 != 0 }

// cellPart says which items of a template there are.
type cellPart uint8

const (
	bothParts    cellPart = iota
	forwardPart           // all values stay, and it is known where each is
	backwardPart          // of values that are there, wherever
	wholePart             // both, and all values stay
)

// keepsValues reports whether all values stay that a part forms.
func (p cellPart) keepsValues() bool { return p == forwardPart || p == wholePart }

// part is which items of templates a request needs.
func (r *Request) part() cellPart {
	switch {
	case !r.Backward:
		return forwardPart
	case !r.Forward:
		return backwardPart
	case r.Split:
		return wholePart
	}
	return bothParts
}

// fewShapes reports whether the items of the present instances have few shapes, if these depend on input words.
func (b *Builder) fewShapes() bool {
	m, p := &b.cells, b.r.Cells
	most := int(b.r.Node+1-b.firstInCells()) / cmp.Or(b.r.PerShape, usualPerShape)
	if m.shapes == nil {
		m.shapes = map[string]bool{}
	}
	clear(m.shapes)
	for i := range p.Instances {
		x := &p.Instances[i]
		info := b.info(x.Template)
		if len(info.shapes) == 0 {
			continue
		}
		m.shapes[string(binary.LittleEndian.AppendUint32(b.shapeOf(info, x), uint32(x.Template.ID)))] = true
		if len(m.shapes) > most {
			return false
		}
	}
	return true
}

// loweredFor is an instance's template, lowered for its surroundings, and for slots of which some are there early.
func (b *Builder) loweredFor(y *present, x *cells.Instance, early uint64) (*loweredCell, error) {
	v := variant{slots: y.slots, needed: y.needed, wanted: y.wanted, copied: string(b.copiedOf(x.Template)), part: b.r.part(), early: early}
	if b.Wide.On {
		v.wide = b.Wide.Wideness
	}
	if v.part == backwardPart {
		v.needed = nodeSet{}
	}
	if len(y.info.shapes) > 0 {
		v.shape = string(b.shapeOf(y.info, x))
	}
	for _, c := range y.info.variants {
		if c.variant == v {
			return c, c.err
		}
	}
	c, err := b.cells.lowering.lower(b, b.r.Cells, x, v)
	if err != nil {
		if !errors.Is(err, errUnfit) {
			return nil, err
		}
		c = &loweredCell{variant: v, err: err}
	}
	if len(y.info.variants) == mostVariants {
		y.info.variants = y.info.variants[:0]
	}
	y.info.variants = append(y.info.variants, c)
	return c, c.err
}

// shapeOf is the input words of an instance that the shape of its items depends on.
func (b *Builder) shapeOf(info *templateInfo, x *cells.Instance) []byte {
	m := &b.cells
	m.shape = m.shape[:0]
	constants := b.r.Cells.ConstantsOf(x)
	for _, s := range info.shapes {
		for _, w := range b.g.Inputs[constants[s.constant]:][:s.count] {
			m.shape = binary.LittleEndian.AppendUint32(m.shape, w)
		}
	}
	return m.shape
}

// copiedOf is which of the parameters that a template reads are copied: numbers in the order in which it reads them.
func (b *Builder) copiedOf(t *cells.Template) []byte {
	m := &b.cells
	m.copied = m.copied[:0]
	n := uint16(0)
	for k := range t.Nodes {
		for _, a := range t.Nodes[k].Args {
			if a.Kind == cells.Param || a.Kind == cells.ConstParam {
				if m.params.node[a.At].segment == isa.SegAct {
					m.copied = binary.LittleEndian.AppendUint16(m.copied, n)
				}
				n++
			}
		}
	}
	return m.copied
}
