// Nodes of classes that libvpps does not know: DyNet computes them on the host, between launches.
// For the engine each is an input. Gradients pass on by the chain rule.
#ifndef VPPS_INSTALLED_OWN_NODES_HPP
#define VPPS_INSTALLED_OWN_NODES_HPP

#include <dynet/dynet.h>
#include <dynet/tensor.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "recording.hpp"

namespace vpps {
namespace installed {

// What DyNet's tensors of a node are: its own values, or their gradient.
inline dynet::Tensor tensor_of(const dynet::Node &node, float *v, dynet::DeviceMempool pool) {
  return dynet::Tensor(node.dim, v, node.device ? node.device : dynet::default_device, pool);
}

inline std::string text_of(const own_node &own) {
  return "node " + std::to_string(own.node) + " (" + own.class_name + ")";
}

inline void tell_once(const own_node &own) {
  static bool told = false;
  if (!told)
    std::cerr << "libvpps: " << text_of(own)
              << " is of a class that libvpps does not know: DyNet runs it on the host, between "
                 "launches. Graphs with such nodes are slow. This is said once.\n";
  told = true;
}

// Computes a node's value from its arguments'.
inline void evaluate(const dynet::Node &node, own_node &own,
                     const std::vector<const dynet::Tensor *> &xs) {
  tell_once(own);
  own.value.resize(node.dim.size());
  own.aux.resize((node.aux_storage_size() + sizeof(std::max_align_t) - 1) /
                 sizeof(std::max_align_t));
  node.aux_mem = own.aux.empty() ? nullptr : own.aux.data();
  dynet::Tensor fx = tensor_of(node, own.value.data(), dynet::DeviceMempool::FXS);
  node.forward(xs, fx);
  if (fx.v != own.value.data()) // it is one of the arguments
    std::copy(fx.v, fx.v + own.value.size(), own.value.begin());
}

// A gradient of a node that came through an own node.
struct passed_gradient {
  uint32_t to;
  const float *value; // the node's
  std::vector<float> gradient;
};

inline void check_finite(const float *v, size_t n, const own_node &own, unsigned k,
                         const char *what) {
  for (size_t i = 0; i < n; ++i)
    if (!std::isfinite(v[i]))
      throw std::runtime_error(text_of(own) + ": " + what + " argument " + std::to_string(k) +
                               " is NaN or infinite; gradients are as before");
}

// The gradient of a node's argument number k, from the node's own.
inline passed_gradient pass_on(const dynet::Node &node, own_node &own,
                               const std::vector<const dynet::Tensor *> &xs,
                               std::vector<float> &gradient, unsigned k) {
  const dynet::Tensor &x = *xs[k];
  const dynet::Tensor fx = tensor_of(node, own.value.data(), dynet::DeviceMempool::FXS);
  const dynet::Tensor dEdf = tensor_of(node, gradient.data(), dynet::DeviceMempool::DEDFS);
  passed_gradient p = {node.args[k], x.v, std::vector<float>(x.d.size())};
  dynet::Tensor dEdx(x.d, p.gradient.data(), x.device, dynet::DeviceMempool::DEDFS);
  node.backward(xs, fx, dEdf, k, dEdx);
  check_finite(x.v, x.d.size(), own, k, "the value of");
  check_finite(p.gradient.data(), p.gradient.size(), own, k, "the gradient that backward gave");
  return p;
}

// Which nodes a loss is made of, which have gradients, and in which order own nodes get theirs.
class trace {
public:
  trace(const dynet::ComputationGraph &cg, std::vector<own_node> &owns, uint32_t loss, bool full)
      : wanted_(loss + 1, full) {
    for (dynet::VariableIndex p : cg.parameter_nodes) // as in DyNet: what depends on a parameter
      if (p <= loss)
        wanted_[p] = true;
    for (uint32_t i = 0; i <= loss; ++i)
      for (dynet::VariableIndex a : cg.nodes[i]->args)
        if (wanted_[a])
          wanted_[i] = true;
    find_layers(cg, owns, loss);
  }
  bool wanted(uint32_t i) const { return wanted_[i]; }
  // Layer k: all own nodes below these, in the graph, are in later layers.
  const std::vector<std::vector<own_node *>> &layers() const { return layers_; }

private:
  // A node's layer is the most own nodes that are between it and the loss.
  void find_layers(const dynet::ComputationGraph &cg, std::vector<own_node> &owns, uint32_t loss) {
    std::vector<int> layer(loss + 1, -1); // -1: not between
    layer[loss] = 0;
    size_t left = owns.size();
    for (uint32_t i = loss + 1; i-- > 0;) {
      while (left > 0 && owns[left - 1].node > i)
        --left;
      if (layer[i] < 0 || !wanted_[i])
        continue;
      int below = layer[i];
      if (left > 0 && owns[left - 1].node == i) {
        layers_.resize(std::max(layers_.size(), static_cast<size_t>(below) + 1));
        layers_[static_cast<size_t>(below)].push_back(&owns[left - 1]);
        ++below;
      }
      for (dynet::VariableIndex a : cg.nodes[i]->args)
        layer[a] = std::max(layer[a], below);
    }
  }

