// ComputationGraph: nodes in order of creation, recorded as the flat words of the wire
// format and handed to the engine when a value or gradient is asked for.
//
// Differences from DyNet, all of them safer: a constructor of an expression that throws
// leaves the graph as it was; an expression of another or an earlier graph is refused;
// a lookup or label out of range is std::invalid_argument at the call that evaluates it.
#ifndef DYNET_DYNET_H
#define DYNET_DYNET_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dynet/dim.h"
#include "dynet/init.h"
#include "dynet/model.h"
#include "dynet/tensor.h"

namespace dynet {

typedef unsigned VariableIndex;

class ComputationGraph;
struct Expression;
struct GraphState;

int get_number_of_active_graphs();
unsigned get_current_graph_id();

// A node as cg.nodes[i] shows it.
struct NodeView {
  Dim dim;
  std::vector<VariableIndex> args;
  std::string name; // of DyNet's class
  unsigned arity() const { return static_cast<unsigned>(args.size()); }
  const NodeView *operator->() const { return this; }
};

class NodeList {
public:
  size_t size() const;
  bool empty() const { return size() == 0; }
  NodeView operator[](size_t i) const; // reads the recorded words: for looking, not for speed
  NodeView back() const { return (*this)[size() - 1]; }
};

class ComputationGraph {
public:
  // Only one may exist at a time: a second is std::runtime_error.
  ComputationGraph();
  explicit ComputationGraph(bool batched);
  ~ComputationGraph();

  VariableIndex add_input(real s, Device *device = default_device);
  VariableIndex add_input(const real *ps, Device *device = default_device);
  VariableIndex add_input(const Dim &d, const std::vector<float> &data,
                          Device *device = default_device);
  VariableIndex add_input(const Dim &d, const std::vector<float> *pdata,
                          Device *device = default_device);
  VariableIndex add_input(const Dim &d, const std::vector<unsigned> &ids,
                          const std::vector<float> &data, Device *device = default_device,
                          float defdata = 0.f);
  VariableIndex add_parameters(Parameter p);
  VariableIndex add_parameters(LookupParameter p);
  VariableIndex add_const_parameters(Parameter p);
  VariableIndex add_const_parameters(LookupParameter p);
  VariableIndex add_lookup(LookupParameter p, unsigned index);
  VariableIndex add_lookup(LookupParameter p, const unsigned *pindex);
  VariableIndex add_lookup(LookupParameter p, const std::vector<unsigned> &indices);
  VariableIndex add_lookup(LookupParameter p, const std::vector<unsigned> *pindices);
  VariableIndex add_const_lookup(LookupParameter p, unsigned index);
  VariableIndex add_const_lookup(LookupParameter p, const unsigned *pindex);
  VariableIndex add_const_lookup(LookupParameter p, const std::vector<unsigned> &indices);
  VariableIndex add_const_lookup(LookupParameter p, const std::vector<unsigned> *pindices);

  // Drops all nodes; the graph keeps its id. Batches in flight are not disturbed.
  void clear();
  // Evaluates what is there and remembers it; revert drops the nodes made since.
  void checkpoint();
  void revert();

  const Dim &get_dimension(VariableIndex i) const;

  // Evaluates every node up to the given one anew: pointers, parameters and random
  // nodes are read and drawn again. The tensor belongs to the graph and is overwritten
  // by the next call for the same node.
  const Tensor &forward(const Expression &last);
  const Tensor &forward(VariableIndex i);
  // Evaluates the nodes up to the given one that are not evaluated yet.
  const Tensor &incremental_forward(const Expression &last);
  const Tensor &incremental_forward(VariableIndex i);
  // The value, evaluating what is missing.
  const Tensor &get_value(VariableIndex i);
  const Tensor &get_value(const Expression &e);
  // d(loss)/d(node) of the last backward; a node behind the loss: std::runtime_error.
  const Tensor &get_gradient(VariableIndex i);
  const Tensor &get_gradient(const Expression &e);
  void invalidate();
  // Adds the gradients of the scalar node to those of the parameters. full: gradients
  // also for nodes that no parameter feeds.
  void backward(const Expression &last, bool full = false);
  void backward(VariableIndex i, bool full = false);

  // From now on every new node is evaluated at once; with check_validity, NaN and
  // infinity in one are std::runtime_error.
  void set_immediate_compute(bool on);
  void set_check_validity(bool on);

  void print_graphviz() const; // to std::cerr
  unsigned get_id() const { return id_; }

  // Forward, backward and update in one launch: vpps::handle::fb. Returns the stale loss.
  float train(vpps_handle *handle, VariableIndex loss);
  void keep(vpps_handle *handle, VariableIndex i); // vpps::handle::keep

  NodeList nodes;
  std::vector<VariableIndex> parameter_nodes; // trainable leaves, ascending

private:
  friend class Recorder;
  ComputationGraph(const ComputationGraph &);
  ComputationGraph &operator=(const ComputationGraph &);
  void open();
  void node_added(VariableIndex i);
  const Tensor &fetch(VariableIndex i);

  unsigned id_;
  std::unique_ptr<GraphState> state_;
};

} // namespace dynet

#include "dynet/expr.h"
#endif
