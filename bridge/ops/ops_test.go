package ops

import (
	"bytes"
	"os"
	"testing"
)

func TestHeaderIsCurrent(t *testing.T) {
	have, err := os.ReadFile("ops.h")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, Header()) {
		t.Error("ops.h is stale: run go generate ./bridge/ops")
	}
}

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]Code{}
	for c, op := range Table {
		if op.Name == "" {
			continue
		}
		if d, ok := seen[op.Name]; ok {
			t.Errorf("codes %d and %d are both %s", c, d, op.Name)
		}
		seen[op.Name] = Code(c)
	}
}

// Errors and profiles name the operation that is only inside, too.
func TestEveryNodeHasAName(t *testing.T) {
	if Windows.String() != "Windows" || Code(254).String() != "operation 254" {
		t.Errorf("%v, %v", Windows, Code(254))
	}
}
