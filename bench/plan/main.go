// Plan writes where the weights of the Tree-LSTM example live on a GPU of 132 SMs, as rows that bench/figures draws.
// It needs no GPU: a plan depends on the sizes of the matrices and on a few numbers of the device only.
package main

//go:generate go run . ../results/plan.csv

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"

	"libvpps/persist/plan"
)

// h200 is an NVIDIA H200. The kernel without matrices takes 80 registers of a thread.
var h200 = plan.Device{Name: "H200", Processors: 132, Warps: 8, RegistersPer: 255, SetAside: 80, SharedPerBlock: 200 << 10}

// treeLSTM lists the matrices of cpp_examples/treelstm.cc with hidden and word vectors of length n.
func treeLSTM(n int) (all []plan.Matrix) {
	add := func(name string, rows, cols int) {
		all = append(all, plan.Matrix{Param: uint32(len(all)), Name: name, Rows: rows, Cols: cols})
	}
	add("softmax", 5, n)
	for _, gate := range []string{"i", "o", "u"} {
		add("leaf "+gate, n, n)
	}
	for _, gate := range []string{"i", "o", "u"} {
		add("node "+gate, n, 2*n)
	}
	add("forget left", n, n)
	add("forget right", n, n)
	at := uint32(0)
	for m := range all {
		all[m].Offset = at
		at += uint32(all[m].Rows * all[m].Cols)
	}
	return all
}

// write writes a row for each partition and, with processor -1, one for the interpreter and one for the gradient
// of a partition: registers of a thread, from the first on.
func write(to io.Writer, p *plan.Plan) error {
	out := csv.NewWriter(to)
	row := func(cells ...any) {
		var line []string
		for _, c := range cells {
			line = append(line, fmt.Sprint(c))
		}
		out.Write(line) // Error tells
	}
	row("matrix", "processor", "copy", "row", "rows", "columns", "register", "registers")
	wide := map[int]int{} // registers of each slot
	width := func(x *plan.Partition) int {
		return p.RowsPerWarp * ((p.Matrices[x.Matrix].Cols + 31) / 32)
	}
	for i := range p.Partitions {
		x := &p.Partitions[i]
		wide[x.Slot] = max(wide[x.Slot], width(x))
	}
	row("interpreter", -1, 0, 0, 0, 0, 0, p.SetAside)
	for i := range p.Partitions {
		x := &p.Partitions[i]
		at := p.SetAside
		for s := range x.Slot {
			at += wide[s]
		}
		m := &p.Matrices[x.Matrix]
		row(m.Name, x.Processor, x.Copy, x.Row, x.Rows, m.Cols, at, width(x))
	}
	row("gradient of a partition", -1, 0, 0, 0, 0, p.SetAside+p.Used, p.Staging)
	row("free", -1, 0, 0, 0, 0, p.SetAside+p.Used+p.Staging, p.Registers-p.SetAside-p.Used-p.Staging)
	out.Flush()
	return out.Error()
}

// chosen is the plan that the cost model takes.
func chosen() (*plan.Plan, error) {
	all, err := plan.Candidates(treeLSTM(256), h200)
	if err != nil {
		return nil, err
	}
	return plan.Cheapest(all)[0], nil
}

func run(path string) error {
	p, err := chosen()
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f, p); err != nil {
		f.Close()
		return err
	}
	fmt.Print(p.Report())
	return f.Close()
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: plan FILE.csv")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "plan:", err)
		os.Exit(1)
	}
}
