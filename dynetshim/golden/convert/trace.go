// Training traces: losses, norms and sums step by step.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
)

// A trace of either kind has
//
//	attr ..., param KIND TENSOR      the model, in order of creation
//	run BATCH_SIZE RATE THRESHOLD WEIGHT_DECAY INPUT    INPUT: which words (the tagger)
//	losses, losses_after_update, grad_norms, clips, weight_decay    of each step
//	final K SUM SUM_SQ SUM_ABS       of parameter K's stored values
type trace struct {
	Parameters []tensor
	Runs       []struct {
		BatchSize         json.Number `json:"batch_size"`
		LearningRate      json.Number `json:"learning_rate"`
		ClipThreshold     json.Number `json:"clip_threshold"`
		WeightDecayLambda json.Number `json:"weight_decay_lambda"`
		WordIDs           string      `json:"word_ids"`
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

func (t *trace) writeParameters(w io.Writer) {
	for _, p := range t.Parameters {
		fmt.Fprintf(w, "param %s %s\n", p.Kind, p)
	}
}

func (t *trace) writeRuns(w io.Writer) error {
	for _, r := range t.Runs {
		fmt.Fprintf(w, "run %s %s %s %s %s\nlosses%s\nlosses_after_update%s\ngrad_norms%s\nclips%s\nweight_decay%s\n",
			r.BatchSize, r.LearningRate, r.ClipThreshold, r.WeightDecayLambda, cmp.Or(r.WordIDs, "all"),
			r.Losses, r.After, r.GradNorms, r.Clips, r.WeightDecay)
		for k, f := range r.Final {
			fmt.Fprintf(w, "final %d %s %s %s\n", k, f.Sum, f.SumSq, f.SumAbs)
		}
	}
	_, err := fmt.Fprintln(w, "end")
	return err
}

// treeTrace converts treelstm_sst.json. The batches are of trees:
//
//	tree LABEL LEFT RIGHT ...        three numbers a node, children first; a word is
//	                                 LABEL -1 WORD
func treeTrace(w io.Writer, record []byte, wanted func(string) bool) error {
	if !wanted("treelstm_sst") {
		return nil
	}
	var t struct {
		trace
		Trees []json.RawMessage
	}
	if err := decode(record, &t); err != nil {
		return err
	}
	fmt.Fprintln(w, "case trace treelstm_sst treelstm_sst")
	t.writeParameters(w)
	for k, raw := range t.Trees {
		nodes, err := flatten(raw)
		if err != nil {
			return fmt.Errorf("tree %d: %w", k, err)
		}
		fmt.Fprintf(w, "tree%s\n", ints(nodes))
	}
	return t.writeRuns(w)
}

// taggerTrace converts bilstm_wikiner.json. The batches are of sentences: lines words,
// words_min_count6 (rare ones replaced) and tags.
func taggerTrace(w io.Writer, record []byte, wanted func(string) bool) error {
	if !wanted("bilstm_wikiner") {
		return nil
	}
	var t struct {
		trace
		Embed     int `json:"wembed_dim"`
		Hidden    int `json:"hidden_dim"`
		Sentences []struct {
			Words    []int
			Frequent []int `json:"words_min_count6"`
			Tags     []int
		}
	}
	if err := decode(record, &t); err != nil {
		return err
	}
	fmt.Fprintf(w, "case trace bilstm_wikiner bilstm_wikiner\nattr embed %d\nattr hidden %d\n", t.Embed, t.Hidden)
	t.writeParameters(w)
	for _, s := range t.Sentences {
		fmt.Fprintf(w, "words%s\nwords_min_count6%s\ntags%s\n", ints(s.Words), ints(s.Frequent), ints(s.Tags))
	}
	return t.writeRuns(w)
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
