#include "own_nodes.h"

#include <cxxabi.h>

#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <typeinfo>

#include "devices_of_engine.h"

namespace dynet {

using vpps::installed::own_node;
using vpps::installed::passed_gradient;
using vpps::installed::substitute;
using vpps::installed::trace;
using vpps::installed::traced_node;

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

// The nodes up to the loss.
std::vector<traced_node> traced(VariableIndex loss) {
  std::vector<traced_node> nodes;
  size_t at = 0;
  for (VariableIndex i = 0; i <= loss; ++i) {
    const Recorder::Read r = recorder.read(at);
    at = r.next;
    nodes.push_back({r.args, r.nargs, nullptr});
  }
  for (OwnNode &own : recorder.own_nodes)
    if (own.i <= loss)
      nodes[own.i] = {own.node->args.data(), own.node->args.size(), &own};
  return nodes;
}

// The substitute's nodes come after those that are evaluated, and go with the next change of the
// graph.
template <class Call>
void send_substitute(GraphState &s, VariableIndex loss, const std::vector<passed_gradient> &passed,
                     const Call &call) {
  s.drop_unevaluated();
  const substitute<Recorder> sub(recorder, s.evaluated, loss, passed);
  check(call(sub.in_place_of(s.pending()), sub.last()));
  s.beyond = true;
  s.sent_dims = recorder.wire_dims.size();
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
  own.i = i;
  own.node = node.get();
  own.device = host();
  own.class_name = node->name;
  own.owner = std::move(node);
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
      evaluate(own, Arguments(s, *own.node).pointers);
}

bool differentiate_own_nodes(
    GraphState &s, VariableIndex loss, bool full,
    const std::function<vpps_status(const vpps_words &words, uint32_t node)> &call) {
  if (!own_nodes_up_to(loss))
    return false;
  evaluate_own_nodes(s, loss);
  const trace way(traced(loss), recorder.graph->parameter_nodes, full);
  // The engine itself says best where a value that is not finite came from.
  if (!std::isfinite(s.value(loss).v[0]) || way.layers().empty())
    return false;
  s.differentiated = 0;
  std::vector<passed_gradient> passed;
  for (const std::vector<own_node *> &layer : way.layers()) {
    send_substitute(s, loss, passed, [&](const vpps_words &w, uint32_t node) {
      return vpps_node_gradients(s.raw, &w, node);
    });
    for (own_node *own : layer) {
      const Arguments xs(s, *own->node);
      std::vector<float> gradient(own->value.size());
      check(vpps_gradient(s.raw, own->i, gradient.data(), gradient.size()));
      pass_on(*own, xs.pointers, gradient, way.wanted(), passed);
    }
  }
  send_substitute(s, loss, passed, call);
  s.wanted = way.wanted();
  return true;
}

} // namespace dynet
