// Nodes of a program's own classes: they compute on the host what the engine then has as inputs,
// and pass gradients on by the chain rule.
#ifndef DYNETSHIM_OWN_NODES_H
#define DYNETSHIM_OWN_NODES_H

#include <functional>

#include "graph_state.h"

namespace dynet {

// Whether there are such nodes up to one.
inline bool own_nodes_up_to(VariableIndex last) {
  return !recorder.own_nodes.empty() && recorder.own_nodes.front().i <= last;
}

// Computes the values of those up to a node that have none.
void evaluate_own_nodes(GraphState &s, VariableIndex last);

// Differentiates the loss where such nodes pass gradients on, else returns false. call gets words
// and a node of the same value: its gradients are the loss's, with all that came through own nodes.
bool differentiate_own_nodes(
    GraphState &s, VariableIndex loss, bool full,
    const std::function<vpps_status(const vpps_words &words, uint32_t node)> &call);

} // namespace dynet
#endif
