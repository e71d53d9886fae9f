// Nodes of classes that the engine does not know. Their classes compute them on the host, between
// launches, and for the engine each is an input. Gradients pass on by the chain rule. Both
// front-ends include this: libvpps's own and the adapter of an installed DyNet.
#ifndef VPPS_INSTALLED_OWN_NODES_HPP
#define VPPS_INSTALLED_OWN_NODES_HPP

#include <dynet/dynet.h>
#include <dynet/tensor.h>
#include <vpps.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ops.h"

namespace vpps {
namespace installed {

struct own_node {
  uint32_t i; // its number
  const dynet::Node *node;
  dynet::Device *device; // of its tensors
  std::string class_name;
  std::vector<float> value; // node->dim.size() floats, zeros until it is evaluated
  std::vector<char> aux;    // what node->aux_mem points to
};

typedef std::vector<const dynet::Tensor *> argument_values;

inline std::string text_of(const own_node &own) {
  return "node " + std::to_string(own.i) + " (" + own.class_name + ")";
}

inline void tell_once(const own_node &own) {
  static bool told = false;
  if (!told)
    std::cerr << "libvpps: " << text_of(own)
              << " is of a class that libvpps does not know: it runs on the host, between "
                 "launches. Graphs with such nodes are slow. This is said once.\n";
  told = true;
}

// Computes a node's value from its arguments'.
inline void evaluate(own_node &own, const argument_values &xs) {
  const dynet::Node &node = *own.node;
  own.aux.resize(node.aux_storage_size());
  node.aux_mem = own.aux.empty() ? nullptr : own.aux.data();
  dynet::Tensor fx(node.dim, own.value.data(), own.device, dynet::DeviceMempool::FXS);
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
                               ", node " + std::to_string(own.node->args[k]) +
                               ", is NaN or infinite; gradients are as before");
}

// Appends the gradient of each argument whose gradient is wanted, formed from the node's own.
inline void pass_on(own_node &own, const argument_values &xs, std::vector<float> &gradient,
                    const std::vector<bool> &wanted, std::vector<passed_gradient> &passed) {
  const dynet::Node &node = *own.node;
  const dynet::Tensor fx(node.dim, own.value.data(), own.device, dynet::DeviceMempool::FXS);
  const dynet::Tensor dEdf(node.dim, gradient.data(), own.device, dynet::DeviceMempool::DEDFS);
  for (unsigned k = 0; k < node.args.size(); ++k) {
    if (!wanted[node.args[k]])
      continue;
    const dynet::Tensor &x = *xs[k];
    passed_gradient p = {node.args[k], x.v, std::vector<float>(x.d.size())};
    dynet::Tensor dEdx(x.d, p.gradient.data(), x.device, dynet::DeviceMempool::DEDFS);
    node.backward(xs, fx, dEdf, k, dEdx);
    check_finite(x.v, x.d.size(), own, k, "the value of");
    check_finite(p.gradient.data(), x.d.size(), own, k, "the gradient that backward_impl gave");
    passed.push_back(std::move(p));
  }
}

// A node's arguments, and its class's part if it is an own node.
struct traced_node {
  const uint32_t *args;
  size_t count;
  own_node *own; // or null
};

// Which nodes a loss is made of, which have gradients, and in which order own nodes get theirs.
class trace {
public:
  // The loss is the last node. Parameters may be beyond it.
  trace(const std::vector<traced_node> &nodes, const std::vector<uint32_t> &parameters, bool full)
      : wanted_(nodes.size(), full) {
    for (uint32_t p : parameters) // as in DyNet: what depends on a parameter
      if (p < nodes.size())
        wanted_[p] = true;
    for (size_t i = 0; i < nodes.size(); ++i)
      for (size_t k = 0; k < nodes[i].count; ++k)
        if (wanted_[nodes[i].args[k]])
          wanted_[i] = true;
    find_layers(nodes);
  }
  const std::vector<bool> &wanted() const { return wanted_; }
  // Layer k: all own nodes below these, in the graph, are in later layers.
  const std::vector<std::vector<own_node *>> &layers() const { return layers_; }

private:
  // A node's layer is the most own nodes that are between it and the loss.
  void find_layers(const std::vector<traced_node> &nodes) {
    std::vector<int> layer(nodes.size(), -1); // -1: not between
    layer.back() = 0;
    for (size_t i = nodes.size(); i-- > 0;) {
      if (layer[i] < 0 || !wanted_[i])
        continue;
      int below = layer[i];
      if (nodes[i].own) {
        layers_.resize(std::max(layers_.size(), static_cast<size_t>(below) + 1));
        layers_[static_cast<size_t>(below)].push_back(nodes[i].own);
        ++below;
      }
      for (size_t k = 0; k < nodes[i].count; ++k) {
        int &of_argument = layer[nodes[i].args[k]];
        of_argument = std::max(of_argument, below);
      }
    }
  }

