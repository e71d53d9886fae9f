package reference

import (
	"fmt"

	"libvpps/bridge"
	"libvpps/bridge/ops"
)

// selections: operations that only move elements. Each is a list that says for every
// element of the result which argument and which element of it is taken.
var selections = map[ops.Code]rule{
	ops.Transpose:          moving(transposeSources),
	ops.Concatenate:        moving(concatenateSources),
	ops.ConcatenateToBatch: moving(toBatchSources),
	ops.PickElement:        moving(pickSources),
	ops.PickRange:          moving(rangeSources),
	ops.PickBatchElements:  moving(batchSources),
}

// source is where an element comes from.
type source struct{ arg, element int }

// moving is the rule of an operation with the given sources.
func moving(sources func(n *node) ([]source, error)) rule {
	return rule{
		func(n *node) error {
			list, err := sources(n)
			for i, s := range list {
				n.y[i] = n.x[s.arg][s.element]
			}
			return err
		},
		func(n *node) {
			list, _ := sources(n)
			for i, s := range list {
				n.dx[s.arg][s.element] += n.dy[i]
			}
		},
	}
}

// coordinates of element i of a dim; the batch is the last.
func coordinates(d *bridge.Dim, i int) (c [bridge.MaxDims + 1]int) {
	for a := range bridge.MaxDims {
		c[a] = i % d.Axis(a)
		i /= d.Axis(a)
	}
	c[bridge.MaxDims] = i
	return c
}

// flat is the inverse of coordinates; a batch of one stands for all.
func flat(d *bridge.Dim, c [bridge.MaxDims + 1]int) int {
	i, stride := 0, 1
	for a := range bridge.MaxDims {
		i += c[a] * stride
		stride *= d.Axis(a)
	}
	if d.Bd > 1 {
		i += c[bridge.MaxDims] * stride
	}
	return i
}

// each makes a source of every element's coordinates.
func (n *node) each(f func(c [bridge.MaxDims + 1]int) (source, error)) ([]source, error) {
	list := make([]source, n.dim.Size())
	for i := range list {
		s, err := f(coordinates(n.dim, i))
		if err != nil {
			return nil, err
		}
		list[i] = s
	}
	return list, nil
}

func transposeSources(n *node) ([]source, error) {
	return n.each(func(c [bridge.MaxDims + 1]int) (source, error) {
		var from [bridge.MaxDims + 1]int
		for a := range int(n.dim.Nd) {
			from[n.uint(0)>>(4*a)&15] = c[a]
		}
		from[bridge.MaxDims] = c[bridge.MaxDims]
		return source{0, flat(n.dims[0], from)}, nil
	})
}

func concatenateSources(n *node) ([]source, error) {
	axis := n.uint(0)
	return n.each(func(c [bridge.MaxDims + 1]int) (source, error) {
		k := 0
		for c[axis] >= n.dims[k].Axis(axis) {
			c[axis] -= n.dims[k].Axis(axis)
			k++
		}
		return source{k, flat(n.dims[k], c)}, nil
	})
}

func toBatchSources(n *node) ([]source, error) {
	list := make([]source, 0, len(n.y))
	for k, x := range n.x {
		for i := range x {
			list = append(list, source{k, i})
		}
	}
	return list, nil
}

func pickSources(n *node) ([]source, error) {
	axis := n.uint(0)
	rows := n.input(1, n.uint(2))
	return n.each(func(c [bridge.MaxDims + 1]int) (source, error) {
		row := int(rows[0])
		if len(rows) > 1 {
			row = int(rows[c[bridge.MaxDims]])
		}
		if row >= n.dims[0].Axis(axis) {
			return source{}, fmt.Errorf("row %d of %d", row, n.dims[0].Axis(axis))
		}
		copy(c[axis+1:bridge.MaxDims], c[axis:bridge.MaxDims-1])
		c[axis] = row
		return source{0, flat(n.dims[0], c)}, nil
	})
}

func rangeSources(n *node) ([]source, error) {
	return n.each(func(c [bridge.MaxDims + 1]int) (source, error) {
		c[n.uint(2)] += n.uint(0)
		return source{0, flat(n.dims[0], c)}, nil
	})
}

func batchSources(n *node) ([]source, error) {
	picked := n.input(0, n.uint(1))
	return n.each(func(c [bridge.MaxDims + 1]int) (source, error) {
		b := int(picked[c[bridge.MaxDims]])
		if b >= int(n.dims[0].Bd) {
			return source{}, fmt.Errorf("batch element %d of %d", b, n.dims[0].Bd)
		}
		c[bridge.MaxDims] = b
		return source{0, flat(n.dims[0], c)}, nil
	})
}
