#include "own_nodes.h"

#include <cxxabi.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <typeinfo>

#include "devices_of_engine.h"

namespace dynet {

namespace {

// The class's name, without namespaces.
std::string class_of(const Node &node) {
  int status = 0;
  char *text = abi::__cxa_demangle(typeid(node).name(), nullptr, nullptr, &status);
  std::string name = text ? text : typeid(node).name();
  std::free(text);
  const size_t colon = name.find('<') == std::string::npos ? name.rfind(':') : std::string::npos;
  return colon == std::string::npos ? name : name.substr(colon + 1);
}

std::string text_of(const OwnNode &own) {
  return "node " + std::to_string(own.i) + " (" + own.node->name + ")";
}

void tell_once(const OwnNode &own) {
  static bool told = false;
  if (!told)
    std::cerr << "libvpps: " << text_of(own)
              << " is of the program's own class: it runs on the host, between launches. Graphs "
                 "with such nodes are slow. This is said once.\n";
  told = true;
}

// The arguments' values.
struct Arguments {
  std::vector<Tensor> tensors;
  std::vector<const Tensor *> pointers;

  Arguments(GraphState &s, const Node &node) {
    for (VariableIndex a : node.args) {
      const Tensor &x = s.value(a);
      tensors.push_back(Tensor(x.d, x.v, host(), x.mem_pool));
    }
    for (const Tensor &x : tensors)
      pointers.push_back(&x);
  }
};

Tensor value_of(OwnNode &own) {
  return Tensor(recorder.dim(own.i), own.value.data(), host(), DeviceMempool::FXS);
}

void evaluate(GraphState &s, OwnNode &own) {
  const Node &node = *own.node;
  const Arguments xs(s, node);
  own.aux.resize(node.aux_storage_size());
  node.aux_mem = own.aux.empty() ? nullptr : own.aux.data();
  Tensor fx = value_of(own);
  node.forward(xs.pointers, fx);
  if (fx.v != own.value.data())
    std::copy(fx.v, fx.v + own.value.size(), own.value.begin());
}

// A gradient of a node that came through an own node.
struct Passed {
  VariableIndex to;
  const float *value; // the node's
  std::vector<float> gradient;
};

// The node loss + sum over all that was passed of (x - x') g, where x' is x's present value: so it
// has the loss's value, and its gradients are complete, although own nodes are inputs. It and what
// it is made of come behind the nodes that are evaluated, and go with the next change of the graph.
class Substitute {
public:
  Substitute(GraphState &s, VariableIndex loss, const std::vector<Passed> &passed)
      : s_(s), inputs_(recorder.inputs.size()), scalar_(recorder.intern(Dim({1}))), count_(0) {
    s_.drop_unevaluated();
    terms_.push_back(total(loss, recorder.node_dims[loss]));
    for (const Passed &p : passed)
      add(p);
    words_.push_back(VPPS_OP_SUM | scalar_ << 8);
    words_.push_back(static_cast<uint32_t>(terms_.size()));
    words_.insert(words_.end(), terms_.begin(), terms_.end());
    ++count_;
  }
  ~Substitute() { recorder.inputs.resize(inputs_); }

  template <class F> void send(F call) {
    vpps_words w = s_.pending();
    w.nodes = words_.data();
    w.node_words = words_.size();
    w.node_count = count_;
    check(call(w, s_.evaluated + count_ - 1));
    s_.beyond = true;
    s_.sent_dims = recorder.wire_dims.size();
  }

private:
  Substitute(const Substitute &);
  Substitute &operator=(const Substitute &);

