// A ComputationGraph of DyNet's that libvpps executes: what of it the engine has, and the
// tensors that a program reads.
#ifndef VPPS_INSTALLED_GRAPH_HPP
#define VPPS_INSTALLED_GRAPH_HPP

#include <dynet/dynet.h>
#include <dynet/tensor.h>

#include <cmath>
#include <memory>
#include <unordered_map>
#include <vector>

#include "operations.hpp"

namespace vpps {
namespace installed {

// A tensor that a program may hold on to while the graph lives.
struct held_tensor {
  dynet::Tensor tensor;
  std::vector<float> values;
};

class graph {
public:
  // With by_dynet DyNet computes nodes of unknown classes.
  graph(const dynet::ComputationGraph &cg, bool by_dynet)
      : cg_(cg), by_dynet_(by_dynet), all_(parameters::all()), words_(take_recording()) {
    check(vpps_graph_create(all_.engine(), &raw_));
  }
  ~graph() {
    vpps_graph_destroy(raw_);
    give_back(std::move(words_));
  }

  vpps_graph *raw() const { return raw_; }
  // Whether nothing of it has been evaluated under the present parameters.
  bool fresh() const { return evaluated_ == 0; }
  // Whether DyNet computes a node up to one.
  bool own_nodes_up_to(uint32_t i) {
    walk();
    return !words_->own_nodes.empty() && words_->own_nodes.front().i <= i;
  }

  // Takes the nodes made since the last call, after those that DyNet has dropped are dropped.
  void walk() {
    if (dropped_to_ < sent_nodes_) {
      check(vpps_graph_truncate(raw_, dropped_to_));
      sent_nodes_ = dropped_to_;
      sent_words_ = kept_words_;
      if (dropped_to_ == 0)
        spent_ = false;
    }
    dropped_to_ = ~0u;
    if (invalid_from_ < sent_nodes_)
      check(vpps_graph_invalidate(raw_, invalid_from_));
    invalid_from_ = ~0u;
    words_->walk(cg_, by_dynet_);
  }

  // DyNet's nodes from n on are gone. Does not fail: DyNet calls it in destructors.
  void truncate(uint32_t n) {
    if (n >= words_->count() && n >= sent_nodes_)
      return;
    words_->truncate(n);
    if (n < sent_nodes_ && n < dropped_to_) {
      dropped_to_ = n;
      kept_words_ = words_->words.size();
    }
    forget_from(n);
  }
  void invalidate(uint32_t n) {
    invalid_from_ = n < invalid_from_ ? n : invalid_from_;
    forget_from(n);
    if (n == 0)
      spent_ = false;
  }

  const dynet::Tensor &forward(uint32_t i) {
    if (own_nodes_up_to(i)) {
      invalidate(0);
      return value(i);
    }
    exists(i);
    drawn_ = false;
    draw();
    words_->read_pointers(0, i);
    vpps_words w = pending();
    check(graph_change::none_while([&] { return vpps_forward(raw_, &w, i, 1); }));
    forget_from(0);
    drawn_ = words_->draws();
    spent_ = false;
    evaluated_to(i);
    return value(i);
  }

  const dynet::Tensor &value(uint32_t i) {
    walk();
    exists(i);
    if (!spent_) {
      evaluate_own_nodes(i);
      draw();
    }
    read_pointers(i);
    held_tensor &h = hold(values_, i, dynet::DeviceMempool::FXS);
    vpps_words w = pending();
    check(graph_change::none_while(
        [&] { return vpps_value(raw_, &w, i, h.values.data(), h.values.size()); }));
    if (spent_)
      sent();
    else
      evaluated_to(i);
    return h.tensor;
  }

  void backward(uint32_t i, bool full) {
    walk();
    exists(i);
    scalar("backward", i);
    const auto call = [&](const vpps_words &w, uint32_t node) {
      return vpps_backward(raw_, &w, node, full);
    };
    if (own_nodes_up_to(i)) {
      if (spent_)
        invalidate(0);
      differentiate(i, full, call);
    } else {
      draw();
      read_pointers(i);
      send(call, i);
      evaluated_to(i);
    }
    spent_ = false;
    differentiated_ = i + 1;
  }

