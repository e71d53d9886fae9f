// Execution engines: each call is one of the graph's.
#include "dynet/exec.h"

#include <algorithm>
#include <stdexcept>

namespace dynet {

ExecutionEngine::ExecutionEngine(const ComputationGraph &graph) : cg(graph) {}
ExecutionEngine::~ExecutionEngine() {}

VariableIndex ExecutionEngine::last() const {
  if (cg.nodes.empty())
    throw std::invalid_argument("ExecutionEngine: the graph has no nodes");
  return static_cast<VariableIndex>(cg.nodes.size() - 1);
}

void ExecutionEngine::invalidate() { graph().invalidate(); }
void ExecutionEngine::invalidate(unsigned i) { graph().invalidate_from(i); }

const Tensor &ExecutionEngine::forward() { return forward(last()); }
const Tensor &ExecutionEngine::forward(VariableIndex i) { return graph().forward(i); }

std::vector<const Tensor *> ExecutionEngine::forward(const std::vector<VariableIndex> &nodes) {
  std::vector<const Tensor *> values;
  values.reserve(nodes.size());
  if (!nodes.empty())
    forward(*std::max_element(nodes.begin(), nodes.end()));
  for (VariableIndex i : nodes)
    values.push_back(&get_value(i));
  return values;
}

const Tensor &ExecutionEngine::incremental_forward() { return incremental_forward(last()); }
const Tensor &ExecutionEngine::incremental_forward(VariableIndex i) {
  return graph().incremental_forward(i);
}
const Tensor &ExecutionEngine::get_value(VariableIndex i) { return graph().get_value(i); }
const Tensor &ExecutionEngine::get_gradient(VariableIndex i) { return graph().get_gradient(i); }
void ExecutionEngine::backward(bool full) { backward(last(), full); }
void ExecutionEngine::backward(VariableIndex i, bool full) { graph().backward(i, full); }

} // namespace dynet
