// Recurrent builders driven through a list of calls: builders.jsonl.
package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

var auxiliary = regexp.MustCompile(`"extra": (\d+)}`)

// builder converts one record. libvpps has all builders that were recorded.
func builder(w io.Writer, record []byte, _ func(string) bool) error {
	var head struct {
		Case, Builder string
		Args          map[string]any
	}
	if err := decode(record, &head); err != nil {
		return err
	}
	fmt.Fprintf(w, "case builder %s %s\n", head.Builder, head.Case)
	if err := attributes(w, head.Args); err != nil {
		return err
	}
	if err := steps(w, record); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "end")
	return err
}

// steps writes the parameters, inputs and calls of a builder, and what it had after each call.
//
//	param NAME TENSOR, table NAME TENSOR, x TENSOR, extra TENSOR    in order
//	initial EXTRA...                             the state given to start_new_sequence
//	step OP X PREV EXTRA...                      -1: the call has none
//	step add_input_tree X ID CHILD...
//	state N, output T, h T..., s T..., final_h T..., final_s T..., back T    after it; of a tree output, h, c
//	cotangent, param_grad K, table_grad K, input_grad K, extra_grad K
func steps(w io.Writer, record []byte) error {
	var c struct {
		Params, Inputs, Extra []tensor
		Tables                []tensor `json:"lookup_params"`
		InitialState          []int    `json:"initial_state"`
		Script                []struct {
			Op              string
			X, ID, Prev     *int
			Extra, Children []int
		}
		Steps []struct {
			State   *int
			Output  *tensor
			Back    *tensor
			H, S, C []tensor
			FinalH  []tensor `json:"final_h"`
			FinalS  []tensor `json:"final_s"`
		}
		Cotangent  numbers
		ParamGrads []numbers `json:"param_grads"`
		TableGrads []numbers `json:"lookup_grads"`
		InputGrads []numbers `json:"input_grads"`
		ExtraGrads []numbers `json:"extra_grads"`
	}
	if strings.Contains(string(record), `"add_auxiliary_input"`) { // one extra, not a list
		record = []byte(auxiliary.ReplaceAllString(string(record), `"extra": [$1]}`))
	}
	if err := decode(record, &c); err != nil {
		return err
	}
	for _, p := range c.Params {
		fmt.Fprintf(w, "param %s %s\n", p.Name, p)
	}
	for _, t := range c.Tables {
		fmt.Fprintf(w, "table %s %s\n", t.Name, t)
	}
	tensors(w, "x", c.Inputs)
	tensors(w, "extra", c.Extra)
	fmt.Fprintf(w, "initial%s\n", ints(c.InitialState))
	for k, call := range c.Script {
		before, more := call.Prev, call.Extra
		if call.ID != nil {
			before, more = call.ID, call.Children
		}
		fmt.Fprintf(w, "step %s %d %d%s\n", call.Op, orNone(call.X), orNone(before), ints(more))
		s := c.Steps[k]
		if s.State != nil { // trees have none
			fmt.Fprintf(w, "state %d\n", *s.State)
		}
		if s.Output != nil { // rewind_one_step makes nothing
			fmt.Fprintf(w, "output %s\n", *s.Output)
			tensors(w, "h", s.H)
			tensors(w, "s", s.S)
			tensors(w, "c", s.C)
		}
		tensors(w, "final_h", s.FinalH)
		tensors(w, "final_s", s.FinalS)
		if s.Back != nil {
			fmt.Fprintf(w, "back %s\n", *s.Back)
		}
	}
	fmt.Fprintf(w, "cotangent%s\n", c.Cotangent)
	gradients(w, "param_grad", c.ParamGrads)
	gradients(w, "table_grad", c.TableGrads)
	gradients(w, "input_grad", c.InputGrads)
	gradients(w, "extra_grad", c.ExtraGrads)
	return nil
}

func tensors(w io.Writer, key string, ts []tensor) {
	for _, t := range ts {
		fmt.Fprintf(w, "%s %s\n", key, t)
	}
}

func gradients(w io.Writer, key string, gs []numbers) {
	for k, g := range gs {
		if g != nil {
			fmt.Fprintf(w, "%s %d%s\n", key, k, g)
		}
	}
}

func orNone(i *int) int {
	if i == nil {
		return -1
	}
	return *i
}