  std::vector<bool> wanted_;
  std::vector<std::vector<own_node *>> layers_;
};

// The node loss + sum over all that was passed of (x - x') g, where x' is x's present value: so it
// has the loss's value, and its gradients are complete, although own nodes are inputs.
class substitute {
public:
  // first is the number that its first node has.
  substitute(recording &r, uint32_t first, uint32_t loss,
             const std::vector<passed_gradient> &passed)
      : r_(r), first_(first), scalar_(r.intern(dynet::Dim({1}))),
        inputs_(r.inputs.data(), r.inputs.data() + r.inputs.size()) {
    terms_.push_back(total(loss, r.node_dims[loss]));
    for (const passed_gradient &p : passed)
      add(p);
    words_.push_back(VPPS_OP_SUM | scalar_ << 8);
    words_.push_back(static_cast<uint32_t>(terms_.size()));
    words_.insert(words_.end(), terms_.begin(), terms_.end());
    ++count_;
  }
  uint32_t count() const { return count_; }
  uint32_t last() const { return first_ + count_ - 1; }
  // Makes words without nodes those of this one.
  void fill(vpps_words &w) const {
    w.nodes = words_.data();
    w.node_words = words_.size();
    w.node_count = count_;
    w.inputs = inputs_.data();
    w.input_words = inputs_.size();
  }

private:
  uint32_t node(uint32_t op, uint32_t dim_id, std::initializer_list<uint32_t> rest) {
    words_.push_back(op | dim_id << 8);
    words_.insert(words_.end(), rest);
    return first_ + count_++;
  }
  uint32_t input(uint32_t dim_id, const float *values, size_t n, float factor) {
    const uint32_t at = static_cast<uint32_t>(inputs_.size());
    for (size_t k = 0; k < n; ++k)
      inputs_.push_back(bits(factor * values[k]));
    return node(VPPS_OP_INPUT_NODE, dim_id, {at});
  }
  uint32_t total(uint32_t x, uint32_t dim_id) {
    const uint32_t all_axes = (1u << r_.dims[dim_id].nd) - 1;
    return node(VPPS_OP_SUM_DIMENSION, scalar_, {x, all_axes, 1});
  }
  void add(const passed_gradient &p) {
    const uint32_t dim_id = r_.node_dims[p.to];
    const size_t n = p.gradient.size();
    const uint32_t minus_value = input(dim_id, p.value, n, -1);
    const uint32_t zero = node(VPPS_OP_CWISE_SUM, dim_id, {p.to, minus_value});
    const uint32_t gradient = input(dim_id, p.gradient.data(), n, 1);
    terms_.push_back(total(node(VPPS_OP_CWISE_MULTIPLY, dim_id, {zero, gradient}), dim_id));
  }

  recording &r_;
  const uint32_t first_, scalar_;
  std::vector<uint32_t> words_, inputs_, terms_;
  uint32_t count_ = 0;
};

} // namespace installed
} // namespace vpps
#endif
