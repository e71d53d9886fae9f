// Calls of expression functions: ops.jsonl.gz.
package main

import (
	"fmt"
	"io"
	"strings"
)

// own are the functions that libvpps has; the repository keeps their cases.
var own = func() map[string]bool {
	names := map[string]bool{}
	for _, n := range strings.Fields(`
		abs affine_transform average binary_log_loss cdiv cmult colwise_add concatenate
		concatenate_cols concatenate_to_batch const_lookup const_parameter constant
		dot_product dropout exp hinge input l2_norm log log_softmax logistic lookup max
		mean_batches mean_elems min nobackprop noise ones operator*(c,x) operator*(x,c)
		operator*(x,y) operator+(c,x) operator+(x,c) operator+(x,y) operator-(c,x)
		operator-(x) operator-(x,c) operator-(x,y) operator/(x,c) operator/(x,y)
		parameter pick pick_batch_elem pick_batch_elems pick_range pickneglogsoftmax pow
		rectify reshape softmax sqrt square squared_distance squared_norm sum sum_batches
		sum_elems tanh transpose vanilla_lstm_c vanilla_lstm_gates
		vanilla_lstm_gates_concat vanilla_lstm_gates_dropout
		vanilla_lstm_gates_dropout_concat vanilla_lstm_h zeroes zeros
		SimpleSGDTrainer CyclicalSGDTrainer MomentumSGDTrainer AdagradTrainer
		AdadeltaTrainer RMSPropTrainer AdamTrainer AmsgradTrainer EGTrainer treelstm_sst
		bilstm_wikiner`) {
		names[n] = true
	}
	return names
}()

func operation(w io.Writer, record []byte, wanted func(string) bool) error {
	var c struct {
		Case, Fn   string
		Args       []tensor
		Attrs      map[string]any
		Value      tensor
		Cotangent  numbers
		Grads      []numbers
		Error      bool
		Limitation bool
		Stage      string
	}
	if err := decode(record, &c); err != nil {
		return err
	}
	if !wanted(c.Fn) {
		return nil
	}
	fmt.Fprintf(w, "case op %s %s\n", c.Fn, c.Case)
	for _, a := range c.Args {
		kind := a.Kind
		if kind == "" {
			kind = "input"
		}
		fmt.Fprintf(w, "arg %s %s\n", kind, a)
	}
	if err := attributes(w, c.Attrs); err != nil {
		return err
	}
	if c.Error {
		fmt.Fprintf(w, "error %s %d\n", c.Stage, map[bool]int{true: 1}[c.Limitation])
	} else {
		fmt.Fprintf(w, "value %s\ncotangent%s\n", c.Value, c.Cotangent)
		for k, g := range c.Grads {
			if g != nil {
				fmt.Fprintf(w, "grad %d%s\n", k, g)
			}
		}
	}
	_, err := fmt.Fprintln(w, "end")
	return err
}
