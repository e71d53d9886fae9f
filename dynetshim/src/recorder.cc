// Interning of dims, the memory of shape answers, and reading of pointers.
#include "recorder.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "graph_state.h"
#include "shape.h"

namespace dynet {

Recorder recorder;

namespace {

// Which attribute words a shape depends on, as a bit mask.
uint32_t shape_attributes(uint32_t op) {
  switch (op) {
  case VPPS_OP_PICK_ELEMENT: // axis, rows, n
    return 5;
  case VPPS_OP_PICK_BATCH_ELEMENTS:    // elements, n
  case VPPS_OP_RESTRICTED_LOG_SOFTMAX: // rows, n
    return 2;
  case VPPS_OP_HINGE: // margin, rows
    return 1;
  case VPPS_OP_PICK_NEG_LOG_SOFTMAX:
  case VPPS_OP_VANILLA_LSTM_GATES:
  case VPPS_OP_VANILLA_LSTM_GATES_DROPOUT:
    return 0;
  }
  return ~0u;
}

// Made for few small numbers, as dim ids are.
uint32_t hash(const uint32_t *words, uint32_t n) {
  uint32_t h = n;
  for (uint32_t i = 0; i < n; ++i)
    h = h * 37 + words[i];
  h *= 0x9e3779b1u;
  return h ^ h >> 15;
}

vpps_dim wire(const Dim &d) {
  vpps_dim w;
  std::memset(&w, 0, sizeof w);
  w.nd = d.nd;
  w.bd = d.bd;
  for (unsigned i = 0; i < d.nd; ++i)
    w.d[i] = d.d[i];
  return w;
}

} // namespace

void Recorder::open(ComputationGraph *g, unsigned graph_id) {
  graph = g;
  id = graph_id;
  immediate = postponed = ahead = awaits_inputs = false;
  ++epoch;
  words.resize(0);
  node_dims.resize(0);
  inputs.resize(0);
  wire_dims.resize(0);
  shown.clear();
  patches.resize(0);
  uses.resize(0);
  own_nodes.clear();
  places.resize(0);
  unlocate(0);
  destroy_released();
}

void Recorder::close() { open(nullptr, 0); }

Mark Recorder::mark() const {
  Mark m = {words.size(),     node_dims.size(), inputs.size(),
            patches.size(),   uses.size(),      graph->parameter_nodes.size(),
            own_nodes.size(), places.size()};
  return m;
}

void Recorder::rewind(const Mark &m) {
  ++rewinds;
  words.resize(m.words);
  node_dims.resize(m.nodes);
  inputs.resize(m.inputs);
  patches.resize(m.patches);
  uses.resize(m.uses);
  graph->parameter_nodes.resize(m.trainable);
  while (own_nodes.size() > m.own)
    own_nodes.pop_back();
  places.resize(m.places);
  unlocate(static_cast<uint32_t>(m.nodes));
  if (m.nodes == 0)
    destroy_released();
}

void Recorder::release(const std::shared_ptr<Engine> &engine, const ParameterStorageBase &p) {
  for (size_t i = 0; i < uses.size(); ++i)
    if (uses[i].storage == &p)
      uses[i].storage = nullptr;
  if (count() > 0)
    released.emplace_back(engine, p.id);
  else
    vpps_parameter_destroy(engine->raw, p.id);
}

void Recorder::destroy_released() {
  for (const std::pair<std::shared_ptr<Engine>, uint32_t> &p : released)
    vpps_parameter_destroy(p.first->raw, p.second);
  released.clear();
}

void Recorder::evaluate(VariableIndex i) { graph->node_added(i); }

void Recorder::evaluate_all() {
  postponed = false;
  if (count() > 0)
    graph->incremental_forward(static_cast<VariableIndex>(count() - 1));
}

void Recorder::take_back() {
  ahead = false;
  graph->state_->take_back();
}

void Recorder::foreign(const Expression &x) const {
  if (x.pg == nullptr)
    throw std::invalid_argument("an empty Expression was used: it was never given a value");
  if (id == 0)
    throw std::invalid_argument(
        "expression of a graph that is gone: build it anew in the new graph");
  if (x.graph_id != id)
    throw std::invalid_argument("expression " + std::to_string(x.i) +
                                " belongs to another graph: build it in the present one");
  throw std::invalid_argument("expression " + std::to_string(x.i) +
                              " is not in its graph any more (clear or revert took it away): "
                              "build it anew");
}

void Recorder::foreign_graph() const {
  throw std::invalid_argument("this graph is not the one being built");
}

uint32_t Recorder::intern(const vpps_dim &d) {
  if (slots_.size() < 2 * (wire_dims.size() + 1))
    grow_slots();
  uint32_t mask = static_cast<uint32_t>(slots_.size()) - 1;
  uint32_t at = hash(&d.nd, 9) & mask;
  for (; slots_[at].epoch == epoch; at = (at + 1) & mask)
    if (std::memcmp(&wire_dims[slots_[at].id], &d, sizeof d) == 0)
      return slots_[at].id;
  uint32_t dim_id = static_cast<uint32_t>(wire_dims.size());
  if (dim_id >= 1u << 24)
    throw std::invalid_argument("more than 2^24 different shapes in one graph");
  Dim d2;
  d2.nd = d.nd;
  d2.bd = d.bd;
  for (unsigned i = 0; i < d.nd; ++i)
    d2.d[i] = d.d[i];
  shown.push_back(d2);
  wire_dims.push(d);
  slots_[at].epoch = epoch;
  slots_[at].id = dim_id;
  return dim_id;
}

void Recorder::grow_slots() {
  std::vector<Slot> old;
  old.swap(slots_);
  Slot empty = {0, 0};
  slots_.assign(old.empty() ? 64 : 2 * old.size(), empty);
  uint32_t mask = static_cast<uint32_t>(slots_.size()) - 1;
  for (size_t i = 0; i < wire_dims.size(); ++i) {
    uint32_t at = hash(&wire_dims[i].nd, 9) & mask;
    while (slots_[at].epoch == epoch)
      at = (at + 1) & mask;
    slots_[at].epoch = epoch;
    slots_[at].id = static_cast<uint32_t>(i);
  }
}

uint32_t Recorder::intern(const Dim &d) {
  if (d.nd > DYNET_MAX_TENSOR_DIM)
    throw std::invalid_argument("a dim has at most 7 axes");
  vpps_dim w = wire(d);
  if (!vpps_dim_sane(&w)) {
    char text[128] = "";
    size_t at = 0;
    vpps_print_dim(text, sizeof text, &at, &w);
    throw std::invalid_argument(std::string("the dim ") + text +
                                " is empty or too large: sizes are at least 1, the whole is below "
                                "2^31 elements");
  }
  return intern(w);
}

uint32_t Recorder::intern_row(LookupParameterStorage &p) {
  if (p.row_dim_epoch != epoch) {
    p.row_dim_id = intern(p.dim);
    p.row_dim_epoch = epoch;
  }
  return p.row_dim_id;
}

uint32_t Recorder::intern_all(ParameterStorageBase &p) {
  if (p.dim_epoch != epoch) {
    p.dim_id = intern(p.engine_dim);
    p.dim_epoch = epoch;
  }
  return p.dim_id;
}

// What the shape rules say.
uint32_t Recorder::ask(uint32_t op, const uint32_t *args, uint32_t nargs, const uint32_t *attrs,
                       const Dim *wanted) {
  dims_of_args_.resize(nargs);
  for (uint32_t i = 0; i < nargs; ++i)
    dims_of_args_[i] = &wire_dims[node_dims[args[i]]];
  vpps_dim dim;
  if (wanted)
    dim = wire(*wanted);
  else
    std::memset(&dim, 0, sizeof dim);
  char msg[512] = "";
  if (vpps_infer_dim(op, dims_of_args_.data(), nargs, attrs, &dim, msg, sizeof msg) != 0) {
    awaits_inputs = false;
    throw std::invalid_argument(msg);
  }
  return intern(dim);
}

inline uint32_t Recorder::infer(uint32_t op, const uint32_t *args, uint32_t nargs,
                                const uint32_t *attrs, uint32_t nattrs, const Dim *wanted) {
  // Long lists are nearly always of one shape, which is then the result's.
  if (op == VPPS_OP_SUM && nargs > 0) {
    uint32_t same = node_dims[args[0]], i = 1;
    while (i < nargs && node_dims[args[i]] == same)
      ++i;
    if (i == nargs)
      return same;
  }
  // A shape depends on the operation, the dims of its arguments and some attributes.
  const uint32_t relevant = nattrs ? shape_attributes(op) : 0;
  const auto attribute = [&](uint32_t i) { return relevant >> i & 1 ? attrs[i] : 0; };
  Known *known = nullptr;
  if (wanted == nullptr && nargs + nattrs <= Known::most) {
    uint32_t h = op | nargs << 8;
    for (uint32_t i = 0; i < nargs; ++i)
      h = h * 37 + node_dims[args[i]];
    for (uint32_t i = 0; i < nattrs; ++i)
      h = h * 37 + attribute(i);
    h *= 0x9e3779b1u; // whose first ten bits say where
    static_assert(known_size == 1u << 10, "as many places as ten bits can name");
    // Two places per key, so that two frequent ones do not drive each other out.
    for (uint32_t place = 0; place < 2; ++place) {
      known = &known_[(h >> 22) ^ place];
      if (known->epoch != epoch)
        break;
      if (known->op != (op | nargs << 8))
        continue;
      uint32_t i = 0, k = 0;
      while (i < nargs && known->key[i] == node_dims[args[i]])
        ++i;
      while (i == nargs && k < nattrs && known->key[nargs + k] == attribute(k))
        ++k;
      if (i == nargs && k == nattrs)
        return known->result;
    }
  }
  const uint32_t dim_id = ask(op, args, nargs, attrs, wanted);
  if (known) {
    known->epoch = epoch;
    known->op = op | nargs << 8;
    known->result = dim_id;
    for (uint32_t i = 0; i < nargs; ++i)
      known->key[i] = node_dims[args[i]];
    for (uint32_t i = 0; i < nattrs; ++i)
      known->key[nargs + i] = attribute(i);
  }
  return dim_id;
}

inline uint32_t *Recorder::room_for_arguments(uint32_t op, size_t n) {
  const uint32_t before = vpps_op_args(op) < 0 ? 2 : 1;
  return words.room(before + n) + before;
}

inline Expression Recorder::complete(uint32_t op, uint32_t nargs, const uint32_t *attrs,
                                     uint32_t nattrs, const Dim *wanted) {
  const uint32_t variadic = vpps_op_args(op) < 0;
  uint32_t *w = words.data() + words.size(), *args = w + 1 + variadic, *d = node_dims.room(1);
  const uint32_t dim_id = infer(op, args, nargs, attrs, nattrs, wanted);
  w[0] = op | dim_id << 8;
  if (variadic)
    w[1] = nargs;
  for (uint32_t i = 0; i < nattrs; ++i)
    args[nargs + i] = attrs[i];
  *d = dim_id;
  words.took(1 + variadic + nargs + nattrs);
  return took();
}

Expression Recorder::node(uint32_t op, const uint32_t *args, uint32_t nargs, const uint32_t *attrs,
                          uint32_t nattrs, const Dim *wanted) {
  uint32_t *w = room_for_arguments(op, nargs + nattrs);
  for (uint32_t i = 0; i < nargs; ++i)
    w[i] = args[i];
  return complete(op, nargs, attrs, nattrs, wanted);
}

Expression Recorder::node(uint32_t op, const Expression *xs, size_t n, const uint32_t *attrs,
                          uint32_t nattrs) {
  if (n == 0)
    throw std::invalid_argument(std::string(vpps_op_name(op)) + ": needs at least one argument");
  uint32_t *w = room_for_arguments(op, n + nattrs);
  for (size_t i = 0; i < n; ++i) {
    own(xs[i]);
    w[i] = xs[i].i;
  }
  return complete(op, static_cast<uint32_t>(n), attrs, nattrs, nullptr);
}

Recorder::Read Recorder::read(size_t at) const {
  const uint32_t *w = words.data() + at;
  Read r;
  r.op = *w++ & 0xff;
  r.nargs = vpps_op_args(r.op) < 0 ? *w++ : static_cast<uint32_t>(vpps_op_args(r.op));
  r.args = w;
  r.attributes = w + r.nargs;
  w = r.attributes + static_cast<uint32_t>(vpps_op_attrs(r.op));
  r.next = static_cast<size_t>(w - words.data());
  return r;
}

size_t Recorder::words_of(uint32_t nodes) const {
  if (nodes == count())
    return words.size();
  size_t at = 0;
  for (uint32_t i = 0; i < nodes; ++i)
    at = read(at).next;
  return at;
}

OwnNode *Recorder::own_node(VariableIndex i) {
  const auto at = std::lower_bound(own_nodes.begin(), own_nodes.end(), i,
                                   [](const OwnNode &n, VariableIndex k) { return n.i < k; });
  return at != own_nodes.end() && at->i == i ? &*at : nullptr;
}

} // namespace dynet
