/// \file
/// Execution engines, for programs that name one: all evaluate a graph by its own calls.
#ifndef DYNET_EXEC_H
#define DYNET_EXEC_H

#include <vector>

#include "dynet/dynet.h"

namespace dynet {

/// What ComputationGraph::ee points to. The calls are those of ComputationGraph, with their errors.
/// Those without a node are for the graph's last one.
class ExecutionEngine {
public:
  virtual ~ExecutionEngine();
  /// Makes all nodes count as not evaluated.
  virtual void invalidate();
  /// The same of node i and those after it.
  virtual void invalidate(unsigned i);
  ///@{
  /// Evaluates every node up to the given one anew.
  virtual const Tensor &forward();
  virtual const Tensor &forward(VariableIndex i);
  ///@}
  /// Evaluates every node up to the last of some anew. Returns the values of all of them.
  virtual std::vector<const Tensor *> forward(const std::vector<VariableIndex> &nodes);
  ///@{
  /// Evaluates what is missing up to the given node.
  virtual const Tensor &incremental_forward();
  virtual const Tensor &incremental_forward(VariableIndex i);
  ///@}
  /// The value of node i; evaluates what is missing.
  virtual const Tensor &get_value(VariableIndex i);
  /// d(loss)/d(node i) of the last backward().
  virtual const Tensor &get_gradient(VariableIndex i);
  ///@{
  /// Adds the gradients of a node with one element to those of the parameters.
  virtual void backward(bool full = false);
  virtual void backward(VariableIndex i, bool full = false);
  ///@}

protected:
  /// The graph must outlive it.
  explicit ExecutionEngine(const ComputationGraph &graph);
  const ComputationGraph &cg; ///< the graph

private:
  ComputationGraph &graph() const { return const_cast<ComputationGraph &>(cg); }
  VariableIndex last() const;
};

/// DyNet's engine that executes node by node.
class SimpleExecutionEngine : public ExecutionEngine {
public:
  /// For a graph that outlives it.
  explicit SimpleExecutionEngine(const ComputationGraph &graph) : ExecutionEngine(graph) {}
};

/// DyNet's engine that batches nodes that are alike.
class BatchedExecutionEngine : public ExecutionEngine {
public:
  /// For a graph that outlives it.
  explicit BatchedExecutionEngine(const ComputationGraph &graph) : ExecutionEngine(graph) {}
  /// Does nothing.
  void garbage_collect() {}
};

} // namespace dynet
#endif
