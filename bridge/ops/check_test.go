package ops

import "testing"

// A node like the one before it is accepted without another look; one whose arguments have other dims is not.
func TestNodesLikeTheLastAreStillChecked(t *testing.T) {
	type dim struct{ Nd, Bd, D0, D1, D2, D3, D4, D5, D6 uint32 }
	dims := []dim{{Nd: 2, Bd: 1, D0: 3, D1: 2}, {Nd: 1, Bd: 1, D0: 2}, {Nd: 1, Bd: 1, D0: 3}}
	node := func(op Code, dim uint32, rest ...uint32) []uint32 {
		return append([]uint32{uint32(op) | dim<<8}, rest...)
	}
	words := append(node(Parameter, 0, 0), node(Input, 1, 0)...)
	words = append(words, node(Input, 2, 2)...)
	product := func(dim, x uint32) { words = append(words, node(MatrixMultiply, dim, 0, x)...) }
	product(2, 1)
	product(2, 1)
	if bad, reason := CheckDims(words, 0, 5, dims, make([]uint32, 5)); bad >= 0 {
		t.Fatalf("node %d: %s", bad, reason)
	}
	good := words
	for name, add := range map[string]func(){"arguments": func() { product(2, 2) }, "dim": func() { product(1, 1) }} {
		words = good[:len(good):len(good)]
		add()
		product(2, 1)
		if bad, _ := CheckDims(words, 0, 7, dims, make([]uint32, 7)); bad != 5 {
			t.Errorf("another %s: node %d is refused, not 5", name, bad)
		}
	}
}

// A stride may be anything from 1 on: beyond the argument's end there is one window.
func TestStridesBeyondTheArgument(t *testing.T) {
	type dim struct{ Nd, Bd, D0, D1, D2, D3, D4, D5, D6 uint32 }
	dims := []dim{{Nd: 2, Bd: 1, D0: 5, D1: 5}, {Nd: 2, Bd: 1, D0: 1, D1: 1}}
	for _, valid := range []uint32{0, 1} {
		for _, stride := range []uint32{5, 1 << 31, 0xffffffff} {
			words := []uint32{uint32(Input), 0, uint32(MaxPooling2D) | 1<<8, 0, 3, 3, stride, stride, valid}
			if bad, reason := CheckDims(words, 0, 2, dims, make([]uint32, 2)); bad >= 0 {
				t.Errorf("stride %d, valid %d: node %d: %s", stride, valid, bad, reason)
			}
		}
	}
}
