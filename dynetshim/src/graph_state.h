// What a graph knows of its nodes in the engine, and the tensors that programs hold.
#ifndef DYNETSHIM_GRAPH_STATE_H
#define DYNETSHIM_GRAPH_STATE_H

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <vector>

#include "recorder.h"

namespace dynet {

// A tensor that a program may hold on to while the graph lives.
struct Held {
  Tensor tensor;
  std::vector<float> values;
};
typedef std::unordered_map<VariableIndex, std::unique_ptr<Held>> HeldTensors;

inline Held &hold(HeldTensors &tensors, VariableIndex i, const Dim &d) {
  std::unique_ptr<Held> &held = tensors[i];
  if (!held)
    held.reset(new Held);
  held->values.resize(d.size());
  held->tensor = Tensor(d, held->values.data(), recorder.device(i), DeviceMempool::FXS);
  return *held;
}

struct GraphState {
  std::shared_ptr<Engine> engine;
  vpps_graph *raw = nullptr;
  size_t sent_words = 0, sent_nodes = 0, sent_dims = 0;
  uint32_t evaluated = 0;      // nodes before this one have values
  uint32_t asked = 0;          // of them: the rest was evaluated ahead of the program
  uint64_t updates = 0;        // of the engine when they got them
  uint32_t differentiated = 0; // nodes before this one have gradients
  VariableIndex loss = 0;      // of the last backward
  std::vector<bool> wanted;    // of its nodes: the gradient is; empty: as the engine has it
  bool spent = false;          // fb took the values: reading one that is left evaluates nothing
  bool beyond = false;         // the engine has nodes of a Substitute behind those that were sent
  bool outdated = false;       // the engine has values of nodes that count as not evaluated
  bool check_validity = false;
  std::vector<Mark> checkpoints;
  HeldTensors values, gradients;

  ~GraphState() { vpps_graph_destroy(raw); }

  // What the engine does not have yet.
  vpps_words pending() {
    drop_beyond();
    vpps_words w;
    w.version = VPPS_WIRE_VERSION;
    w.nodes = recorder.words.data() + sent_words;
    w.node_words = recorder.words.size() - sent_words;
    w.node_count = static_cast<uint32_t>(recorder.count() - sent_nodes);
    w.dims = recorder.wire_dims.data() + sent_dims;
    w.dim_count = recorder.wire_dims.size() - sent_dims;
    w.inputs = recorder.inputs.data();
    w.input_words = recorder.inputs.size();
    return w;
  }
  // Takes the nodes of a Substitute back.
  void drop_beyond() {
    if (beyond)
      check(vpps_graph_truncate(raw, static_cast<uint32_t>(sent_nodes)));
    beyond = false;
  }
  // Takes nodes back that are not evaluated: a later call sends them again.
  void drop_unevaluated() {
    drop_beyond();
    drop_outdated();
    if (sent_nodes <= evaluated)
      return;
    check(vpps_graph_truncate(raw, evaluated));
    sent_nodes = evaluated;
    sent_words = recorder.words_of(evaluated);
  }
  void drop_outdated() {
    if (outdated)
      check(vpps_graph_invalidate(raw, evaluated));
    outdated = false;
  }
  void sent() {
    sent_words = recorder.words.size();
    sent_nodes = recorder.count();
    sent_dims = recorder.wire_dims.size();
  }
  void forget_from(uint32_t node) {
    evaluated = std::min(evaluated, node);
    asked = std::min(asked, node);
    differentiated = 0;
  }
  // Reads pointers for a call that evaluates what is missing up to node i.
  void read_pointers(uint32_t i) {
    if (i >= evaluated)
      recorder.patch(evaluated, i);
  }
  void evaluated_to(uint32_t i) {
    sent();
    if (i >= evaluated) {
      if (evaluated == 0)
        updates = engine->updates;
      evaluated = i + 1;
    }
    asked = std::max(asked, i + 1);
  }
  // A program that asks for one value after another gets them from one script: from the second on,
  // all nodes are evaluated. It cannot tell, unless it changes something that they read.
  void evaluate_ahead(VariableIndex i) {
    const uint32_t all = recorder.count();
    if (evaluated == 0 || i < evaluated || i + 1 == all || spent || !recorder.timeless(evaluated) ||
        recorder.places.size() > 0)
      return;
    const vpps_words w = pending();
    if (vpps_forward(raw, &w, all - 1, 0) != VPPS_OK)
      return; // the node alone may have a value
    sent();
    evaluated = all;
    recorder.ahead = true;
  }
  // Nodes that the program has not asked for are evaluated anew.
  void take_back() {
    if (asked == evaluated)
      return;
    evaluated = asked;
    outdated = true;
  }
  // The engine's value of node i. What is missing is evaluated, but for the program's own nodes.
  const Tensor &value(VariableIndex i) {
    if (i >= evaluated)
      drop_outdated();
    evaluate_ahead(i);
    const bool there = beyond && i < evaluated;
    read_pointers(i);
    Held &held = hold(values, i, recorder.dim(i));
    const vpps_words w = there ? vpps_words() : pending();
    check(vpps_value(raw, there ? nullptr : &w, i, held.values.data(), held.values.size()));
    if (spent)
      sent();
    else if (!there)
      evaluated_to(i);
    return held.tensor;
  }
  // Nodes from the given one on count as not evaluated, and all of them if fb took the values.
  void invalidate(uint32_t node) {
    if (spent)
      node = 0;
    if (sent_nodes > node)
      check(vpps_graph_invalidate(raw, node));
    forget_from(node);
    spent = false;
  }
};

} // namespace dynet
#endif