  const dynet::Tensor &gradient(uint32_t i) {
    exists(i);
    if (i >= differentiated_)
      throw std::runtime_error("no gradient of node " + std::to_string(i) +
                               (differentiated_ == 0 ? ": call backward first"
                                                     : ": backward was called for node " +
                                                           std::to_string(differentiated_ - 1)));
    held_tensor &h = hold(gradients_, i, dynet::DeviceMempool::DEDFS);
    check(graph_change::none_while(
        [&] { return vpps_gradient(raw_, i, h.values.data(), h.values.size()); }));
    return h.tensor;
  }

  // Forward, backward and update in one launch, or in several if DyNet computes nodes; the stale
  // loss.
  float train(vpps_handle *handle, uint32_t loss) {
    walk();
    exists(loss);
    scalar("fb", loss);
    float stale = 0;
    const auto call = [&](const vpps_words &w, uint32_t node) {
      return vpps_fb(handle, raw_, &w, node, &stale);
    };
    // Values from before an update are not used again, so their pointers are read anew.
    const bool anew = updates_ != all_.updates;
    if (own_nodes_up_to(loss)) {
      if (anew || spent_)
        invalidate(0);
      differentiate(loss, false, call);
    } else {
      if (anew)
        forget_from(0);
      draw();
      read_pointers(loss);
      send(call, loss);
      sent();
    }
    forget_from(0);
    spent_ = true;
    ++all_.updates;
    return stale;
  }

  // Asks for the values of nodes, without waiting; the number of the answer.
  uint64_t infer(const std::vector<uint32_t> &wanted, uint32_t last) {
    walk();
    exists(last);
    drawn_ = false;
    draw();
    words_->read_pointers(0, last);
    vpps_words w = pending();
    uint64_t ticket = 0;
    check(graph_change::none_while(
        [&] { return vpps_infer(raw_, &w, wanted.data(), wanted.size(), &ticket); }));
    sent();
    forget_from(0);
    spent_ = false;
    return ticket;
  }

  void keep(vpps_handle *handle, uint32_t i) { check(vpps_handle_keep(handle, raw_, &i, 1)); }

private:
  graph(const graph &);
  graph &operator=(const graph &);
  typedef std::unordered_map<uint32_t, std::unique_ptr<held_tensor>> tensors;

  // Computes the own nodes up to one that have no value.
  void evaluate_own_nodes(uint32_t last) {
    for (own_node &own : words_->own_nodes) {
      if (own.i < evaluated_ || own.i > last)
        continue;
      tell_once(own);
      for (dynet::VariableIndex a : own.node->args)
        value(a);
      evaluate(own, arguments(own));
    }
  }
  // The values of an own node's arguments, which are held.
  argument_values arguments(const own_node &own) {
    argument_values xs;
    for (dynet::VariableIndex a : own.node->args)
      xs.push_back(&values_[a]->tensor);
    return xs;
  }

  // Differentiates a loss that own nodes are a part of: a call gets words and a node of the loss's
  // value, whose gradients are the loss's, with all that came through own nodes.
  template <class Call> void differentiate(uint32_t loss, bool full, const Call &call) {
    const bool finite = std::isfinite(value(loss).v[0]);
    const trace way(traced(loss), cg_.parameter_nodes, full);
    if (!finite || way.layers().empty()) // the engine says best where NaN came from
      return send(call, loss);
    std::vector<passed_gradient> passed;
    for (const std::vector<own_node *> &layer : way.layers()) {
      send_substitute(loss, passed, [&](const vpps_words &w, uint32_t node) {
        return vpps_node_gradients(raw_, &w, node);
      });
      for (own_node *own : layer) {
        std::vector<float> gradient(own->value.size());
        check(vpps_gradient(raw_, own->i, gradient.data(), gradient.size()));
        pass_on(*own, arguments(*own), gradient, way.wanted(), passed);
      }
    }
    send_substitute(loss, passed, call);
  }
  std::vector<traced_node> traced(uint32_t loss) {
    std::vector<traced_node> nodes;
    for (uint32_t i = 0; i <= loss; ++i)
      nodes.push_back({cg_.nodes[i]->args.data(), cg_.nodes[i]->args.size(), nullptr});
    for (own_node &own : words_->own_nodes)
      if (own.i <= loss)
        nodes[own.i].own = &own;
    return nodes;
  }
  // The engine gets nodes of its own behind the graph's, which go with the next walk.
  template <class Call>
  void send_substitute(uint32_t loss, const std::vector<passed_gradient> &passed,
                       const Call &call) {
    walk();
    const substitute<recording> s(*words_, sent_nodes_, loss, passed);
    const vpps_words w = s.in_place_of(pending());
    check(graph_change::none_while([&] { return call(w, s.last()); }));
    sent();
    dropped_to_ = sent_nodes_;
    kept_words_ = sent_words_;
    sent_nodes_ += s.count();
  }
  template <class Call> void send(const Call &call, uint32_t node) {
    vpps_words w = pending();
    check(graph_change::none_while([&] { return call(w, node); }));
  }

