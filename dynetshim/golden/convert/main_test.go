package main

import (
	"strings"
	"testing"
)

func everything(string) bool { return true }

func TestOperationLines(t *testing.T) {
	for _, c := range []struct{ name, json, want string }{
		{"value", `{"case":"pick/ptr","fn":"pick","args":[{"dim":[2,3],"batch":2,"values":[1,2.5,"-inf"]}],
			"attrs":{"v":[1,0],"d":0,"overload":"ptr","flag":true,"expr":"left out"},
			"value":{"dim":[],"batch":1,"values":[7]},"cotangent":[1],"grads":[null,[0,1e-3]],"note":"left out"}`,
			"case op pick pick/ptr\narg input 2 2 3 2 1 2.5 -inf\nattr d 0\nattr flag 1\nattr overload ptr\nlist v 1 0\n" +
				"value 0 1 7\ncotangent 1\ngrad 1 0 1e-3\nend\n"},
		{"rejection", `{"case":"error/x","fn":"sum","args":[{"dim":[1],"batch":1,"values":[0],"kind":"parameter"}],
			"attrs":{},"error":true,"stage":"build","limitation":true}`,
			"case op sum error/x\narg parameter 1 1 1 0\nerror build 1\nend\n"},
	} {
		var b strings.Builder
		if err := operation(&b, []byte(c.json), everything); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if b.String() != c.want {
			t.Errorf("%s:\n%swanted:\n%s", c.name, b.String(), c.want)
		}
	}
}

func TestTreesAreListedChildrenFirst(t *testing.T) {
	nodes, err := flatten([]byte(`[4,[1,7],[3,[0,8],[2,9]]]`))
	if err != nil {
		t.Fatal(err)
	}
	// label, left, right of each node; -1 and the number of a word
	want := " 1 -1 7 0 -1 8 2 -1 9 3 1 2 4 0 3"
	if got := ints(nodes); got != want {
		t.Errorf("got%s, wanted%s", got, want)
	}
}