  std::vector<bool> wanted_;
  std::vector<std::vector<own_node *>> layers_;
};

// The node loss + sum over all that was passed of (x - x') g, where x' is x's present value: so it
// has the loss's value, and its gradients are complete, although own nodes are inputs. It and what
// it is made of are not recorded. Only their inputs are, after the others, as long as this exists.
template <class Recording> class substitute {
public:
  // first is the number that its first node has.
  substitute(Recording &r, uint32_t first, uint32_t loss,
             const std::vector<passed_gradient> &passed)
      : r_(r), inputs_(r.inputs.size()), first_(first), scalar_(r.intern(dynet::Dim({1}))) {
    terms_.push_back(total(loss, loss));
    for (const passed_gradient &p : passed)
      add(p);
    words_.push_back(VPPS_OP_SUM | scalar_ << 8);
    words_.push_back(static_cast<uint32_t>(terms_.size()));
    words_.insert(words_.end(), terms_.begin(), terms_.end());
    ++count_;
  }
  ~substitute() { r_.inputs.resize(inputs_); }
  uint32_t count() const { return count_; }
  uint32_t last() const { return first_ + count_ - 1; }
  // Its nodes in place of those that are pending.
  vpps_words in_place_of(vpps_words pending) const {
    pending.nodes = words_.data();
    pending.node_words = words_.size();
    pending.node_count = count_;
    return pending;
  }

private:
  substitute(const substitute &);
  substitute &operator=(const substitute &);

  uint32_t node(uint32_t op, uint32_t dim_id, std::initializer_list<uint32_t> rest) {
    words_.push_back(op | dim_id << 8);
    words_.insert(words_.end(), rest);
    return first_ + count_++;
  }
  uint32_t input(uint32_t dim_id, const float *values, size_t n, float factor) {
    const uint32_t at = static_cast<uint32_t>(r_.inputs.size());
    for (size_t k = 0; k < n; ++k) {
      const float x = factor * values[k];
      uint32_t word;
      std::memcpy(&word, &x, sizeof word);
      r_.inputs.push(word);
    }
    return node(VPPS_OP_INPUT_NODE, dim_id, {at});
  }
  // The sum of all elements of x, which has the shape of a recorded node.
  uint32_t total(uint32_t x, uint32_t recorded) {
    const uint32_t all_axes = (1u << r_.dim(recorded).nd) - 1;
    return node(VPPS_OP_SUM_DIMENSION, scalar_, {x, all_axes, 1});
  }
  void add(const passed_gradient &p) {
    const uint32_t dim_id = r_.node_dims[p.to];
    const size_t n = p.gradient.size();
    const uint32_t minus_value = input(dim_id, p.value, n, -1);
    const uint32_t zero = node(VPPS_OP_CWISE_SUM, dim_id, {p.to, minus_value});
    const uint32_t gradient = input(dim_id, p.gradient.data(), n, 1);
    terms_.push_back(total(node(VPPS_OP_CWISE_MULTIPLY, dim_id, {zero, gradient}), p.to));
  }

  Recording &r_;
  const size_t inputs_; // how many there were
  const uint32_t first_, scalar_;
  std::vector<uint32_t> words_, terms_;
  uint32_t count_ = 0;
};

} // namespace installed
} // namespace vpps
#endif
