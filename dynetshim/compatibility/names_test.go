package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func table(t *testing.T) []entry {
	t.Helper()
	all, err := readNames("names.txt")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 500 {
		t.Fatalf("names.txt has only %d names", len(all))
	}
	return all
}

func TestEveryNameHasAStateAndAReason(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range table(t) {
		switch {
		case seen[e.name]:
			t.Errorf("%s stands there twice", e.name)
		case e.state != "yes" && e.state != "no" && e.state != "different":
			t.Errorf("%s: state %q", e.name, e.state)
		case (e.state == "yes") != (e.reason == ""):
			t.Errorf("%s is %q: write why in names.txt if it differs or is not there, else nothing", e.name, e.state)
		case len(e.reason) > 120 || strings.ContainsAny(e.reason, "|<"):
			t.Errorf("%s: a reason is one short line without | and <", e.name)
		}
		seen[e.name] = true
	}
}

// What is said to be there compiles; what is said not to be there does not.
func TestTheTableHoldsForTheBundledHeaders(t *testing.T) {
	all := table(t)
	var list []string
	for _, e := range all {
		list = append(list, e.name)
	}
	not, err := missing("../..", list)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if there := !not[e.name]; there != (e.state != "no") {
			t.Errorf("%s is %q in names.txt, but that it compiles is %v", e.name, e.state, there)
		}
	}
}

func TestTheCompilerTellsWhatIsThere(t *testing.T) {
	list := []string{"tanh", "no_such_function", "Dim::rows", "Dim::no_such_member", "Trainer::model", "DYNET_MAX_TENSOR_DIM", "DYNET_NO_SUCH_MACRO",
		"expr.h", "no-such-header.h", "mp", "operator*", "NoSuchClass", "LSTMBuilder", "AdamTrainer::save"}
	not, err := missing("../..", list)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range list {
		want := strings.Contains(strings.ToLower(name), "no_such") || strings.Contains(strings.ToLower(name), "nosuch") || strings.Contains(name, "no-such")
		if not[name] != want {
			t.Errorf("%s: missing is %v", name, not[name])
		}
	}
}

func TestTheDocumentHasTheTable(t *testing.T) {
	b, err := os.ReadFile("../../docs/COMPATIBILITY.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := put(string(b), page(table(t)))
	if err != nil {
		t.Fatal(err)
	}
	if want != string(b) {
		t.Error("docs/COMPATIBILITY.md is not made from names.txt: go run ./dynetshim/compatibility")
	}
}

// The table has all names of an installed DyNet, and those that are there take all arguments that DyNet's take.
func TestTheTableHasTheNamesOfDyNet(t *testing.T) {
	folder := ""
	for _, f := range []string{"include/dynet", "dynet"} {
		if f = filepath.Join(os.Getenv("DYNET_ROOT"), f); os.Getenv("DYNET_ROOT") != "" && exists(filepath.Join(f, "dynet.h")) {
			folder = f
		}
	}
	if folder == "" {
		t.Skip("skipped: needs an installed DyNet (DYNET_ROOT)")
	}
	if _, err := exec.LookPath("doxygen"); err != nil {
		t.Skip("skipped: needs doxygen")
	}
	theirs, err := readHeaders(folder)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := readHeaders("../include/dynet")
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(folder, "*.h"))
	if err != nil {
		t.Fatal(err)
	}
	var headers []string
	for _, p := range paths {
		headers = append(headers, filepath.Base(p))
	}
	all := table(t)
	if now := update(all, theirs, headers); !slices.Equal(now, all) {
		for _, e := range now {
			if !slices.Contains(all, e) {
				t.Errorf("%s, %s is not in names.txt: make compatibility", e.header, e.name)
			}
		}
		for _, e := range all {
			if !slices.Contains(now, e) {
				t.Errorf("names.txt has %s, which this DyNet does not have", e.name)
			}
		}
	}
	for _, e := range all {
		if theirs[e.name] == nil || ours[e.name] == nil || e.state != "yes" {
			continue
		}
		for _, s := range theirs[e.name].signatures {
			if !slices.Contains(ours[e.name].signatures, s) {
				t.Errorf("%s is there, but not with the arguments %s", e.name, s)
			}
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
