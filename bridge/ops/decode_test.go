package ops

import "testing"

// A node like one that was accepted is accepted without another look; one whose arguments have other dims is not, nor
// one whose attributes differ, nor the same numbers once they stand for other dims.
func TestNodesLikeAcceptedOnesAreStillChecked(t *testing.T) {
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
	var accepted Accepted
	read := func(count int) (bad int, reason error) {
		bad, _, reason = Decode(words, count, dims, &accepted, &Nodes{ArgStart: []uint32{0}, AttrStart: []uint32{0}})
		return bad, reason
	}
	if bad, reason := read(5); reason != nil {
		t.Fatalf("node %d: %v", bad, reason)
	}
	good := words
	for name, add := range map[string]func(){"arguments": func() { product(2, 2) }, "dim": func() { product(1, 1) }} {
		words = good[:len(good):len(good)]
		add()
		product(2, 1)
		if bad, _ := read(7); bad != 5 {
			t.Errorf("another %s: node %d is refused, not 5", name, bad)
		}
	}
	words = good
	dims[0], dims[1], dims[2] = dims[2], dims[0], dims[1]
	accepted.Forget()
	if bad, _ := read(5); bad != 3 {
		t.Errorf("other dims: node %d is refused, not 3", bad)
	}
}

// Attributes that a shape depends on belong to what was accepted.
func TestOtherAttributesAreStillChecked(t *testing.T) {
	type dim struct{ Nd, Bd, D0, D1, D2, D3, D4, D5, D6 uint32 }
	dims := []dim{{Nd: 1, Bd: 1, D0: 3}, {Nd: 1, Bd: 1, D0: 2}}
	pick := func(from, to uint32) []uint32 { return []uint32{uint32(PickRange) | 1<<8, 0, from, to, 0} }
	words := append([]uint32{uint32(Input), 0}, pick(0, 2)...)
	for _, second := range [][]uint32{pick(1, 3), pick(2, 4), pick(1, 2)} {
		bad, _, reason := Decode(append(words[:7:7], second...), 3, dims, &Accepted{}, &Nodes{ArgStart: []uint32{0}, AttrStart: []uint32{0}})
		if good := second[2] == 1 && second[3] == 3; good != (reason == nil) || !good && bad != 2 {
			t.Errorf("%v after %v: node %d, %v", second, words[2:], bad, reason)
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
			if bad, _, reason := Decode(words, 2, dims, &Accepted{}, &Nodes{ArgStart: []uint32{0}, AttrStart: []uint32{0}}); reason != nil {
				t.Errorf("stride %d, valid %d: node %d: %v", stride, valid, bad, reason)
			}
		}
	}
}