  uint32_t node(uint32_t op, uint32_t dim_id, std::initializer_list<uint32_t> rest) {
    words_.push_back(op | dim_id << 8);
    words_.insert(words_.end(), rest);
    return s_.evaluated + count_++;
  }
  uint32_t input(uint32_t dim_id, const float *values, size_t n, float factor) {
    const uint32_t at = static_cast<uint32_t>(recorder.inputs.size());
    recorder.inputs.room(n);
    for (size_t k = 0; k < n; ++k)
      recorder.inputs.push(float_bits(factor * values[k]));
    return node(VPPS_OP_INPUT_NODE, dim_id, {at});
  }
  uint32_t total(uint32_t x, uint32_t dim_id) {
    const uint32_t all_axes = (1u << recorder.wire_dims[dim_id].nd) - 1;
    return node(VPPS_OP_SUM_DIMENSION, scalar_, {x, all_axes, 1});
  }
  void add(const Passed &p) {
    const uint32_t dim_id = recorder.node_dims[p.to];
    const size_t n = p.gradient.size();
    const uint32_t minus_value = input(dim_id, p.value, n, -1);
    const uint32_t zero = node(VPPS_OP_CWISE_SUM, dim_id, {p.to, minus_value});
    const uint32_t gradient = input(dim_id, p.gradient.data(), n, 1);
    terms_.push_back(total(node(VPPS_OP_CWISE_MULTIPLY, dim_id, {zero, gradient}), dim_id));
  }

  GraphState &s_;
  const size_t inputs_;
  const uint32_t scalar_;
  std::vector<uint32_t> words_, terms_;
  uint32_t count_;
};

// Which nodes a loss is made of, which have gradients, and in which order own nodes get theirs.
class Trace {
public:
  Trace(VariableIndex loss, bool full) : wanted_(loss + 1, full) {
    find_arguments(loss);
    find_wanted(loss);
    find_layers(loss);
  }
  const std::vector<bool> &wanted() const { return wanted_; }
  // Layer k: all own nodes below these, in the graph, are in later layers.
  const std::vector<std::vector<OwnNode *>> &layers() const { return layers_; }

private:
  struct Arguments {
    const uint32_t *first;
    size_t count;
    OwnNode *own;
  };

  void find_arguments(VariableIndex loss) {
    size_t at = 0;
    for (VariableIndex i = 0; i <= loss; ++i) {
      const Recorder::Read r = recorder.read(at);
      at = r.next;
      if (OwnNode *own = recorder.own_node(i))
        nodes_.push_back({own->node->args.data(), own->node->args.size(), own});
      else
        nodes_.push_back({r.args, r.nargs, nullptr});
    }
  }

  // As in DyNet: what depends on a parameter.
  void find_wanted(VariableIndex loss) {
    for (VariableIndex p : recorder.graph->parameter_nodes)
      if (p <= loss)
        wanted_[p] = true;
    for (VariableIndex i = 0; i <= loss; ++i)
      for (size_t k = 0; k < nodes_[i].count; ++k)
        if (wanted_[nodes_[i].first[k]])
          wanted_[i] = true;
  }

  // A node's layer is the most own nodes that are between it and the loss.
  void find_layers(VariableIndex loss) {
    std::vector<int> layer(loss + 1, -1); // -1: not between
    layer[loss] = 0;
    for (VariableIndex i = loss + 1; i-- > 0;) {
      if (layer[i] < 0 || !wanted_[i])
        continue;
      int below = layer[i];
      if (nodes_[i].own) {
        layers_.resize(std::max(layers_.size(), static_cast<size_t>(below) + 1));
        layers_[static_cast<size_t>(below)].push_back(nodes_[i].own);
        ++below;
      }
      for (size_t k = 0; k < nodes_[i].count; ++k) {
        int &of_argument = layer[nodes_[i].first[k]];
        of_argument = std::max(of_argument, below);
      }
    }
  }

