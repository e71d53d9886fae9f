// Trainers over five updates of a small model: trainers.jsonl.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
)

// trainerSteps writes the settings as attributes and then
//
//	param NAME TENSOR                                    W, b and the table E, at first
//	step LOSS LEARNING_RATE GRAD_NORM CLIPS WEIGHT_DECAY
//	grad NAME, stored NAME, effective NAME               of each step
//	average NAME, corrected NAME, back NAME              the moving average, bias-corrected, and values swapped back
func trainerSteps(w io.Writer, record []byte, wanted func(string) bool) error {
	var c struct {
		Case, Trainer   string
		Hyper, Settings map[string]any
		LossForm        map[string]any `json:"loss_form"`
		Dims            map[string][]int
		Initial         map[string]numbers
		Steps           []struct {
			Loss                     json.Number
			LearningRate             json.Number `json:"learning_rate"`
			GradNorm                 json.Number `json:"grad_norm"`
			Clips                    json.Number
			WeightDecay              json.Number `json:"weight_decay"`
			Grads, Stored, Effective map[string]numbers
		}
		Average   map[string]numbers `json:"moving_average"`
		Corrected map[string]numbers `json:"moving_average_bias_corrected"`
		Back      map[string]numbers `json:"swapped_back"`
	}
	if err := decode(record, &c); err != nil {
		return err
	}
	if !wanted(c.Trainer) {
		return nil
	}
	fmt.Fprintf(w, "case trainer %s %s\n", c.Trainer, c.Case)
	maps.Copy(c.Settings, c.Hyper)
	maps.Copy(c.Settings, c.LossForm)
	if err := attributes(w, c.Settings); err != nil {
		return err
	}
	names := []string{"W", "b", "E"}
	for _, n := range names {
		fmt.Fprintf(w, "param %s %s\n", n, tensor{Dim: c.Dims[n], Values: c.Initial[n]})
	}
	for _, s := range c.Steps {
		fmt.Fprintf(w, "step %s %s %s %s %s\n", s.Loss, s.LearningRate, s.GradNorm, s.Clips, s.WeightDecay)
		for _, n := range names {
			fmt.Fprintf(w, "grad %s%s\nstored %s%s\neffective %s%s\n", n, s.Grads[n], n, s.Stored[n], n, s.Effective[n])
		}
	}
	for _, n := range names {
		for _, of := range []struct {
			key    string
			values map[string]numbers
		}{{"average", c.Average}, {"corrected", c.Corrected}, {"back", c.Back}} {
			if values, ok := of.values[n]; ok {
				fmt.Fprintf(w, "%s %s%s\n", of.key, n, values)
			}
		}
	}
	_, err := fmt.Fprintln(w, "end")
	return err
}
