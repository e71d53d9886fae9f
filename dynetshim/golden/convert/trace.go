// Training traces: losses, norms and sums step by step.
package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// treeTrace converts treelstm_sst.json: a model, its trees and a run for each batch size.
//
//	attr embed N, attr hidden N, attr labels N
//	param KIND TENSOR                in order of creation
//	tree LABEL LEFT RIGHT ...        three numbers a node, children first; a word is
//	                                 LABEL -1 WORD
//	run BATCH_SIZE RATE THRESHOLD WEIGHT_DECAY
//	losses, losses_after_update, grad_norms, clips, weight_decay    of each step
//	final K SUM SUM_SQ SUM_ABS       of parameter K's stored values
func treeTrace(w io.Writer, record []byte, wanted func(string) bool) error {
	if !wanted("treelstm_sst") {
		return nil
	}
	var t struct {
		Wdim, Hdim json.Number
		Labels     []string `json:"nonterm_vocab"`
		Trees      []json.RawMessage
		Parameters []tensor
		Runs       []struct {
			BatchSize         json.Number `json:"batch_size"`
			LearningRate      json.Number `json:"learning_rate"`
			ClipThreshold     json.Number `json:"clip_threshold"`
			WeightDecayLambda json.Number `json:"weight_decay_lambda"`
			Losses            numbers
			After             numbers `json:"losses_after_update"`
			GradNorms         numbers `json:"grad_norms"`
			Clips             numbers
			WeightDecay       numbers `json:"weight_decay"`
			Final             []struct {
				Sum    json.Number
				SumSq  json.Number `json:"sum_sq"`
				SumAbs json.Number `json:"sum_abs"`
			}
		}
	}
	if err := decode(record, &t); err != nil {
		return err
	}
	fmt.Fprintf(w, "case trace treelstm_sst treelstm_sst\nattr embed %s\nattr hidden %s\nattr labels %d\n", t.Wdim, t.Hdim, len(t.Labels))
	for _, p := range t.Parameters {
		fmt.Fprintf(w, "param %s %s\n", p.Kind, p)
	}
	for k, raw := range t.Trees {
		nodes, err := flatten(raw)
		if err != nil {
			return fmt.Errorf("tree %d: %w", k, err)
		}
		fmt.Fprintf(w, "tree%s\n", ints(nodes))
	}
	for _, r := range t.Runs {
		fmt.Fprintf(w, "run %s %s %s %s\nlosses%s\nlosses_after_update%s\ngrad_norms%s\nclips%s\nweight_decay%s\n", r.BatchSize,
			r.LearningRate, r.ClipThreshold, r.WeightDecayLambda, r.Losses, r.After, r.GradNorms, r.Clips, r.WeightDecay)
		for k, f := range r.Final {
			fmt.Fprintf(w, "final %d %s %s %s\n", k, f.Sum, f.SumSq, f.SumAbs)
		}
	}
	_, err := fmt.Fprintln(w, "end")
	return err
}

// flatten lists a tree's nodes, children first.
func flatten(raw json.RawMessage) ([]int, error) {
	var nodes []int
	var walk func(raw json.RawMessage) (int, error) // the index of the node
	walk = func(raw json.RawMessage) (int, error) {
		var parts []json.RawMessage
		if err := json.Unmarshal(raw, &parts); err != nil {
			return 0, err
		}
		var label int
		if err := json.Unmarshal(parts[0], &label); err != nil {
			return 0, err
		}
		node := []int{label, -1, 0}
		if len(parts) == 2 {
			if err := json.Unmarshal(parts[1], &node[2]); err != nil {
				return 0, err
			}
		} else {
			for k := range 2 {
				child, err := walk(parts[k+1])
				if err != nil {
					return 0, err
				}
				node[k+1] = child
			}
		}
		nodes = append(nodes, node...)
		return len(nodes)/3 - 1, nil
	}
	_, err := walk(raw)
	return nodes, err
}
