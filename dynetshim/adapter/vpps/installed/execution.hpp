// vpps::accelerate: DyNet's own calls - forward, value, backward - run by libvpps. One line
// after a graph's construction installs this as the graph's execution engine.
#ifndef VPPS_INSTALLED_EXECUTION_HPP
#define VPPS_INSTALLED_EXECUTION_HPP

#include <dynet/dynet.h>
#include <dynet/exec.h>
#include <dynet/param-nodes.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "gradients.hpp"
#include "graph.hpp"

namespace vpps {

// What happens to a node that libvpps does not know.
enum graph_policy {
  only_vpps, // vpps::unknown_node says which
  or_dynet   // DyNet computes that node, on the host
};

namespace installed {

class execution : public dynet::ExecutionEngine {
public:
  execution(const dynet::ComputationGraph &of, graph_policy policy)
      : dynet::ExecutionEngine(of), policy_(policy) {}

  ~execution() override { graph_change::now(); }

  // It opens the engine, so it is made in a call that has its turn.
  graph &state() {
    if (!graph_)
      graph_.reset(new graph(cg, policy_ == or_dynet));
    return *graph_;
  }
  // DyNet calls these two in destructors: they do not fail.
  void invalidate() override {
    graph_change::now();
    drop();
    if (graph_)
      graph_->invalidate(0);
  }
  void invalidate(unsigned i) override {
    graph_change::now();
    drop();
    if (graph_)
      graph_->invalidate(i);
  }

  const dynet::Tensor &forward() override { return forward(last()); }
  const dynet::Tensor &forward(dynet::VariableIndex i) override {
    const graph_turn mine;
    parameters::all().notice(true);
    return state().forward(i);
  }
  const dynet::Tensor &incremental_forward() override { return incremental_forward(last()); }
  const dynet::Tensor &incremental_forward(dynet::VariableIndex i) override { return value(i); }
  const dynet::Tensor &get_value(dynet::VariableIndex i) override { return value(i); }
  const dynet::Tensor &get_gradient(dynet::VariableIndex i) override {
    const graph_turn mine;
    return state().gradient(i);
  }
  void backward(bool full = false) override { backward(last(), full); }
  void backward(dynet::VariableIndex i, bool full = false) override {
    const graph_turn mine;
    if (state().fresh())
      parameters::all().notice(true);
    const std::vector<parameter_record *> used = trained_by(i);
    gradients of_trainers(parameters::all());
    for (parameter_record *r : used)
      if (r->trainers > 0)
        of_trainers.give(*r);
    state().backward(i, full);
    for (parameter_record *r : used)
      if (r->trainers > 0)
        of_trainers.take(*r, r->defer && *r->defer);
      else
        parameters::all().deliver(*r); // to DyNet's trainers
  }

private:
  dynet::VariableIndex last() const {
    return static_cast<dynet::VariableIndex>(cg.nodes.size() - 1);
  }
  const dynet::Tensor &value(dynet::VariableIndex i) {
    const graph_turn mine;
    if (state().fresh())
      parameters::all().notice(true);
    return state().value(i);
  }

  // Follows DyNet's clear and revert.
  void drop() {
    if (graph_)
      graph_->truncate(static_cast<uint32_t>(cg.nodes.size()));
  }

  // The parameters whose gradients the loss has.
  std::vector<parameter_record *> trained_by(dynet::VariableIndex loss) {
    parameters &all = parameters::all();
    std::vector<parameter_record *> used;
    for (dynet::VariableIndex k : cg.parameter_nodes) {
      if (k > loss)
        break;
      const dynet::Node *node = cg.nodes[k];
      if (auto *n = dynamic_cast<const dynet::LookupNode *>(node))
        used.push_back(&all.changeable(all.of(n->params.p)));
      else if (auto *p = dynamic_cast<const dynet::ParameterNode *>(node))
        used.push_back(&all.changeable(p->params.p ? all.of(p->params.p) : all.of(p->lparams.p)));
    }
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    return used;
  }

  const graph_policy policy_;
  std::unique_ptr<graph> graph_; // none before the first call
};

inline execution *executing(const dynet::ComputationGraph &cg) {
  return dynamic_cast<execution *>(cg.ee.get());
}

} // namespace installed

// From now on libvpps runs this graph. A trainer of DyNet's goes on working, on the host;
// wrapped in vpps::trainer it works on the device.
inline void accelerate(dynet::ComputationGraph &cg, graph_policy policy = only_vpps) {
  cg.ee.reset(new installed::execution(cg, policy));
}

} // namespace vpps
#endif