  std::vector<Arguments> nodes_;
  std::vector<bool> wanted_;
  std::vector<std::vector<OwnNode *>> layers_;
};

void check_finite(const float *v, size_t n, const OwnNode &own, size_t k, const char *what) {
  for (size_t i = 0; i < n; ++i)
    if (!std::isfinite(v[i]))
      throw std::runtime_error(text_of(own) + ": " + what + " argument " + std::to_string(k) +
                               ", node " + std::to_string(own.node->args[k]) +
                               ", is NaN or infinite; gradients are as before");
}

// Calls a node's backward_impl for each argument whose gradient is wanted.
void pass_on(GraphState &s, OwnNode &own, const std::vector<bool> &wanted,
             std::vector<Passed> &passed) {
  const Node &node = *own.node;
  const Arguments xs(s, node);
  std::vector<float> gradient(own.value.size());
  check(vpps_gradient(s.raw, own.i, gradient.data(), gradient.size()));
  const Tensor fx = value_of(own);
  const Tensor dEdf(fx.d, gradient.data(), host(), DeviceMempool::DEDFS);
  for (unsigned k = 0; k < node.args.size(); ++k) {
    const Tensor &x = xs.tensors[k];
    if (!wanted[node.args[k]])
      continue;
    Passed p = {node.args[k], x.v, std::vector<float>(x.d.size())};
    Tensor dEdx(x.d, p.gradient.data(), host(), DeviceMempool::DEDFS);
    node.backward(xs.pointers, fx, dEdf, k, dEdx);
    check_finite(x.v, x.d.size(), own, k, "the value of");
    check_finite(p.gradient.data(), x.d.size(), own, k, "the gradient that backward_impl gave");
    passed.push_back(std::move(p));
  }
}

} // namespace

std::vector<Expression> ComputationGraph::expressions(const std::vector<VariableIndex> &list) {
  std::vector<Expression> xs;
  xs.reserve(list.size());
  for (VariableIndex i : list)
    xs.push_back(Expression(this, i));
  return xs;
}

VariableIndex ComputationGraph::add_function_node(Node *made, Device *device) {
  std::unique_ptr<Node> node(made);
  recorder.own(*this);
  node->name = class_of(*node);
  node->set_cg(this);
  std::vector<Dim> xs;
  for (VariableIndex a : node->args) {
    if (a >= recorder.count())
      throw std::invalid_argument(node->name + ": the graph has no node " + std::to_string(a));
    xs.push_back(recorder.dim(a));
  }
  node->dim = node->dim_forward(xs);
  recorder.intern(node->dim); // an impossible one is refused here
  if (node->device)
    device = node->device; // the class has chosen
  else if (!xs.empty())
    device = recorder.device(node->args[0]);
  node->device = device ? device : default_device;

  const VariableIndex i = recorder.count();
  const Dim d = node->dim;
  recorder.own_nodes.emplace_back();
  OwnNode &own = recorder.own_nodes.back();
  own.node = std::move(node);
  own.i = i;
  try {
    own.value.resize(d.size());
    tell_once(own);
    input(*this, d, &own.value, own.node->device);
  } catch (...) {
    if (recorder.count() == i) // else it is there, but was evaluated at once and failed
      recorder.own_nodes.pop_back();
    throw;
  }
  return i;
}

void evaluate_own_nodes(GraphState &s, VariableIndex last) {
  for (OwnNode &own : recorder.own_nodes)
    if (own.i >= s.evaluated && own.i <= last)
      evaluate(s, own);
}

bool differentiate_own_nodes(
    GraphState &s, VariableIndex loss, bool full,
    const std::function<vpps_status(const vpps_words &words, uint32_t node)> &call) {
  if (!own_nodes_up_to(loss))
    return false;
  evaluate_own_nodes(s, loss);
  const Trace trace(loss, full);
  // The engine itself says best where a value that is not finite came from.
  if (!std::isfinite(s.value(loss).v[0]) || trace.layers().empty())
    return false;
  s.differentiated = 0;
  std::vector<Passed> passed;
  for (const std::vector<OwnNode *> &layer : trace.layers()) {
    Substitute(s, loss, passed).send([&](const vpps_words &w, uint32_t node) {
      return vpps_node_gradients(s.raw, &w, node);
    });
    for (OwnNode *own : layer)
      pass_on(s, *own, trace.wanted(), passed);
  }
  Substitute(s, loss, passed).send(call);
  s.wanted = trace.wanted();
  return true;
}

} // namespace dynet
