// ComputationGraph: hands what was recorded to the engine and keeps the tensors that
// it returned.
#include <algorithm>
#include <iostream>
#include <stdexcept>

#include "dynet/exec.h"
#include "graph_state.h"
#include "own_nodes.h"
#include "shape.h"

namespace dynet {

namespace {
int active_graphs = 0;
unsigned last_graph_id = 0;
} // namespace

int get_number_of_active_graphs() { return active_graphs; }
unsigned get_current_graph_id() { return last_graph_id; }

// ---- life --------------------------------------------------------------------

ComputationGraph::ComputationGraph() : id_(0) { open(); }
ComputationGraph::ComputationGraph(bool) : id_(0) { open(); }

void ComputationGraph::open() {
  if (active_graphs > 0) {
    std::cerr << "Memory allocator assumes only a single ComputationGraph at a time.\n";
    throw std::runtime_error("Attempted to create >1 CG: destroy or clear the first");
  }
  state_.reset(new GraphState);
  if (has_engine())
    join();
  ee.reset(new SimpleExecutionEngine(*this));
  ++active_graphs;
  id_ = ++last_graph_id;
  recorder.open(this, id_);
}

// Gives the graph its engine. One that was made before dynet::initialize gets it there.
void ComputationGraph::join() {
  if (state_->engine)
    return;
  state_->engine = engine("a ComputationGraph");
  check(vpps_graph_create(state_->engine->raw, &state_->raw));
}

ComputationGraph::~ComputationGraph() {
  recorder.close();
  --active_graphs;
}

void ComputationGraph::clear() {
  if (state_->raw)
    check(vpps_graph_truncate(state_->raw, 0));
  Mark nothing = {0, 0, 0, 0, 0, 0, 0, 0};
  recorder.rewind(nothing);
  state_->sent_words = state_->sent_nodes = 0;
  state_->forget_from(0);
  state_->spent = state_->beyond = state_->outdated = false;
  state_->checkpoints.clear();
}

void ComputationGraph::checkpoint() {
  if (recorder.count() > 0)
    incremental_forward(recorder.count() - 1);
  state_->checkpoints.push_back(recorder.mark());
}

void ComputationGraph::revert() {
  if (state_->checkpoints.empty())
    return;
  Mark m = state_->checkpoints.back();
  uint32_t nodes = static_cast<uint32_t>(m.nodes);
  check(vpps_graph_truncate(state_->raw, nodes));
  if (state_->sent_nodes > nodes) {
    state_->sent_words = m.words;
    state_->sent_nodes = nodes;
  }
  if (nodes == 0)
    state_->spent = false;
  // DyNet evaluates the last node that stays once more.
  if (nodes > 0 && state_->sent_nodes >= nodes)
    check(vpps_graph_invalidate(state_->raw, nodes - 1));
  state_->checkpoints.pop_back();
  recorder.rewind(m);
  state_->forget_from(nodes > 0 ? nodes - 1 : 0);
}

void ComputationGraph::invalidate() { state_->invalidate(0); }
void ComputationGraph::invalidate_from(VariableIndex i) {
  get_dimension(i);
  state_->invalidate(i);
}

Dim &ComputationGraph::get_dimension(VariableIndex i) const {
  if (i >= recorder.count())
    throw std::invalid_argument("the graph has no node " + std::to_string(i));
  return const_cast<Dim &>(recorder.dim(i)); // DyNet's is not const, though programs only read it
}

// ---- evaluation ----------------------------------------------------------------

// The value of a node, evaluating what is missing.
const Tensor &ComputationGraph::fetch(VariableIndex i) {
  get_dimension(i);
  recorder.check_devices(i);
  if (!state_->spent)
    evaluate_own_nodes(*state_, i);
  return state_->value(i);
}

const Tensor &ComputationGraph::forward(VariableIndex i) {
  GraphState &s = *state_;
  get_dimension(i);
  recorder.check_devices(i);
  if (own_nodes_up_to(i)) {
    s.invalidate(0);
    return fetch(i);
  }
  if (s.sent_nodes == 0) // all is missing: one call instead of two
    return fetch(i);
  recorder.patch(0, i);
  vpps_words w = s.pending();
  check(vpps_forward(s.raw, &w, i, 1));
  s.forget_from(0);
  s.spent = false;
  s.evaluated_to(i);
  return fetch(i);
}

const Tensor &ComputationGraph::incremental_forward(VariableIndex i) { return fetch(i); }
const Tensor &ComputationGraph::get_value(VariableIndex i) { return fetch(i); }

namespace {
void of_graph(const ComputationGraph &g, const Expression &e, const char *what) {
  if (e.pg != &g || e.graph_id != g.get_id())
    throw std::invalid_argument(std::string(what) + ": the expression belongs to another graph");
}
} // namespace

const Tensor &ComputationGraph::forward(const Expression &last) {
  of_graph(*this, last, "forward");
  return forward(last.i);
}
const Tensor &ComputationGraph::incremental_forward(const Expression &last) {
  of_graph(*this, last, "incremental_forward");
  return fetch(last.i);
}
const Tensor &ComputationGraph::get_value(const Expression &e) {
  of_graph(*this, e, "get_value");
  return fetch(e.i);
}
const Tensor &ComputationGraph::get_gradient(const Expression &e) {
  of_graph(*this, e, "get_gradient");
  return get_gradient(e.i);
}
void ComputationGraph::backward(const Expression &last, bool full) {
  of_graph(*this, last, "backward");
  backward(last.i, full);
}

namespace {
// Losses have one element, the batch included.
void check_scalar(const char *what, VariableIndex i, const Dim &d) {
  if (d.size() == 1)
    return;
  vpps_dim w = vpps_dim();
  w.nd = d.nd;
  w.bd = d.bd;
  for (unsigned k = 0; k < d.nd; ++k)
    w.d[k] = d.d[k];
  char text[128];
  size_t at = 0;
  vpps_print_dim(text, sizeof text, &at, &w);
  throw std::invalid_argument(std::string(what) + " needs a scalar, but node " + std::to_string(i) +
                              " is " + text + ": add it up with sum_elems and sum_batches first");
}

// What a backward pass from node i leaves behind in has_grad(): a lookup of several
// rows is not noticed, as in DyNet.
void mark_gradients(VariableIndex i) {
  for (size_t k = 0; k < recorder.uses.size() && recorder.uses[k].node <= i; ++k)
    if (recorder.uses[k].kind != Use::Rows && recorder.uses[k].storage)
      recorder.uses[k].storage->nonzero_grad = true;
}
} // namespace

void ComputationGraph::backward(VariableIndex i, bool full) {
  GraphState &s = *state_;
  check_scalar("backward", i, get_dimension(i));
  recorder.check_devices(i);
  s.wanted.clear();
  s.drop_outdated();
  if (own_nodes_up_to(i) && s.spent)
    s.invalidate(0);
  if (!differentiate_own_nodes(s, i, full, [&](const vpps_words &w, uint32_t node) {
        return vpps_backward(s.raw, &w, node, 1);
      })) {
    s.read_pointers(i);
    vpps_words w = s.pending();
    check(vpps_backward(s.raw, &w, i, full));
    s.spent = false;
    s.evaluated_to(i);
  }
  s.differentiated = i + 1;
  s.loss = i;
  mark_gradients(i);
}

const Tensor &ComputationGraph::get_gradient(VariableIndex i) {
  GraphState &s = *state_;
  const Dim &d = get_dimension(i);
  if (s.differentiated == 0)
    throw std::runtime_error("no gradient of node " + std::to_string(i) + ": call backward first");
  if (i >= s.differentiated)
    throw std::runtime_error("no gradient of node " + std::to_string(i) +
                             ": backward was called for node " + std::to_string(s.loss) +
                             ", which comes before it");
  Held &held = hold(s.gradients, i, d);
  if (!s.wanted.empty() && !s.wanted[i])
    std::fill(held.values.begin(), held.values.end(), 0.f);
  else
    check(vpps_gradient(s.raw, i, held.values.data(), held.values.size()));
  return held.tensor;
}

float ComputationGraph::train(vpps_handle *handle, VariableIndex loss) {
  GraphState &s = *state_;
  recorder.evaluate_postponed();
  s.drop_outdated();
  check_scalar("fb", loss, get_dimension(loss));
  recorder.check_devices(loss);
  // Values from before an update are not used again, so their pointers are read anew.
  if (s.updates != s.engine->updates)
    s.forget_from(0);
  if (own_nodes_up_to(loss) && (s.spent || s.evaluated == 0))
    s.invalidate(0);
  float stale = 0;
  if (!differentiate_own_nodes(s, loss, false, [&](const vpps_words &w, uint32_t node) {
        return vpps_fb(handle, s.raw, &w, node, &stale);
      })) {
    s.read_pointers(loss);
    vpps_words w = s.pending();
    check(vpps_fb(handle, s.raw, &w, loss, &stale));
    s.sent();
  }
  s.forget_from(0);
  s.spent = true;
  mark_gradients(loss);
  ++s.engine->updates;
  return stale;
}

uint64_t ComputationGraph::infer(const std::vector<VariableIndex> &wanted) {
  GraphState &s = *state_;
  VariableIndex last = 0;
  for (VariableIndex i : wanted) {
    get_dimension(i);
    last = std::max(last, i);
  }
  if (wanted.empty())
    throw std::invalid_argument("infer: no expression was given");
  recorder.check_devices(last);
  s.drop_outdated();
  if (own_nodes_up_to(last))
    return 0;
  recorder.patch(0, last);
  const vpps_words w = s.pending();
  uint64_t ticket = 0;
  check(vpps_infer(s.raw, &w, wanted.data(), wanted.size(), &ticket));
  s.sent();
  s.forget_from(0);
  s.spent = false;
  return ticket;
}

void ComputationGraph::keep(vpps_handle *handle, VariableIndex i) {
  get_dimension(i);
  check(vpps_handle_keep(handle, state_->raw, &i, 1));
}

void ComputationGraph::set_immediate_compute(bool on) { recorder.immediate = on; }
void ComputationGraph::set_check_validity(bool on) { state_->check_validity = on; }

// One call evaluates many nodes as fast as one. So a node waits for the next call, if no program
// can tell: its values are not checked, no pointer is read, and no code of the program's own
// computes it.
void ComputationGraph::node_added(VariableIndex i) {
  recorder.check_devices(i);
  if (!state_->check_validity && recorder.timeless(0)) {
    recorder.postponed = true;
    return;
  }
  const Tensor &t = fetch(i);
  if (state_->check_validity && !t.is_valid())
    throw std::runtime_error("NaN or Inf detected in node " + std::to_string(i));
}

// ---- add_... -------------------------------------------------------------------

VariableIndex ComputationGraph::add_input(real s, Device *device) {
  return input(*this, s, device).i;
}
VariableIndex ComputationGraph::add_input(const real *ps, Device *device) {
  return input(*this, ps, device).i;
}
VariableIndex ComputationGraph::add_input(const Dim &d, const std::vector<float> &data,
                                          Device *device) {
  return input(*this, d, data, device).i;
}
VariableIndex ComputationGraph::add_input(const Dim &d, const std::vector<float> *pdata,
                                          Device *device) {
  return input(*this, d, pdata, device).i;
}
VariableIndex ComputationGraph::add_input(const Dim &d, const std::vector<unsigned> &ids,
                                          const std::vector<float> &data, Device *device,
                                          float defdata) {
  return input(*this, d, ids, data, defdata, device).i;
}
VariableIndex ComputationGraph::add_parameters(Parameter p) { return parameter(*this, p).i; }
VariableIndex ComputationGraph::add_parameters(LookupParameter p) { return parameter(*this, p).i; }
VariableIndex ComputationGraph::add_const_parameters(Parameter p) {
  return const_parameter(*this, p).i;
}
VariableIndex ComputationGraph::add_const_parameters(LookupParameter p) {
  return const_parameter(*this, p).i;
}
VariableIndex ComputationGraph::add_lookup(LookupParameter p, unsigned index) {
  return lookup(*this, p, index).i;
}
VariableIndex ComputationGraph::add_lookup(LookupParameter p, const unsigned *pindex) {
  return lookup(*this, p, pindex).i;
}
VariableIndex ComputationGraph::add_lookup(LookupParameter p,
                                           const std::vector<unsigned> &indices) {
  return lookup(*this, p, indices).i;
}
VariableIndex ComputationGraph::add_lookup(LookupParameter p,
                                           const std::vector<unsigned> *pindices) {
  return lookup(*this, p, pindices).i;
}
VariableIndex ComputationGraph::add_const_lookup(LookupParameter p, unsigned index) {
  return const_lookup(*this, p, index).i;
}
VariableIndex ComputationGraph::add_const_lookup(LookupParameter p, const unsigned *pindex) {
  return const_lookup(*this, p, pindex).i;
}
VariableIndex ComputationGraph::add_const_lookup(LookupParameter p,
                                                 const std::vector<unsigned> &indices) {
  return const_lookup(*this, p, indices).i;
}
VariableIndex ComputationGraph::add_const_lookup(LookupParameter p,
                                                 const std::vector<unsigned> *pindices) {
  return const_lookup(*this, p, pindices).i;
}

// ---- Expression ----------------------------------------------------------------

namespace {
void fresh(const Expression &e) {
  if (e.is_stale() || e.i >= recorder.count())
    throw std::runtime_error("Attempt to use a stale expression: its graph is gone or was "
                             "cleared, build it anew");
}
} // namespace

const Tensor &Expression::value() const {
  fresh(*this);
  return pg->get_value(i);
}
const Tensor &Expression::gradient() const {
  fresh(*this);
  return pg->get_gradient(i);
}
const Dim &Expression::dim() const {
  fresh(*this);
  return recorder.dim(i);
}
std::string Expression::get_device_name() const {
  fresh(*this);
  return recorder.device(i)->name;
}

} // namespace dynet
