// A graph that DyNet executes itself, because libvpps does not know one of its nodes. DyNet's
// memory has the engine's parameters when one of these is called.
#ifndef VPPS_INSTALLED_OWN_EXECUTION_HPP
#define VPPS_INSTALLED_OWN_EXECUTION_HPP

#include <dynet/exec.h>
#include <dynet/tensor.h>

#include <stdexcept>
#include <string>

#include "ops.h"
#include "recording.hpp"

namespace vpps {
namespace installed {

class own_execution {
public:
  // spent: the graph's values were taken by an fb before DyNet got the graph.
  own_execution(dynet::ExecutionEngine &dynet, bool spent) : dynet_(dynet), spent_(spent) {
    dynet_.invalidate();
  }

  // Nodes from n on have no value. DyNet's own takes n for the number that has.
  void invalidate(dynet::VariableIndex n) {
    end_ = n < end_ ? n : end_;
    if (n > 0)
      return dynet_.invalidate(end_);
    dynet_.invalidate();
    spent_ = false;
  }
  const dynet::Tensor &forward(dynet::VariableIndex i) {
    invalidate(0);
    return value(i);
  }
  const dynet::Tensor &value(dynet::VariableIndex i) {
    if (i < end_)
      return dynet_.get_value(i);
    if (spent_)
      throw std::runtime_error("node " + std::to_string(i) +
                               " has no value: fb has consumed the graph and updated the "
                               "parameters since; ask for its value before fb, or call forward");
    if (end_ == 0)
      updates_ = parameters::all().updates;
    const dynet::Tensor &x = dynet_.incremental_forward(i);
    end_ = i + 1;
    return x;
  }
  void backward(dynet::VariableIndex i, bool full) {
    if (spent_)
      invalidate(0);
    value(i); // DyNet's backward may take an invalid value for a valid one
    dynet_.backward(i, full);
  }
  const dynet::Tensor &gradient(dynet::VariableIndex i) { return dynet_.get_gradient(i); }

  // For fb: the loss; the gradients are in DyNet's memory then. Values of before an update are
  // not used again.
  float differentiate(dynet::VariableIndex loss) {
    if (updates_ != parameters::all().updates)
      invalidate(0);
    backward(loss, false);
    return dynet::as_scalar(value(loss));
  }
  void spend() { spent_ = true; }

private:
  dynet::ExecutionEngine &dynet_;
  dynet::VariableIndex end_ = 0; // nodes before this one have values
  uint64_t updates_ = 0;         // when they got them
  bool spent_;                   // fb took the values
};

// A graph of one node, which is a number.
class scalar_batch {
public:
  explicit scalar_batch(float number) : number_(number) {
    check(vpps_graph_create(parameters::all().engine(), &raw_));
  }
  ~scalar_batch() { vpps_graph_destroy(raw_); }

  // Applies the gradients that are there; the handle's stale loss.
  float train(vpps_handle *handle) {
    const uint32_t node[] = {VPPS_OP_SCALAR_INPUT_NODE, 0};
    const vpps_dim dim = wire(dynet::Dim({1}));
    const uint32_t input = bits(number_);
    vpps_words w;
    w.version = VPPS_WIRE_VERSION;
    w.nodes = node;
    w.node_words = 2;
    w.node_count = 1;
    w.dims = &dim;
    w.dim_count = 1;
    w.inputs = &input;
    w.input_words = 1;
    float stale = 0;
    check(vpps_fb(handle, raw_, &w, 0, &stale));
    return stale;
  }

private:
  scalar_batch(const scalar_batch &);
  scalar_batch &operator=(const scalar_batch &);
  const float number_;
  vpps_graph *raw_ = nullptr;
};

} // namespace installed
} // namespace vpps
#endif