  vpps_words pending() const {
    vpps_words w;
    w.version = VPPS_WIRE_VERSION;
    w.nodes = words_->words.data() + sent_words_;
    w.node_words = words_->words.size() - sent_words_;
    w.node_count = words_->count() - sent_nodes_;
    w.dims = words_->dims.data() + sent_dims_;
    w.dim_count = words_->dims.size() - sent_dims_;
    w.inputs = words_->inputs.data();
    w.input_words = words_->inputs.size();
    return w;
  }
  void sent() {
    sent_words_ = words_->words.size();
    sent_nodes_ = words_->count();
    sent_dims_ = words_->dims.size();
  }
  void evaluated_to(uint32_t i) {
    sent();
    if (i >= evaluated_) {
      if (evaluated_ == 0)
        updates_ = all_.updates;
      evaluated_ = i + 1;
    }
  }
  // Random numbers follow DyNet's generator (dynet::reset_rng): before a graph's first random node
  // is evaluated, one number of it seeds libvpps's, which counts graphs and evaluations from then.
  void draw() {
    if (drawn_ || !words_->draws())
      return;
    check(vpps_engine_seed(all_.engine(), static_cast<uint32_t>((*dynet::rndeng)())));
    drawn_ = true;
  }
  void forget_from(uint32_t n) {
    if (evaluated_ > n)
      evaluated_ = n;
    if (n == 0)
      drawn_ = false;
    differentiated_ = 0;
  }
  // For a call that evaluates what is missing up to node i.
  void read_pointers(uint32_t i) {
    if (i >= evaluated_)
      words_->read_pointers(evaluated_, i);
  }
  void exists(uint32_t i) const {
    if (i >= words_->count())
      throw std::invalid_argument("the graph has no node " + std::to_string(i));
  }
  void scalar(const char *what, uint32_t i) const {
    const dynet::Dim &d = cg_.nodes[i]->dim;
    if (d.size() != 1)
      throw std::invalid_argument(std::string(what) + " needs a scalar, but node " +
                                  std::to_string(i) + " has " + std::to_string(d.size()) +
                                  " elements: add it up with sum_elems and sum_batches first");
  }
  held_tensor &hold(tensors &t, uint32_t i, dynet::DeviceMempool pool) {
    std::unique_ptr<held_tensor> &h = t[i];
    if (!h)
      h.reset(new held_tensor);
    const dynet::Dim &d = cg_.nodes[i]->dim;
    h->values.resize(d.size());
    h->tensor = dynet::Tensor(d, h->values.data(), dynet::default_device, pool);
    return *h;
  }

  const dynet::ComputationGraph &cg_;
  const bool by_dynet_;
  parameters &all_;
  vpps_graph *raw_ = nullptr;
  std::unique_ptr<recording> words_;
  size_t sent_words_ = 0, sent_dims_ = 0, kept_words_ = 0;
  uint32_t sent_nodes_ = 0;
  uint32_t dropped_to_ = ~0u, invalid_from_ = ~0u; // what the engine has not been told yet
  uint32_t evaluated_ = 0;                         // nodes before this one have values
  uint32_t differentiated_ = 0;                    // and gradients
  uint64_t updates_ = 0;                           // when they got their values
  bool spent_ = false;                             // fb took the values
  bool drawn_ = false;                             // the present values' random numbers are seeded
  tensors values_, gradients_;
};

} // namespace installed
} // namespace vpps
#endif
