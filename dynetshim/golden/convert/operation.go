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
		abs acos acosh affine_transform argmax asin asinh atan atanh average binary_log_loss
		block_dropout cdiv ceil circ_conv circ_corr cmult colwise_add concatenate
		concatenate_cols concatenate_to_batch const_lookup const_parameter constant
		constrained_softmax contract3d_1d contract3d_1d_1d conv2d cos cosh cube cumsum
		dot_product dropout dropout_batch dropout_dim elu erf exp filter1d_narrow
		flip_gradient floor fold_rows hinge hinge_dim huber_distance input inverse
		kmax_pooling kmh_ngram l1_distance l2_norm layer_norm lgamma log log_sigmoid
		log_softmax logdet logistic logsumexp logsumexp_dim lookup max max_dim maxpooling2d
		mean_batches mean_elems min min_dim nobackprop noise ones operator*(c,x)
		operator*(x,c) operator*(x,y) operator+(c,x) operator+(x,c) operator+(x,y)
		operator-(c,x) operator-(x) operator-(x,c) operator-(x,y) operator/(x,c)
		operator/(x,y) pairwise_rank_loss parameter pick pick_batch_elem pick_batch_elems
		pick_range pickneglogsoftmax poisson_loss pow random_gumbel rectify reshape round
		scale_gradient select_cols select_rows selu silu sin sinh softmax softsign sparsemax
		sparsemax_loss sqrt square squared_distance squared_norm std_batches std_dim
		std_elems strided_select sum sum_batches sum_elems tan tanh trace_of_product
		transpose vanilla_lstm_c vanilla_lstm_gates vanilla_lstm_gates_concat
		vanilla_lstm_gates_dropout vanilla_lstm_gates_dropout_concat vanilla_lstm_h
		weight_norm zeroes zeros
		SimpleSGDTrainer CyclicalSGDTrainer MomentumSGDTrainer
		AdagradTrainer AdadeltaTrainer RMSPropTrainer AdamTrainer AmsgradTrainer EGTrainer
		treelstm_sst bilstm_wikiner`) {
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
