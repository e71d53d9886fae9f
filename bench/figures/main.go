// Figures measures the applications and draws what was measured. The two need not be on one machine:
// between them are CSV files in a folder of results.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
)

const usage = `usage: figures FIGURE [--results DIR] [--into DIR]
       figures measure [flags]

Draws DIR/FIGURE.png and writes its numbers as tables into DIR/FIGURE.md (docs/figures) from
files in the folder of results (bench/results):

  throughput  rows.csv, torch.csv, dynet-recorded.csv: whole steps by batch size
  hidden      the same, by length of the hidden vectors
  breakdown   rows.csv: where the time goes on host and device
  bytes       rows.csv: bytes of weights that 128 inputs need
  jit         jit.csv: from start to first batch, with an empty and a filled cache of kernels
  curves      curves.csv: held-out score over time and over updates
  plan        plan.csv: which SM holds what
  timeline    h200-bilstm-timeline.json: what program, workers and device do at the same time
  all         those of which there are rows

measure writes rows.csv, torch.csv, jit.csv and curves.csv; its flags: figures measure --help
`

// A figure draws itself from a folder of results into another.
type figure struct {
	name string
	draw func(results, into string) error
}

var all = []figure{
	{"throughput", drawThroughput}, {"hidden", drawHidden}, {"breakdown", drawBreakdown},
	{"bytes", drawBytes}, {"jit", drawJIT}, {"curves", drawCurves},
	{"plan", drawPlan}, {"timeline", drawTimeline},
}

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "figures:", err)
			os.Exit(1)
		}
	}
}

func run(args []string, out, log io.Writer) error {
	if len(args) == 0 || args[0] == "--help" || args[0] == "-h" {
		fmt.Fprint(out, usage)
		return nil
	}
	if args[0] == "measure" {
		return measure(args[1:], out, log)
	}
	flags := flag.NewFlagSet("figures "+args[0], flag.ContinueOnError)
	flags.SetOutput(log)
	results := flags.String("results", "bench/results", "folder with the CSV files")
	into := flags.String("into", "docs/figures", "folder for pictures and tables")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s is one argument too many", flags.Arg(0))
	}
	if args[0] == "all" {
		return drawAll(*results, *into, out)
	}
	for _, f := range all {
		if f.name == args[0] {
			return f.draw(*results, *into)
		}
	}
	return fmt.Errorf("%s is no figure\n%s", args[0], usage)
}

// drawAll draws what there are rows for, and says what it leaves out.
func drawAll(results, into string, out io.Writer) error {
	drawn := 0
	for _, f := range all {
		err := f.draw(results, into)
		switch {
		case err == nil:
			fmt.Fprintf(out, "%s/%s.png\n", into, f.name)
			drawn++
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoRows):
			fmt.Fprintf(out, "%s is not drawn: %v\n", f.name, err)
		default:
			return err
		}
	}
	if drawn == 0 {
		return fmt.Errorf("%s: there is nothing to draw: write rows with figures measure", results)
	}
	return nil
}
